/**
 * Threads as the present code writes them, one for each state: `npm run corpus` keeps them, and later versions read them.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Deferred, Effect, Fiber, Layer, Schedule, Schema, Stream } from "effect"
import {
  Agent,
  type Backend,
  type ChatModel,
  type Journal,
  Message,
  Question,
  Sources,
  Tool,
  ToolContext,
  ToolOutput
} from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { DeepAgent } from "effect-deepagents/deep"
import {
  BackgroundSubagents,
  BackgroundTasks,
  HumanInTheLoop,
  Subagents,
  Summarization
} from "effect-deepagents/middleware"
import { JsonlSessions, MemorySessions, SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestChatModel, TestIds } from "effect-deepagents/testing"

const { calls, script, text } = TestChatModel

/** A call of a tool. */
const call = (name: string, args: object = {}) => calls([{ name, arguments: { ...args } }])

const lookup = Tool.make("lookup", {
  description: "Looks a thing up",
  parameters: { key: Schema.String },
  annotations: { readOnly: true },
  execute: ({ key }) =>
    Effect.succeed(
      ToolOutput.make(`${key} is found`, {
        sources: [Sources.make({ url: `https://example.com/${key}`, title: key, snippet: "found" })]
      })
    )
})

const see = Tool.make("see", {
  description: "Gives a picture",
  parameters: {},
  annotations: { readOnly: true },
  execute: () => Effect.succeed(ToolOutput.make([{ type: "text", text: "seen" }, picture]))
})

const picture = { type: "image", source: { kind: "base64", data: "iVBORw0KGgo=", mimeType: "image/png" } } as const

/** Pays once. `after` runs after the payment. */
const payWith = (after: Effect.Effect<string>) =>
  Tool.make("pay", {
    description: "Pays",
    parameters: { amount: Schema.Finite },
    annotations: { destructive: true },
    execute: () => after
  })

export const plain = Agent.make({ name: "plain", prompt: "p", tools: [lookup, see] })

const Weather = Schema.Struct({ city: Schema.String, degrees: Schema.Finite })

export const forecaster = Agent.make({ name: "forecaster", prompt: "p", tools: [lookup], output: Weather })

export const deep = DeepAgent.make({
  name: "deep",
  prompt: "You write.",
  approvals: { tools: { write_file: true } }
})

/** An agent that pays, and can be asked about a payment of which nobody knows whether it was made. */
export const payer = (after: Effect.Effect<string>) =>
  Agent.make({
    name: "payer",
    prompt: "p",
    tools: [payWith(after)],
    middleware: [HumanInTheLoop.make({ tools: { pay: false } })]
  })

/** A lead whose worker asks before it pays. */
export const lead = (after: Effect.Effect<string>, names: { readonly worker: string } = { worker: "worker" }) => {
  const worker = Agent.make({ name: names.worker, description: "Works", prompt: "p", tools: [lookup, payWith(after)] })
  return Agent.make({
    name: "lead",
    prompt: "p",
    middleware: [Subagents.make({ agents: [worker] }), HumanInTheLoop.make({ tools: { pay: true } })]
  })
}

/** A lead whose worker pays without asking. */
export const trusting = (after: Effect.Effect<string>) => {
  const worker = Agent.make({ name: "worker", description: "Works", prompt: "p", tools: [lookup, payWith(after)] })
  return Agent.make({ name: "trusting", prompt: "p", middleware: [Subagents.make({ agents: [worker] })] })
}

const seat = Question.make("Which seat?", { answer: Schema.Literals(["window", "aisle"]), details: { flight: "F1" } })

/** An agent that looks for a flight in one step, and asks for the seat before it books. */
export const booker = (search: Effect.Effect<string>) => {
  const book = Tool.make("book", {
    description: "Books a flight",
    parameters: { to: Schema.String },
    execute: Effect.fnUntraced(function* ({ to }) {
      const flight = yield* Agent.step("search", search, Schema.String)
      const { ask, call } = yield* ToolContext.ToolContext
      yield* call(lookup, { key: flight })
      return `${flight} to ${to} is booked, at the ${yield* ask(seat)}`
    })
  })
  return Agent.make({
    name: "booker",
    prompt: "p",
    tools: [book, lookup],
    middleware: [HumanInTheLoop.make({ destructive: true })]
  })
}

/** An agent with a worker in the background. */
export const absent = (model: Layer.Layer<ChatModel.ChatModel>) => {
  const worker = Agent.provide(Agent.make({ name: "worker", description: "Works", prompt: "p" }), model)
  return Agent.make({ name: "absent", prompt: "p", middleware: [BackgroundSubagents.make({ agents: [worker] })] })
}

export const forgetful = Agent.make({
  name: "forgetful",
  prompt: "p",
  tools: [lookup],
  middleware: [Summarization.make({ trigger: { messages: 6 }, tail: { messages: 2 } })]
})

const spent = { usage: { inputTokens: 11, outputTokens: 7, cacheReadTokens: 3 } }

/** Answers requests for summaries too. */
const summarising = TestChatModel.reactive(({ messages, purpose }) =>
  purpose === "summary"
    ? "They looked things up."
    : messages.at(-1)?.role === "tool"
      ? "It is."
      : call("lookup", { key: "it" })
)

/** Keeps the thread of a run as it is when the run has come to this point, as a kill would leave it. */
const cutOff = Effect.fnUntraced(function* <E, R>(
  threadId: string,
  run: (options: { readonly threadId: string }, reached: Effect.Effect<never>) => Effect.Effect<unknown, E, R>
) {
  const store = yield* SessionStore.SessionStore
  const begun = yield* Deferred.make<void>()
  const reached = Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
  const fiber = yield* Effect.forkChild(run({ threadId: `${threadId}-alive` }, reached))
  yield* Effect.raceFirst(Deferred.await(begun), Effect.andThen(Fiber.join(fiber), Effect.die("it came to its end")))
  const lines = yield* Stream.runCollect(store.export(`${threadId}-alive`))
  yield* Fiber.interrupt(fiber)
  yield* store.delete(`${threadId}-alive`)
  yield* store.import(Stream.fromIterable(lines), { threadId })
})

const done = Effect.gen(function* () {
  const run = (input: string) => Agent.run(plain, input, { threadId: "done" })
  yield* run("Is it there?")
  yield* run("And the other?")
}).pipe(
  Effect.provide(
    script([
      calls([{ name: "lookup", arguments: { key: "one" } }], {
        ...spent,
        text: "I look.",
        reasoning: "It may be there."
      }),
      text("It is.", spent),
      calls([
        { name: "lookup", arguments: { key: "two" } },
        { raw: '{"key": "thr', name: "lookup", problem: "the JSON ends too early" }
      ]),
      "It is too."
    ])
  )
)

const withOutput = Agent.run(forecaster, "Is it warm?", { threadId: "output" }).pipe(
  Effect.provide(script([call("lookup", { key: "Bern" }), '{"city":"Bern","degrees":21}']))
)

const waiting = Agent.run(deep, "Write a.md", { threadId: "waiting" }).pipe(
  Effect.provide(
    script([
      call("write_todos", { todos: [{ content: "write", status: "in_progress" }] }),
      call("write_file", { file_path: "/a.md", content: "a" })
    ])
  )
)

const cut = cutOff("cut", (options, reached) =>
  Agent.run(payer(reached), "Pay 5", options).pipe(
    Effect.provide(script([calls([{ name: "pay", arguments: { amount: 5 } }], spent)]))
  )
)

const parked = Effect.andThen(
  cutOff("parked", (options, reached) =>
    Agent.run(payer(reached), "Pay 7", options).pipe(Effect.provide(script([call("pay", { amount: 7 })])))
  ),
  Agent.resume(payer(Effect.never), { threadId: "parked", unknownOutcome: "ask" }).pipe(Effect.provide(script([])))
)

/** An answer that was interrupted, and kept. */
const partial = Effect.gen(function* () {
  const begun = yield* Deferred.make<void>()
  const telling = Agent.stream(plain, "Tell me", { threadId: "partial" }).pipe(
    Stream.runForEach((event) => (event._tag === "TextDelta" ? Deferred.succeed(begun, undefined) : Effect.void))
  )
  const fiber = yield* Effect.forkChild(telling)
  yield* Deferred.await(begun)
  yield* Fiber.interrupt(fiber)
}).pipe(Effect.provide(script([TestChatModel.hangAfter("Once upon a")])))

/** A thread that ends in the parts of a turn, since the process was killed while it was streamed. */
const streaming = Effect.gen(function* () {
  const store = yield* SessionStore.SessionStore
  const hasPart = store
    .load("streaming-alive")
    .pipe(Effect.map(({ entries }) => entries.some(({ entry }) => entry._tag === "Part")))
  yield* cutOff("streaming", (options, reached) =>
    Effect.raceFirst(
      Agent.run(plain, "Tell me", options),
      Effect.flatMap(
        Effect.repeat(
          Effect.orElseSucceed(hasPart, () => false),
          {
            schedule: Schedule.spaced("10 millis"),
            until: (isThere) => isThere
          }
        ),
        () => reached
      )
    )
  )
}).pipe(Effect.provide(script([TestChatModel.hangAfter("Once upon a")])))

const compacted = Effect.forEach(["one", "two", "three", "four"], (input) =>
  Agent.run(forgetful, input, { threadId: "compacted" })
).pipe(Effect.provide(summarising))

const forked = Effect.gen(function* () {
  const store = yield* SessionStore.SessionStore
  const path = yield* store.load("done")
  const first = path.entries.find(({ entry }) => entry._tag === "RunSettled") ?? path.entries[0]
  yield* store.fork("done", { threadId: "forked", at: first?.id ?? null, metadata: { from: "done" } })
  yield* Agent.run(plain, "And a third?", { threadId: "forked" })
}).pipe(Effect.provide(script([call("lookup", { key: "three" }), "It is not."])))

/** A thread with a branch that was left, a label and metadata, in the archive. */
const branched = Effect.gen(function* () {
  const store = yield* SessionStore.SessionStore
  yield* store.create({ threadId: "branched", metadata: { user: "ada" } })
  yield* Agent.run(plain, "Left?", { threadId: "branched" })
  const left = yield* store.leaf("branched")
  yield* store.label("branched", "left", left.id)
  yield* store.rewind("branched", null)
  yield* Agent.run(plain, "Right?", { threadId: "branched" })
  yield* store.describe("branched", { user: "ada", done: true })
  yield* store.archive("branched")
}).pipe(Effect.provide(script(["Left.", "Right."])))

const inside = Agent.run(lead(Effect.never), "Have it paid", { threadId: "inside" }).pipe(
  Effect.provide(
    script([
      call("task", { subagent_type: "worker", description: "Pay 3" }),
      call("lookup", { key: "price" }),
      call("pay", { amount: 3 })
    ])
  )
)

/** A thread that was killed in a tool of a sub-agent. */
const nested = cutOff("nested", (options, reached) =>
  Agent.run(trusting(reached), "Have it paid", options).pipe(
    Effect.provide(
      script([
        call("task", { subagent_type: "worker", description: "Pay 3" }),
        call("lookup", { key: "price" }),
        call("pay", { amount: 3 })
      ])
    )
  )
)

const asked = Agent.run(booker(Effect.succeed("F1")), "To Rome", { threadId: "asked" }).pipe(
  Effect.provide(script([call("book", { to: "Rome" })]))
)

const background = Agent.run(absent(TestChatModel.reactive(() => TestChatModel.hang)), "Find out", {
  threadId: "background"
}).pipe(
  Effect.provide(
    script([call("start_task", { subagent_type: "worker", description: "Search" }), "It is being looked for."])
  )
)

const attachments = Effect.gen(function* () {
  const question = Message.human([
    { type: "text", text: "What is this?" },
    picture,
    { type: "image", source: { kind: "url", url: "https://example.com/cat.png" } },
    { type: "file", source: { kind: "fileId", fileId: "file-1" }, name: "a.pdf" }
  ])
  yield* Agent.run(plain, question, { threadId: "attachments" })
}).pipe(Effect.provide(script([call("see"), "A cat."])))

const sources = Agent.run(plain, "By what?", { threadId: "sources" }).pipe(
  Effect.provide(
    script([
      calls([
        { name: "lookup", arguments: { key: "one" } },
        { name: "lookup", arguments: { key: "two" } }
      ]),
      TestChatModel.message(
        Message.ai([
          {
            type: "text",
            text: "By one [1].",
            citations: [{ source: { key: "https://example.com/one" }, start: 0, end: 6, quote: "found" }]
          }
        ])
      )
    ])
  )
)

/** Every thread, in the order in which they build on each other. */
const states = {
  done,
  output: withOutput,
  waiting,
  cut,
  parked,
  partial,
  streaming,
  compacted,
  forked,
  branched,
  inside,
  nested,
  asked,
  background,
  attachments,
  sources
}

type Needs = Journal.Journal | SessionStore.SessionStore | Backend.Backend | BackgroundTasks.BackgroundTasks

const all: ReadonlyArray<Effect.Effect<unknown, unknown, Needs>> = Object.values(states)

const writeAll = Effect.forEach(all, (state) => Effect.orDie(state), { discard: true }).pipe(
  Effect.provide([MemoryBackend.layer(), BackgroundTasks.layer(), TestIds.layer()])
)

const into = <E>(store: Layer.Layer<SessionStore.SessionStore, E>) =>
  SessionStore.journalWith({ parts: true }).pipe(Layer.provideMerge(store))

/** Writes all of them into a folder: as JSONL files, as an SQLite file, and as exports for any store. */
export const writeInto = Effect.fnUntraced(function* (at: string) {
  const folder = join(at, "export")
  mkdirSync(folder, { recursive: true })
  const jsonl = JsonlSessions.layer({ folder: join(at, "jsonl") }).pipe(Layer.provide(NodeServices.layer))
  yield* Effect.provide(writeAll, into(jsonl))
  yield* Effect.provide(writeAll, into(SqliteSessions.layer({ file: join(at, "threads.db") })))
  const exported = Effect.gen(function* () {
    yield* writeAll
    const store = yield* SessionStore.SessionStore
    for (const threadId of Object.keys(states)) {
      const lines = yield* Stream.runCollect(store.export(threadId))
      writeFileSync(join(folder, `${threadId}.jsonl`), lines.map((line) => `${line}\n`).join(""))
    }
  })
  yield* Effect.provide(exported, into(MemorySessions.layer))
})
