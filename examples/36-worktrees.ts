/**
 * Two coders at work on one repository at once, each in its own worktree, and the merge of their work: two
 * branches fit, a third conflicts, is left out whole, and is told with its file. All of it happens in a temporary folder.
 */
import assert from "node:assert/strict"
import { Effect, FileSystem, Path } from "effect"
import { Agent, Sandbox } from "effect-deepagents"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { DeepAgent } from "effect-deepagents/deep"
import { TestChatModel } from "effect-deepagents/testing"
import { Git, Worktrees } from "effect-deepagents/workspace"
import { approvals } from "./shared/approvals.ts"
import { main } from "./shared/run.ts"

const call = (name: string, args: Record<string, unknown>) => ({ name, arguments: args as never })

/** A coder for the script: it writes the file that its task names. */
const coderModel = TestChatModel.reactive(({ messages }) => {
  const task = messages.find(({ role }) => role === "human")?.content[0]
  const [path = "", content = ""] = task?.type === "text" ? task.text.split(": ") : []
  return messages.some(({ role }) => role === "tool")
    ? `I wrote ${path}.`
    : TestChatModel.calls([call("write_file", { file_path: path, content: `${content}\n` })])
})

const coder = DeepAgent.subagent({
  name: "coder",
  description: "Writes code",
  prompt: "You do one task in the repository at /.",
  execute: true,
  todos: false
}).pipe(Agent.provide(coderModel))

const lead = DeepAgent.make({
  name: "lead",
  prompt: "You divide the work among coders, each on a branch, and merge what they did.",
  tools: [...Worktrees.tools({ agent: coder }), ...Git.reading()],
  todos: false,
  generalPurpose: false,
  approvals: { tools: { merge_branches: true } }
})

const script = TestChatModel.script([
  TestChatModel.calls([
    call("code_in_worktree", { branch: "work/mean", task: "/mean.txt: the mean" }),
    call("code_in_worktree", { branch: "work/greeting", task: "/greeting.txt: Hello, Ada" }),
    call("code_in_worktree", { branch: "work/other", task: "/greeting.txt: Good morning" })
  ]),
  TestChatModel.calls([call("merge_branches", { branches: ["work/mean", "work/greeting", "work/other"] })]),
  TestChatModel.calls([call("git_log", {})]),
  "Merged two of three; the greeting is written twice, and you must choose."
])

const program = Effect.gen(function* () {
  const sandbox = yield* Sandbox.Sandbox
  yield* sandbox.execute(
    "git init -q -b main && git -c user.name=Ada -c user.email=ada@example.com commit -q --allow-empty -m first"
  )
  const result = yield* Agent.run(lead, "Write the three files.").pipe(
    Effect.provide([script, approvals({ isScripted: true })])
  )
  for (const message of result.messages) {
    if (message.role === "tool" && message.content[0]?.type === "text") console.log(`${message.content[0].text}\n`)
  }
  console.log(result.text)
  const { output } = yield* sandbox.execute("ls; cat greeting.txt; git status --short; git worktree list | wc -l")
  assert.deepEqual(
    output.split("\n").map((line) => line.trim()),
    ["greeting.txt", "mean.txt", "Hello, Ada", "1", ""]
  )
})

const inFolder = Effect.gen(function* () {
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const root = path.join(yield* files.makeTempDirectoryScoped({ prefix: "worktrees-" }), "repository")
  yield* files.makeDirectory(root)
  return yield* Effect.provide(program, LocalShell.layer({ root }))
})

main(inFolder)
