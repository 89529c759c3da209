/**
 * A coder with approvals: it may read, and run the tests; before it changes a file or runs anything else, you are asked.
 * All of it happens in a temporary folder.
 */
import assert from "node:assert/strict"
import { Effect, FileSystem, Path } from "effect"
import { Agent } from "effect-deepagents"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { DeepAgent } from "effect-deepagents/deep"
import { TestChatModel } from "effect-deepagents/testing"
import { approvals } from "./shared/approvals.ts"
import { chooseModel } from "./shared/model.ts"
import { show } from "./shared/render.ts"
import { main } from "./shared/run.ts"

const test = `"${process.execPath}" --test`

const coder = DeepAgent.make({
  name: "coder",
  prompt: `You mend programs. Look first, run the tests before and after you change something: ${test}`,
  execute: { timeout: "30 seconds", maxTimeout: "2 minutes" },
  generalPurpose: false,
  approvals: {
    // Everything that is annotated as destructive, too: deleting and moving files.
    destructive: true,
    tools: {
      edit_file: {
        describe: ({ file_path, new_string, old_string }) =>
          `Change ${JSON.stringify(file_path)}?\n  - ${JSON.stringify(old_string)}\n  + ${JSON.stringify(new_string)}`
      },
      write_file: true,
      execute: {
        when: ({ command }) => command !== test,
        describe: ({ command }) => `Run ${JSON.stringify(command)}?`,
        // "always" is for this very command.
        likeness: ({ command }) => JSON.stringify(command)
      }
    }
  }
})
//    ^? Agent<string, ModelError, ChatModel | Backend | Sandbox | Approvals>

const files = {
  "package.json": '{ "type": "module" }\n',
  "mean.js": "export const mean = (numbers) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length\n",
  "mean.test.js": [
    'import assert from "node:assert/strict"',
    'import { test } from "node:test"',
    'import { mean } from "./mean.js"',
    "",
    'test("of some numbers", () => assert.equal(mean([1, 2, 3]), 2))',
    'test("of none it is 0", () => assert.equal(mean([]), 0))',
    ""
  ].join("\n")
}

const call = (name: string, args: Record<string, string>) => TestChatModel.calls([{ name, arguments: args }])

const script = TestChatModel.script([
  TestChatModel.calls([
    { name: "execute", arguments: { command: test } },
    { name: "read_file", arguments: { file_path: "/mean.js" } }
  ]),
  call("edit_file", {
    file_path: "/mean.js",
    old_string: "numbers.reduce((sum, one) => sum + one, 0) / numbers.length",
    new_string: "numbers.reduce((sum, one) => sum + one, 0) / Math.max(1, numbers.length)"
  }),
  call("execute", { command: test }),
  call("execute", { command: "cat mean.js" }),
  "The mean of no numbers is 0 now, and the tests pass."
])

const program = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = yield* fs.makeTempDirectoryScoped({ prefix: "coder-" })
  for (const [name, text] of Object.entries(files)) yield* fs.writeFileString(path.join(root, name), text)

  const model = yield* chooseModel(script)
  const events = yield* show(Agent.stream(Agent.attended(coder), "A test fails. Mend it.")).pipe(
    Effect.provide([LocalShell.layer({ root }), model.layer, approvals(model)])
  )
  if (!model.isScripted) return
  // The tests failed before, and pass after; the file was changed once.
  const exits = events.flatMap((event) =>
    event._tag === "ToolFailed" || (event._tag === "ToolCompleted" && event.toolName === "execute") ? [event._tag] : []
  )
  assert.deepEqual(exits, ["ToolFailed", "ToolCompleted", "ToolCompleted"])
  assert.match(yield* fs.readFileString(path.join(root, "mean.js")), /Math\.max/)
})

main(program)
