/** Schedules: each tick fires once, with two processes, after a restart, and after a time without any process. */
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Exit, Layer, Result, Scope } from "effect"
import { Agent, Message } from "effect-deepagents"
import { Workflow } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { Schedules, Server } from "effect-deepagents/server"
import { MemorySessions, type SessionStore } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"

const reporter = Agent.make({ name: "reporter", prompt: "You report." })
const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)
const runs = Server.layer({ reporter }).pipe(Layer.provide(TestChatModel.reactive(() => "It is written.")))

/** Fires until the scope closes. */
const process = Layer.build(Layer.fresh(Layer.provide(Schedules.layer, runs)))

const daily = {
  name: "morning",
  cron: "0 7 * * *",
  timeZone: "Europe/Berlin",
  tenant: "acme",
  agent: "reporter",
  thread: "report-{date}",
  input: "Write the report."
} as const

/** The threads and their inputs. */
const threads = Effect.gen(function* () {
  const { store } = yield* Server.tenant({ tenant: "acme", id: "ada", roles: [] })
  const { items } = yield* store.list()
  const all = yield* Effect.forEach(items, ({ threadId }) =>
    Effect.map(
      store.load(threadId),
      ({ entries }) =>
        [
          threadId,
          entries.filter(({ entry }) => entry._tag === "Message" && entry.message.role === "human").length
        ] as const
    )
  )
  return all.toSorted(([left], [right]) => left.localeCompare(right))
})

const pause = TestClock.withLive(Effect.sleep("30 millis"))

/** Waits until the threads and their inputs are these, and some time more for others that should not come. */
const expect = Effect.fnUntraced(function* (expected: ReadonlyArray<readonly [string, number]>) {
  let left = 200
  while (JSON.stringify(yield* threads) !== JSON.stringify(expected) && left-- > 0) yield* pause
  yield* pause
  assert.deepStrictEqual(yield* threads, expected)
})

const at = (time: string) => TestClock.setTime(Date.parse(time))

const test = <E>(
  name: string,
  work: Effect.Effect<void, E, SessionStore.SessionStore | Storage.Storage | Scope.Scope>
) => it.effect(name, () => work.pipe(Effect.scoped, Effect.provide(Layer.fresh(services))))

describe("Schedules", () => {
  test(
    "fire each tick once with two processes, in the thread of its time and by its time zone",
    Effect.gen(function* () {
      yield* at("2026-03-29T00:20:00Z")
      yield* Schedules.add({ ...daily, cron: "30 1,3 * * *", thread: "report-{date}-{time}" })
      yield* process
      yield* process
      yield* TestClock.adjust("11 minutes")
      yield* expect([["report-2026-03-29-01-30", 1]])
      // In Berlin, the clock went forward at two: half past three came an hour later.
      yield* TestClock.adjust("1 hour")
      yield* expect([
        ["report-2026-03-29-01-30", 1],
        ["report-2026-03-29-03-30", 1]
      ])
      const [listed] = yield* Schedules.list
      assert.strictEqual(listed === undefined ? "" : DateTime.formatIso(listed.next), "2026-03-29T23:30:00.000Z")
    })
  )

  test(
    "tell the agent the day and the time of the tick",
    Effect.gen(function* () {
      yield* at("2026-05-01T06:59:00Z")
      yield* Schedules.add({ ...daily, timeZone: "UTC", thread: "all", input: "Report of {date} at {time}: {other}" })
      yield* process
      yield* TestClock.adjust("90 seconds")
      yield* expect([["all", 1]])
      const { store } = yield* Server.tenant({ tenant: "acme", id: "ada", roles: [] })
      const { entries } = yield* store.load("all")
      assert.include(JSON.stringify(entries), '"Report of 2026-05-01 at 07-00: {other}"')
    })
  )

  for (const [missed, expected] of [
    ["skip", 1],
    ["once", 2]
  ] as const) {
    test(
      `collapse or skip the ticks without a process: ${missed}`,
      Effect.gen(function* () {
        yield* at("2026-05-01T00:00:00Z")
        yield* Schedules.add({ ...daily, cron: "0 * * * *", timeZone: "UTC", thread: "all", missed })
        const first = yield* Scope.make()
        yield* Scope.provide(process, first)
        yield* TestClock.adjust("65 minutes")
        yield* expect([["all", 1]])
        yield* Scope.close(first, Exit.void)
        yield* TestClock.adjust("610 minutes")
        yield* process
        yield* expect([["all", expected]])
        yield* TestClock.adjust("1 hour")
        yield* expect([["all", expected + 1]])
      })
    )
  }

  test(
    "fire a tick once when the process ends behind its input and before its note",
    Effect.gen(function* () {
      yield* at("2026-05-01T06:59:00Z")
      yield* Schedules.add({ ...daily, timeZone: "UTC", thread: "all" })
      const storage = yield* Storage.Storage
      const cut = Layer.succeed(Storage.Storage, {
        table: (name) => {
          const table = storage.table(name)
          return name === "schedules" ? { ...table, swap: () => Effect.die("killed") } : table
        }
      })
      const first = yield* Scope.make()
      yield* Scope.provide(Effect.provide(process, cut), first)
      yield* TestClock.adjust("90 seconds")
      yield* expect([["all", 1]])
      yield* Scope.close(first, Exit.void)
      yield* process
      yield* expect([["all", 1]])
      assert.strictEqual((yield* Schedules.list)[0]?.next.epochMilliseconds, Date.parse("2026-05-02T07:00:00Z"))
    })
  )

  test(
    "added, changed and removed while a process is up, count from then on",
    Effect.gen(function* () {
      yield* at("2026-05-01T06:00:00Z")
      yield* process
      yield* Schedules.add({ ...daily, name: "a", cron: "1 6 * * *", timeZone: "UTC", thread: "a" })
      yield* Schedules.add({ ...daily, name: "b", cron: "2 6 * * *", timeZone: "UTC", thread: "b-{time}" })
      yield* Schedules.add({ ...daily, name: "c", cron: "2 6 * * *", timeZone: "UTC", thread: "c", agent: "nobody" })
      yield* TestClock.adjust("70 seconds")
      yield* Schedules.remove("a")
      yield* TestClock.adjust("70 seconds")
      yield* expect([
        ["a", 1],
        ["b-06-02", 1]
      ])
    })
  )

  test(
    "refuse a name twice, invalid and impossible times, unknown zones, and the removal of a missing one",
    Effect.gen(function* () {
      yield* Schedules.add(daily)
      const refusals: ReadonlyArray<readonly [Partial<Schedules.Options>, string]> = [
        [{}, "remove it first"],
        [{ name: "x", cron: "every day" }, "a schedule is as"],
        [{ name: "x", timeZone: "Europe/Atlantis" }, "time zone"],
        [{ name: "x", cron: "0 0 30 2 *" }, "never come"],
        [{ name: "" }, "it is empty"],
        [{ name: "x", thread: "a\n" }, "control characters"],
        [{ name: "x", thread: "report-{day}" }, "write {date} or {time}"]
      ]
      for (const [options, problem] of refusals) {
        assert.include((yield* Effect.flip(Schedules.add({ ...daily, ...options }))).message, problem)
      }
      assert.strictEqual((yield* Effect.flip(Schedules.remove("x"))).reason, "NotFound")
      yield* Schedules.remove("morning")
      assert.deepStrictEqual(yield* Schedules.list, [])
    })
  )

  test(
    "give a workflow its input as JSON",
    Effect.gen(function* () {
      yield* at("2026-05-01T06:59:00Z")
      const reader = Agent.make({ name: "reader", prompt: "You read." })
      const survey = Workflow.make({ agents: [reader] })
      const script = `return await parallel(args.map((file) => () => agent("Read " + file)))`
      const input = Message.text(survey.input({ script, args: ["a", "b"] }))
      yield* Schedules.add({ ...daily, timeZone: "UTC", agent: "survey", thread: "survey-{date}", input })
      const workflows = Server.layer({ survey }).pipe(
        Layer.provide([
          TestChatModel.reactive(({ messages }) => `seen ${JSON.stringify(messages[0]?.content)}`),
          NodeScripts.layer()
        ])
      )
      yield* Layer.build(Layer.fresh(Layer.provide(Schedules.layer, workflows)))
      yield* TestClock.adjust("90 seconds")
      const { store } = yield* Server.tenant({ tenant: "acme", id: "ada", roles: [] })
      let text = ""
      for (let left = 300; left > 0 && !text.includes("replayed"); left--) {
        yield* pause
        const found = yield* Effect.result(store.load("survey-2026-05-01"))
        text = Result.isSuccess(found) ? JSON.stringify(found.success.entries) : ""
      }
      assert.match(text, /seen [^]*Read a[^]*seen [^]*Read b/)
    })
  )
})
