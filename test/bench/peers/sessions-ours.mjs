// effect-deepagents with a thread in a store, as built into dist/. The servers' URLs are in the environment.
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import { Agent, ChatModel, Message } from "../../../dist/index.js"
import * as Sessions from "../../../dist/sessions/index.js"
import * as RedisSessions from "../../../dist/sessions/RedisSessions.js"
import * as SqliteSessions from "../../../dist/sessions/SqliteSessions.js"
import * as SqlSessions from "../../../dist/sessions/SqlSessions.js"
import { prompt } from "../script.mjs"
import { consume, history, modelOf, stepOf } from "./ours.mjs"

const { SessionStore } = Sessions

const stores = {
  none: () => Layer.empty,
  memory: () => Sessions.MemorySessions.layer,
  sqlite: (folder) => SqliteSessions.layer({ file: `${folder}/threads.db` }),
  "sqlite-full": (folder) => SqliteSessions.layer({ file: `${folder}/threads.db`, synchronous: "full" }),
  jsonl: async (folder) => {
    const NodeServices = await import("@effect/platform-node/NodeServices")
    return Layer.provide(Sessions.JsonlSessions.layer({ folder }), NodeServices.layer)
  },
  postgres: async () => {
    const PgClient = await import("@effect/sql-pg/PgClient")
    return Layer.provide(SqlSessions.layer, PgClient.layer({ url: Redacted.make(process.env.POSTGRES_URL) }))
  },
  redis: async () => {
    const NodeRedis = await import("@effect/platform-node/NodeRedis")
    return Layer.provide(RedisSessions.layer(), NodeRedis.layer({ url: process.env.REDIS_URL }))
  }
}

export const open = async (kind, folder) => {
  const store = await stores[kind](folder)
  const layer = kind === "none" ? store : SessionStore.journal.pipe(Layer.provideMerge(store))
  const runtime = ManagedRuntime.make(layer)
  const context = await runtime.context()
  const use = (body) => runtime.runPromise(SessionStore.SessionStore.use(body))
  const bare = Agent.make({ name: "bench", prompt, maxRounds: 100_000 })

  return {
    /** Makes a thread, with so many messages before it. Without a store, they are given to each run. */
    fill: async (threadId, length, script) => {
      if (kind === "none") return
      const before = [...history(length), Message.human("go")]
      const filled = consume(Agent.stream(bare, before, { threadId }))
      await runtime.runPromise(Effect.provideService(filled, ChatModel.ChatModel, modelOf(script)))
    },
    make: (script) => {
      const tools = [stepOf(script)]
      const agent = Agent.make({ name: "bench", prompt, tools, maxRounds: 100_000 })
      const model = modelOf(script)
      // A store has what was said before: made here as well, it would be thrown away in the middle of the run.
      const before = kind === "none" ? history(script.before) : undefined
      return (threadId) => {
        const options = before === undefined ? { threadId } : { history: before }
        const run = consume(Agent.stream(agent, "go", options))
        return runtime.runPromise(Effect.provideService(run, ChatModel.ChatModel, model))
      }
    },
    /** Streams an answer, whose parts are stored meanwhile or not. */
    streaming: (parts) => {
      const own = Layer.provide(SessionStore.journalWith({ parts }), Layer.succeedContext(context))
      return (threadId, source) => {
        const run = consume(Agent.stream(bare, "go", { threadId }))
        const model = modelOf({ batch: 0, turn: source })
        return Effect.runPromise(Effect.provideService(Effect.provide(run, own), ChatModel.ChatModel, model))
      }
    },
    /** The same threads, of which nothing is in memory. */
    ...(kind === "memory" || kind === "none" ? {} : { reopen: () => open(kind, folder) }),
    load: (threadId) => runtime.runPromise(SessionStore.checkpoint(threadId)),
    fork: (threadId) => use((store) => store.fork(threadId)),
    close: () => runtime.dispose()
  }
}
