/** The digest of a tool: an approval for good holds as long as the tool promises the same. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, Approval, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"

const note = (annotations: Tool.Annotations) =>
  Tool.make("note", { description: "Takes a note", parameters: {}, annotations, execute: () => Effect.succeed("ok") })

/** Counts the questions about a call, with the state of an earlier run. */
const askWith = Effect.fnUntraced(function* (annotations: Tool.Annotations, state: Agent.RunOptions["state"]) {
  let questions = 0
  const agent = Agent.make({
    name: "a",
    prompt: "",
    tools: [note(annotations)],
    middleware: [HumanInTheLoop.make({ tools: { note: { likeness: () => "any" } } })]
  })
  const approvals = Layer.succeed(Approval.Approvals, {
    decide: (request) =>
      Effect.sync(() => {
        questions++
        return Approval.approve(request, { always: true })
      })
  })
  const model = TestChatModel.script([TestChatModel.calls([{ name: "note", arguments: {} }]), "done"])
  const result = yield* Agent.run(agent, "go", { state }).pipe(Effect.provide([model, approvals]))
  return { questions, state: result.state }
})

describe("an approval for good", () => {
  it.effect("holds for the same tool, and for another name of it", () =>
    Effect.gen(function* () {
      const { questions, state } = yield* askWith({}, {})
      assert.strictEqual(questions, 1)
      assert.strictEqual((yield* askWith({}, state)).questions, 0)
      assert.strictEqual((yield* askWith({ aliases: ["Note"] }, state)).questions, 0)
    })
  )

  it.effect("ends when the tool becomes lasting, or runs commands", () =>
    Effect.gen(function* () {
      const { state } = yield* askWith({}, {})
      for (const annotations of [{ lasting: true }, { runsCommands: true }, { destructive: true }]) {
        assert.strictEqual((yield* askWith(annotations, state)).questions, 1)
      }
    })
  )
})
