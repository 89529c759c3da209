/**
 * Deep research over local documents: a plan, researchers that read side by side, a critic that has seen all of it, and
 * a report that is sent back until every source in it exists.
 */
import assert from "node:assert/strict"
import { fileURLToPath } from "node:url"
import { Effect, Layer } from "effect"
import { Agent, Backend } from "effect-deepagents"
import { CompositeBackend, MemoryBackend, Permissions } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { DeepAgent } from "effect-deepagents/deep"
import { Rubric, Subagents } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { chooseModel } from "./shared/model.ts"
import { show } from "./shared/render.ts"
import { main } from "./shared/run.ts"

/** The documents can be read and nothing else; what the agent writes stays in memory. */
const files = CompositeBackend.layer({
  default: MemoryBackend.layer(),
  routes: {
    "/documents": Permissions.layer({
      rules: [{ operations: ["read"], paths: ["/**"], ruling: "allow" }],
      default: "refuse"
    }).pipe(Layer.provide(FilesystemBackend.layer({ root: fileURLToPath(new URL("data/night-bus", import.meta.url)) })))
  }
})

const researcher = DeepAgent.subagent({
  name: "researcher",
  description: "Answers one question from the documents, with its sources",
  prompt: "You answer one question from the files in /documents. Give the path of the source after each statement.",
  files: ["ls", "read_file", "glob", "grep"],
  todos: false
})

const critic = Agent.make({
  name: "critic",
  description: "Has seen this conversation, and says what contradicts itself in it",
  prompt: "You criticise: name contradictions and gaps in two sentences."
})

/** A grader that is a program: each source that the report names must be there. */
const sourcesExist = Rubric.graded({
  grade: Effect.fnUntraced(function* ({ answer }) {
    const backend = yield* Backend.Backend
    const sources = [...new Set(answer.match(/\/documents\/[\w./-]*\w/g) ?? [])]
    if (sources.length === 0) return Rubric.needsRevision("The answer names no source. Give their paths.")
    const found = yield* backend.download(sources)
    const missing = found.flatMap(({ ok, path }) => (ok ? [] : [path]))
    return missing.length === 0
      ? Rubric.satisfied
      : Rubric.needsRevision(`There is no ${missing.join(", ")}. Name sources that exist.`)
  })
})

const lead = DeepAgent.make({
  name: "lead",
  prompt:
    "You answer questions by the files in /documents. Plan, have several researchers work at once, ask the critic, then answer in a few sentences with the paths of your sources.",
  subagents: [researcher, Subagents.fork(critic)],
  generalPurpose: false,
  middleware: [sourcesExist]
})

const ask = (agent: string, description: string) => ({
  name: "task",
  arguments: { subagent_type: agent, description }
})

const plan = (status: string) => ({
  name: "write_todos",
  arguments: { todos: [{ content: "Ask about use, money and safety", status }] }
})

const read = (file: string) => ({ name: "read_file", arguments: { file_path: `/documents/${file}` } })

/** What a researcher does with a question: it reads what the question names, and says this. */
const findings = [
  [/uses/, ["costs.md", "minutes-march.md"], "22,900 passengers in 2025 (/documents/costs.md)."],
  [/cost/, ["costs.md"], "€ 131,000 a year, € 39,500 of it from fares (/documents/costs.md)."],
  [/safe/, ["drivers.md"], "No incidents since there are two drivers (/documents/drivers.md)."]
] as const

const script = TestChatModel.reactive((request) => {
  const turn = request.messages.filter((message) => message.role === "ai").length
  if (request.systemPrompt.startsWith("You criticise"))
    return "The minutes speak of 9,000 passengers, the costs of 22,900."
  if (!request.tools.some((tool) => tool.name === "task")) {
    const [, sources, answer] =
      findings.find(([about]) => about.test(JSON.stringify(request.messages[0]))) ?? findings[0]
    return turn === 0 ? TestChatModel.calls(sources.map(read), { delay: "50 millis" }) : answer
  }
  const answer = "Keep it: it had 22,900 passengers in 2025, not 9,000, and no incidents since there are two drivers"
  const turns = [
    TestChatModel.calls([plan("in_progress")]),
    TestChatModel.calls([
      ask("researcher", "Who uses the night bus?"),
      ask("researcher", "What does it cost?"),
      ask("researcher", "Is it safe?")
    ]),
    TestChatModel.calls([plan("completed"), ask("critic", "What contradicts itself?")]),
    `${answer} (/documents/cost.md, /documents/drivers.md).`,
    `${answer} (/documents/costs.md, /documents/drivers.md).`
  ]
  return turns[turn] ?? "There is nothing left to say."
})

const program = Effect.gen(function* () {
  const model = yield* chooseModel(script)
  const events = yield* show(Agent.stream(lead, "Should the town keep its night bus?")).pipe(
    Effect.provide([files, model.layer])
  )
  // The first answer named a source that is not there, so there was a second one.
  const verdicts = events.flatMap((event) =>
    event._tag === "Custom" && event.name === "rubric" ? [event.payload] : []
  )
  if (model.isScripted) {
    assert.deepEqual(verdicts, [
      { satisfied: false, revisions: 0 },
      { satisfied: true, revisions: 1 }
    ])
  }
})

main(program)
