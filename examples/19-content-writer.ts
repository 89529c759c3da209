/**
 * A content writer with skills and memory: how the company writes is in AGENTS.md, how to make a newsletter in a skill,
 * and what the user likes in the agent's own folder, where it is in every later conversation.
 */
import assert from "node:assert/strict"
import { fileURLToPath } from "node:url"
import { Console, Effect, FileSystem, Path } from "effect"
import { Agent, Message } from "effect-deepagents"
import * as AgentHome from "effect-deepagents/backends/AgentHome"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { DeepAgent } from "effect-deepagents/deep"
import { TestChatModel } from "effect-deepagents/testing"
import { chooseModel } from "./shared/model.ts"
import { show } from "./shared/render.ts"
import { main } from "./shared/run.ts"

/** `agentId` reads memory and skills of the user from `/agent`, and the memory of the project from `/AGENTS.md`. */
const writer = DeepAgent.make({
  name: "writer",
  prompt: "You write for a bakery. Write what you are asked for to a file, and answer with its path.",
  agentId: "writer",
  skills: ["/skills"],
  generalPurpose: false
})

const newsletter = (reader: string) => `Walnut on Saturday

Dear ${reader},

Rye, € 4.20, is baked on Tuesday and Friday, and keeps for a week.

Walnut, € 5.10, is baked on Saturday. Come early.

See you at the counter.
`

const call = (name: string, args: Record<string, string>) => TestChatModel.calls([{ name, arguments: args }])

const remember = [
  call("write_file", { file_path: "/agent/agent.md", content: "- The newsletter greets its readers as Ada.\n" }),
  "I will remember it."
]

const write = (reader: string) => [
  call("use_skill", { name: "newsletter" }),
  call("read_file", { file_path: "/bread.md" }),
  call("write_file", { file_path: "/newsletter.md", content: newsletter(reader) }),
  "The newsletter is in /newsletter.md."
]

const script = TestChatModel.reactive(({ messages, systemPrompt }) => {
  const turn = messages.filter((message) => message.role === "ai").length
  // Even a script knows the reader from its memory only.
  const [, reader = "reader"] = /greets its readers as (\w+)/.exec(systemPrompt) ?? []
  const turns = Message.text(messages[0] ?? Message.human("")).includes("remember") ? remember : write(reader)
  return turns[turn] ?? "There is nothing left to say."
})

/** A copy of the project, and an empty home for the agent: both are gone when the example ends. */
const places = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = yield* fs.makeTempDirectoryScoped({ prefix: "content-writer-" })
  const project = path.join(folder, "bakery")
  yield* fs.copy(fileURLToPath(new URL("data/bakery", import.meta.url)), project)
  return { project, homes: path.join(folder, "homes") }
})

const program = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { homes, project } = yield* places
  const model = yield* chooseModel(script)
  const files = AgentHome.layer({ agentId: "writer", folder: homes, files: FilesystemBackend.layer({ root: project }) })

  // Two conversations that know nothing of each other, but for what is in files.
  yield* show(Agent.stream(writer, "Please remember: the newsletter greets its readers as Ada.")).pipe(
    Effect.provide([files, model.layer])
  )
  yield* show(Agent.stream(writer, "Write this week's newsletter.")).pipe(Effect.provide([files, model.layer]))

  const written = path.join(project, "newsletter.md")
  if (yield* fs.exists(written)) yield* Console.log(`\n${yield* fs.readFileString(written)}`)
  if (model.isScripted) assert.equal(yield* fs.readFileString(written), newsletter("Ada"))
})

main(program)
