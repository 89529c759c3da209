/** All sources rule on a call before anybody is asked about it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Agent, type AgentEvent, Approval, Middleware, Ruling, Tool } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

const tool = (name: string, needsApproval?: true) =>
  Tool.make(name, { description: name, parameters: {}, needsApproval, execute: () => Effect.succeed("ok") })

/** A source that keeps the names of the calls that it ruled on. */
const source = (name: string, rule: (tool: string) => Ruling.Ruling | undefined) => {
  const ruled: Array<string> = []
  const middleware = Middleware.make({
    name,
    asks: true,
    rulings: (_run, calls) =>
      Effect.sync(() => {
        ruled.push(...calls.map((call) => call.name))
        return calls.map((call) => rule(call.name))
      })
  })
  return { middleware, ruled }
}

const asking = () => source("asking", () => Ruling.ask("asking"))
const refusing = () => source("refusing", (name) => (name === "wipe" ? Ruling.refuse("refusing", "never") : undefined))

const person = Layer.succeed(Approval.Approvals, { decide: (request) => Effect.succeed(Approval.approve(request)) })

const orders = { "asks first": [asking, refusing], "refuses first": [refusing, asking] }

describe("a call that one source refuses and another asks about", () => {
  for (const [order, [first, second]] of Object.entries(orders)) {
    for (const isAttended of [true, false]) {
      it.effect(
        `is refused without a request, if the source ${order} and the run ${isAttended ? "waits" : "ends"}`,
        () =>
          Effect.gen(function* () {
            const sources = [first?.(), second?.()].filter((one) => one !== undefined)
            const agent = Agent.make({
              name: "a",
              prompt: "",
              tools: [tool("pay"), tool("wipe", true)],
              middleware: sources.map(({ middleware }) => middleware)
            })
            const model = TestChatModel.script([
              TestChatModel.calls([{ name: "wipe" }, { name: "pay" }]),
              ...(isAttended ? ["done"] : [])
            ])
            const events: Array<AgentEvent.AgentEvent> = []
            const run = Stream.runForEach(Agent.stream(agent, "go"), (event) => Effect.sync(() => events.push(event)))
            yield* isAttended ? Effect.provide(run, [model, person]) : Effect.provide(run, model)
            assert.deepStrictEqual(
              events.flatMap((event) => (event._tag === "ApprovalRequested" ? [event.toolName] : [])),
              ["pay"]
            )
            // The source behind a refusal does not see the call.
            assert.deepStrictEqual(
              sources.map(({ ruled }) => ruled),
              order === "asks first"
                ? [
                    ["wipe", "pay"],
                    ["wipe", "pay"]
                  ]
                : [["wipe", "pay"], ["pay"]]
            )
          })
      )
    }
  }
})
