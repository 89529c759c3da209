/** Reserves, settles and breaks off at random on a ledger shared with others. Prints the acknowledged operations. */
import { readFileSync, writeSync } from "node:fs"
import { Ledger } from "effect-deepagents/stores"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { Place } from "../../sessions/children/stores.ts"

const [kind = "", path = "", name = "", count = "", skew = "0"] = process.argv.slice(2)

// Windows follow a wrong clock.
const now = Date.now
Date.now = () => now() + Number(skew)

type Loaded = Layer.Layer<Ledger.Ledger, unknown>

const placeOf = (): Place => {
  const place: Place = JSON.parse(readFileSync(`${path}/server.json`, "utf8"))
  return place
}

const layers: Record<string, () => Promise<Loaded>> = {
  sqlite: async () => {
    const SqliteClient = await import("effect-deepagents/sessions/SqliteClient")
    return Ledger.layerSql.pipe(Layer.provide(SqliteClient.layer({ file: `${path}/ledger.db` })))
  },
  postgres: async () => (await import("./ledgerOnPostgres.ts")).onPostgres(placeOf()),
  redis: async () => (await import("./ledgerOnRedis.ts")).onRedis(placeOf())
}

const caps = (accounts: ReadonlyArray<string>): ReadonlyArray<Ledger.Cap> =>
  accounts.map((account) => ({ account, window: "ever", max: { tokens: 20_000 } }))

const pick = (below: number): number => Math.floor(Math.random() * below)

const worker = (fiber: number) =>
  Effect.gen(function* () {
    const ledger = yield* Ledger.Ledger
    for (let n = 0; n < Number(count); n++) {
      const id = `${name}-${fiber}-${n}`
      const accounts = [["p"], ["t"], ["p", "t"], ["t", "p"]][pick(4)] ?? []
      const want = pick(300)
      const scope = yield* Scope.make()
      writeSync(1, `want ${id} ${accounts.join("+")} ${want}\n`)
      const reservation = yield* Effect.exit(
        Scope.provide(ledger.reserve(caps(accounts), { tokens: want, modelCalls: 1 }), scope)
      )
      if (Exit.isSuccess(reservation)) {
        writeSync(1, `took ${id}\n`)
        const used = pick(want + 1)
        if (pick(4) > 0) {
          yield* reservation.value.settle({ tokens: used, modelCalls: 1 })
          writeSync(1, `used ${id} ${used}\n`)
        }
      } else writeSync(1, `none ${id}\n`)
      yield* Scope.close(scope, Exit.void)
      if (pick(3) === 0) yield* Effect.sleep(pick(5))
    }
  })

const program = Effect.forEach([1, 2, 3, 4], worker, { concurrency: "unbounded", discard: true })
await Effect.runPromise(Effect.provide(program, (await layers[kind]?.()) ?? Ledger.layerMemory))
