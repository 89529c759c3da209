/** The bytes on the wire from round to round: providers cache equal beginnings. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Layer } from "effect"
import { Agent, type ChatModel } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import { claude } from "../models/anthropic/asking.ts"
import { responses } from "../models/openai/asking.ts"
import { functionCall, message, responseEvents } from "../models/openai/wire.ts"
import * as anthropic from "../models/servers/anthropic.ts"
import * as openai from "../models/servers/openai.ts"

const agent = DeepAgent.make({
  name: "deep",
  prompt: "You do all of it.",
  agentId: "coder",
  profiles: [{ promptSuffix: "Be brief.", toolDescriptions: { ls: "Lists." }, excludedTools: ["move_file"] }]
})

const files = MemoryBackend.layer({
  files: {
    "/AGENTS.md": "Write German.",
    "/.deepagents/skills/notes/SKILL.md": "---\nname: notes\ndescription: Takes notes.\n---\nTake notes."
  }
})

/** The model's answers in order; the third and the fourth turn are the sub-agent's. */
const script: ReadonlyArray<readonly [name: string, args: Record<string, unknown>] | string> = [
  ["write_todos", { todos: [{ content: "a", status: "pending" }] }],
  ["task", { subagent_type: DeepAgent.generalPurpose, description: "look" }],
  ["ls", { path: "/" }],
  "nothing new",
  ["use_skill", { name: "notes" }],
  ["write_file", { file_path: "/notes.md", content: "x" }],
  ["write_todos", { todos: [{ content: "a", status: "completed" }] }],
  "done"
]

interface Sent {
  readonly raw: string
  readonly body: Record<string, unknown>
}

const run = (model: Layer.Layer<ChatModel.ChatModel, unknown>) =>
  Agent.run(agent, "go").pipe(Effect.provide([model, files]), Effect.orDie)

/** The bytes of a field, as they were sent. */
const bytesOf = ({ body, raw }: Sent, field: string): string => {
  const text = JSON.stringify(body[field])
  assert.include(raw, `"${field}":${text}`)
  return text
}

/** Compares each request of an agent with the one before: same prompt, same tools, and earlier messages first. */
const assertStable = (
  sent: ReadonlyArray<Sent>,
  fixed: ReadonlyArray<string>,
  history: string,
  unmarked: (text: string) => string
) => {
  const byTools = Map.groupBy(sent, ({ body }) => JSON.stringify(body["tools"]).includes('"task"'))
  assert.deepStrictEqual(
    [...byTools.values()].map((all) => all.length),
    [6, 2]
  )
  for (const requests of byTools.values()) {
    for (const [index, request] of requests.slice(0, -1).entries()) {
      const next = requests[index + 1]!
      for (const field of fixed) assert.strictEqual(bytesOf(next, field), bytesOf(request, field))
      const before = unmarked(bytesOf(request, history)).slice(0, -1)
      const after = unmarked(bytesOf(next, history))
      assert.isTrue(after.startsWith(`${before},`), `${after}\ndoes not begin with\n${before}`)
    }
  }
}

describe("prompt, tools and history are the same bytes from round to round", { timeout: 20_000 }, () => {
  it.live("of Claude, where only the marks of the cache move", () =>
    Effect.gen(function* () {
      const server = yield* anthropic.serve(
        ...script.map((turn, index) =>
          typeof turn === "string"
            ? anthropic.say(turn)
            : anthropic.stream(anthropic.answer([{ call: turn[0], id: `toolu_${index}`, input: turn[1] }]))
        )
      )
      assert.strictEqual((yield* run(claude(server))).text, "done")
      assertStable(server.requests, ["tools", "system"], "messages", (text) =>
        text.replaceAll(/,"cache_control":\{[^}]*\}/g, "")
      )
      assert.include(bytesOf(server.requests.at(-1)!, "messages"), "cache_control")
      assert.include(bytesOf(server.requests[0]!, "system"), "Write German.")
    })
  )

  it.live("of OpenAI", () =>
    Effect.gen(function* () {
      const server = yield* openai.make
      server.reply(
        ...script.map((turn, index) =>
          openai.events(
            responseEvents([
              typeof turn === "string" ? message(turn) : functionCall(`c${index}`, turn[0], JSON.stringify(turn[1]))
            ])
          )
        )
      )
      assert.strictEqual((yield* run(responses(server))).text, "done")
      const sent = server.seen.map(({ body, text }) => ({ body, raw: text }))
      assertStable(sent, ["tools", "instructions"], "input", (text) => text)
    })
  )
})
