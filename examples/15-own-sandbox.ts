/**
 * A sandbox of one's own, by three functions: run a line, read a file, write a file. All other operations come from
 * `CustomSandbox`. Here the machine is a shell in a temporary folder, which is no isolation: in its place comes a container,
 * a virtual machine, or a service that has them.
 */
import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { readFile, writeFile } from "node:fs/promises"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Layer } from "effect"
import { Agent, Message } from "effect-deepagents"
import { CustomSandbox, FileTools } from "effect-deepagents/backends"
import { TestChatModel } from "effect-deepagents/testing"

/** Runs a line. When the effect is interrupted, nobody waits for it any more; `CustomSandbox` ends what it started. */
const run = (cwd: string, command: string) =>
  Effect.callback<{ readonly output: string; readonly exitCode: number }, Error>((resume) => {
    const child = spawn("/bin/sh", ["-c", command], { cwd, stdio: ["ignore", "pipe", "ignore"] })
    const chunks: Array<Buffer> = []
    child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk))
    child.on("error", (error) => resume(Effect.fail(error)))
    child.on("close", (code) =>
      resume(Effect.succeed({ output: Buffer.concat(chunks).toString(), exitCode: code ?? 137 }))
    )
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

const layer = (folder: string) =>
  CustomSandbox.layer(
    {
      id: "temporary",
      execute: (command) => run(folder, command),
      read: (path) => Effect.tryPromise(() => readFile(path)),
      write: (path, content) => Effect.tryPromise(() => writeFile(path, content))
    },
    { root: folder }
  )

const agent = Agent.make({
  name: "programmer",
  prompt: "You write programs and run them.",
  tools: FileTools.make({ execute: true })
})

const model = TestChatModel.script([
  TestChatModel.calls([
    { name: "write_file", arguments: { file_path: "/bin/greet.sh", content: 'echo "Hello, $1"\n' } }
  ]),
  TestChatModel.calls([
    {
      name: "edit_file",
      arguments: { file_path: "/bin/greet.sh", old_string: "Hello, $1", new_string: "Good morning, $1" }
    }
  ]),
  TestChatModel.calls([{ name: "grep", arguments: { pattern: "morning", output_mode: "content" } }]),
  TestChatModel.calls([{ name: "execute", arguments: { command: "sh bin/greet.sh Ada" } }]),
  TestChatModel.calls([{ name: "execute", arguments: { command: "sleep 60", timeout: 1 } }]),
  "It says good morning."
])

const program = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const folder = yield* fs.makeTempDirectoryScoped()
  const { messages } = yield* Agent.run(agent, "Write a greeting.").pipe(Effect.provide(layer(folder)))
  const results = messages.filter((message) => message.role === "tool").map(Message.text)
  for (const result of results) yield* Console.log(result.replaceAll("\n", " | "))
  assert.match(results[2] ?? "", /greet\.sh/)
  assert.match(results[3] ?? "", /^Good morning, Ada\n\[Command succeeded with exit code 0\]$/)
  assert.match(results[4] ?? "", /not done within 1 second\b/)
  assert.equal(yield* fs.readFileString(`${folder}/bin/greet.sh`), 'echo "Good morning, $1"\n')
})

NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(Layer.mergeAll(model, NodeServices.layer))))
