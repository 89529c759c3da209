/** Invariants when processes end, by themselves or by `kill -9`, and when several write at once. */
import type { ChildProcess } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { assert, describe, it, layer, type Vitest } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { Message } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import { bundle } from "../bundle.ts"
import { linesOf, runChild } from "../child.ts"
import { isFull, sampled } from "../scale.ts"
import { hasRedis } from "../servers/redis.ts"
import { type Place, layer as storeOf } from "./children/stores.ts"
import { aPrefix, aSchema, folder, Postgres, RedisServer } from "./places.ts"

/** Runs a process to its end; `onLine` may end it before. */
const run = (file: string, args: ReadonlyArray<string>, onLine?: (lines: number, child: ChildProcess) => void) =>
  Effect.map(
    runChild(bundle(new URL(`children/${file}`, import.meta.url)), args, (text, child) =>
      onLine?.(linesOf(text).length, child)
    ),
    ({ code, text }) => ({ code, lines: linesOf(text) })
  )

const whole = Effect.fnUntraced(function* (store: SessionStore.Service) {
  const page = yield* store.load("t", { limit: 10_000 })
  const { step } = yield* store.leaf("t")
  assert.strictEqual(page.entries.length, step)
  return page.entries.map(({ id }) => id)
})

const inStore = <A, E>(kind: string, path: string, body: (store: SessionStore.Service) => Effect.Effect<A, E>) =>
  Effect.provide(SessionStore.SessionStore.use(body), storeOf(kind, path))

/** The effects of the agent of `deep.ts`, in their order: model calls and tools. */
const effects = Array.from({ length: 11 }, (_, index) => index + 1)

/** `place` is a folder, whose content names the store of a process. */
const hold = <R>(
  kind: string,
  place: Effect.Effect<string, never, R | Scope.Scope>,
  test: Vitest.Tester<R | Scope.Scope>
) => {
  test(
    "kill -9 in the middle of 1,000 appends loses no acknowledged entry",
    Effect.fnUntraced(function* () {
      const path = yield* place
      const { code, lines } = yield* run("append.ts", [kind, path, "a", "1000"], (count, child) => {
        if (count > 100) child.kill("SIGKILL")
      })
      assert.strictEqual(code, null, "it was killed")
      assert.isAbove(lines.length, 100)
      assert.isBelow(lines.length, 1000)
      yield* inStore(
        kind,
        path,
        Effect.fnUntraced(function* (store) {
          const there = yield* whole(store)
          assert.deepStrictEqual(there.slice(0, lines.length), lines)
          // The append in flight may be there or not.
          assert.isAtMost(there.length, lines.length + 1)
          const leaf = yield* store.leaf("t")
          const entry = { _tag: "Message", message: Message.human("on") } as const
          yield* store.append("t", { leaf: leaf.id, entries: [{ id: "on", entry }] })
          assert.deepStrictEqual(yield* whole(store), [...there, "on"])
        })
      )
    }, Effect.scoped),
    60_000
  )

  test(
    "4 processes write to one thread, one of them is killed: nothing is lost, doubled or interleaved",
    Effect.fnUntraced(function* () {
      const path = yield* place
      const runs = yield* Effect.forEach(
        ["a", "b", "c", "d"],
        (name) =>
          run("append.ts", [kind, path, name, "60"], (count, child) => {
            if (name === "a" && count > 20) child.kill("SIGKILL")
          }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        runs.slice(1).map(({ code, lines }) => [code, lines.length]),
        [
          [0, 60],
          [0, 60],
          [0, 60]
        ]
      )
      const there = yield* inStore(kind, path, whole)
      assert.strictEqual(new Set(there).size, there.length)
      for (const [index, name] of ["a", "b", "c", "d"].entries()) {
        const own = there.filter((id) => id.startsWith(name))
        const acknowledged = runs[index]?.lines ?? []
        assert.deepStrictEqual(own.slice(0, acknowledged.length), acknowledged)
        assert.isAtMost(own.length, acknowledged.length + 1)
      }
    }, Effect.scoped),
    60_000
  )

  test(
    "a run is suspended in one process, decided on in another, and answers",
    Effect.fnUntraced(function* () {
      const path = yield* place
      const first = yield* run("agent.ts", [kind, path, "suspend"])
      assert.deepStrictEqual(first, { code: 0, lines: ['{"stopReason":"suspended","pending":["pay"]}'] })
      const second = yield* run("agent.ts", [kind, path, "decide"])
      assert.deepStrictEqual(second, {
        code: 0,
        lines: ['{"stopReason":"completed","text":"all done","problems":[]}']
      })
      assert.strictEqual(readFileSync(`${path}/did.txt`, "utf8"), "look\npay 7\n")
    }, Effect.scoped),
    60_000
  )

  test(
    "a run that was killed in a tool goes on: reading calls run again, calls with an unknown outcome don't",
    Effect.fnUntraced(function* () {
      const path = yield* place
      const first = yield* run("agent.ts", [kind, path, "crash"], (_, child) => child.kill("SIGKILL"))
      assert.deepStrictEqual(first, { code: null, lines: ['"in the tool"'] })
      const second = yield* run("agent.ts", [kind, path, "go on"])
      assert.strictEqual(second.code, 0)
      assert.deepStrictEqual(JSON.parse(second.lines[0] ?? ""), {
        text: "all done",
        rounds: 2,
        answers: [
          ["look", false],
          ["pay", true]
        ],
        problems: []
      })
      const did = readFileSync(`${path}/did.txt`, "utf8").split("\n")
      assert.strictEqual(did.filter((line) => line === "pay 7").length, 1)
      assert.strictEqual(did.filter((line) => line === "look").length, 2)
    }, Effect.scoped),
    60_000
  )

  // One store is killed at every effect; what differs between stores is seen at a few.
  for (const at of kind === "sqlite" ? sampled(effects) : effects.filter((effect) => effect % 4 === 1)) {
    test(
      `a deep agent three levels down that is killed at its effect ${at} ends with all of its work`,
      Effect.fnUntraced(function* () {
        const path = yield* place
        const first = yield* run("deep.ts", [kind, path, `${at}`, "run"])
        assert.deepStrictEqual(first, { code: null, lines: [] })
        const second = yield* run("deep.ts", [kind, path, "0", "resume"])
        const { text, ...rest } = JSON.parse(second.lines[0] ?? "{}")
        assert.deepStrictEqual(rest, { problems: [], inside: [] })
        const did = readFileSync(`${path}/did.txt`, "utf8").trim().split("\n")
        const twice = did.filter((line, index) => did.indexOf(line) !== index)
        const killed = did[at - 1] ?? ""
        // At most the turn in flight is asked for again; of a tool in flight it is said that nobody knows.
        assert.deepStrictEqual(twice, killed.startsWith("ask") ? [killed] : [])
        const unknown = "This call was begun, or about to be, when the run was cut off."
        const expected = "top: paid top + middle: paid middle + bottom: paid bottom"
        const [, payee = ""] = killed.split("pay ")
        const paid = text.replace(/This call was begun[^+]*repeat it\.( |$)/, `paid ${payee}$1`)
        assert.strictEqual(paid, expected)
        assert.strictEqual(text.includes(unknown), payee !== "")
      }, Effect.scoped),
      60_000
    )
  }

  test(
    "a run that was killed while the model spoke has the text up to the last moment, and asks again",
    Effect.fnUntraced(function* () {
      const path = yield* place
      const first = yield* run("agent.ts", [kind, path, "stream"], (count, child) => {
        if (count > 150) child.kill("SIGKILL")
      })
      assert.strictEqual(first.code, null)
      const told = first.lines.map((line): [number, string] => JSON.parse(line))
      const second = yield* run("agent.ts", [kind, path, "read"])
      const { said, ...rest } = JSON.parse(second.lines[0] ?? "")
      assert.deepStrictEqual(rest, { isPartial: true, text: "all done", roles: ["human", "ai"] })
      const all = told.map(([, text]) => text).join("")
      // The process may have stored text that it could not print any more.
      const missing = all.startsWith(said) ? all.slice(said.length).split(" ").length - 1 : 0
      assert.isTrue(all.startsWith(said) || said.startsWith(all))
      const [at = 0] = told[told.length - missing] ?? []
      const late = missing === 0 ? 0 : (told.at(-1)?.[0] ?? 0) - at
      // A busy machine is late with everything.
      assert.isAtMost(late, 400)
    }, Effect.scoped),
    60_000
  )
}

for (const kind of isFull ? ["sqlite", "jsonl"] : ["sqlite"])
  describe(`${kind} and processes`, () => hold(kind, folder, it.live))

/** A folder that tells where on the server to be. */
const tellPlace = <R>(place: Effect.Effect<Place, never, R>) =>
  Effect.gen(function* () {
    const path = yield* folder
    writeFileSync(`${path}/server.json`, JSON.stringify(yield* place))
    return path
  })

const servers = { timeout: 60_000, excludeTestServices: true }

describe.runIf(isFull)("on Postgres", () => {
  layer(Postgres.layer, servers)("postgres and processes", (it) =>
    hold("postgres", tellPlace(Effect.orDie(aSchema)), it.effect)
  )
})

describe.runIf(hasRedis && isFull)("on Redis", () => {
  layer(RedisServer.layer, servers)("redis and processes", (it) => hold("redis", tellPlace(aPrefix), it.effect))
})
