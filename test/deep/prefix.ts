/**
 * A long conversation of which tools, skills and sub-agents come and go, in several processes, as a provider gets it.
 */
import { Deferred, Effect, Layer, Ref, Schema, Stream } from "effect"
import { Agent, Content, type Journal, Middleware, Tool, ToolOutput } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import { PromptCaching } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { claude } from "../models/anthropic/asking.ts"
import { compatible, responses } from "../models/openai/asking.ts"
import { chunk, functionCall, message, responseEvents } from "../models/openai/wire.ts"
import * as anthropic from "../models/servers/anthropic.ts"
import * as openai from "../models/servers/openai.ts"

/** An action of the model in a turn, or an event from outside. */
export type Op =
  | { readonly op: "step" | "picture" | "todo" | "file" | "task" | "use" | "leave" }
  | { readonly op: "tools"; readonly there: ReadonlyArray<string> }
  | { readonly op: "late"; readonly name: string }
  /** It answers, and is told something else: by the same process, or by another one. */
  | { readonly op: "input" | "restart"; readonly long?: boolean }
  /** It is killed in a tool, and resumed by another process. */
  | { readonly op: "crash" }

/** Tools that come and go, and the sub-agents among them. */
export const comers = ["alpha", "beta", "gamma", "expert"]

type Turn = readonly [name: string, args: Record<string, unknown>] | string

const turnsOf = (op: Op, at: number, stable: boolean): ReadonlyArray<Turn> => {
  switch (op.op) {
    case "step":
      return [["step", { n: at }]]
    case "picture":
      return [["picture", {}]]
    case "todo":
      return [["write_todos", { todos: [{ content: `todo ${at}`, status: at % 2 === 0 ? "pending" : "completed" }] }]]
    case "file":
      return [["write_file", { file_path: `/notes/${at}.md`, content: `note ${at}\n`.repeat(20) }]]
    case "task":
      return [["task", { subagent_type: DeepAgent.generalPurpose, description: `look ${at}` }], "nothing new"]
    case "use":
      return [["use_skill", { name: "narrow" }]]
    case "leave":
      return [["leave_skill", {}]]
    case "tools":
      return [["switch", { there: op.there }]]
    case "late": {
      const call: Turn = stable
        ? ["call_tool", { name: op.name, arguments: { words: `of ${at}` } }]
        : [op.name, { words: `of ${at}` }]
      return [call]
    }
    case "crash":
      return [["die", {}]]
    case "input":
    case "restart":
      return [`answer ${at}`]
  }
}

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg=="

const comer = (name: string) =>
  name === "expert"
    ? Tool.make(name, {
        description: "Asks an expert",
        parameters: { words: Schema.String },
        execute: ({ words }) => Effect.succeed(`the expert on ${words}`)
      })
    : Tool.dynamic(name, {
        description: `Does ${name}`,
        parameters: {
          type: "object",
          properties: { words: { type: "string" }, ...(name === "beta" ? { 2: { type: "number" } } : {}) },
          required: ["words"]
        },
        execute: ({ words }) => Effect.succeed(`${name} of ${JSON.stringify(words)}`)
      })

/** The agent, as each process makes it anew. */
const agentOf = (there: Ref.Ref<ReadonlyArray<string>>, died: Deferred.Deferred<void>, stable: boolean) => {
  let known: { readonly names: ReadonlyArray<string>; readonly tools: ReadonlyArray<Tool.Tool> } | undefined
  return DeepAgent.make({
    name: "deep",
    prompt: "MAIN: you do all of it.",
    agentId: "coder",
    largeResults: { userMessages: 500 },
    tools: [
      Tool.make("step", {
        description: "Works",
        parameters: { n: Schema.Int },
        execute: ({ n }) => Effect.succeed(`worked on ${n}: ${"result ".repeat(40)}`)
      }),
      Tool.make("picture", {
        description: "Shows",
        parameters: {},
        execute: () =>
          Effect.succeed(ToolOutput.make([Content.text("here"), Content.image({ base64: png, mimeType: "image/png" })]))
      }),
      Tool.make("switch", {
        description: "Connects servers",
        parameters: { there: Schema.Array(Schema.String) },
        execute: ({ there: names }) => Effect.as(Ref.set(there, names), "connected")
      }),
      Tool.make("die", {
        description: "Ends the process",
        parameters: {},
        execute: () => Effect.andThen(Deferred.succeed(died, undefined), Effect.never)
      })
    ],
    middleware: [
      Middleware.make({
        name: "servers",
        tools: () =>
          Effect.map(Ref.get(there), (names) => {
            // A server tells its tools in any order, and anew each time.
            if (known?.names !== names) known = { names, tools: names.toReversed().map(comer) }
            return known.tools
          })
      }),
      ...(stable ? [PromptCaching.make({ stableTools: true })] : [])
    ]
  })
}

const files = MemoryBackend.layer({
  files: {
    "/AGENTS.md": "Write German.",
    "/.deepagents/skills/narrow/SKILL.md":
      "---\nname: narrow\ndescription: Narrows.\nallowed-tools: step task switch die\n---\nWork with little."
  }
})

/** A request as it came: its bytes in the order in which providers cache them. */
export interface Sent {
  readonly tools: string
  readonly system: string
  readonly history: string
}

const fieldOf = (raw: string, body: Record<string, unknown>, field: string): string => {
  const text = JSON.stringify(body[field]) ?? ""
  if (!raw.includes(`"${field}":${text}`) && text !== "") throw new Error(`${field} is not sent as it is read`)
  return text
}

interface Provider {
  readonly fields: readonly [tools: string, system: string, history: string]
  readonly mark: RegExp | undefined
}

const providers = {
  anthropic: { fields: ["tools", "system", "messages"], mark: /,"cache_control":\{[^}]*\}/g },
  responses: { fields: ["tools", "instructions", "input"], mark: undefined },
  chat: { fields: ["tools", "none", "messages"], mark: undefined }
} satisfies Record<string, Provider>
export type Name = keyof typeof providers

const serverOf = Effect.fnUntraced(function* (name: Name, turns: ReadonlyArray<Turn>) {
  if (name === "anthropic") {
    const server = yield* anthropic.serve(
      ...turns.map((turn, index) =>
        typeof turn === "string"
          ? anthropic.say(turn)
          : anthropic.stream(anthropic.answer([{ call: turn[0], id: `toolu_${index}`, input: turn[1] }]))
      )
    )
    return { model: claude(server), seen: () => server.requests.map(({ body, raw }) => ({ body, raw })) }
  }
  const server = yield* openai.make
  const callOf = (turn: readonly [string, Record<string, unknown>], index: number) =>
    name === "responses"
      ? openai.events(responseEvents([functionCall(`c${index}`, turn[0], JSON.stringify(turn[1]))]))
      : openai.chunks([
          chunk({
            tool_calls: [
              {
                index: 0,
                id: `c${index}`,
                type: "function",
                function: { name: turn[0], arguments: JSON.stringify(turn[1]) }
              }
            ]
          }),
          chunk({}, "tool_calls")
        ])
  const sayOf = (text: string) =>
    name === "responses"
      ? openai.events(responseEvents([message(text)]))
      : openai.chunks([chunk({ content: text }), chunk({}, "stop")])
  server.reply(...turns.map((turn, index) => (typeof turn === "string" ? sayOf(turn) : callOf(turn, index))))
  return {
    model: name === "responses" ? responses(server) : compatible(server),
    seen: () => server.seen.map(({ body, text }) => ({ body, raw: text }))
  }
})

/** Has a conversation, and gives the main agent's requests. */
export const converse = (name: Name, ops: ReadonlyArray<Op>, stable: boolean) =>
  Effect.gen(function* () {
    const all: ReadonlyArray<Op> = [...ops, { op: "input" }]
    const { model, seen } = yield* serverOf(
      name,
      all.flatMap((op, at) => turnsOf(op, at, stable))
    )
    const backend = yield* Layer.build(files)
    const there = yield* Ref.make<ReadonlyArray<string>>([])
    let store = yield* Layer.build(MemorySessions.layer)
    let died = yield* Deferred.make<void>()
    let agent = agentOf(there, died, stable)

    const another = Effect.gen(function* () {
      const lines = yield* Stream.runCollect(
        Stream.unwrap(Effect.map(SessionStore.SessionStore, (from) => from.export("t")))
      ).pipe(Effect.provide(store))
      store = yield* Layer.build(MemorySessions.layer)
      yield* SessionStore.SessionStore.use((to) => to.import(Stream.fromIterable(lines))).pipe(Effect.provide(store))
      died = yield* Deferred.make<void>()
      agent = agentOf(there, died, stable)
    })
    const runWithin = <A, E>(
      run: Effect.Effect<
        A,
        E,
        Layer.Success<typeof model> | Layer.Success<typeof files> | SessionStore.SessionStore | Journal.Journal
      >
    ) =>
      Effect.raceFirst(
        Effect.provide(run, SessionStore.journal).pipe(
          Effect.provide(store),
          Effect.provide(backend),
          Effect.provide(model)
        ),
        Deferred.await(died)
      )

    let input = "go"
    let isResumed = false
    for (const [at, op] of all.entries()) {
      if (op.op !== "input" && op.op !== "restart" && op.op !== "crash") continue
      yield* runWithin(isResumed ? Agent.resume(agent, { threadId: "t" }) : Agent.run(agent, input, { threadId: "t" }))
      input = `and ${at} ${"long-".repeat("long" in op && op.long === true ? 200 : 1)}`
      isResumed = op.op === "crash"
      if (op.op !== "input") yield* another
    }
    const { fields, mark } = providers[name]
    return seen().flatMap(({ body, raw }): ReadonlyArray<Sent> => {
      if (!raw.includes("MAIN: you do")) return []
      const [tools, system, history] = fields.map((field) => {
        const text = fieldOf(raw, body, field)
        return mark === undefined ? text : text.replaceAll(mark, "")
      })
      return [{ tools: tools ?? "", system: system ?? "", history: (history ?? "").slice(0, -1) }]
    })
  }).pipe(Effect.scoped)

const common = (left: string, right: string): number => {
  let index = 0
  const end = Math.min(left.length, right.length)
  while (index < end && left[index] === right[index]) index++
  return index
}

const bytes = ({ history, system, tools }: Sent): string => `${tools}\n${system}\n${history}`

/** For each request, how much of the one before it is its beginning: all of it, or less. */
export const comparePrefixes = (sent: ReadonlyArray<Sent>) =>
  sent.slice(1).map((request, index) => {
    const before = bytes(sent[index]!)
    const after = bytes(request)
    const same = common(before, after)
    return { same, length: before.length, before: before.slice(same, same + 200), after: after.slice(same, same + 200) }
  })

/** 200 rounds with 30 arrivals and departures, in four processes, one of which is killed. */
export const long: ReadonlyArray<Op> = Array.from({ length: 200 }, (_, at): Op => {
  if (at % 20 === 4) return { op: "tools", there: comers.filter((_, index) => (at / 20 + index) % 3 > 1) }
  if (at % 20 === 14) return { op: "use" }
  if (at % 20 === 17) return { op: "leave" }
  if (at === 90 || at === 150) return { op: "restart", long: true }
  if (at === 130) return { op: "crash" }
  if (at % 30 === 8) return { op: "input" }
  const ops: ReadonlyArray<Op> = [
    { op: "step" },
    { op: "todo" },
    { op: "file" },
    { op: "step" },
    { op: "task" },
    { op: "late", name: comers[at % 4] ?? "" },
    { op: "picture" }
  ]
  return ops[at % ops.length]!
})
