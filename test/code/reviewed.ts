/** An agent whose scripts are reviewed, over files in memory. */
import { Effect, Layer, Schema } from "effect"
import { Agent, Approval, Backend, type Json, Message, Middleware, Ruling, Tool } from "effect-deepagents"
import { FileTools, MemoryBackend } from "effect-deepagents/backends"
import { CodeMode } from "effect-deepagents/code"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"

const files = { "/a.txt": "a\nb\n", "/b.txt": "b\n", "/d/c.txt": "c\n" }

export interface World {
  /** What the tools did that are not about files. */
  readonly did: Array<string>
  /** All calls that change something, as they begin. */
  readonly calls?: Array<{ readonly name: string; readonly arguments: Json.JsonObject }> | undefined
  /** Runs before each effect. */
  readonly onEffect?: ((what: string) => Effect.Effect<void>) | undefined
}

export const makeAgent = ({ calls = [], did, onEffect = () => Effect.void }: World) => {
  const act = (what: string, answer: string) =>
    Effect.as(
      Effect.tap(
        Effect.sync(() => did.push(what)),
        () => onEffect(what)
      ),
      answer
    )
  const post = Tool.make("post", {
    description: "Posts a text",
    parameters: { text: Schema.String },
    rehearse: ({ text }) => Effect.succeed(`posted ${text}`),
    execute: ({ text }) => act(`post ${text}`, `posted ${text}`)
  })
  const roll = Tool.make("roll", {
    description: "Rolls a die",
    parameters: { n: Schema.Finite },
    execute: ({ n }) => act(`roll ${n}`, String(n * 7))
  })
  const wait = Tool.make("look", {
    description: "Looks",
    parameters: {},
    annotations: { readOnly: true },
    execute: () => act("look", String(did.filter((one) => one === "look").length))
  })
  const rules = Middleware.make({
    name: "rules",
    asks: true,
    rulings: (_run, calls) =>
      Effect.succeed(
        calls.map((call) => {
          const { text } = call.arguments
          if (text === "forbidden") return Ruling.refuse("rules", "It is forbidden.")
          return call.name === "post" ? Ruling.ask("rules", { reason: "posts are asked about" }) : undefined
        })
      )
  })
  const watch = Middleware.make({
    name: "watch",
    wrapToolCall: (call, next) => {
      if (call.name !== "run_script" && call.annotations.readOnly !== true) {
        calls.push({ name: call.name, arguments: call.arguments })
      }
      return next(call)
    }
  })
  return Agent.make({
    name: "coder",
    prompt: "You change files.",
    middleware: [CodeMode.make({ tools: [...FileTools.make(), post, roll, wait], review: true }), rules, watch]
  })
}

/** A script of two parts. A call that was cut off is looked at, and not repeated. */
export const crashScript = `
  const reasonOf = (work) => work.catch((error) => error.reason)
  await tools.look({})
  const first = [await reasonOf(tools.post({ text: "one" })), await reasonOf(tools.post({ text: "two" }))]
  await tools.write_file({ file_path: "/n.txt", content: "new" })
  const rolled = await reasonOf(tools.roll({ n: 1 }))
  const last = []
  for (const n of [3, 4]) last.push(await reasonOf(tools.post({ text: String(n) })))
  return [...first, rolled, ...last].join(" ")`

export const modelOf = (script: string) =>
  TestChatModel.reactive(({ messages }) => {
    const answered = messages.findLast((message) => message.role === "tool")
    return answered === undefined
      ? TestChatModel.calls([{ name: "run_script", arguments: { script } }])
      : Message.text(answered)
  })

const services = (script: string) =>
  Layer.mergeAll(
    modelOf(script),
    MemoryBackend.layer({ files }),
    SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
  )

/** The text of each file. */
export const snapshot = Effect.gen(function* () {
  const backend = yield* Backend.Backend
  const { entries } = yield* backend.glob({ pattern: "**", ignored: true })
  const texts: { [path: string]: string } = {}
  const found = yield* backend.download(entries.flatMap(({ kind, path }) => (kind === "file" ? [path] : [])))
  for (const file of found) if (file.ok) texts[file.path] = new TextDecoder().decode(file.value)
  return texts
})

/** Runs a script until it is done. `decide` gives the decision on each part. */
export const runAll = (
  script: string,
  world: World,
  decide: (request: Approval.Request, part: number) => Effect.Effect<boolean, never, Backend.Backend>
) =>
  Effect.gen(function* () {
    const agent = makeAgent(world)
    let result = yield* Agent.run(agent, "go", { threadId: "t" })
    const requests: Array<Approval.Request> = []
    while (result.stopReason === "suspended") {
      const decisions: Array<Approval.Decision> = []
      for (const request of result.pending) {
        requests.push(request)
        const isApproved = yield* decide(request, requests.length)
        decisions.push(isApproved ? Approval.approve(request) : Approval.reject(request))
      }
      result = yield* Agent.resume(agent, { threadId: "t", decisions })
    }
    return { text: result.text, requests, files: yield* snapshot }
  }).pipe(Effect.provide(services(script)))
