/**
 * What holds when a runner is killed: two real runners and a real Postgres.
 */
import { rmSync, writeFileSync } from "node:fs"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Option, Schedule, Stream } from "effect"
import { Approval, Message } from "effect-deepagents"
import { AgentClient, DurableAgent } from "effect-deepagents/durable"
import { SessionStore } from "effect-deepagents/sessions"
import { AgentTest } from "effect-deepagents/testing"
import { SqlClient } from "effect/sql"
import { isFull } from "../scale.ts"
import { postgres } from "../servers/postgres.ts"
import { clerk, did, guard, officer, teller } from "./children/agents.ts"
import { cluster } from "./children/cluster.ts"
import { divided, folder, runner } from "./places.ts"

class Url extends Context.Service<Url, string>()("test/Url") {}

const Place = Layer.unwrap(Effect.map(postgres, (url) => Layer.merge(Layer.succeed(Url, url), cluster(url))))

const timeout = 90_000

/** Waits until something is in the file, and says by which process. */
const until = (path: string, what: string) =>
  Effect.suspend(() => {
    const found = did(path).find((line) => line.what === what)
    return found === undefined ? Effect.fail("not yet") : Effect.succeed(found.pid)
  }).pipe(Effect.retry(Schedule.spaced("20 millis")))

const answersOf = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) =>
    message.role === "tool" ? [[message.toolName, message.isError ? "unknown" : Message.text(message)]] : []
  )

/** Waits until the result of a call is in the cluster's storage. */
const isStored = (callId: string) =>
  SqlClient.SqlClient.use(
    (sql) =>
      sql`SELECT 1 FROM cluster_messages WHERE tag = 'activity' AND payload LIKE ${`%/${callId}/%`} AND processed = true`
  ).pipe(
    Effect.flatMap((rows) => (rows.length === 1 ? Effect.void : Effect.fail("not yet"))),
    Effect.retry(Schedule.spaced("20 millis"))
  )

const twoRunners = Effect.fnUntraced(function* (path: string) {
  const url = yield* Url
  const runners = yield* Effect.all([runner(url, path), runner(url, path)], { concurrency: "unbounded" })
  yield* divided
  return runners
})

const killOne = (runners: ReadonlyArray<{ readonly pid: number; readonly kill: Effect.Effect<void> }>, pid: number) =>
  Effect.suspend(() => runners.find((one) => one.pid === pid)?.kill ?? Effect.die(new Error(`no runner is ${pid}`)))

const times = (path: string, what: string) => did(path).filter((line) => line.what === what).length

layer(Place, { timeout: 60_000, excludeTestServices: true })("a cluster", (it) => {
  it.effect(
    "after kill -9 in a tool call, another runner finishes, and reports unrepeatable calls",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const runners = yield* twoRunners(path)
      writeFileSync(`${path}/hold-pay`, "")
      const client = yield* AgentClient.of(teller(path), "tool")
      const sending = yield* Effect.forkChild(client.send("pay 1", { id: "1" }))
      const pid = yield* until(path, "pay 1")
      const steps: Array<number> = []
      const watching = yield* client.events().pipe(
        Stream.tap((event) => Effect.sync(() => (event._tag === "Stored" ? steps.push(event.step) : 0))),
        Stream.takeUntil((event) => event._tag === "Stored" && event.entry._tag === "RunSettled"),
        Stream.runDrain,
        Effect.forkChild
      )
      // It has told something before it dies.
      yield* Effect.repeat(Effect.sleep("20 millis"), { until: () => steps.length > 0 })
      yield* killOne(runners, pid)
      rmSync(`${path}/hold-pay`)
      assert.strictEqual((yield* Fiber.join(sending)).text, "done 1")
      assert.strictEqual(times(path, "pay 1"), 1)
      const history = yield* client.history
      assert.deepStrictEqual(answersOf(history), [
        ["pay", "unknown"],
        ["look", "look done"]
      ])
      assert.deepStrictEqual(AgentTest.pairingProblems(history), [])
      assert.notStrictEqual(yield* until(path, "look 1"), pid)
      yield* Fiber.join(watching)
      assert.deepStrictEqual(
        steps,
        steps.map((_, index) => index + 1)
      )
    }, Effect.scoped),
    timeout
  )

  it.effect.runIf(isFull)(
    "a stopped runner hands over its work",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const runners = yield* twoRunners(path)
      writeFileSync(`${path}/hold-pay`, "")
      const client = yield* AgentClient.of(teller(path), "stopped")
      const sending = yield* Effect.forkChild(client.send("pay 8", { id: "1" }))
      const pid = yield* until(path, "pay 8")
      yield* Effect.forEach(runners, (one) => (one.pid === pid ? one.stop : Effect.void))
      rmSync(`${path}/hold-pay`)
      assert.strictEqual((yield* Fiber.join(sending)).text, "done 8")
      assert.strictEqual(times(path, "pay 8"), 1)
      const history = yield* client.history
      assert.deepStrictEqual(answersOf(history), [
        ["pay", "unknown"],
        ["look", "look done"]
      ])
      assert.deepStrictEqual(AgentTest.pairingProblems(history), [])
    }, Effect.scoped),
    timeout
  )

  for (const [kind, how] of [
    ["an entity", "killed"],
    ["an entity", "stopped"],
    ["a workflow", "killed"],
    ["a workflow", "stopped"]
  ] as const) {
    it.effect.runIf(isFull)(
      `the runner of ${kind} is ${how} while a sub-agent is at work: it resumes elsewhere, and none of its work is lost`,
      Effect.fnUntraced(function* () {
        const path = yield* folder
        const runners = yield* twoRunners(path)
        // The sub-agent has paid, and looks.
        writeFileSync(`${path}/hold-look`, "")
        const threadId = `${kind} is ${how}`
        const sent = { threadId, inputId: "1", input: "delegate 9" }
        const sending = yield* Effect.forkChild(
          kind === "a workflow"
            ? DurableAgent.execute(clerk(path), sent)
            : Effect.flatMap(AgentClient.of(teller(path), threadId), (client) => client.send(sent.input, { id: "1" }))
        )
        const pid = yield* until(path, "look 9")
        yield* how === "killed"
          ? killOne(runners, pid)
          : Effect.forEach(runners, (one) => (one.pid === pid ? one.stop : Effect.void))
        rmSync(`${path}/hold-look`)
        assert.strictEqual((yield* Fiber.join(sending)).text, "it says: done 9")
        assert.strictEqual(times(path, "pay 9"), 1)
        const { messages = [], state = {} } = (yield* SessionStore.checkpoint(threadId)) ?? {}
        assert.deepStrictEqual(answersOf(messages), [["helper", "done 9"]])
        assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
        assert.deepStrictEqual(
          Object.keys(state).filter((slot) => slot.startsWith("inside")),
          []
        )
      }, Effect.scoped),
      timeout
    )
  }

  it.effect.runIf(isFull)(
    "kill -9 in the middle of a model stream: another runner asks again, nothing is doubled",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const runners = yield* twoRunners(path)
      writeFileSync(`${path}/hang`, "")
      const client = yield* AgentClient.of(teller(path), "stream")
      const sending = yield* Effect.forkChild(client.send("say 2", { id: "1" }))
      const pid = yield* until(path, "stream 2")
      rmSync(`${path}/hang`)
      yield* killOne(runners, pid)
      assert.strictEqual((yield* Fiber.join(sending)).text, "done 2")
      assert.deepStrictEqual(
        (yield* client.history).map((message) => [message.role, Message.text(message)]),
        [
          ["human", "say 2"],
          ["ai", "done 2"]
        ]
      )
    }, Effect.scoped),
    timeout
  )

  it.effect.runIf(isFull)(
    "after a kill in a round of calls, a workflow keeps finished calls and does not repeat begun ones",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const runners = yield* twoRunners(path)
      writeFileSync(`${path}/hold-ship`, "")
      const durable = clerk(path)
      const sent = { threadId: "workflow", inputId: "1", input: "both 3" }
      const executing = yield* Effect.forkChild(DurableAgent.execute(durable, sent))
      const pid = yield* until(path, "ship 3")
      yield* until(path, "pay-end 3")
      yield* until(path, "look-end 3")
      yield* isStored("pay-3")
      yield* isStored("look-3")
      yield* killOne(runners, pid)
      rmSync(`${path}/hold-ship`)
      assert.strictEqual((yield* Fiber.join(executing)).text, "done 3")
      const checkpoint = yield* SessionStore.checkpoint("workflow")
      assert.deepStrictEqual(answersOf(checkpoint?.messages ?? []), [
        ["pay", "pay done"],
        ["look", "look done"],
        ["ship", "unknown"]
      ])
      assert.deepStrictEqual(AgentTest.pairingProblems(checkpoint?.messages ?? []), [])
      assert.strictEqual(times(path, "pay 3"), 1)
      assert.strictEqual(times(path, "ship 3"), 1)
    }, Effect.scoped),
    timeout
  )

  it.effect.runIf(isFull)(
    "a workflow is interrupted from another process: its call is stopped, its thread is valid",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const url = yield* Url
      yield* runner(url, path)
      writeFileSync(`${path}/hold-pay`, "")
      const durable = clerk(path)
      const executionId = yield* DurableAgent.start(durable, { threadId: "stop", inputId: "1", input: "pay 9" })
      yield* until(path, "pay 9")
      yield* DurableAgent.interrupt(durable, executionId)
      const result = yield* DurableAgent.poll(durable, executionId).pipe(
        Effect.flatMap((known) =>
          Option.isSome(known) && known.value._tag === "Complete"
            ? Effect.succeed(known.value.exit)
            : Effect.fail("not yet")
        ),
        Effect.retry(Schedule.spaced("50 millis"))
      )
      assert.isTrue(Exit.hasInterrupts(result))
      rmSync(`${path}/hold-pay`)
      const messages = (yield* SessionStore.checkpoint("stop"))?.messages ?? []
      assert.deepStrictEqual(
        messages.map(({ role }) => role),
        ["human", "ai", "tool"]
      )
      assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
      assert.strictEqual(times(path, "pay-end 9"), 0)
    }, Effect.scoped),
    timeout
  )

  it.effect(
    "a decision and a wait need no process meanwhile",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const url = yield* Url
      const before = yield* runner(url, path)
      const asks = yield* AgentClient.of(guard(path), "asks")
      const waits = yield* AgentClient.of(guard(path), "waits")
      const durable = officer(path)
      const [asked, waited] = yield* Effect.all([asks.send("ship 5", { id: "1" }), waits.send("wait 6", { id: "1" })], {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual([asked.stopReason, waited.stopReason], ["suspended", "suspended"])
      const sent = { threadId: "officer", inputId: "1", input: "ship 7" }
      yield* DurableAgent.start(durable, sent)
      const requests = yield* DurableAgent.pending("officer").pipe(
        Effect.flatMap((pending) => (pending.length === 1 ? Effect.succeed(pending) : Effect.fail("not yet"))),
        Effect.retry(Schedule.spaced("50 millis"))
      )
      yield* before.kill
      const deciding = yield* Effect.forkChild(asks.decide(asked.pending.map((request) => Approval.approve(request))))
      yield* DurableAgent.decide(
        durable,
        sent,
        requests.map((request) => Approval.approve(request))
      )
      assert.deepStrictEqual(did(path), [])
      yield* runner(url, path)
      assert.strictEqual((yield* Fiber.join(deciding)).text, "done 5")
      assert.strictEqual((yield* DurableAgent.execute(durable, sent)).text, "done 7")
      assert.deepStrictEqual([times(path, "ship 5"), times(path, "ship 7")], [1, 1])
      yield* waits.events().pipe(
        Stream.takeUntil(
          (event) => event._tag === "Stored" && event.entry._tag === "RunSettled" && event.entry.outcome === "completed"
        ),
        Stream.runDrain
      )
      const last = (yield* waits.history).at(-1)
      assert.strictEqual(last === undefined ? undefined : Message.text(last), "done 6")
    }, Effect.scoped),
    timeout
  )

  it.effect.runIf(isFull)(
    "a schedule goes on when its runner is killed: each time once, none left out",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      writeFileSync(`${path}/cron`, "")
      const runners = yield* twoRunners(path)
      const client = yield* AgentClient.of(teller(path), "cron")
      const fired = (count: number) =>
        client.events().pipe(
          Stream.filter((event) => event._tag === "Stored" && event.entry._tag === "RunSettled"),
          Stream.take(count),
          Stream.runDrain
        )
      yield* fired(2)
      yield* runners[0].kill
      yield* fired(8)
      const times = (yield* client.history).flatMap((message) =>
        message.role === "human" ? [Number(Message.text(message).slice(4))] : []
      )
      assert.isAtLeast(times.length, 8)
      assert.deepStrictEqual(
        times,
        times.map((_, index) => (times[0] ?? 0) + index * 1_000)
      )
    }, Effect.scoped),
    timeout
  )

  const count = isFull ? 200 : 50

  it.effect(
    `${count} threads over two runners, one of them killed: every input has its outcome, every payment is made or reported`,
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const runners = yield* twoRunners(path)
      const names = Array.from({ length: count }, (_, index) => `many-${index}`)
      const sending = yield* Effect.forEach(
        names,
        Effect.fnUntraced(function* (name) {
          const client = yield* AgentClient.of(teller(path), name)
          return [name, (yield* client.send(`pay ${name}`, { id: "1" })).text] as const
        }),
        { concurrency: "unbounded" }
      ).pipe(Effect.forkChild)
      // One of the runners may begin later than the other.
      yield* Effect.repeat(
        Effect.delay(
          Effect.sync(() => did(path).map(({ pid }) => pid)),
          "10 millis"
        ),
        { until: (lines) => lines.length > count && new Set(lines).size === 2 }
      )
      yield* runners[0].kill
      const outcomes = yield* Fiber.join(sending)
      assert.deepStrictEqual(
        outcomes,
        names.map((name) => [name, `done ${name}`] as const)
      )
      yield* Effect.forEach(
        names,
        Effect.fnUntraced(function* (name) {
          const messages = (yield* SessionStore.checkpoint(name))?.messages ?? []
          assert.deepStrictEqual(
            messages.map(({ role }) => role),
            ["human", "ai", "tool", "ai", "tool", "ai"],
            name
          )
          assert.strictEqual(new Set(messages.map(({ id }) => id)).size, messages.length)
          assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
          const [pay] = answersOf(messages)
          if (pay?.[1] === "pay done") assert.strictEqual(times(path, `pay ${name}`), 1, name)
          else assert.isAtMost(times(path, `pay ${name}`), 1, name)
        }),
        { concurrency: 10 }
      )
    }, Effect.scoped),
    timeout
  )
})
