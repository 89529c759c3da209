import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result, Schema, Stream } from "effect"
import { Agent, Approval, type Journal, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Policy } from "effect-deepagents/rules"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { amount: Schema.Int },
  execute: ({ amount }) => Effect.succeed(`paid ${amount}`)
})

const rules = HumanInTheLoop.on(pay, {
  name: "large payments",
  when: ({ amount }) => amount > 100,
  deciders: ["ada", "role:finance"]
})

const agent = Agent.make({
  name: "clerk",
  prompt: "",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: rules })]
})

const calls = () =>
  TestChatModel.script([TestChatModel.calls([{ name: "pay", arguments: { amount: 500 } }]), "done"], {
    exhaustive: false
  })

const suspended = Effect.gen(function* () {
  const first = yield* Agent.run(agent, "go")
  const [request] = first.pending
  assert(request !== undefined)
  return { first, request }
})

describe("Approval.Decision", () => {
  const anybody = HumanInTheLoop.make({ tools: { pay: true } })
  const ada = HumanInTheLoop.make({ tools: { pay: { deciders: ["ada"] } } })
  const finance = Result.getOrThrow(
    Policy.compile([{ tools: { pay: { ruling: "ask", deciders: ["role:finance"] } } }])
  ).middleware

  it.effect.each([
    ["anybody and finance", [anybody, ...finance]],
    ["finance and anybody", [...finance, anybody]]
  ] as const)("several that ask become one question, which satisfies all: %s", ([, middleware]) =>
    Effect.gen(function* () {
      const clerk = Agent.make({ name: "clerk", prompt: "", tools: [pay], middleware })
      const first = yield* Agent.run(clerk, "go")
      const [request] = first.pending
      assert(request !== undefined)
      assert.strictEqual(first.pending.length, 1)
      assert.deepStrictEqual(request.deciders, ["role:finance"])
      assert.strictEqual(request.byPerson, true)
      assert.include(request.rule, "HumanInTheLoop")
      assert.include(request.rule, "policy 1: tools.pay")
      const approve = (by: Approval.Principal) =>
        Agent.resume(clerk, {
          checkpoint: first,
          decisions: [Approval.decidedBy(Approval.approve(request), request, { by })]
        })
      assert.include((yield* Effect.flip(approve({ id: "ada" }))).message, 'not by "ada"')
      const last = yield* approve({ id: "bob", roles: ["finance"] })
      assert.strictEqual(last.text, "done")
      assert.strictEqual(last.messages.filter(({ role }) => role === "tool").length, 1)
    }).pipe(Effect.provide(calls()))
  )

  it.effect("nobody is asked where no decider satisfies all: the call is refused", () =>
    Effect.gen(function* () {
      const clerk = Agent.make({ name: "clerk", prompt: "", tools: [pay], middleware: [ada, ...finance] })
      const result = yield* Agent.run(clerk, "go")
      assert.strictEqual(result.stopReason, "completed")
      assert.include(result.messages.map((message) => JSON.stringify(message.content)).join(), "no decider in common")
    }).pipe(Effect.provide(calls()))
  )

  it.effect("a program can't decide if one of the rules wants a person", () =>
    Effect.gen(function* () {
      const policy = Result.getOrThrow(Policy.compile([{ tools: { pay: "ask" } }])).middleware
      const clerk = Agent.make({ name: "clerk", prompt: "", tools: [pay], middleware: [anybody, ...policy] })
      const first = yield* Agent.run(clerk, "go")
      const byProgram = (request: Approval.Request): Approval.Decision => ({
        ...Approval.decidedBy(Approval.approve(request), request, { by: { id: "classifier" } }),
        byProgram: true
      })
      assert.deepStrictEqual(
        first.pending.map((request) => request.byPerson),
        [true]
      )
      const refused = Agent.resume(clerk, { checkpoint: first, decisions: first.pending.map(byProgram) })
      assert.include((yield* Effect.flip(refused)).message, "is for a person to decide on")
      const approved = first.pending.map((request) => Approval.approve(request))
      assert.strictEqual((yield* Agent.resume(clerk, { checkpoint: first, decisions: approved })).text, "done")
    }).pipe(Effect.provide(calls()))
  )

  it.effect("counts only by authorised deciders, and a refusal names them", () =>
    Effect.gen(function* () {
      const { first, request } = yield* suspended
      assert.deepStrictEqual(request.deciders, ["ada", "role:finance"])
      assert.strictEqual(request.rule, "large payments")
      const decide = (by: Approval.Principal | undefined) =>
        Agent.resume(agent, {
          checkpoint: first,
          decisions: [
            by === undefined
              ? Approval.approve(request)
              : Approval.decidedBy(Approval.approve(request), request, { by })
          ]
        })
      for (const by of [undefined, { id: "bob" }, { id: "role:finance " }, { id: "bob", roles: ["sales"] }]) {
        const error = yield* Effect.flip(decide(by))
        assert.include(error.message, "may be decided by ada, role:finance")
      }
      assert.strictEqual((yield* decide({ id: "bob", roles: ["sales", "finance"] })).text, "done")
    }).pipe(Effect.provide(calls()))
  )

  it.effect("refuses a decision on an earlier form of the request", () =>
    Effect.gen(function* () {
      const { first, request } = yield* suspended
      const shown = { ...request, arguments: { amount: 5 }, description: "pay amount: 5" }
      const decision = Approval.decidedBy(Approval.approve(request), shown, { by: { id: "ada" } })
      const error = yield* Effect.flip(Agent.resume(agent, { checkpoint: first, decisions: [decision] }))
      assert.include(error.message, "was made on an earlier form of the request")
      const approvals = Layer.succeed(Approval.Approvals, { decide: () => Effect.succeed(decision) })
      const waiting = Agent.make({
        name: "clerk",
        prompt: "",
        tools: [pay],
        middleware: [HumanInTheLoop.make({ tools: rules })]
      })
      const result = yield* Agent.run(waiting, "go").pipe(Effect.provide([approvals, calls()]))
      assert.notInclude(JSON.stringify(result.messages), "paid 500")
    }).pipe(Effect.provide(calls()))
  )

  it.effect("the same decision again, by somebody else and later, is no other one", () =>
    Effect.gen(function* () {
      const { first, request } = yield* suspended
      const by = (id: string, at: number) =>
        Approval.decidedBy(Approval.approve(request), request, { by: { id, roles: ["finance"] }, at })
      const result = yield* Agent.resume(agent, { checkpoint: first, decisions: [by("ada", 1), by("eve", 2)] })
      assert.strictEqual(result.text, "done")
    }).pipe(Effect.provide(calls()))
  )

  it.effect("a thread keeps who decided, when, by which rule, on what; events tell it", () =>
    Effect.gen(function* () {
      const first = yield* Agent.run(agent, "go", { threadId: "t" })
      const [request] = first.pending
      assert(request !== undefined)
      const decision = Approval.decidedBy(Approval.approve(request), request, { by: { id: "ada" } })
      const events = yield* Stream.runCollect(
        Agent.stream(
          agent,
          { _tag: "Resume", checkpoint: undefined, decisions: [decision], unknownOutcome: "tell" },
          {
            threadId: "t"
          }
        )
      )
      const resolved = [...events].find((event) => event._tag === "ApprovalResolved")
      assert.deepInclude(resolved, { by: "ada", rule: "large payments", decision: "approve" })
      const store = yield* SessionStore.SessionStore
      const { entries } = yield* store.load("t")
      const kept = entries.flatMap(({ entry }): ReadonlyArray<Journal.Entry> =>
        entry._tag === "Decision" ? [entry] : []
      )
      assert.deepStrictEqual(kept, [
        {
          _tag: "Decision",
          decision: {
            _tag: "Approve",
            id: request.id,
            by: { id: "ada" },
            at: 0,
            rule: "large payments",
            digest: Approval.digest(request)
          }
        }
      ])
    }).pipe(Effect.provide([SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer)), calls()]))
  )

  it.effect("a misspelt name in the rules fails the runs with a suggestion", () =>
    Effect.gen(function* () {
      const wrong = Agent.make({
        name: "clerk",
        prompt: "",
        tools: [pay],
        middleware: [HumanInTheLoop.make({ tools: { payy: true } })]
      })
      const error = yield* Effect.flip(Agent.run(wrong, "go"))
      assert.strictEqual(error._tag === "AgentError" && error.reason._tag, "InvalidAgent")
      assert.include(error.message, 'Did you mean "pay"?')
    }).pipe(Effect.provide(calls()))
  )
})
