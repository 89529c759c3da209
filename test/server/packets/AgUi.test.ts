/** Packets of AG-UI: the client's own checks and its own agent rebuild a run. */
import { HttpAgent } from "@ag-ui/client"
import type { BaseEvent } from "@ag-ui/core"
import { EventSchemas } from "@ag-ui/core/schemas"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Agent, type AgentEvent, ChatModel, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { AgUi, Server } from "effect-deepagents/server"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../../scale.ts"
import { ask, serve } from "../door.ts"
import { play, services, serverOf, story, transcript } from "./story.ts"

const encode = (events: ReadonlyArray<AgentEvent.AgentEvent>, told?: ReadonlyArray<AgentEvent.AgentEvent>) =>
  Stream.runCollect(AgUi.encode({ threadId: "t", runId: "r", told })(Stream.rechunk(Stream.fromIterable(events), 5)))

/** Reads packets by the client's agent, which verifies their order. */
const verify = (packets: ReadonlyArray<AgUi.Packet>) =>
  Effect.promise(async () => {
    const body = packets.map((packet) => `data: ${JSON.stringify(packet)}\n\n`).join("")
    const response = () => Promise.resolve(new Response(body, { headers: { "content-type": "text/event-stream" } }))
    const agent = new HttpAgent({ url: "http://localhost/", threadId: "t", fetch: response })
    const isFailed = packets.some(({ type }) => type === "RUN_ERROR")
    let failure = ""
    await agent
      .runAgent({ runId: "r" }, { onRunFailed: ({ error }) => void (failure = error.message) })
      .catch(() => undefined)
    if (!isFailed) assert.strictEqual(failure, "")
  })

/** Rebuilds texts, calls and results as the protocol tells them. */
const rebuild = (packets: ReadonlyArray<AgUi.Packet>) => {
  const texts = new Map<string, string>()
  const thoughts = new Map<string, string>()
  const calls = new Map<string, { name: string; args: string }>()
  const results = new Map<string, string>()
  const subagents = new Map<string, string>()
  const of = (packet: AgUi.Packet, key: string) => (typeof packet[key] === "string" ? packet[key] : "")
  for (const packet of packets) {
    const id = of(packet, "messageId")
    const call = of(packet, "toolCallId")
    if (packet.type === "TEXT_MESSAGE_CONTENT") texts.set(id, (texts.get(id) ?? "") + of(packet, "delta"))
    if (packet.type === "REASONING_MESSAGE_CONTENT") thoughts.set(id, (thoughts.get(id) ?? "") + of(packet, "delta"))
    if (packet.type === "TOOL_CALL_START") calls.set(call, { name: of(packet, "toolCallName"), args: "" })
    if (packet.type === "TOOL_CALL_ARGS") {
      const known = calls.get(call)
      if (known !== undefined) known.args += of(packet, "delta")
    }
    if (packet.type === "TOOL_CALL_RESULT") results.set(call, of(packet, "content"))
    if (packet.type.startsWith("SUBAGENT_")) subagents.set(of(packet, "subagentRunId"), packet.type)
  }
  const sorted = (map: ReadonlyMap<string, unknown>) =>
    [...map].toSorted(([left], [right]) => left.localeCompare(right))
  return { texts, thoughts, calls, results, subagents: sorted(subagents), end: packets.at(-1) }
}

/** Ends a response behind some bytes. */
const cutting =
  (most: number) =>
  async (url: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(url, init)
    const reader = response.body?.getReader()
    let left = most
    const body = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
        if (done || value === undefined || left <= 0) return controller.close()
        controller.enqueue(value.subarray(0, left))
        left -= value.length
      }
    })
    return new Response(body, { status: response.status, headers: { "content-type": "text/event-stream" } })
  }

/** The messages of a client, without the empty thought that stands for none. */
const shownIn = ({ messages }: HttpAgent) =>
  messages.flatMap((message) =>
    message.role === "reasoning" ? (message.content === "" ? [] : [message.content]) : [JSON.stringify(message)]
  )

describe("AG-UI", () => {
  it.live(
    "rebuilds a run from its packets, and the same from the store",
    () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(story, (one) =>
            Effect.gen(function* () {
              for (const { live, pending, stored, told } of yield* play(one)) {
                const pieces = yield* encode(live, told)
                const whole = yield* encode([...told, ...live])
                const replayed = yield* encode(stored)
                for (const packets of [pieces, whole, replayed]) {
                  for (const packet of packets) {
                    const checked = EventSchemas.safeParse(packet)
                    assert.isTrue(checked.success, `${JSON.stringify(packet)} is no packet of the client`)
                  }
                  yield* verify(packets)
                }
                const wanted = transcript(stored)
                const [seen, later] = [rebuild(whole), rebuild(replayed)]
                assert.strictEqual([...later.texts.values()].join(""), wanted.text)
                assert.strictEqual([...later.thoughts.values()].join(""), wanted.reasoning)
                for (const { calls, results, texts } of [seen, later]) {
                  for (const text of later.texts.values()) assert.include([...texts.values()], text)
                  for (const [id, name, args] of wanted.calls) {
                    const call = calls.get(id)
                    assert.deepStrictEqual([call?.name, JSON.parse(call?.args ?? "null")], [name, args])
                  }
                  for (const [id, said] of wanted.results)
                    assert.isTrue(said.startsWith(results.get(id) ?? "none"), said)
                }
                assert.deepStrictEqual(seen.subagents, later.subagents)
                assert.deepStrictEqual(JSON.parse(JSON.stringify(seen.end)), JSON.parse(JSON.stringify(later.end)))
                const { end } = rebuild(pieces)
                const asked = JSON.stringify(end).match(/"interrupts":\[(.*)\]/u) === null ? [] : pending
                for (const { id } of asked) assert.include(JSON.stringify(end), id)
              }
            }).pipe(Effect.provide(Layer.fresh(services)), Effect.scoped, Effect.runPromise)
          ),
          { numRuns: scaled(40) }
        )
      ),
    60_000
  )

  it.effect("names each text message of a turn that begins again, and none of an earlier turn", () =>
    Effect.gen(function* () {
      const add = Tool.make("add", { description: "Adds", parameters: {}, execute: () => Effect.succeed("1") })
      const agent = Agent.make({ name: "a", prompt: "", tools: [add] })
      const script = TestChatModel.script([
        TestChatModel.calls([{ name: "add", arguments: {} }], { text: "First." }),
        "Last."
      ])
      const voidsOf = Effect.fnUntraced(function* (...vain: ReadonlyArray<ChatModel.TurnPart>) {
        const restartOnce = (model: ChatModel.Service): ChatModel.Service => ({
          ...model,
          makeSession: Effect.map(model.makeSession, (session) => ({
            nextTurn: (request) =>
              request.messages.length === 1
                ? session.nextTurn(request)
                : Stream.concat(
                    Stream.fromIterable<ChatModel.TurnPart>([...vain, { _tag: "TurnRestarted", reason: "Overloaded" }]),
                    session.nextTurn(request)
                  )
          }))
        })
        const model = Layer.effect(ChatModel.ChatModel, Effect.map(ChatModel.ChatModel, restartOnce))
        const packets = yield* Stream.runCollect(
          Agent.stream(agent, "go").pipe(AgUi.encode({ threadId: "t", runId: "r" }))
        ).pipe(Effect.provide(Layer.provide(model, script)))
        const begun = packets.flatMap(({ messageId, type }) => (type === "TEXT_MESSAGE_START" ? [messageId] : []))
        const voids = packets.flatMap(({ name, value }) => (name === "void" ? [JSON.stringify(value)] : []))
        return { voids, vain: begun.slice(1, -1).map((messageId) => JSON.stringify({ messageId })) }
      })
      const call: ReadonlyArray<ChatModel.TurnPart> = [
        { _tag: "ToolCallStart", id: "vain", name: "add" },
        { _tag: "ToolCallDelta", id: "vain", delta: "{}" }
      ]
      assert.deepStrictEqual(yield* voidsOf(...call), { voids: [], vain: [] })
      const text = (said: string): ChatModel.TurnPart => ({ _tag: "TextDelta", text: said })
      const two = yield* voidsOf(text("One"), { _tag: "ReasoningDelta", text: "Hm" }, text("Two"))
      assert.lengthOf(two.vain, 2)
      assert.deepStrictEqual(two.voids, two.vain)
    })
  )

  it.live("gives a client that was cut anywhere, and comes again, the messages of an uncut one", () =>
    Effect.gen(function* () {
      const one = serverOf({
        rounds: [
          { calls: ["add", "pay"], reasoning: true, text: true, restarts: false },
          { calls: ["cite"], reasoning: true, text: true, restarts: false }
        ],
        end: "text",
        decisions: [true]
      })
      const url = yield* serve(one, { protocols: ["agUi"] })
      const headers = { authorization: "Bearer token-of-ada" }
      const drive = (threadId: string, cut: number | undefined) =>
        Effect.promise(async () => {
          const options = { url: `${url}/ag-ui`, threadId, headers }
          const cutFetch = cut === undefined ? {} : { fetch: cutting(cut) }
          const agent = new HttpAgent({ ...options, ...cutFetch })
          agent.messages = [{ id: "u1", role: "user", content: "go" }]
          const comeAgain = () => {
            const next = new HttpAgent(options)
            next.messages = agent.messages
            return next
          }
          const run = async (input: Parameters<HttpAgent["runAgent"]>[0]) => {
            const isWhole = await agent.runAgent(input).then(
              () => true,
              () => false
            )
            const next = comeAgain()
            if (!isWhole || cut !== undefined) await next.runAgent({ ...input, runId: `${input?.runId}-again` })
            const { pendingInterrupts } = isWhole && cut === undefined ? agent : next
            if (next.messages.length > 1) agent.messages = next.messages
            return pendingInterrupts
          }
          const [interrupt] = await run({ runId: "r1" })
          const resume = [
            { interruptId: interrupt?.id ?? "", status: "resolved" as const, payload: { approved: true } }
          ]
          await run({ runId: "r2", resume })
          return shownIn(agent)
        })
      const whole = yield* drive("whole", undefined)
      assert.include(whole.join(), "All is done.")
      // A result from the store has its sources behind it.
      const ids = (shown: ReadonlyArray<string>) =>
        shown
          .map((line) =>
            line.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|call[\w-]*/gu, "id").replace(/\\nSources:.*(?=")/u, "")
          )
          .toSorted()
      for (const cut of [1, 300, 700, 1_100, 1_600, 2_200, 3_000, 9_000]) {
        assert.deepStrictEqual(ids(yield* drive(`t-${cut}`, cut)), ids(whole), `cut at ${cut}`)
      }
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("answers a client whose last message steered the run with the same response, and runs nothing", () =>
    Effect.gen(function* () {
      const wait = Tool.make("wait", {
        description: "Waits",
        parameters: {},
        execute: () => Effect.as(Effect.sleep("200 millis"), "waited")
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [wait] })
      const model = TestChatModel.script([TestChatModel.calls([{ name: "wait", arguments: {} }]), "All is done."])
      const url = yield* serve(Server.layer({ agent }).pipe(Layer.provide(model)), { protocols: ["agUi"] })
      yield* ask(`${url}/threads/t/runs`, { body: { agent: "agent", input: "go", id: "u1" } })
      const steer = Effect.map(ask(`${url}/threads/t/steer`, { body: { input: "left" } }), ({ status }) => status)
      while ((yield* steer) !== 204) yield* Effect.sleep("5 millis")
      yield* ask(`${url}/threads/t/events`)
      const before = yield* ask(`${url}/threads/t/history`)
      const [, id] = /"id":"([^"]+)","content":[^[]*\[[^\]]*"left"/u.exec(before.text) ?? []
      assert.isString(id)
      const messages = [
        { id: "u1", role: "user", content: "go" },
        { id, role: "user", content: "left" }
      ]
      const again = yield* ask(`${url}/ag-ui`, { body: { threadId: "t", runId: "r2", messages } })
      assert.include(again.text, '"type":"RUN_FINISHED"')
      const { text } = yield* ask(`${url}/threads/t/history`)
      assert.strictEqual(text, before.text)
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("asks again when the answer to an interrupt comes too late", () =>
    Effect.gen(function* () {
      let paid = 0
      const pay = Tool.make("pay", {
        description: "Pays",
        parameters: {},
        execute: () => Effect.sync(() => `paid ${++paid}`)
      })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [pay],
        middleware: [HumanInTheLoop.make({ tools: { pay: true }, expiresIn: "60 millis" })]
      })
      const model = TestChatModel.script([TestChatModel.calls([{ name: "pay", arguments: {} }])])
      const url = yield* serve(Server.layer({ agent }).pipe(Layer.provide(model)), { protocols: ["agUi"] })
      const client = new HttpAgent({
        url: `${url}/ag-ui`,
        threadId: "late",
        headers: { authorization: "Bearer token-of-ada" }
      })
      client.messages = [{ id: "u1", role: "user", content: "go" }]
      yield* Effect.promise(() => client.runAgent({ runId: "r1" }))
      const [first] = client.pendingInterrupts
      assert.match(first?.expiresAt ?? "", /^\d{4}-\d\d-\d\dT/u)
      yield* Effect.sleep("80 millis")
      const resume = [{ interruptId: first?.id ?? "", status: "resolved" as const, payload: { approved: true } }]
      const { text } = yield* ask(`${url}/ag-ui`, { body: { threadId: "late", runId: "r2", messages: [], resume } })
      assert.include(text, '"type":"interrupt"')
      assert.strictEqual(paid, 0)
      assert.isFalse(text.slice(text.indexOf("RUN_FINISHED")).includes(`"id":"${first?.id}"`))
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("is driven by the client's agent: a run, an interrupt, its answer", () =>
    Effect.gen(function* () {
      for (const isApproved of [true, false]) {
        const threadId = `t-${isApproved}`
        const url = yield* serve(
          serverOf({
            rounds: [{ calls: ["add", "pay"], reasoning: true, text: true, restarts: false }],
            end: "text",
            decisions: [true]
          }),
          { protocols: ["agUi"] }
        ).pipe(Effect.provide(Layer.fresh(services)))
        const agent = new HttpAgent({
          url: `${url}/ag-ui`,
          threadId,
          headers: { authorization: "Bearer token-of-ada" }
        })
        agent.messages = [{ id: "u1", role: "user", content: "go" }]
        const types: Array<string> = []
        const onEvent = ({ event }: { readonly event: BaseEvent }) => void types.push(event.type)
        yield* Effect.promise(() => agent.runAgent({ runId: "r1" }, { onEvent }))
        const [interrupt] = agent.pendingInterrupts
        assert.strictEqual(interrupt?.reason, "tool_call")
        const resume = [
          { interruptId: interrupt?.id ?? "", status: "resolved" as const, payload: { approved: isApproved } }
        ]
        yield* Effect.promise(() => agent.runAgent({ runId: "r2", resume }, { onEvent }))
        assert.strictEqual(types.at(-1), "RUN_FINISHED")
        const shown = agent.messages.map(
          ({ content, role }) => `${role}: ${typeof content === "string" ? content : ""}`
        )
        assert.include(shown, isApproved ? "tool: paid 1" : "tool: This call was refused and not executed.")
        assert.include(shown, "assistant: All is done. 🙂")
        assert.strictEqual(
          (yield* ask(`${url}/ag-ui`, { token: "token-of-eve", body: { threadId, runId: "r3", messages: [], resume } }))
            .status,
          404
        )
        const unknown = [{ interruptId: "none", status: "resolved" as const }]
        assert.strictEqual(
          (yield* ask(`${url}/ag-ui`, { body: { threadId, runId: "r3", messages: [], resume: unknown } })).status,
          409
        )
      }
    }).pipe(Effect.provide(Layer.fresh(services)))
  )
})
