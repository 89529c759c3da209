// Measures code mode, from the sources: node test/bench/code.mjs
// Boot, an empty script, a call of a script against a direct call (memory and SQLite), and the tokens that scripts save.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer, Schema } from "effect"
import { CodeMode, Scripts } from "../../src/code/index.ts"
import * as NodeScripts from "../../src/code/NodeScripts.ts"
import { Agent, Middleware, Tool, ToolContext } from "../../src/index.ts"
import { SessionStore } from "../../src/sessions/index.ts"
import * as SqliteSessions from "../../src/sessions/SqliteSessions.ts"
import { TestChatModel } from "../../src/testing/index.ts"

const median = (all) => all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)]
const round = (n) => Math.round(n * 1000) / 1000

const add = Tool.make("add", {
  description: "Adds",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.succeed(String(n)),
  annotations: { readOnly: true }
})

const count = 1_000
const parts = {
  "one after the other": {
    script: `for (let n = 0; n < ${count}; n++) await tools.add({ n })`,
    direct: (call) =>
      Effect.forEach(
        Array.from({ length: count }, (_, n) => n),
        (n) => call("add", { n }),
        { discard: true }
      )
  },
  "at once": {
    script: `await Promise.all(Array.from({ length: ${count} }, (_, n) => tools.add({ n })))`,
    direct: (call) =>
      Effect.forEach(
        Array.from({ length: count }, (_, n) => n),
        (n) => call("add", { n }),
        { discard: true, concurrency: "unbounded" }
      )
  }
}

/** The microseconds of a call inside of a tool: of a script, and direct. */
const perCall = async (how, kind, sessions) => {
  let spent = 0
  const outer = Tool.make("outer", {
    description: "",
    parameters: {},
    annotations: { resumable: true },
    execute: Effect.fnUntraced(function* () {
      const { call } = yield* ToolContext.ToolContext
      const since = performance.now()
      yield* parts[how].direct(call)
      spent = performance.now() - since
      return "done"
    })
  })
  const timed = Middleware.make({
    name: "timed",
    wrapToolCall: (call, next) =>
      call.name !== "run_script"
        ? next(call)
        : Effect.suspend(() => {
            const since = performance.now()
            return Effect.tap(next(call), () => Effect.sync(() => void (spent = performance.now() - since)))
          })
  })
  const agent = Agent.make({
    name: "a",
    prompt: "",
    tools: [outer, add],
    middleware: [CodeMode.make({ limits: { calls: 1e6, time: "5 minutes" } }), ...(kind === "script" ? [timed] : [])]
  })
  const model = TestChatModel.reactive(({ messages }) =>
    messages.some((one) => one.role === "tool")
      ? "end"
      : TestChatModel.calls([
          kind === "script"
            ? { name: "run_script", arguments: { script: parts[how].script } }
            : { name: "outer", arguments: {} }
        ])
  )
  await Effect.runPromise(
    Agent.run(agent, "go", sessions === undefined ? {} : { threadId: `t${Math.random()}` }).pipe(
      Effect.provide(sessions === undefined ? Layer.merge(model, scripts) : Layer.mergeAll(model, scripts, sessions))
    )
  )
  return (spent * 1000) / count
}

let scripts
const script = (source) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { open } = yield* Scripts.Scripts
      const one = yield* open({ source, args: null, seed: 1, now: 1, tools: [], limits: {} })
      return yield* one.begin
    })
  )

await Effect.runPromise(
  Effect.gen(function* () {
    const boots = []
    for (let n = 0; n < 7; n++) {
      const since = performance.now()
      yield* Effect.provide(script("return 1"), NodeScripts.layer())
      boots.push(performance.now() - since)
    }
    console.log("first script, with its thread, ms", round(median(boots)))
    const service = yield* Scripts.Scripts
    scripts = Layer.succeed(Scripts.Scripts, service)
    for (let n = 0; n < 100; n++) yield* script("return 1")
    const empty = []
    for (let n = 0; n < 500; n++) {
      const since = performance.now()
      yield* script("return 1")
      empty.push(performance.now() - since)
    }
    console.log("empty script from the pool, ms", round(median(empty)))
    const folder = mkdtempSync(join(tmpdir(), "bench-code-"))
    const places = {
      memory: undefined,
      SQLite: SessionStore.journal.pipe(Layer.provideMerge(SqliteSessions.layer({ file: `${folder}/t.db` })))
    }
    for (const [place, sessions] of Object.entries(places)) {
      for (const how of Object.keys(parts)) {
        const result = {}
        for (const kind of ["direct", "script"]) {
          const all = []
          for (let n = 0; n < 5; n++) all.push(yield* Effect.promise(() => perCall(how, kind, sessions)))
          result[kind] = round(median(all))
        }
        console.log(`${place}, ${how}, µs a call`, result, "ratio", round(result.script / result.direct))
      }
    }
    rmSync(folder, { recursive: true, force: true })
  }).pipe(Effect.provide(NodeScripts.layer()))
)

// Ten tasks of several calls: the tokens of all requests, estimated as a quarter of the characters.
const page = (n) =>
  `# Page ${n}\n` +
  Array.from({ length: 40 }, (_, at) => `line ${at} of page ${n}: ${(n * 7919 + at * 31) % 1000}`).join("\n")
const read = Tool.make("read_page", {
  description: "Reads a page",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.succeed(page(n)),
  annotations: { readOnly: true }
})
const tasks = [3, 5, 8, 10, 12, 15, 20, 25, 30, 40]
let plain = 0
let scripted = 0
let plainRounds = 0
let scriptRounds = 0
const sizeOf = (request) =>
  (JSON.stringify(request.messages).length +
    JSON.stringify(request.tools.filter((one) => one.hidden !== true)).length +
    request.systemPrompt.length) /
  4
await Effect.runPromise(
  Effect.gen(function* () {
    scripts = Layer.succeed(Scripts.Scripts, yield* Scripts.Scripts)
    for (const pages of tasks) {
      // The plain agent calls four tools a turn, as models do.
      const plainModel = TestChatModel.reactive((request) => {
        plain += sizeOf(request)
        plainRounds++
        const done = request.messages.filter((one) => one.role === "tool").length
        return done >= pages
          ? "the answer"
          : TestChatModel.calls(
              Array.from({ length: Math.min(4, pages - done) }, (_, at) => ({
                name: "read_page",
                arguments: { n: done + at }
              }))
            )
      })
      yield* Effect.provide(
        Agent.run(Agent.make({ name: "a", prompt: "You look things up.", tools: [read] }), "task"),
        plainModel
      )
      const scriptModel = TestChatModel.reactive((request) => {
        scripted += sizeOf(request)
        scriptRounds++
        return request.messages.some((one) => one.role === "tool")
          ? "the answer"
          : TestChatModel.calls([
              {
                name: "run_script",
                arguments: {
                  script: `const all = await Promise.all(Array.from({ length: ${pages} }, (_, n) => tools.read_page({ n })))\nreturn all.map((one) => one.split("\\n").map((line) => Number(line.split(": ")[1] ?? 0)).reduce((a, b) => Math.max(a, b), 0))`
                }
              }
            ])
      })
      yield* Effect.provide(
        Agent.run(
          Agent.make({ name: "a", prompt: "You look things up.", middleware: [CodeMode.make({ tools: [read] })] }),
          "task"
        ),
        Layer.merge(scriptModel, scripts)
      )
    }
  }).pipe(Effect.provide(NodeScripts.layer()))
)
console.log("ten tasks: plain", { rounds: plainRounds, tokens: Math.round(plain) }, "scripts", {
  rounds: scriptRounds,
  tokens: Math.round(scripted)
})
