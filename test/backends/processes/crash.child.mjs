/** Starts a background process that ends by no signal but the last, and is killed itself: `node crash.child.mjs FOLDER`. */
import { Agent, Tool } from "effect-deepagents"
import { FileTools } from "effect-deepagents/backends"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { TestChatModel } from "effect-deepagents/testing"
import * as Effect from "effect/Effect"

const [root = ""] = process.argv.slice(2)

const crash = Tool.make("crash", {
  description: "Ends without a word",
  parameters: {},
  execute: () => Effect.sync(() => process.kill(process.pid, "SIGKILL")).pipe(Effect.andThen(Effect.never))
})

const command = "trap '' TERM; echo $$ >pid; while true; do sleep 1; done"

const model = TestChatModel.script([
  TestChatModel.calls([{ name: "execute", arguments: { command, background: true } }]),
  TestChatModel.calls([{ name: "crash" }])
])

await Agent.run(
  Agent.make({
    name: "tested",
    prompt: "You are tested.",
    tools: [...FileTools.make({ execute: { background: true } }), crash]
  }),
  "Go"
).pipe(Effect.provide(model), Effect.provide(LocalShell.layer({ root })), Effect.runPromise)
