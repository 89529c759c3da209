/** An inbox in several processes at once. */
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { assert, describe, it, layer, type Vitest } from "@effect/vitest"
import { Deferred, Effect, Layer, type Scope } from "effect"
import { Agent } from "effect-deepagents"
import { Inbox } from "effect-deepagents/rules"
import { SessionStore } from "effect-deepagents/sessions"
import { bundle } from "../bundle.ts"
import { isFull } from "../scale.ts"
import { hasRedis } from "../servers/redis.ts"
import { type Place, layer as storeOf } from "../sessions/children/stores.ts"
import { aPrefix, aSchema, folder, Postgres, RedisServer } from "../sessions/places.ts"
import { clerk, inbox, paid } from "./children/clerk.ts"

interface Told {
  readonly threadId: string
  readonly claimed: string
  readonly decided: string
}

/** A person in a process of its own, once it has listed the pending requests. */
const person = Effect.fnUntraced(function* (kind: string, path: string, id: string) {
  const ready = yield* Deferred.make<void>()
  const told = yield* Deferred.make<ReadonlyArray<Told>>()
  const file = bundle(new URL("children/person.ts", import.meta.url))
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const args = [file, kind, path, id]
      const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })
      let text = ""
      child.stdout.on("data", (chunk) => {
        text += String(chunk)
        if (text.includes("ready\n")) Deferred.doneUnsafe(ready, Effect.void)
      })
      child.on("close", () => {
        // It logs, too: the run of a decision that came second.
        const line = text.split("\n").find((one) => one.startsWith("[{"))
        const end = line !== undefined ? Effect.void : Effect.die(new Error(`the process of ${id} said: ${text}`))
        Deferred.doneUnsafe(ready, end)
        Deferred.doneUnsafe(
          told,
          Effect.andThen(
            end,
            Effect.sync((): ReadonlyArray<Told> => JSON.parse(line ?? ""))
          )
        )
      })
      return child
    }),
    (child) => Effect.sync(() => child.kill("SIGKILL"))
  )
  yield* Deferred.await(ready)
  return Deferred.await(told)
})

const numbers = Array.from({ length: 6 }, (_, index) => index + 1)

/** `place` is a folder, whose content names the store of a process. */
const hold = <R>(
  kind: string,
  place: Effect.Effect<string, never, R | Scope.Scope>,
  test: Vitest.Tester<R | Scope.Scope>
) =>
  test(
    `on ${kind}, of two people who take a request at once one has it, and what two decide on is done once`,
    Effect.fnUntraced(function* () {
      const path = yield* place
      const sessions = SessionStore.journal.pipe(Layer.provideMerge(storeOf(kind, path)))
      yield* Effect.gen(function* () {
        for (const number of numbers) {
          yield* Agent.run(clerk(path), `${number}`, { threadId: `taken ${number}` })
          yield* Agent.run(clerk(path), `${number * 10}`, { threadId: `race ${number}` })
        }
        const { expire, list } = yield* Inbox.Inbox
        assert.strictEqual((yield* list()).length, 2 * numbers.length)
        const people = yield* Effect.all([person(kind, path, "ada"), person(kind, path, "eve")], {
          concurrency: "unbounded"
        })
        writeFileSync(`${path}/go`, "")
        const [ada, eve] = yield* Effect.all(people, { concurrency: "unbounded" })
        for (const [index, { claimed, decided, threadId }] of ada.entries()) {
          const other = eve[index]
          assert(other !== undefined && other.threadId === threadId)
          const both = [claimed, other.claimed]
          // The later process finds it claimed or decided.
          if (claimed !== "not tried") assert.strictEqual(both.filter((one) => one === "done").length, 1, both.join())
          const ends = [decided, other.decided]
          assert.include(ends, "done", threadId)
          for (const end of ends) assert.include(["done", "Claimed", "NotFound", "Undeliverable"], end)
        }
        assert.deepStrictEqual(
          paid(path)
            .map(Number)
            .toSorted((left, right) => left - right),
          [...numbers, ...numbers.map((number) => number * 10)].toSorted((left, right) => left - right)
        )
        assert.deepStrictEqual(yield* list(), [])
        yield* Agent.run(clerk(path), "7", { threadId: "late" })
        assert.strictEqual((yield* expire({ after: 0 })).length, 1)
        assert.deepStrictEqual(yield* list(), [])
        assert.notInclude(paid(path), "7")
      }).pipe(Effect.provide(inbox(path).pipe(Layer.provideMerge(sessions))))
    }),
    60_000
  )

const onServer = <R>(server: Effect.Effect<Place, never, R>) =>
  Effect.gen(function* () {
    const path = yield* folder
    writeFileSync(`${path}/server.json`, JSON.stringify(yield* server))
    return path
  })

const servers = { timeout: 60_000, excludeTestServices: true }

describe("Inbox in two processes", () => {
  if (isFull) {
    hold("sqlite", folder, it.live)
    hold("jsonl", folder, it.live)
  }
  layer(Postgres.layer, servers)((it) => hold("postgres", onServer(Effect.orDie(aSchema)), it.effect))
  describe.skipIf(!hasRedis)("on Redis", () => {
    layer(RedisServer.layer, servers)((it) => hold("redis", onServer(aPrefix), it.effect))
  })
})
