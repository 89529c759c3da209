import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, Schema } from "effect"
import { Agent, Approval, Checkpoint, Message, Tool } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"

const property = <A, E>(arbitrary: fc.Arbitrary<A>, numRuns: number, holds: (value: A) => Effect.Effect<void, E>) =>
  Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(arbitrary, (value) =>
        Effect.runPromise(holds(value).pipe(Effect.provide(Logger.layer([])), Effect.asVoid))
      ),
      { numRuns }
    )
  )

const task = (subagent_type: string, description: string) => ({
  name: "task",
  arguments: { subagent_type, description }
})

const turnsOf = (messages: ReadonlyArray<Message.Message>) => messages.filter((message) => message.role === "ai").length

const firstOf = (messages: ReadonlyArray<Message.Message>) => Message.text(messages[0] ?? Message.human(""))

describe("parallel sub-agents (invariants 1, 4, 10)", { timeout: 60_000 }, () => {
  const broken = Tool.make("broken", { description: "", parameters: {}, execute: () => Effect.die("broken") })
  const own = (name: string, turns: (index: number) => TestChatModel.Turn) =>
    DeepAgent.subagent({ name, description: name, prompt: name, tools: [broken], maxRounds: 3 }).pipe(
      Agent.provide(TestChatModel.reactive((request) => turns(turnsOf(request.messages))))
    )
  const agents = [
    DeepAgent.subagent({ name: "worker", description: "works", prompt: "worker" }),
    own("failing", () => TestChatModel.fail({ _tag: "Authentication" })),
    own("late", (index) =>
      index === 0
        ? TestChatModel.calls([{ name: "ls", arguments: {} }])
        : TestChatModel.fail({ _tag: "Authentication" }, { after: "half an ans" })
    ),
    own("silent", () => ""),
    own("dying", (index) => (index === 0 ? TestChatModel.calls([{ name: "broken", arguments: {} }]) : "I broke it")),
    own("endless", (index) => TestChatModel.calls([{ name: "ls", arguments: { path: `/${index}` } }])),
    // Its sub-agents would be nested too deep.
    DeepAgent.make({ name: "nesting", description: "asks others", prompt: "nesting", maxDepth: 1 }).pipe(
      Agent.provide(
        TestChatModel.reactive((request) =>
          turnsOf(request.messages) === 0
            ? TestChatModel.calls([task(DeepAgent.generalPurpose, "a"), task("ghost", "b")])
            : request.messages.map(Message.text).slice(-2).join("\n")
        )
      )
    )
  ]
  const names = [...agents.map((agent) => agent.name), DeepAgent.generalPurpose, "ghost"]
  const agent = DeepAgent.make({ name: "lead", prompt: "lead", subagents: agents, toolConcurrency: 3, todos: false })

  const rounds = fc.array(
    fc.array(fc.record({ name: fc.constantFrom(...names), delay: fc.nat(3) }), { minLength: 1, maxLength: 7 }),
    { minLength: 1, maxLength: 3 }
  )

  it.live("any set of them ends with every call of the parent answered, in call order, by its own (property)", () =>
    property(rounds, 40, (script) =>
      Effect.gen(function* () {
        const { messages, stopReason } = yield* Agent.run(agent, "go")
        assert.strictEqual(stopReason, "completed")
        assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
        const answers = messages.filter((message) => message.role === "tool")
        const asked = script.flatMap((calls, round) => calls.map((call, at) => ({ ...call, id: `${round}.${at}` })))
        assert.strictEqual(answers.length, asked.length)
        for (const [index, { id, name }] of asked.entries()) {
          const answer = answers[index]!
          const text = Message.text(answer)
          const works = name === "worker" || name === DeepAgent.generalPurpose
          if (works) assert.strictEqual(text, `did ${id}`)
          if (name === "dying") assert.strictEqual(text, "I broke it")
          if (name === "nesting") {
            assert.match(text, /nested deeper than 1[^\n]*\nThere is no sub-agent "ghost"/)
          }
          assert.strictEqual(answer.isError, ["failing", "late", "ghost"].includes(name), `${name}: ${text}`)
        }
      }).pipe(
        Effect.provide([
          TestChatModel.reactive((request) => {
            const first = firstOf(request.messages)
            if (first !== "go") {
              const [id, delay] = first.split(" ")
              return TestChatModel.text(`did ${id}`, { delay: Number(delay) })
            }
            const round = turnsOf(request.messages)
            const calls = script[round]
            return calls === undefined
              ? "done"
              : TestChatModel.calls(calls.map(({ delay, name }, at) => task(name, `${round}.${at} ${delay}`)))
          }),
          MemoryBackend.layer()
        ])
      )
    )
  )
})

describe("approvals in nested sub-agents (invariants 1, 5, 14)", { timeout: 60_000 }, () => {
  const scenario = fc.record({
    // The actions of each sub-agent, round by round; `true` needs an approval.
    children: fc.array(
      fc.array(fc.array(fc.boolean(), { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 2 }),
      { minLength: 1, maxLength: 3 }
    ),
    verdicts: fc.infiniteStream(fc.constantFrom("approve", "reject", "edit", "respond")),
    portions: fc.infiniteStream(fc.integer({ min: 1, max: 3 }))
  })

  it.live("each approved call runs exactly once and no denied one, over restarts (property)", () =>
    property(scenario, 30, ({ children, portions, verdicts }) =>
      Effect.gen(function* () {
        const ran: Array<string> = []
        const act = Tool.make("act", {
          description: "Acts",
          parameters: { id: Schema.String, asks: Schema.Boolean },
          execute: ({ id }) => Effect.sync(() => (ran.push(id), `did ${id}`))
        })
        const middle = DeepAgent.make({
          name: "middle",
          description: "passes on",
          prompt: "middle",
          tools: [act],
          // Its general-purpose sub-agent is two levels below the agent of the question.
          generalPurpose: { prompt: "worker" }
        })
        const lead = DeepAgent.make({
          name: "lead",
          prompt: "lead",
          subagents: [middle],
          approvals: { tools: { act: ({ asks }) => asks === true } }
        })
        const model = TestChatModel.reactive((request) => {
          const turns = turnsOf(request.messages)
          const asked = firstOf(request.messages)
          if (request.systemPrompt.startsWith("lead")) {
            return turns > 0 ? "end" : TestChatModel.calls(children.map((_, index) => task("middle", String(index))))
          }
          if (request.systemPrompt.startsWith("middle")) {
            return turns > 0 ? "passed on" : TestChatModel.calls([task(DeepAgent.generalPurpose, asked)])
          }
          const round = children[Number(asked)]?.[turns]
          return round === undefined
            ? "worked"
            : TestChatModel.calls(
                round.map((asks, index) => ({ name: "act", arguments: { id: `${asked}.${turns}.${index}`, asks } }))
              )
        })
        const start = Effect.provide([model, MemoryBackend.layer()])
        const expected = children.flatMap((rounds, task) =>
          rounds.flatMap((round, turn) => round.flatMap((asks, index) => (asks ? [] : [`${task}.${turn}.${index}`])))
        )
        const decided = new Set<string>()
        let result = yield* Agent.run(lead, "go").pipe(start)
        for (let restarts = 0; result.stopReason === "suspended"; restarts++) {
          assert.isBelow(restarts, 40)
          // Over the wire and back, as another process would have it.
          const checkpoint = yield* Checkpoint.decode(JSON.parse(JSON.stringify(Checkpoint.encode(result))))
          const some = result.pending.slice(0, portions.next().value ?? 1)
          assert.isAbove(some.length, 0)
          const decisions = some.map((request) => {
            const id = Schema.decodeUnknownSync(Schema.String)(request.arguments["id"])
            assert.isFalse(decided.has(id), `${id} was asked about twice`)
            decided.add(id)
            assert.deepStrictEqual(request.path, ["lead", "middle", DeepAgent.generalPurpose])
            switch (verdicts.next().value) {
              case "reject":
                return Approval.reject(request)
              case "respond":
                return Approval.respond(request, "It is done already.")
              case "edit":
                expected.push(`${id} edited`)
                return Approval.edit(request, { id: `${id} edited`, asks: true })
              default:
                expected.push(id)
                return Approval.approve(request)
            }
          })
          result = yield* Agent.resume(lead, { checkpoint, decisions }).pipe(start)
        }
        assert.strictEqual(result.text, "end")
        assert.deepStrictEqual(ran.toSorted(), expected.toSorted())
        assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      })
    )
  )
})
