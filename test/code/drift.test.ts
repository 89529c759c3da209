/** The repetition of a script that runs again, and the warning about its other calls. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import {
  Agent,
  type AgentEvent,
  Approval,
  Checkpoint,
  Message,
  Middleware,
  Question,
  Tool,
  ToolContext
} from "effect-deepagents"
import { CodeMode, Workflow } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import * as journal from "../core/journal.ts"

const warningsOf = (events: ReadonlyArray<AgentEvent.AgentEvent>) =>
  events.flatMap((event) => (event._tag === "Warning" ? [[event.code, event.message]] : []))

/** Tools that note their calls: "slow" answers after "fast", and a question waits for a person. */
const toolsOf = (did: Array<string>) => {
  const make = (name: string, wait: number) =>
    Tool.make(name, {
      description: "",
      parameters: { on: Schema.String },
      execute: ({ on }) =>
        Effect.repeat(Effect.yieldNow, { times: wait }).pipe(
          Effect.map(() => `${name} ${(did.push(`${name} ${on}`), on)}`)
        )
    })
  const wait = Tool.make("wait", {
    description: "",
    parameters: {},
    annotations: { resumable: true },
    execute: Effect.fnUntraced(function* () {
      const { ask } = yield* ToolContext.ToolContext
      yield* ask(Question.make("go on?", { answer: Schema.String }))
      return "waited"
    })
  })
  return [make("slow", 2_000), make("fast", 0), wait] as const
}

const scripts = {
  // The clock and the chance stay as in the first run.
  same: `
    const on = String(Date.now()) + "/" + Math.random() + "/" + new Date().toISOString()
    await tools.fast({ on })
    await tools.wait({})
    return await tools.slow({ on })`,
  // The call that answers first is another one when all results are there at once.
  changed: `
    const first = await Promise.race([tools.slow({ on: "a" }), tools.fast({ on: "b" })])
    await tools.fast({ on: "first was " + first })
    await tools.wait({})
    return "over"`
}

/** Runs a script to its question, then again to its end. Gives the calls, and the warnings of both runs. */
const runTwice = (kind: "code mode" | "workflow", script: string) =>
  Effect.gen(function* () {
    const did: Array<string> = []
    const tools = toolsOf(did)
    const coder = Agent.make({
      name: "coder",
      prompt: "",
      middleware: [CodeMode.make({ tools }), Middleware.suspendable]
    })
    const workflow = Workflow.make({ agents: [], tools })
    const model = TestChatModel.reactive(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? Message.text(messages.at(-1) ?? Message.human(""))
        : TestChatModel.calls([{ name: "run_script", arguments: { script } }])
    )
    const inThread = { threadId: "t" }
    const layers = Layer.merge(model, journal.layer({ t: journal.stored() }))
    const run = (input: Agent.Input) =>
      Effect.provide(
        kind === "code mode"
          ? Effect.map(AgentTest.collect(coder, input, inThread), ({ events }) => events)
          : Effect.map(AgentTest.collect(workflow, input, inThread), ({ events }) => events),
        layers
      )
    const first = yield* run(kind === "code mode" ? "go" : workflow.input({ script }))
    const decisions = first.flatMap((event) =>
      event._tag === "ApprovalRequested" ? [Approval.respond(event, "yes")] : []
    )
    assert.strictEqual(decisions.length, 1)
    const second = yield* run(Checkpoint.resume(undefined, { decisions }))
    return { did, warnings: [...warningsOf(first), ...warningsOf(second)], end: second.at(-1)?._tag }
  })

layer(NodeScripts.layer({ warm: 2 }))("a script that runs again", (it) => {
  for (const kind of ["code mode", "workflow"] as const) {
    it.effect(`has the clock and the chance of its first run, in ${kind}`, () =>
      Effect.gen(function* () {
        const { did, end, warnings } = yield* runTwice(kind, scripts.same)
        assert.strictEqual(end, "RunCompleted")
        assert.deepStrictEqual(warnings, [])
        assert.deepStrictEqual(
          did.map((one) => one.split(" ")[0]),
          ["fast", "slow"]
        )
        assert.strictEqual(did[0]?.split(" ")[1], did[1]?.split(" ")[1])
      })
    )

    it.effect(`says what it did not repeat, in ${kind}`, () =>
      Effect.gen(function* () {
        const { did, end, warnings } = yield* runTwice(kind, scripts.changed)
        assert.deepStrictEqual(
          warnings.map(([code]) => code),
          [kind === "code mode" ? "replay-drift" : "records-unused"]
        )
        // No call was made twice, and the call of the other order was made once.
        assert.deepStrictEqual(did.toSorted(), ["fast b", "fast first was fast b", "fast first was slow a", "slow a"])
        assert.strictEqual(end, "RunCompleted")
      })
    )
  }
})
