/** The cost of a thread: the numbers of docs/distributed.md. Not a test; takes about a minute. Run `node --expose-gc --conditions=@effect-deepagents/source test/durable/sizing.ts`. */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Clock, Deferred, Duration, Effect, Layer, Redacted, Schema } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { AgentClient, AgentEntity, DurableAgent } from "effect-deepagents/durable"
import { SessionStore } from "effect-deepagents/sessions"
import * as SqlSessions from "effect-deepagents/sessions/SqlSessions"
import { TestChatModel } from "effect-deepagents/testing"
import { ClusterWorkflowEngine, SingleRunner } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { postgres } from "../servers/postgres.ts"

/** An exchange as they are: a question, a call, its result, an answer. Characters. */
const sizes = { question: 200, thought: 200, argument: 200, result: 1_500, answer: 600 }

/** Words, so that Postgres can't do better with them than with a conversation. */
const words = (length: number): string => {
  let text = ""
  while (text.length < length)
    text += `${Math.random()
      .toString(36)
      .slice(2, 2 + Math.ceil(Math.random() * 9))} `
  return text.slice(0, length)
}

const say = (what: string, value: unknown) => Effect.sync(() => console.log(`${what}: ${JSON.stringify(value)}`))

const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  return last?.role === "human" && !Message.text(last).startsWith("plain")
    ? TestChatModel.calls([{ name: "look", arguments: { about: words(sizes.argument) } }], {
        text: words(sizes.thought)
      })
    : words(sizes.answer)
})

const look = Tool.make("look", {
  description: "Looks",
  parameters: { about: Schema.String },
  execute: () => Effect.succeed(words(sizes.result))
})

const gate = Deferred.makeUnsafe<void>()
const hold = Tool.make("hold", {
  description: "Holds",
  parameters: {},
  execute: () => Effect.as(Deferred.await(gate), "held")
})

const agent = Agent.make({ name: "a", prompt: "You help.", tools: [look] }).pipe(Agent.provide(model))
const holder = Agent.make({ name: "h", prompt: "You help.", tools: [hold] }).pipe(
  Agent.provide(
    TestChatModel.reactive(({ messages }) =>
      messages.at(-1)?.role === "human" ? TestChatModel.calls([{ name: "hold", arguments: {} }]) : "done"
    )
  )
)
const entity = AgentEntity.make({ name: "sized", agent })
const holding = AgentEntity.make({ name: "holding", agent: holder })
const durable = DurableAgent.make({ name: "sized", agent })

const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.timed(effect).pipe(Effect.map(([took]) => Duration.toMillis(took)))

const bytesOf = (like: string) =>
  SqlClient.SqlClient.use((sql) =>
    Effect.map(
      sql<{ readonly bytes: string | number | bigint }>`SELECT coalesce(sum(pg_total_relation_size(oid)), 0) AS bytes
        FROM pg_class WHERE relkind = 'r' AND relname LIKE ${like}`,
      ([row]) => Number(row?.bytes ?? 0)
    )
  )

const heap = Effect.sync(() => {
  globalThis.gc?.()
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
})

const sends = (count: number, prefix: string) =>
  Effect.forEach(
    Array.from({ length: count }, (_, index) => `${prefix}-${index}`),
    Effect.fnUntraced(function* (threadId) {
      const client = yield* AgentClient.of(entity, threadId)
      return yield* client.send(words(sizes.question), { id: "1" })
    }),
    { concurrency: 32, discard: true }
  )

const program = Effect.gen(function* () {
  const store = yield* SessionStore.SessionStore

  // Bytes.
  yield* sends(20, "warm")
  const before = { threads: yield* bytesOf("session_%"), cluster: yield* bytesOf("cluster_%") }
  const exchanges = 1_000
  const took = yield* timed(sends(exchanges, "size"))
  const threads = (yield* bytesOf("session_%")) - before.threads
  const cluster = (yield* bytesOf("cluster_%")) - before.cluster
  yield* say("bytes an exchange (4 messages), thread", Math.round(threads / exchanges))
  yield* say("bytes an exchange, cluster's message and reply", Math.round(cluster / exchanges))
  yield* say("exchanges a second (2 turns, 1 call; one runner, 32 at once)", Math.round(exchanges / (took / 1_000)))

  // Appends.
  const entry = (n: number) => ({
    id: `e-${n}-${Math.random()}`,
    entry: { _tag: "Message", message: Message.human(words(600)) } as const
  })
  for (const at of [1, 8, 32]) {
    yield* Effect.forEach(
      Array.from({ length: at }, (_, n) => n),
      (n) => store.create({ threadId: `append-${at}-${n}` })
    )
    const count = 3_000
    const millis = yield* timed(
      Effect.forEach(
        Array.from({ length: at }, (_, n) => n),
        Effect.fnUntraced(function* (n) {
          let leaf: string | null = null
          for (let k = 0; k < count / at; k++) {
            leaf = (yield* store.append(`append-${at}-${n}`, { leaf, entries: [entry(k)] })).id
          }
        }),
        { concurrency: "unbounded", discard: true }
      )
    )
    yield* say(`appends a second, ${at} at once`, Math.round(count / (millis / 1_000)))
  }

  // Memory.
  const idle = 2_000
  const empty = yield* heap
  yield* sends(idle, "idle")
  yield* say("heap of a thread that is idle and in memory, bytes", Math.round(((yield* heap) - empty) / idle))
  const live = 1_000
  const quiet = yield* heap
  yield* Effect.forEach(
    Array.from({ length: live }, (_, n) => n),
    Effect.fnUntraced(function* (n) {
      const client = yield* AgentClient.of(holding, `live-${n}`)
      yield* client.post("go", { id: "1" })
    }),
    { concurrency: 32, discard: true }
  )
  const waiting = Effect.map(
    Effect.forEach(
      Array.from({ length: live }, (_, n) => n),
      (n) => store.leaf(`live-${n}`),
      { concurrency: 32 }
    ),
    (leaves) => leaves.every(({ step }) => step >= 5)
  )
  yield* Effect.repeat(
    Effect.delay(
      Effect.catch(waiting, () => Effect.succeed(false)),
      "200 millis"
    ),
    {
      until: (isDone) => isDone
    }
  )
  yield* say("heap of a thread that is at work, bytes", Math.round(((yield* heap) - quiet) / live))
  yield* Deferred.succeed(gate, undefined)

  // The cost of activities.
  const runs = 200
  const workflowBefore = yield* bytesOf("cluster_%")
  const each = (prefix: string, run: (threadId: string) => Effect.Effect<unknown, unknown, never>) =>
    Effect.forEach(
      Array.from({ length: runs }, (_, n) => `${prefix}-${n}`),
      run,
      { discard: true }
    )
  const services = yield* Effect.context<SqlClient.SqlClient>()
  const plain = yield* timed(
    each("plain", (threadId) =>
      Agent.run(agent, words(sizes.question), { threadId }).pipe(
        Effect.provide(SessionStore.journal),
        Effect.provideContext(services as never)
      )
    )
  )
  const byEntity = yield* timed(
    each("entity", (threadId) =>
      Effect.flatMap(AgentClient.of(entity, threadId), (client) =>
        client.send(words(sizes.question), { id: "1" })
      ).pipe(Effect.provideContext(services as never))
    )
  )
  const between = yield* bytesOf("cluster_%")
  const byWorkflow = yield* timed(
    each("workflow", (threadId) =>
      DurableAgent.execute(durable, { threadId, inputId: "1", input: words(sizes.question) }).pipe(
        Effect.provideContext(services as never)
      )
    )
  )
  yield* say("an exchange, one after the other, milliseconds: run with a thread", plain / runs)
  yield* say("  by an entity", byEntity / runs)
  yield* say("  by a workflow, 3 activities", byWorkflow / runs)
  yield* say("cluster bytes an exchange: entity", Math.round((between - workflowBefore) / runs))
  yield* say("  workflow", Math.round(((yield* bytesOf("cluster_%")) - between) / runs))
  yield* say("at", yield* Clock.currentTimeMillis)
})

const machine = (url: string) =>
  Layer.mergeAll(
    AgentEntity.layer(entity, { maxIdleTime: "1 hour" }),
    AgentEntity.layer(holding, { maxIdleTime: "1 hour" }),
    DurableAgent.layer(durable)
  ).pipe(
    Layer.provideMerge(ClusterWorkflowEngine.layer),
    Layer.provideMerge(
      SingleRunner.layer({
        shardingConfig: { entityMessagePollInterval: "200 millis", refreshAssignmentsInterval: "200 millis" }
      })
    ),
    Layer.provideMerge(SqlSessions.layer),
    Layer.provideMerge(PgClient.layer({ url: Redacted.make(url), maxConnections: 20 })),
    Layer.provide(NodeCrypto.layerDigest)
  )

await Effect.runPromise(Effect.scoped(Effect.flatMap(postgres, (url) => Effect.provide(program, machine(url)))))
