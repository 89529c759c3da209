/** LangGraph's own client and our `RemoteAgents` against the server. */
import { assert, describe, it } from "@effect/vitest"
import { Client } from "@langchain/langgraph-sdk"
import { Effect, Layer, Redacted, Stream } from "effect"
import { Agent, type AgentEvent, Tool } from "effect-deepagents"
import { BackgroundSubagents, BackgroundTasks, HumanInTheLoop, RemoteAgents } from "effect-deepagents/middleware"
import { LangGraph, Server } from "effect-deepagents/server"
import { TestChatModel } from "effect-deepagents/testing"
import { FetchHttpClient } from "effect/http"
import * as fc from "fast-check"
import { start as begin } from "../../middleware/BackgroundSubagents.fixtures.ts"
import { scaled } from "../../scale.ts"
import { ask, serve } from "../door.ts"
import { play, services, serverOf, story, type Story, transcript } from "./story.ts"

const round = (...calls: Story["rounds"][number]["calls"]): Story["rounds"][number] => ({
  calls,
  reasoning: true,
  text: true,
  restarts: false
})
const asking: Story = { rounds: [round("add", "pay"), round("cite")], end: "text", decisions: [true] }
const quiet: Story = { rounds: [round("add")], end: "text", decisions: [true] }
const everything: Array<LangGraph.Mode> = ["values", "updates", "messages-tuple"]

const clientOf = (url: string, token = "token-of-ada", callerOptions = {}) =>
  new Client({
    apiUrl: `${url}/langgraph`,
    apiKey: null,
    defaultHeaders: { authorization: `Bearer ${token}` },
    callerOptions: { maxRetries: 0, ...callerOptions }
  })

const served = (one: Story) => serve(serverOf(one), { protocols: ["langGraph"] })

const input = (content: string) => ({ messages: [{ role: "user", content }] })

interface Shown {
  readonly type: string
  readonly content: unknown
}

const messagesIn = (state: unknown): ReadonlyArray<Shown> => {
  const values: { readonly messages?: ReadonlyArray<Shown> } = JSON.parse(JSON.stringify(state))
  return values.messages ?? []
}
const textsIn = (state: unknown) => messagesIn(state).map(({ content, type }) => `${type}: ${String(content)}`)

const collect = (events: ReadonlyArray<AgentEvent.AgentEvent>, options: Partial<LangGraph.Options> = {}) =>
  Stream.runCollect(
    LangGraph.encode({ threadId: "t", runId: "r", modes: everything, ...options })(
      Stream.rechunk(Stream.fromIterable(events), 7)
    )
  )

/** The words of each message, from its pieces. */
const wordsOf = (packets: Iterable<LangGraph.Packet>) => {
  const words = new Map<string, string>()
  for (const { data, event } of packets) {
    const [piece] = event === "messages" && Array.isArray(data) ? data : []
    const { content, id, type }: { content?: string; id?: string; type?: string } = JSON.parse(
      JSON.stringify(piece ?? {})
    )
    if (type === "AIMessageChunk" && id !== undefined) words.set(id, (words.get(id) ?? "") + (content ?? ""))
  }
  return words
}

describe("LangGraph", () => {
  it.live(
    "rebuilds a run from its packets, the same from the store, and the rest behind any packet",
    () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(story, (one) =>
            Effect.gen(function* () {
              for (const { live, stored, told } of yield* play(one)) {
                const whole = yield* collect([...told, ...live])
                const replayed = yield* collect(stored)
                const wanted = transcript(stored)
                for (const packets of [whole, replayed]) {
                  const last = packets.findLast(({ event }) => event === "values")
                  const texts = messagesIn(last?.data).flatMap(({ content, type }) => (type === "ai" ? [content] : []))
                  assert.strictEqual(texts.join(""), wanted.text)
                  assert.strictEqual(packets.at(-1)?.event, "end")
                }
                const [seen, later] = [wordsOf(whole), wordsOf(replayed)]
                assert.strictEqual([...later.values()].join(""), wanted.text)
                if (one.rounds.some(({ restarts }) => restarts)) continue
                const ids = (packets: ReadonlyArray<LangGraph.Packet>) =>
                  packets.flatMap(({ event, id }) =>
                    event === "messages" || event === "custom" ? [] : [`${id} ${event}`]
                  )
                // The words of a turn that failed or was cancelled are live only.
                if (one.end === "text" || one.end === "picture") {
                  assert.deepStrictEqual(Object.fromEntries(seen), Object.fromEntries(later))
                  assert.deepStrictEqual(ids(whole), ids(replayed))
                }
                const pieces = yield* collect(live, { told })
                assert.deepStrictEqual(
                  pieces.slice(1).map(({ id }) => id),
                  whole.slice(-pieces.length + 1).map(({ id }) => id)
                )
                for (const at of [3, Math.floor(whole.length / 2), whole.length - 2]) {
                  const after = whole[at]?.id ?? 0
                  const rest = yield* collect([...told, ...live], { after })
                  assert.deepStrictEqual(
                    rest,
                    whole.filter(({ id }) => id > after)
                  )
                }
              }
            }).pipe(Effect.provide(Layer.fresh(services)), Effect.scoped, Effect.runPromise)
          ),
          { numRuns: scaled(25) }
        )
      ),
    60_000
  )

  it.live("is driven by the client: threads, runs that stream and wait, an interrupt, its answer", () =>
    Effect.gen(function* () {
      const url = yield* served(asking)
      const client = clientOf(url)
      yield* Effect.promise(async () => {
        const { thread_id: id } = await client.threads.create({ metadata: { topic: "money" } })
        assert.strictEqual((await client.threads.create({ threadId: id, ifExists: "do_nothing" })).thread_id, id)
        let runId = ""
        const parts = []
        const options = {
          input: input("go"),
          streamMode: everything,
          onRunCreated: (run: { run_id: string }) => void (runId = run.run_id)
        }
        for await (const part of client.runs.stream(id, "helper", options)) parts.push(part)
        assert.deepStrictEqual(parts[0]?.data, { run_id: runId, thread_id: id })
        assert.deepStrictEqual(parts.at(-1)?.data, { run_id: runId, status: "interrupted" })
        assert.strictEqual((await client.runs.get(id, runId)).status, "interrupted")
        const waiting = await client.threads.get(id)
        assert.strictEqual(waiting.status, "interrupted")
        const [[interrupt] = []] = Object.values(waiting.interrupts)
        assert.include(JSON.stringify(interrupt?.value), '"action_requests":[{"name":"pay","args":{"n":1}')
        const state = await client.threads.getState(id)
        assert.deepStrictEqual(state.tasks[0]?.interrupts[0]?.id, interrupt?.id)
        const command = { resume: { [interrupt?.id ?? ""]: { decisions: [{ type: "approve" }] } } }
        const final = await client.runs.wait(id, "helper", { command })
        assert.deepStrictEqual(textsIn(final).at(-1), "ai: All is done. 🙂")
        assert.include(textsIn(final), "tool: paid 1")
        assert.strictEqual((await client.runs.get(id, runId)).status, "success")
        assert.deepStrictEqual(await client.runs.join(id, runId), final)
        const again = []
        for await (const part of client.runs.joinStream(id, runId, { streamMode: everything })) again.push(part)
        assert.deepStrictEqual(again.findLast(({ event }) => event === "values")?.data, final)
        const history = await client.threads.getHistory(id, { limit: 3 })
        assert.deepStrictEqual(
          history.map(({ values }) => messagesIn(values).length),
          [messagesIn(final).length, messagesIn(final).length - 1, messagesIn(final).length - 2]
        )
        const before = { configurable: { checkpoint_id: history[1]?.checkpoint.checkpoint_id ?? "" } }
        const [older] = await client.threads.getHistory(id, { limit: 1, before })
        assert.deepStrictEqual(older?.values, history[2]?.values)
        const updated = await client.threads.update(id, { metadata: { seen: true } })
        assert.deepStrictEqual(updated.metadata, { topic: "money", seen: true })
        assert.deepStrictEqual(
          (await client.threads.search({ metadata: { topic: "money" }, status: "idle" })).map((one) => one.thread_id),
          [id]
        )
        assert.deepStrictEqual(await client.threads.search({ metadata: { topic: "love" } }), [])
        const other = clientOf(url, "token-of-eve")
        assert.deepStrictEqual(await other.threads.search(), [])
        for (const foreign of [
          () => other.threads.get(id),
          () => other.threads.getState(id),
          () => other.runs.get(id, runId),
          () => other.runs.join(id, runId),
          () => other.runs.cancel(id, runId),
          () => other.runs.wait(id, "helper", { input: input("mine") })
        ]) {
          assert.match(await foreign().then(String, String), /404/u)
        }
      })
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("tells the failure of a run", () =>
    Effect.gen(function* () {
      const client = clientOf(yield* served({ rounds: [], end: "failure", decisions: [true] }))
      yield* Effect.promise(async () => {
        assert.match(await client.runs.wait(null, "helper", { input: input("go") }).then(String, String), /ModelError/u)
        const failed = await client.runs.wait(null, "helper", { input: input("go"), raiseError: false })
        assert.property(failed, "__error__")
      })
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("makes a thread for a run without one, and refuses unsupported requests", () =>
    Effect.gen(function* () {
      const good = clientOf(yield* served(quiet))
      yield* Effect.promise(async () => {
        assert.strictEqual(
          textsIn(await good.runs.wait(null, "helper", { input: input("go") })).at(-1),
          "ai: All is done. 🙂"
        )
        for (const wrong of [
          () => good.runs.wait(null, "nobody", { input: input("go") }),
          () => good.runs.wait(null, "helper", { input: { messages: [{ role: "assistant", content: "x" }] } }),
          () => good.runs.wait("t", "helper", { input: input("go"), multitaskStrategy: "rollback" })
        ]) {
          assert.match(await wrong().then(String, String), /400/u)
        }
        assert.match(await good.runs.wait("none", "helper", { input: input("go") }).then(String, String), /404/u)
      })
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live(
    "reconnects behind the last packet by itself, and cancels a run",
    () =>
      Effect.gen(function* () {
        const url = yield* served({ ...quiet, end: "interruption" })
        let cuts = 0
        const cutting = async (at: string | URL | Request, init?: RequestInit) => {
          const response = await fetch(at, init)
          const isStream = response.headers.get("content-type")?.includes("event-stream") === true
          if (!isStream || cuts++ > 1) return response
          const reader = response.body?.getReader()
          let left = 900
          const body = new ReadableStream<Uint8Array>({
            pull: async (controller) => {
              const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
              if (done || value === undefined) return controller.close()
              controller.enqueue(value.subarray(0, left))
              left -= value.length
              if (left <= 0) controller.close()
            }
          })
          return new Response(body, response)
        }
        const client = clientOf(url, "token-of-ada", { fetch: cutting })
        yield* Effect.promise(async () => {
          const { thread_id: id } = await client.threads.create()
          const parts: Array<LangGraph.Packet> = []
          let runId = ""
          const options = {
            input: input("go"),
            streamMode: everything,
            onRunCreated: (run: { run_id: string }) => void (runId = run.run_id)
          }
          for await (const part of client.runs.stream(id, "helper", options)) {
            parts.push(JSON.parse(JSON.stringify(part)))
            if (part.event === "messages" && JSON.stringify(part).includes("still")) {
              assert.strictEqual((await client.runs.get(id, runId)).status, "running")
              await client.runs.cancel(id, runId, true)
            }
          }
          assert.isAbove(cuts, 1)
          assert.strictEqual(parts.at(-1)?.event, "end")
          const ids = parts.map((part) => Number(part.id))
          assert.deepStrictEqual([...new Set(ids)], ids)
          const values = parts.findLast(({ event }) => event === "values")?.data
          for (const [message, said] of wordsOf(parts)) {
            const found = messagesIn(values).find((one) => "id" in one && one.id === message)
            if (found !== undefined) assert.strictEqual(said, found.content)
          }
          assert.strictEqual((await client.runs.get(id, runId)).status, "interrupted")
          assert.match(await client.runs.cancel(id, runId).then(String, String), /409/u)
        })
      }).pipe(Effect.provide(Layer.fresh(services))),
    20_000
  )

  it.live("serves our own RemoteAgents: a task, a follow-up that waits for it, a request, a stop", () =>
    Effect.gen(function* () {
      const pay = Tool.make("pay", { description: "Pays", parameters: {}, execute: () => Effect.succeed("paid") })
      const analyst = Agent.make({
        name: "analyst",
        prompt: "",
        tools: [pay],
        middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
      })
      const there = TestChatModel.reactive(({ messages }) => {
        const said = JSON.stringify(messages.findLast(({ role }) => role === "human"))
        return said.includes("pay")
          ? TestChatModel.calls([{ name: "pay", arguments: {} }])
          : said.includes("hang")
            ? TestChatModel.hangAfter("…")
            : TestChatModel.text("There are 42.", { usage: { inputTokens: 7, outputTokens: 3 } })
      })
      const url = yield* serve(Server.layer({ analyst }).pipe(Layer.provide(Layer.fresh(there))), {
        protocols: ["langGraph"]
      })
      const worker = RemoteAgents.make({
        name: "analyst",
        description: "Analyses figures",
        url: `${url}/langgraph`,
        agentId: "analyst",
        headers: { authorization: Redacted.make("Bearer token-of-ada") },
        pollInterval: "10 millis"
      })
      const lead = Agent.make({
        name: "lead",
        prompt: "",
        middleware: [BackgroundSubagents.make({ agents: [worker] })]
      })
      const endOf = (
        description: string,
        act?: (key: string) => Effect.Effect<unknown, unknown, BackgroundTasks.BackgroundTasks>
      ) =>
        Effect.gen(function* () {
          yield* Agent.run(lead, "go")
          const tasks = yield* BackgroundTasks.BackgroundTasks
          const key = (yield* tasks.list())[0]?.key ?? ""
          if (act !== undefined) yield* act(key)
          const ended = yield* tasks.check(key, 30_000)
          return ended
        }).pipe(
          Effect.provide([
            BackgroundTasks.layer(),
            FetchHttpClient.layer,
            TestChatModel.reactive(({ messages }) =>
              messages.length === 1 ? TestChatModel.calls([begin("analyst", description)]) : "ok"
            )
          ])
        )
      const counted = yield* endOf("count")
      assert.deepInclude(JSON.parse(JSON.stringify(counted)), { status: "completed" })
      assert.include(JSON.stringify(counted), "There are 42.")
      const waiting = yield* endOf("pay")
      assert.include(JSON.stringify(waiting), "action_requests")
      assert.deepInclude(JSON.parse(JSON.stringify(waiting)), { status: "suspended" })
      const stopped = yield* endOf("hang", (key) =>
        Effect.gen(function* () {
          const tasks = yield* BackgroundTasks.BackgroundTasks
          yield* Effect.sleep("100 millis")
          yield* tasks.update(key, "count")
        })
      )
      assert.include(JSON.stringify(stopped), "There are 42.")
      const threads = yield* ask(`${url}/threads`)
      assert.strictEqual(threads.text.match(/"state":"waiting"/gu)?.length, 1)
    }).pipe(Effect.provide(Layer.fresh(services)))
  )
})
