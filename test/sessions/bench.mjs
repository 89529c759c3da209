/**
 * What a round costs with each session store at several lengths of the thread, what it takes to load a thread of 10,000
 * messages, and to fork it: `node --conditions=@effect-deepagents/source test/sessions/bench.mjs` (milliseconds and
 * microseconds, the least and the median of five).
 */
import { mkdtempSync, rmSync, statSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, Schema } from "effect"
import { Agent, Message, Tool, Usage } from "effect-deepagents"
import { JsonlSessions, MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { SqliteSessions } from "../../src/sessions/sqlite/index.ts"

const rounds = 300
const warm = 100
const times = 5

const path = mkdtempSync(join(tmpdir(), "bench-sessions-"))
const jsonl = (options) => JsonlSessions.layer(options).pipe(Layer.provide(NodeServices.layer))
const stores = {
  memory: MemorySessions.layer,
  "sqlite normal": SqliteSessions.layer({ file: join(path, "normal.db") }),
  "sqlite full": SqliteSessions.layer({ file: join(path, "full.db"), synchronous: "full" }),
  jsonl: jsonl({ folder: join(path, "jsonl") }),
  "jsonl fsync": jsonl({ folder: join(path, "fsync"), fsync: true })
}

let marks = []
const agent = Agent.make({
  name: "bench",
  prompt: "",
  maxIterations: rounds + 10,
  tools: [
    Tool.make("step", {
      description: "",
      parameters: { n: Schema.Int },
      execute: () => Effect.sync(() => (marks.push(performance.now()), "ok"))
    })
  ]
})
const script = () =>
  TestChatModel.script([
    ...Array.from({ length: rounds }, (_, n) => TestChatModel.calls([{ name: "step", arguments: { n } }])),
    "done"
  ])

/** As many messages as there are in so many rounds: a call, its result, and what was used. */
const fill = Effect.fnUntraced(function* (store, threadId, messages) {
  yield* store.create({ threadId })
  let leaf = null
  const step = { _tag: "Step", usage: Usage.zero, rounds: 1 }
  for (let n = 0; n < messages; n += 2) {
    const call = { id: `c${n}`, name: "step", arguments: { n } }
    const pair = [
      Message.ai("I look at it.", { toolCalls: [call] }),
      Message.tool(`result ${n}`, { toolCallId: call.id, toolName: "step" })
    ]
    const entries = pair.flatMap((message, index) => [
      { id: `${n}-${index}`, entry: { _tag: "Message", message } },
      { id: `${n}-${index}s`, entry: step }
    ])
    leaf = (yield* store.append(threadId, { leaf, entries })).id
  }
})

const summary = (values) => {
  const sorted = values.toSorted((left, right) => left - right)
  return { least: sorted[0], median: sorted[Math.floor(sorted.length / 2)] }
}
const shown = ({ least, median }, digits = 0) => `${least.toFixed(digits)} / ${median.toFixed(digits)}`

const perRound = () => ((marks.at(-1) - marks[warm]) / (marks.length - 1 - warm)) * 1000

const none = []
for (let time = 0; time < times; time++) {
  marks = []
  await Effect.runPromise(Agent.run(agent, "go").pipe(Effect.provide(script())))
  none.push(perRound())
}
console.log(`no store: ${shown(summary(none))} µs a round`)

for (const [name, layer] of Object.entries(stores)) {
  const sessions = SessionStore.journal.pipe(Layer.provideMerge(layer))
  await Effect.runPromise(
    Effect.gen(function* () {
      const store = yield* SessionStore.SessionStore
      for (const length of [10, 100, 1000, 10_000]) {
        const values = []
        for (let time = 0; time < times; time++) {
          const threadId = `${length}-${time}`
          yield* fill(store, threadId, length)
          marks = []
          yield* Agent.run(agent, "go", { threadId }).pipe(Effect.provide(script()))
          values.push(perRound())
        }
        console.log(`${name}, ${length} messages before: ${shown(summary(values))} µs a round`)
      }
      yield* fill(store, "long", 10_000)
      const measured = { load: [], page: [], fork: [], short: [], rewind: [] }
      const timed = Effect.fnUntraced(function* (key, effect) {
        const began = performance.now()
        yield* effect
        measured[key].push(performance.now() - began)
      })
      yield* fill(store, "short", 10)
      for (let time = 0; time < 2 * times; time++) {
        yield* timed("load", SessionStore.checkpoint("long"))
        yield* timed("page", store.load("long", { limit: 50 }))
        yield* timed("fork", store.fork("long"))
        yield* timed("short", store.fork("short"))
        yield* timed("rewind", store.rewind("long", time % 2 === 0 ? "5000-1s" : "9998-1s"))
      }
      yield* store.rewind("long", "9998-1s")
      console.log(
        `${name}, a thread of 10,000 messages (20,000 entries): load ${shown(summary(measured.load))} ms, last page of 50 ${shown(summary(measured.page), 2)} ms, fork ${shown(summary(measured.fork), 2)} ms (of 10 messages: ${shown(summary(measured.short), 2)} ms), rewind ${shown(summary(measured.rewind), 2)} ms`
      )
    }).pipe(Effect.provide(sessions))
  )
}
console.log(`normal.db: ${(statSync(join(path, "normal.db")).size / 1e6).toFixed(1)} MB`)
rmSync(path, { recursive: true, force: true })
