import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it, layer, type Vitest } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Schema, type Scope, Stream } from "effect"
import { Agent, Approval, Message, Question, Tool, ToolContext } from "effect-deepagents"
import { ApprovalClassifier, BackgroundSubagents, BackgroundTasks, HumanInTheLoop } from "effect-deepagents/middleware"
import { Audit, Inbox, Notify } from "effect-deepagents/rules"
import { JsonlSessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { hasRedis } from "../servers/redis.ts"
import * as places from "../sessions/places.ts"

const paid: Array<number> = []
const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { amount: Schema.Int },
  execute: ({ amount }) => Effect.sync(() => (paid.push(amount), `paid ${amount}`))
})
const book = Tool.make("book", {
  description: "Books a seat",
  parameters: {},
  execute: Effect.fnUntraced(function* () {
    const { ask } = yield* ToolContext.ToolContext
    return yield* ask(Question.make("Which seat?", { answer: Schema.Literals(["window", "aisle"]) }))
  })
})

const rules = HumanInTheLoop.on(pay, { deciders: ["ada", "role:finance"], name: "payments" })
const child = Agent.make({ name: "child", prompt: "", tools: [pay] })
const clerk = Agent.make({
  name: "clerk",
  prompt: "",
  tools: [pay, book, Agent.asTool(child, { name: "child", description: "" })],
  middleware: [HumanInTheLoop.make({ tools: rules })]
})

/** The message names the calls. */
const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  if (last === undefined || last.role === "tool") return "done"
  const said = Message.text(last)
  const [name = "", amount] = said.split(" ")
  if (name === "hello") return "hi"
  if (name === "child") return TestChatModel.calls([{ name, arguments: { task: "pay 7" } }])
  return TestChatModel.calls([{ name, arguments: amount === undefined ? {} : { amount: Number(amount) } }])
})

const say = (threadId: string, text: string) => Agent.run(clerk, text, { threadId })

const inbox = Inbox.layer({ deliver: Inbox.toAgents([clerk]) })
const ada: Approval.Principal = { id: "ada" }
const eve: Approval.Principal = { id: "eve", roles: ["finance"] }
const reasonOf = Effect.map((error: Inbox.InboxError) => error.reason)

type Sessions = Layer.Layer<SessionStore.SessionStore>

/** The tests for every store. */
const hold = <R>(store: Effect.Effect<Sessions, never, R | Scope.Scope>, test: Vitest.Tester<R | Scope.Scope>) => {
  const using = <A, E>(
    effect: Effect.Effect<A, E, Inbox.Inbox | SessionStore.SessionStore | Layer.Success<typeof model> | SessionJournal>
  ) =>
    Effect.gen(function* () {
      paid.length = 0
      const sessions = SessionStore.journal.pipe(Layer.provideMerge(yield* store))
      return yield* Effect.provide(effect, inbox.pipe(Layer.provideMerge(Layer.merge(sessions, model))))
    })

  test("lists pending requests of all threads, with sub-agents' requests and questions, the oldest first", () =>
    using(
      Effect.gen(function* () {
        const { list } = yield* Inbox.Inbox
        yield* say("a", "pay 5")
        yield* TestClock.adjust("1 second")
        yield* say("b", "book")
        yield* say("c", "hello")
        yield* TestClock.adjust("1 second")
        yield* say("d", "child")
        const items = yield* list()
        assert.deepStrictEqual(
          items.map(({ kind: what, request, severity, threadId }) => [
            threadId,
            what,
            severity,
            request.path.join("/"),
            request.toolName
          ]),
          [
            ["a", "approval", "normal", "clerk", "pay"],
            ["b", "question", "low", "clerk", "book"],
            ["d", "approval", "normal", "clerk/child", "pay"]
          ]
        )
        assert.deepStrictEqual(
          (yield* list({ kinds: ["question"] })).map(({ threadId }) => threadId),
          ["b"]
        )
        assert.deepStrictEqual((yield* list({ threadId: "c" })).length, 0)
        assert.deepStrictEqual((yield* list({ threadId: "nowhere" })).length, 0)
      })
    ))

  test("continues the thread after a decision, records the decider, and removes the request", () =>
    using(
      Effect.gen(function* () {
        const { decide, list } = yield* Inbox.Inbox
        yield* say("a", "pay 5")
        yield* say("b", "book")
        const items = yield* list()
        const decisions = items.map(({ request }) =>
          request.answer === undefined ? Approval.approve(request) : Approval.respond(request, "aisle")
        )
        yield* decide(decisions, { by: ada })
        assert.deepStrictEqual(paid, [5])
        assert.deepStrictEqual(yield* list(), [])
        const audit = yield* Stream.runCollect(Audit.records())
        assert.deepStrictEqual(
          [...audit]
            .map(({ decision, isAsShown, request, threadId }) => [
              threadId,
              request.rule,
              decision?._tag,
              decision?.by?.id,
              isAsShown
            ])
            .toSorted(([left = ""], [right = ""]) => String(left).localeCompare(String(right))),
          [
            ["a", "payments", "Approve", "ada", true],
            ["b", undefined, "Respond", "ada", true]
          ]
        )
        const again = yield* Effect.flip(decide(decisions, { by: ada }))
        assert.strictEqual(again.reason._tag, "NotFound")
      })
    ))

  test("of many who claim at once one has it, for its time; others can't decide", () =>
    using(
      Effect.gen(function* () {
        const { claim, decide, list, release } = yield* Inbox.Inbox
        yield* say("a", "pay 5")
        const [item] = yield* list()
        assert(item !== undefined)
        const { id, request } = item
        const people = Array.from({ length: 8 }, (_, index) => ({ id: `p${index}`, roles: ["finance"] }))
        const claims = yield* Effect.forEach(people, (by) => Effect.exit(claim(id, { by })), {
          concurrency: "unbounded"
        })
        assert.strictEqual(claims.filter(Exit.isSuccess).length, 1)
        const winner = people[claims.findIndex(Exit.isSuccess)] ?? ada
        const other = yield* Effect.flip(decide([Approval.approve(request)], { by: ada }))
        assert.deepInclude(other.reason, { _tag: "Claimed", by: winner.id })
        assert.deepStrictEqual((yield* list({ isFree: true })).length, 0)
        // Somebody else can't give it back.
        yield* release(id, { by: ada })
        assert.deepStrictEqual((yield* list({ claimedBy: winner.id })).length, 1)
        yield* TestClock.adjust("16 minutes")
        yield* claim(id, { by: eve })
        yield* release(id, { by: eve })
        const refused = yield* Effect.flip(claim(id, { by: { id: "bob" } }))
        assert.strictEqual(refused.reason._tag, "Refused")
        yield* decide([Approval.approve(request)], { by: eve })
        assert.deepStrictEqual(paid, [5])
      })
    ))

  test("announces each request once over several inboxes, and retries one that could not be sent", () =>
    using(
      Effect.gen(function* () {
        const sent: Array<string> = []
        let isDown = true
        const notify = Layer.succeed(Notify.Notify, {
          send: ({ id }) =>
            isDown
              ? Effect.fail(new Notify.NotifyError({ way: "test", problem: "down" }))
              : Effect.sync(() => void sent.push(id))
        })
        const first = yield* Inbox.Inbox
        const second = yield* Effect.map(Layer.build(inbox), (context) => context.pipe((it) => it))
        const { notify: other } = yield* Effect.provideContext(Inbox.Inbox, second)
        yield* say("a", "pay 5")
        yield* say("b", "pay 6")
        assert.deepStrictEqual((yield* Effect.provide(first.notify, notify)).length, 0)
        isDown = false
        yield* Effect.provide(Effect.all([first.notify, other, first.notify], { concurrency: "unbounded" }), notify)
        yield* Effect.provide(first.notify, notify)
        assert.strictEqual(sent.length, 2)
        assert.strictEqual(new Set(sent).size, 2)
      }).pipe(Effect.scoped)
    ))

  test("announces requests that an interrupted or dead inbox did not announce", () =>
    using(
      Effect.gen(function* () {
        const sent: Array<string> = []
        const { notify: other } = yield* Effect.provideContext(Inbox.Inbox, yield* Layer.build(inbox))
        const { notify } = yield* Inbox.Inbox
        const begun = yield* Deferred.make<void>()
        const hanging = Layer.succeed(Notify.Notify, {
          send: () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
        })
        const broken = Layer.succeed(Notify.Notify, { send: () => Effect.die("a defect") })
        const sending = Layer.succeed(Notify.Notify, { send: ({ id }) => Effect.sync(() => void sent.push(id)) })
        yield* say("a", "pay 5")
        assert.deepStrictEqual(yield* Effect.provide(notify, broken), [])
        const fiber = yield* Effect.forkChild(Effect.provide(notify, hanging))
        yield* Deferred.await(begun)
        // The first inbox may still be sending.
        assert.deepStrictEqual(yield* Effect.provide(other, sending), [])
        yield* TestClock.adjust("6 minutes")
        assert.lengthOf(yield* Effect.provide(other, sending), 1)
        yield* Fiber.interrupt(fiber)
        yield* say("b", "pay 6")
        const second = yield* Effect.forkChild(Effect.provide(notify, hanging))
        yield* Effect.yieldNow
        yield* Fiber.interrupt(second)
        yield* Effect.provide(other, sending)
        yield* TestClock.adjust("6 minutes")
        yield* Effect.provide(other, sending)
        assert.strictEqual(sent.length, 2)
      }).pipe(Effect.scoped)
    ))
}

describe("Inbox on memory", () => hold(Effect.succeed(places.memory.layer()), it.effect))
describe("Inbox on SQLite", () =>
  hold(
    Effect.map(places.folder, (path) => Layer.orDie(places.sqlite.layer(`${path}/sessions.db`))),
    it.effect
  ))
describe("Inbox on JSON lines", () =>
  hold(
    Effect.map(places.folder, (folder) =>
      JsonlSessions.layer({ folder }).pipe(Layer.provide(NodeServices.layer), Layer.orDie)
    ),
    it.effect
  ))

const servers = { timeout: 60_000 }

layer(places.Postgres.layer, servers)("Inbox on Postgres", (it) =>
  hold(Effect.map(places.postgres.place, places.postgres.layer), it.effect)
)

describe.skipIf(!hasRedis)("on Redis", () => {
  layer(places.RedisServer.layer, servers)("Inbox on Redis", (it) =>
    hold(Effect.map(places.redis.place, places.redis.layer), it.effect)
  )
})

type SessionJournal = Layer.Success<typeof SessionStore.journal>

describe("Inbox", () => {
  const here = inbox.pipe(
    Layer.provideMerge(Layer.merge(SessionStore.journal.pipe(Layer.provideMerge(places.memory.layer())), model))
  )

  it.effect("expire rejects requests that waited too long unclaimed, except those for certain deciders only", () =>
    Effect.gen(function* () {
      const { claim, expire, list } = yield* Inbox.Inbox
      yield* say("a", "book")
      yield* say("b", "book")
      yield* say("c", "pay 5")
      const [first] = yield* list({ threadId: "a" })
      yield* claim(first?.id ?? "", { by: ada, for: "1 day" })
      yield* TestClock.adjust("2 hours")
      const gone = yield* expire({ after: "1 hour" })
      assert.deepStrictEqual(
        gone.map(({ threadId }) => threadId),
        ["b"]
      )
      const remaining = (yield* list()).map(({ threadId }) => threadId)
      assert.sameMembers(remaining, ["a", "c"])
    }).pipe(Effect.provide(here))
  )

  it.effect("delivers none of several decisions if any is invalid or contradicts another", () =>
    Effect.gen(function* () {
      paid.length = 0
      const { decide, list } = yield* Inbox.Inbox
      yield* say("a", "pay 5")
      yield* TestClock.adjust("1 second")
      yield* say("b", "book")
      const [first, second] = yield* list()
      assert(first !== undefined && second !== undefined)
      const approved = Approval.approve(first.request)
      const window = Approval.respond(second.request, "window")
      for (const wrong of [
        [Approval.respond(second.request, "roof")],
        [window, Approval.reject(second.request)],
        [window, Approval.respond(second.request, "aisle")]
      ]) {
        const refused = Effect.flip(decide([approved, ...wrong], { by: ada }))
        assert.strictEqual((yield* reasonOf(refused))._tag, "Refused")
        assert.deepStrictEqual(paid, [])
      }
      assert.strictEqual((yield* list()).length, 2)
      yield* decide([approved, window, approved, window], { by: ada })
      assert.deepStrictEqual(paid, [5])
      assert.deepStrictEqual(yield* list(), [])
    }).pipe(Effect.provide(here))
  )

  it.effect("keeps a claim without an end", () =>
    Effect.gen(function* () {
      const { claim, list } = yield* Inbox.Inbox
      yield* say("a", "pay 5")
      const [item] = yield* list()
      yield* claim(item?.id ?? "", { by: ada, for: Infinity })
      const other = yield* Effect.flip(claim(item?.id ?? "", { by: eve }))
      assert.include(other.message, '"ada" has taken it')
    }).pipe(Effect.provide(here))
  )

  it.effect("refuses a decision on another request than the shown one, and a decision by an unauthorised decider", () =>
    Effect.gen(function* () {
      const { decide, list } = yield* Inbox.Inbox
      yield* say("a", "pay 5")
      const [item] = yield* list()
      assert(item !== undefined)
      const other = { ...item.request, arguments: { amount: 1 } }
      const wrong = Approval.decidedBy(Approval.approve(other), other, { by: ada })
      assert.strictEqual((yield* reasonOf(Effect.flip(decide([wrong], { by: ada }))))._tag, "Refused")
      // A person who may choose a name must not choose a role by it.
      for (const id of ["bob", "role:finance"]) {
        const bob = Effect.flip(decide([Approval.approve(item.request)], { by: { id } }))
        assert.strictEqual((yield* reasonOf(bob))._tag, "Refused", id)
      }
      assert.deepStrictEqual(
        paid.filter((amount) => amount === 1),
        []
      )
      assert.strictEqual((yield* list()).length, 1)
    }).pipe(Effect.provide(here))
  )

  const clerkOf = Agent.make({
    name: "clerk",
    prompt: "",
    tools: [pay],
    middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
  })

  it.effect(
    "a classifier decides on threads that wait, and leaves the rest, and after three refusals all, to a person",
    () =>
      Effect.gen(function* () {
        paid.length = 0
        const { list } = yield* Inbox.Inbox
        let calls = 0
        let isDown = true
        const fiber = yield* Effect.forkChild(
          Inbox.classify({
            classify: (requests) =>
              isDown
                ? Effect.fail("down")
                : Effect.sync(() => {
                    calls++
                    return requests.map(({ arguments: { amount } }) =>
                      amount === 1
                        ? ApprovalClassifier.approve
                        : amount === 2
                          ? ApprovalClassifier.person
                          : ApprovalClassifier.refuse("too much")
                    )
                  })
          })
        )
        const open = Effect.map(list(), (items) => items.map(({ threadId }) => threadId))
        yield* Effect.gen(function* () {
          for (const amount of [1, 2, 3]) yield* Agent.run(clerkOf, `pay ${amount}`, { threadId: `c${amount}` })
          yield* Agent.run(clerkOf, "pay 3", { threadId: "c3" })
          yield* Agent.run(clerkOf, "pay 3", { threadId: "c4" })
        })
        yield* TestClock.adjust("20 seconds")
        assert.strictEqual((yield* open).length, 4)
        isDown = false
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual(paid, [1])
        assert.deepStrictEqual(yield* open, ["c2"])
        for (let more = 0; more < 3; more++) {
          yield* Agent.run(clerkOf, "pay 3", { threadId: "c3" })
          yield* TestClock.adjust("20 seconds")
        }
        assert.deepStrictEqual(yield* open, ["c2", "c3"])
        assert.strictEqual(calls, 3)
        const audit = yield* Stream.runCollect(Audit.records())
        assert.isTrue(audit.every(({ decision }) => decision === undefined || decision.by?.id === "classifier"))
        yield* Fiber.interrupt(fiber)
      }).pipe(Effect.provide(Inbox.layer({ deliver: Inbox.toAgents([clerkOf]) }).pipe(Layer.provideMerge(here))))
  )

  it.effect("a classifier counts the decisions of another process's classifier", () =>
    Effect.gen(function* () {
      paid.length = 0
      const clerkOf = Agent.make({
        name: "clerk",
        prompt: "",
        tools: [pay],
        middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
      })
      // Another process has an inbox of its own on the same store.
      const sweep = (verdict: ApprovalClassifier.Verdict | "down") =>
        Effect.exit(
          Effect.provide(
            Inbox.Inbox.use(({ classify }) =>
              classify({
                by: { id: "classifier" },
                classify: (requests) =>
                  verdict === "down" ? Effect.fail("down") : Effect.sync(() => (judged++, requests.map(() => verdict)))
              })
            ),
            Layer.fresh(Inbox.layer({ deliver: Inbox.toAgents([clerkOf]) }))
          )
        )
      let judged = 0
      const pays = (threadId: string) => Agent.run(clerkOf, "pay 3", { threadId })
      for (let time = 0; time < 3; time++) {
        yield* pays("a")
        yield* sweep(ApprovalClassifier.refuse("too much"))
      }
      yield* pays("a")
      yield* pays("b")
      yield* sweep(ApprovalClassifier.person)
      assert.strictEqual(judged, 4, "the thread a is a person's after three refusals")
      yield* sweep(ApprovalClassifier.approve)
      assert.strictEqual(judged, 4, "what one classifier left, no other takes")
      assert.deepStrictEqual(paid, [])
      yield* pays("c")
      yield* sweep("down")
      yield* sweep("down")
      yield* sweep(ApprovalClassifier.approve)
      assert.deepStrictEqual(paid, [], "two failures in a row give a person a minute")
      yield* TestClock.adjust("1 minute")
      yield* sweep(ApprovalClassifier.approve)
      assert.deepStrictEqual(paid, [3])
    }).pipe(Effect.provide(here))
  )

  it.effect("a run that waits is in it, is decided on there, and leaves nothing when it is interrupted", () =>
    Effect.gen(function* () {
      paid.length = 0
      const { decide, list } = yield* Inbox.Inbox
      const waiting = Agent.make({
        name: "clerk",
        prompt: "",
        tools: [pay],
        middleware: [HumanInTheLoop.make({ tools: rules })]
      })
      const start = Effect.forkChild(Agent.run(waiting, "pay 5"), { startImmediately: true })
      const first = yield* start
      while ((yield* list()).length === 0) yield* Effect.yieldNow
      const [item] = yield* list()
      assert(item?.isLive === true)
      yield* decide([Approval.approve(item.request)], { by: ada })
      assert.strictEqual((yield* Fiber.join(first)).text, "done")
      assert.deepStrictEqual(paid, [5])
      const second = yield* start
      while ((yield* list()).length === 0) yield* Effect.yieldNow
      yield* Fiber.interrupt(second)
      assert.deepStrictEqual(yield* list(), [])
    }).pipe(Effect.provide(Inbox.approvals.pipe(Layer.provideMerge(here))))
  )

  it.effect("lists the request of a background task, and continues the task", () =>
    Effect.gen(function* () {
      paid.length = 0
      const { decide, list } = yield* Inbox.Inbox
      const worker = Agent.make({
        name: "worker",
        prompt: "",
        tools: [pay],
        middleware: [HumanInTheLoop.make({ tools: rules })]
      })
      const lead = Agent.make({
        name: "lead",
        prompt: "",
        middleware: [BackgroundSubagents.make({ agents: [worker] })]
      })
      const script = TestChatModel.reactive(({ messages, tools }) => {
        const isWorker = tools.some(({ name }) => name === "pay")
        if (messages.some(({ role }) => role === "tool")) return "done"
        return isWorker
          ? TestChatModel.calls([{ name: "pay", arguments: { amount: 9 } }])
          : TestChatModel.calls([{ name: "start_task", arguments: { description: "x", subagent_type: "worker" } }])
      })
      yield* Effect.provide(Agent.run(lead, "go"), script)
      while ((yield* list()).length === 0) yield* Effect.yieldNow
      const [item] = yield* list()
      assert(item?.task !== undefined)
      yield* decide([Approval.approve(item.request)], { by: eve })
      const tasks = yield* BackgroundTasks.BackgroundTasks
      yield* tasks.check(item.task, 1000)
      assert.deepStrictEqual(paid, [9])
    }).pipe(Effect.provide(here.pipe(Layer.provideMerge(BackgroundTasks.layer()))))
  )

  it.effect("who takes a request that was decided on in the same moment is told that it is gone", () =>
    Effect.gen(function* () {
      const { claim, decide, list } = yield* Inbox.Inbox
      const store = yield* SessionStore.SessionStore
      yield* say("a", "pay 5")
      const [item] = yield* list()
      assert(item !== undefined)
      // Ada decides after eve has looked, and before eve's claim is written.
      let isDecided = false
      const late: SessionStore.Service = {
        ...store,
        append: (threadId, append) =>
          isDecided || threadId === "a"
            ? store.append(threadId, append)
            : Effect.suspend(() => {
                isDecided = true
                return Effect.andThen(
                  Effect.orDie(decide([Approval.approve(item.request)], { by: ada })),
                  store.append(threadId, append)
                )
              })
      }
      const eves = Effect.flip(Inbox.Inbox.use((its) => its.claim(item.id, { by: eve })))
      const error = yield* Effect.provide(
        eves,
        Layer.fresh(inbox).pipe(Layer.provide(Layer.succeed(SessionStore.SessionStore, late)))
      )
      assert.strictEqual(error.reason._tag, "NotFound")
      assert.isTrue(isDecided)
      yield* say("b", "pay 5")
      const [next] = yield* list({ isFree: true })
      assert.strictEqual((yield* claim(next?.id ?? "", { by: eve })).threadId, "b")
    }).pipe(Effect.provide(here))
  )

  it.effect("leaves the request in place if its thread can't continue, and reports why", () =>
    Effect.gen(function* () {
      const { decide, list } = yield* Inbox.Inbox
      yield* say("a", "pay 5")
      const [item] = yield* list()
      assert(item !== undefined)
      const error = yield* Effect.flip(decide([Approval.approve(item.request)], { by: ada }))
      assert.include(error.message, 'there is no agent "clerk" here')
      assert.strictEqual((yield* list()).length, 1)
    }).pipe(
      Effect.provide(
        Inbox.layer({ deliver: Inbox.toAgents([child]) }).pipe(
          Layer.provideMerge(Layer.merge(SessionStore.journal.pipe(Layer.provideMerge(places.memory.layer())), model))
        )
      )
    )
  )
})
