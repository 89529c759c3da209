/**
 * Another way to change files: one patch for several of them, all of it or nothing. It is the form that GPT models are
 * trained on; the backend is the same.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { Agent, Backend, Message } from "effect-deepagents"
import { ApplyPatch, FileTools, MemoryBackend } from "effect-deepagents/backends"
import { TestChatModel } from "effect-deepagents/testing"

const agent = Agent.make({
  name: "coder",
  prompt: "You change code.",
  tools: [...FileTools.make({ only: ["ls", "read_file", "glob", "grep"] }), ApplyPatch.make()]
})

const files = MemoryBackend.layer({
  files: {
    "/src/price.ts": "export const tax = 0.19\n\nexport const price = (net: number) => {\n\treturn net * 1.19\n}\n",
    "/src/old.ts": "export {}\n"
  }
})

// The first patch is of a file that is not as the model believes: nothing of it is done, its new file neither.
const wrong = `*** Begin Patch
*** Add File: /README.md
+# Prices
*** Update File: /src/price.ts
@@
-  return net * 1.16
+  return net * (1 + tax)
*** End Patch`

// In the second one only the indentation is not that of the file, which is no reason to refuse it.
const right = `*** Begin Patch
*** Add File: /README.md
+# Prices
*** Update File: /src/price.ts
@@ export const price = (net: number) => {
-    return net * 1.19
+	return net * (1 + tax)
 }
*** Delete File: /src/old.ts
*** End Patch`

const patch = (input: string) => TestChatModel.calls([{ name: "apply_patch", arguments: { input } }])

const model = TestChatModel.script([
  TestChatModel.calls([{ name: "read_file", arguments: { file_path: "/src/price.ts" } }]),
  patch(wrong),
  patch(right),
  "The price is made by the tax."
])

const program = Effect.gen(function* () {
  const { messages } = yield* Agent.run(agent, "Use the constant.")
  const [, refused, done] = messages.filter((message) => message.role === "tool")
  assert(refused !== undefined && done !== undefined)
  yield* Console.log(`${Message.text(refused)}\n${Message.text(done)}`)
  assert.equal(refused.isError, true)
  assert.equal(done.isError, false)

  const backend = yield* Backend.Backend
  const all = (yield* backend.glob({ pattern: "**" })).entries.map(({ path }) => path)
  assert.deepEqual(all, ["/README.md", "/src/price.ts"])
  const price = yield* backend.read("/src/price.ts")
  assert.match(price.kind === "text" ? price.text : "", /\n\treturn net \* \(1 \+ tax\)\n}$/)
})

NodeRuntime.runMain(program.pipe(Effect.provide([files, model])))
