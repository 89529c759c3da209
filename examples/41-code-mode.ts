/**
 * A script in place of a hundred calls: it renames a function in forty files of a repository, after an approval. The
 * process is killed in the middle of it, and the next one goes on: no file is changed twice, nobody is asked again.
 */
import assert from "node:assert/strict"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Layer, Path, Schema } from "effect"
import { Agent, Approval, Message, Middleware, Tool } from "effect-deepagents"
import { FileTools } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { CodeMode } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestChatModel } from "effect-deepagents/testing"
import { ChildProcess } from "effect/process"

const [role, given = ""] = process.argv.slice(2)

/** What a model would write. It reads each file, asks once, and changes the files that call the function. */
const script = `
const found = await tools.glob({ pattern: "src/*.ts" })
const files: string[] = found.split("\\n").filter((line) => line.endsWith(".ts"))
const texts = await Promise.all(files.map((file_path) => tools.read_file({ file_path })))
const hits = files.filter((_, at) => texts[at].includes("oldName("))
phase(\`rename in \${hits.length} files\`)
await tools.announce({ text: \`oldName is renamed in \${hits.length} files\` })
for (const file_path of hits) {
  try {
    await tools.edit_file({ file_path, old_string: "oldName(", new_string: "newName(", replace_all: true })
  } catch (error) {
    // A crash cut this call off: look, and do it only if it was not done.
    if (error.reason !== "UnknownOutcome") throw error
    const now = await tools.read_file({ file_path })
    text(file_path, now.includes("newName(") ? "was done" : "was not done")
  }
}
return { read: files.length, changed: hits.length }`

const makeAgent = (folder: string) => {
  const note = (line: string) =>
    FileSystem.FileSystem.use((fs) => fs.writeFileString(`${folder}/log.txt`, `${line}\n`, { flag: "a" })).pipe(
      Effect.orDie
    )
  const announce = Tool.make("announce", {
    description: "Tells the team something",
    parameters: { text: Schema.String },
    execute: ({ text }) => Effect.as(note(`announced: ${text}`), "told")
  })
  let edits = 0
  const watch = Middleware.make({
    name: "watch",
    wrapToolCall: (call, next) =>
      Effect.tap(next(call), () =>
        call.name !== "edit_file"
          ? Effect.void
          : Effect.andThen(
              note(`edited ${JSON.stringify(call.arguments)}`),
              Effect.sync(() => {
                // The change is in the file, and nobody has noted it yet.
                if (role === "child" && ++edits === 12) process.kill(process.pid, "SIGKILL")
              })
            )
      )
  })
  return Agent.make({
    name: "coder",
    prompt: "You change the repository.",
    middleware: [
      CodeMode.make({ tools: [...FileTools.make(), announce] }),
      watch,
      HumanInTheLoop.make({ tools: { announce: true } })
    ]
  })
}

const model = TestChatModel.reactive(({ messages }) => {
  const answer = messages.findLast((message) => message.role === "tool")
  return answer === undefined
    ? TestChatModel.calls([{ name: "run_script", arguments: { script } }])
    : `Done. ${Message.text(answer)}`
})

const services = (folder: string) =>
  Layer.mergeAll(
    model,
    NodeScripts.layer(),
    FilesystemBackend.layer({ root: `${folder}/repository` }),
    SessionStore.journal.pipe(Layer.provideMerge(SqliteSessions.layer({ file: `${folder}/threads.db` })))
  )

/** Runs until the approval, gives it, and is killed at the twelfth file. */
const child = (folder: string) =>
  Effect.gen(function* () {
    const agent = makeAgent(folder)
    const first = yield* Agent.run(agent, "Rename oldName to newName everywhere, and tell the team", { threadId: "t" })
    assert.equal(first.stopReason, "suspended")
    const decisions = first.pending.map((one) => Approval.approve(one))
    return yield* Agent.resume(agent, { threadId: "t", decisions })
  }).pipe(Effect.provide(services(folder)))

const parent = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* fs.makeTempDirectoryScoped()
  const source = path.join(folder, "repository", "src")
  yield* fs.makeDirectory(source, { recursive: true })
  for (let at = 0; at < 60; at++) {
    const text = at < 40 ? `export const f${at} = () => oldName(${at}) + oldName(1)\n` : `export const f${at} = ${at}\n`
    yield* fs.writeFileString(path.join(source, `f${at}.ts`), text)
  }

  const other = yield* ChildProcess.make(
    process.execPath,
    [...process.execArgv, import.meta.filename, "child", folder],
    { stderr: "inherit" }
  )
  yield* Effect.ignore(other.exitCode)
  yield* Console.log("The process is gone, in the middle of the script.")

  const result = yield* Agent.resume(makeAgent(folder), { threadId: "t", decisions: [] }).pipe(
    Effect.provide(services(folder))
  )
  yield* Console.log(result.text)

  const log = (yield* fs.readFileString(`${folder}/log.txt`)).trim().split("\n")
  const edited = log.filter((line) => line.startsWith("edited"))
  assert.equal(edited.length, 40)
  assert.equal(new Set(edited).size, 40)
  assert.equal(log.length - edited.length, 1)
  for (let at = 0; at < 40; at++) {
    const text = yield* fs.readFileString(path.join(source, `f${at}.ts`))
    assert.equal(text, `export const f${at} = () => newName(${at}) + newName(1)\n`)
  }
  assert.match(result.text, /was done\n\{"read":60,"changed":40\}$/)
  // One call of the model's, with one result, in place of 102.
  assert.equal(result.messages.filter((message) => message.role === "tool").length, 1)
})

const program = role === "child" ? Effect.asVoid(child(given)) : parent
NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
