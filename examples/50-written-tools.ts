/**
 * An agent that writes a tool for itself. A person sees its script once; the next conversation turn calls it, and a script
 * that changed is a new question.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer } from "effect"
import { Agent, Approval, Message } from "effect-deepagents"
import { Adaptive } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"

const clerk = Agent.make({ name: "clerk", prompt: "You check invoices. Write a tool for work that comes again." })
const adaptive = Adaptive.make({ worker: clerk })

/** What a model would write. */
const write = (rate: number) =>
  TestChatModel.calls([
    {
      name: "write_tool",
      arguments: {
        name: "with_tax",
        description: "Adds the tax to an amount in cents",
        parameters: { type: "object", properties: { cents: { type: "integer" } }, required: ["cents"] },
        script: `return Math.round(args.cents * ${rate})`
      }
    }
  ])
const call = TestChatModel.calls([{ name: "with_tax", arguments: { cents: 10000 } }])
const model = TestChatModel.script([write(1.19), call, "119.00", call, "119.00", write(1.07), call, "107.00"])

/** Sends an input, and approves each tool after showing it. */
const send = Effect.fnUntraced(function* (input: string) {
  let questions = 0
  let result = yield* Agent.run(adaptive, input, { threadId: "may" })
  while (result.stopReason === "suspended") {
    for (const { description } of result.pending) yield* Console.log(description)
    questions += result.pending.length
    const decisions = result.pending.map((request) => Approval.approve(request))
    result = yield* Agent.resume(adaptive, { threadId: "may", decisions })
  }
  yield* Console.log(result.text)
  const last = result.messages.findLast(({ role }) => role === "tool")
  return [questions, last === undefined ? "" : Message.text(last)]
})

const program = Effect.gen(function* () {
  assert.deepEqual(yield* send("What is 100.00 with tax?"), [1, "11900"])
  assert.deepEqual(yield* send("And once more?"), [0, "11900"])
  assert.deepEqual(yield* send("Books have another rate."), [1, "10700"])
})

const sessions = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
NodeRuntime.runMain(Effect.provide(program, [model, sessions, NodeScripts.layer()]))
