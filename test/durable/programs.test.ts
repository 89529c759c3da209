/** Programs as durable agents: each effect inside of a workflow happens once. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Schema } from "effect"
import { Agent, Approval, Middleware, Ruling, Tool, ToolContext, ToolError, ToolOutput } from "effect-deepagents"
import { AgentClient, AgentEntity, DurableAgent } from "effect-deepagents/durable"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { WorkflowEngine } from "effect/workflow"
import { runner, ticking } from "./entities.ts"

const places = Layer.mergeAll(WorkflowEngine.layerMemory, MemorySessions.layer)

const makeProgram = (ran: Array<string>) => {
  const tool = (name: string) =>
    Tool.make(name, {
      description: "",
      parameters: { on: Schema.String },
      execute: ({ on }) =>
        on === "nothing"
          ? Effect.fail(ToolError.make("there is nothing to do"))
          : Effect.sync(() => {
              ran.push(`${name} ${on}`)
              return `${name} did ${on}`
            })
    })
  return Agent.program({
    name: "program",
    output: Schema.Struct({ all: Schema.Array(Schema.String) }),
    tools: [tool("act"), tool("pay")],
    middleware: [
      Middleware.make({
        asks: true,
        name: "asking",
        rulings: (_run, calls) =>
          Effect.succeed(
            calls.map(({ name }) => (name === "pay" ? Ruling.ask("test", { description: "pay?" }) : undefined))
          )
      })
    ],
    run: Effect.fnUntraced(function* (text) {
      const { call } = yield* ToolContext.ToolContext
      const did = (name: string, on: string) => Effect.map(call(name, { on }), ToolOutput.text)
      return { all: yield* Effect.all([did("act", text), did("pay", text), did("act", `${text} again`)]) }
    })
  })
}

const sent = { threadId: "t", inputId: "1", input: "x" }

describe("a durable program", () => {
  it.effect("waits for a decision, does nothing twice, and gives its outcome again", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const durable = DurableAgent.make({
        name: "d",
        agent: makeProgram(ran),
        output: Schema.Struct({ all: Schema.Array(Schema.String) })
      })
      yield* Effect.gen(function* () {
        const executionId = yield* DurableAgent.start(durable, sent)
        const result = yield* Effect.repeat(DurableAgent.poll(durable, executionId), { until: Option.isSome })
        assert.strictEqual(Option.getOrThrow(result)._tag, "Suspended")
        assert.deepStrictEqual(ran, ["act x"])
        const [request] = yield* DurableAgent.pending("t")
        assert(request !== undefined)
        yield* DurableAgent.decide(durable, sent, [Approval.approve(request)])
        const outcome = yield* DurableAgent.execute(durable, sent)
        assert.deepStrictEqual(outcome.output, { all: ["act did x", "pay did x", "act did x again"] })
        assert.deepStrictEqual(ran, ["act x", "pay x", "act x again"])
        assert.deepStrictEqual(yield* DurableAgent.execute(durable, { ...sent, input: "other" }), outcome)
        const state = (yield* SessionStore.checkpoint("t"))?.state ?? {}
        assert.deepStrictEqual(
          Object.keys(state).filter((slot) => slot.startsWith("inside")),
          []
        )
        // The error of a call is known without a schema.
        const error = yield* Effect.flip(DurableAgent.execute(durable, { ...sent, inputId: "2", input: "nothing" }))
        assert.instanceOf(error, ToolError.ToolError)
        assert.strictEqual(error.message, "there is nothing to do")
      }).pipe(Effect.provide(DurableAgent.layer(durable)))
    }).pipe(Effect.provide(places))
  )

  it.effect("is an entity: it waits, goes on, and takes the next input of its thread", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const entity = AgentEntity.make({
        name: "a",
        agent: makeProgram(ran),
        output: Schema.Struct({ all: Schema.Array(Schema.String) })
      })
      yield* Effect.gen(function* () {
        const client = yield* AgentClient.of(entity, "t")
        for (const text of ["x", "y"]) {
          const first = yield* client.send(text, { id: text })
          assert.strictEqual(first.stopReason, "suspended")
          const outcome = yield* client.decide(first.pending.map((request) => Approval.approve(request)))
          assert.deepStrictEqual(outcome.output, {
            all: [`act did ${text}`, `pay did ${text}`, `act did ${text} again`]
          })
        }
        assert.deepStrictEqual(ran, ["act x", "pay x", "act x again", "act y", "pay y", "act y again"])
        const roles = (yield* client.history).map(({ role, source }) => [role, source === "program"])
        assert.deepStrictEqual(roles.slice(0, 2), [
          ["human", false],
          ["ai", true]
        ])
      }).pipe(ticking, Effect.provide(runner(entity)))
    })
  )
})
