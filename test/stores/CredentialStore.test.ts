/**
 * Credentials: sealed, bound to their place, refreshed by one at a time, and never told.
 */
import { inspect } from "node:util"
import { assert } from "@effect/vitest"
import { Cause, Config, ConfigProvider, Deferred, Effect, Exit, Fiber, Layer, Logger, Redacted, Result } from "effect"
import { CredentialKey, CredentialStore, Storage } from "effect-deepagents/stores"
import { TestClock } from "effect/testing"
import { onAll } from "./places.ts"

let count = 0
const fresh = () => `tenant ${++count}`

const keyed = (text: string) =>
  CredentialKey.layerConfig(Config.Redacted("K")).pipe(
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown({ K: text })))
  )
const first = keyed(Buffer.alloc(32, 1).toString("base64"))
const second = keyed(Buffer.alloc(32, 2).toString("base64"))

const inStore = <A, E, R>(
  body: (store: CredentialStore.CredentialStore["Service"]) => Effect.Effect<A, E, R>,
  key: typeof first = first
) => Effect.provide(CredentialStore.CredentialStore.use(body), Layer.provide(CredentialStore.layer, key))

const failure = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.map(Effect.result(effect), Result.getFailure)

const secret = "s3cr3t-5f1d"
const token = (name: string, expiresAt?: number): CredentialStore.Credential =>
  CredentialStore.OAuthToken.make({
    accessToken: Redacted.make(`${secret}-${name}`),
    refreshToken: Redacted.make(`${secret}-refresh-${name}`),
    ...(expiresAt === undefined ? {} : { expiresAt })
  })
const nameOf = (credential: CredentialStore.Credential | undefined): string | undefined =>
  credential?._tag === "OAuthToken" ? Redacted.value(credential.accessToken).slice(secret.length + 1) : undefined

/** All printed forms of a value. */
const printed = (value: unknown): string =>
  [String(value), JSON.stringify(value), inspect(value, { depth: 20, showHidden: true })].join("\n")

const rowsOf = (table: string, namespace: string) =>
  Storage.Storage.use((storage) => storage.table(table).scan(namespace, { limit: 100 }))

onAll((it) => {
  it.effect("returns, lists and removes stored credentials", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        const key = CredentialStore.ApiKey.make({ key: Redacted.make(secret), metadata: { for: "search" } })
        const oauth = CredentialStore.OAuthToken.make({
          accessToken: Redacted.make("a"),
          refreshToken: Redacted.make("r"),
          expiresAt: 5,
          scopes: ["read"]
        })
        yield* store.set(own, "search", key)
        yield* store.set(own, "ä/../calendar", oauth)
        assert.deepStrictEqual(yield* store.get(own, "search"), key)
        assert.deepStrictEqual(yield* store.get(own, "ä/../calendar"), oauth)
        assert.deepStrictEqual(yield* store.names(own), ["search", "ä/../calendar"])
        assert.isUndefined(yield* store.get(own, "other"))
        assert.isUndefined(yield* store.get(fresh(), "search"))
        assert.isTrue(yield* store.remove(own, "search"))
        assert.isFalse(yield* store.remove(own, "search"))
        assert.isUndefined(yield* store.get(own, "search"))
      })
    )
  )

  it.effect("stores sealed values that reveal nothing and differ each time", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        yield* store.set(own, "a", token("one"))
        const [before] = yield* rowsOf("credentials", own)
        yield* store.set(own, "a", token("one"))
        const [after] = yield* rowsOf("credentials", own)
        assert.notStrictEqual(after?.value, before?.value)
        for (const row of [before, after]) {
          const { nonce, sealed } = JSON.parse(row?.value ?? "{}")
          const bytes = Buffer.concat([Buffer.from(nonce, "base64"), Buffer.from(sealed, "base64")])
          assert.notInclude(`${row?.value}${bytes.toString("latin1")}`, secret)
          assert.strictEqual(Buffer.from(nonce, "base64").length, 12)
        }
        assert.notStrictEqual(JSON.parse(before?.value ?? "{}").nonce, JSON.parse(after?.value ?? "{}").nonce)
      })
    )
  )

  it.effect("another key, another place or another byte opens nothing", () =>
    Effect.gen(function* () {
      const [own, other] = [fresh(), fresh()]
      const { table } = yield* Storage.Storage
      yield* inStore((store) => store.set(own, "a", token("one")))
      const [row] = yield* rowsOf("credentials", own)
      const value = row?.value ?? ""
      yield* table("credentials").put(own, [{ key: "b", value }])
      yield* table("credentials").put(other, [{ key: "a", value }])
      const parts = JSON.parse(value)
      const bytes = Buffer.from(parts.sealed, "base64")
      bytes[3] = (bytes[3] ?? 0) ^ 1
      yield* table("credentials").put(other, [
        { key: "c", value: JSON.stringify({ ...parts, sealed: bytes.toString("base64") }) }
      ])
      yield* table("credentials").put(other, [{ key: "d", value: "no JSON" }])
      yield* table("credentials").put(other, [{ key: "e", value: JSON.stringify({ ...parts, v: 2 }) }])
      const reasons = yield* inStore((store) =>
        Effect.forEach(
          [
            [own, "b"],
            [other, "a"],
            [other, "c"],
            [other, "d"],
            [other, "e"]
          ] as const,
          ([namespace, name]) => Effect.map(Effect.flip(store.get(namespace, name)), ({ reason }) => reason._tag)
        )
      )
      assert.deepStrictEqual(reasons, ["WrongKey", "WrongKey", "WrongKey", "Corrupt", "Corrupt"])
      const wrong = yield* inStore((store) => failure(store.get(own, "a")), second)
      assert.include(String(wrong), "provide the key that it was stored with")
      assert.strictEqual(nameOf(yield* inStore((store) => store.get(own, "a"))), "one")
    })
  )

  it.effect("an expired token is refreshed by one of many who ask, and all get the new one", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        yield* store.set(own, "a", token("old", 50_000))
        const given: Array<string | undefined> = []
        const gate = yield* Deferred.make<void>()
        const refresh = (credential: CredentialStore.Credential) =>
          Effect.as(
            Effect.andThen(
              Effect.sync(() => given.push(nameOf(credential))),
              Deferred.await(gate)
            ),
            token("new", 10_000_000)
          )
        const many = yield* Effect.forkChild(
          Effect.all(
            Array.from({ length: 8 }, () => store.refreshed(own, "a", { refresh })),
            { concurrency: "unbounded" }
          )
        )
        yield* Deferred.succeed(gate, undefined)
        assert.deepStrictEqual(
          (yield* Fiber.join(many)).map(nameOf),
          Array.from({ length: 8 }, () => "new")
        )
        assert.deepStrictEqual(given, ["old"])
        assert.strictEqual(nameOf(yield* store.refreshed(own, "a", { refresh })), "new")
        assert.deepStrictEqual(given, ["old"])
        assert.deepStrictEqual(yield* rowsOf("leases", own), [])
      })
    )
  )

  it.effect("refreshes a token with less than a minute left, never a key, and whenever isExpired says so", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        const refresh = () => Effect.succeed(token("new"))
        yield* store.set(own, "valid", token("old", 60_001))
        yield* store.set(own, "soon", token("old", 60_000))
        yield* store.set(own, "endless", token("old"))
        yield* store.set(own, "key", CredentialStore.ApiKey.make({ key: Redacted.make("k") }))
        assert.strictEqual(nameOf(yield* store.refreshed(own, "valid", { refresh })), "old")
        assert.strictEqual(nameOf(yield* store.refreshed(own, "soon", { refresh })), "new")
        assert.strictEqual(nameOf(yield* store.refreshed(own, "endless", { refresh })), "old")
        assert.strictEqual((yield* store.refreshed(own, "key", { refresh }))._tag, "ApiKey")
        assert.strictEqual(
          nameOf(yield* store.refreshed(own, "key", { refresh, isExpired: ({ _tag }) => _tag === "ApiKey" })),
          "new"
        )
      })
    )
  )

  it.effect("a refresh that fails, or takes too long, leaves the old one, and the next one tries again", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        yield* store.set(own, "a", token("old", 0))
        const refused = yield* failure(store.refreshed(own, "a", { refresh: () => Effect.fail("refused" as const) }))
        assert.deepStrictEqual(refused, Result.getFailure(Result.fail("refused")))
        assert.strictEqual(nameOf(yield* store.get(own, "a")), "old")
        const began = yield* Deferred.make<void>()
        const endless = () => Effect.andThen(Deferred.succeed(began, undefined), Effect.never)
        const slow = yield* Effect.forkChild(failure(store.refreshed(own, "a", { refresh: endless })))
        // A real database answers in its own time, and its client must not see the clock run away.
        yield* Deferred.await(began)
        yield* TestClock.adjust("30 seconds")
        assert.include(String(yield* Fiber.join(slow)), "took longer than 30000 ms")
        assert.strictEqual(nameOf(yield* store.get(own, "a")), "old")
        const died = yield* Effect.exit(store.refreshed(own, "a", { refresh: () => Effect.die("bug") }))
        assert.isTrue(Exit.hasDies(died))
        const thrown = (): Effect.Effect<never> => {
          throw new Error("bug")
        }
        assert.isTrue(Exit.hasDies(yield* Effect.exit(store.refreshed(own, "a", { refresh: thrown }))))
        assert.strictEqual(
          nameOf(yield* store.refreshed(own, "a", { refresh: () => Effect.succeed(token("new")) })),
          "new"
        )
        assert.deepStrictEqual(yield* rowsOf("leases", own), [])
      })
    )
  )

  it.effect("keeps a value that is set while a refresh goes on", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        yield* store.set(own, "a", token("old", 0))
        const refresh = () => Effect.as(Effect.orDie(store.set(own, "a", token("login", 99_000_000))), token("stale"))
        assert.strictEqual(nameOf(yield* store.refreshed(own, "a", { refresh })), "login")
        assert.strictEqual(nameOf(yield* store.get(own, "a")), "login")
      })
    )
  )

  it.effect("takes the token of another process that has just refreshed", () =>
    Effect.gen(function* () {
      const own = fresh()
      const storage = yield* Storage.Storage
      const theirs = inStore((store) => store.set(own, "a", token("theirs", 99_000_000))).pipe(
        Effect.provideService(Storage.Storage, storage),
        Effect.orDie
      )
      yield* inStore((store) => store.set(own, "a", token("old", 0)))
      /** The other process is done between the look at the token and the lease. */
      const between: typeof storage = {
        table: (name) => {
          const table = storage.table(name)
          if (name !== "leases") return table
          return { ...table, get: (...at) => Effect.andThen(theirs, table.get(...at)) }
        }
      }
      let asked = 0
      const refresh = () => Effect.sync(() => (asked++, token("new", 99_000_000)))
      const found = yield* inStore((store) => store.refreshed(own, "a", { refresh })).pipe(
        Effect.provideService(Storage.Storage, between)
      )
      assert.strictEqual(nameOf(found), "theirs")
      assert.strictEqual(asked, 0)
    })
  )

  it.effect("waits for the lease of another process; an abandoned lease ends by itself", () =>
    inStore(
      Effect.fnUntraced(function* (store) {
        const own = fresh()
        const { table } = yield* Storage.Storage
        yield* TestClock.setTime(1_000_000)
        yield* store.set(own, "a", token("old", 0))
        const leave = (until: number) =>
          table("leases").put(own, [{ key: "a", value: JSON.stringify({ owner: "somebody", until }) }])
        let asked = 0
        const refresh = () =>
          Effect.sync(() => {
            asked++
            return token("new", 99_000_000)
          })
        const until = <A>(fiber: Fiber.Fiber<A, unknown>, millis: number) =>
          Effect.gen(function* () {
            for (let passed = 0; passed < millis && fiber.pollUnsafe() === undefined; passed += 100) {
              yield* TestClock.adjust(100)
              yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 2)))
            }
          })
        yield* leave(1_000_000 + 3_000)
        const waiting = yield* Effect.forkChild(store.refreshed(own, "a", { refresh }))
        yield* until(waiting, 2_000)
        assert.strictEqual(asked, 0)
        yield* until(waiting, 60_000)
        assert.strictEqual(nameOf(yield* Fiber.join(waiting)), "new")
        assert.strictEqual(asked, 1)

        // The value of the other process is used.
        yield* store.set(own, "a", token("old", 0))
        yield* leave(1e13)
        const other = yield* Effect.forkChild(store.refreshed(own, "a", { refresh }))
        yield* until(other, 1_000)
        yield* store.set(own, "a", token("theirs", 99_000_000))
        yield* until(other, 60_000)
        assert.strictEqual(nameOf(yield* Fiber.join(other)), "theirs")
        assert.strictEqual(asked, 1)
      })
    )
  )

  it.effect("no error, log or printed value has a secret in it", () =>
    Effect.gen(function* () {
      const own = fresh()
      const logged: Array<unknown> = []
      const logger = Logger.make((entry) => void logged.push(entry.message, Cause.pretty(entry.cause)))
      const told = yield* inStore(
        Effect.fnUntraced(function* (store) {
          yield* store.set(own, "a", token("one", 0))
          const credential = yield* store.get(own, "a")
          // Neither of them is a credential: messages about them must not quote them.
          const wrong = { _tag: "ApiKey", key: secret } as unknown as CredentialStore.Credential
          const errors = [
            yield* failure(store.set(own, "a", wrong)),
            yield* failure(
              store.set(own, "a", { ...token("x"), scopes: [secret.repeat(9000)] } as CredentialStore.Credential)
            ),
            yield* failure(store.set(own, "a\n", token("two"))),
            yield* failure(store.refreshed(own, "none", { refresh: () => Effect.succeed(token("x")) })),
            yield* failure(store.refreshed(own, "a", { refresh: () => Effect.succeed(wrong) }))
          ]
          assert.isTrue(errors.every((error) => error._tag === "Some"))
          return [credential, ...errors, yield* Effect.exit(store.set(own, "b", wrong)), store]
        })
      ).pipe(Effect.provide(Logger.layer([logger])))
      const wrongKey = yield* inStore((store) => failure(store.get(own, "a")), second)
      for (const value of [...told, wrongKey, ...logged]) assert.notInclude(printed(value), secret)
    })
  )
})
