/** Packets of AI SDK: the client's own reader rebuilds the response, live and from the store. */
import { assert, describe, it } from "@effect/vitest"
import {
  type DynamicToolUIPart,
  readUIMessageStream,
  type UIMessage,
  type UIMessageChunk,
  uiMessageChunkSchema
} from "ai"
import { Effect, Layer, Stream } from "effect"
import { Agent, type AgentEvent, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { AiSdk } from "effect-deepagents/server"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../../scale.ts"
import { play, services, story, transcript } from "./story.ts"

const encode = (events: ReadonlyArray<AgentEvent.AgentEvent>, told?: ReadonlyArray<AgentEvent.AgentEvent>) =>
  Stream.runCollect(AiSdk.encode({ messageId: "answer", told })(Stream.rechunk(Stream.fromIterable(events), 7)))

/** Reads packets as the client does, on top of the message that it has. */
const rebuild = (packets: ReadonlyArray<AiSdk.Packet>, message?: UIMessage) =>
  Effect.promise(async () => {
    const schema = uiMessageChunkSchema()
    for (const packet of packets) {
      const checked = await schema.validate?.(packet)
      assert.isTrue(checked?.success, `${JSON.stringify(packet)} is no packet of the client`)
    }
    let last = message
    const errors: Array<unknown> = []
    const chunks: ReadonlyArray<UIMessageChunk> = structuredClone([...packets])
    const stream = Stream.toReadableStream(Stream.fromIterable(chunks))
    const options = message === undefined ? {} : { message: structuredClone(message) }
    for await (const next of readUIMessageStream({ stream, ...options, onError: (error) => errors.push(error) }))
      last = next
    return { message: last, errors: errors.map(String) }
  })

const keyOf = (part: UIMessage["parts"][number]): string =>
  "toolCallId" in part
    ? `2 ${part.toolCallId}`
    : "id" in part && part.type.startsWith("data-")
      ? `3 ${part.type} ${part.id}`
      : "1"

/** Parts whose place is open: sources, and the plan. */
const isBeside = ({ type }: UIMessage["parts"][number]): boolean => type === "source-url" || type === "data-todos"

/** A message without steps that are empty, as a void one is. Calls and sub-agents of a step are at work together: their order is open. */
const showMessage = (message: UIMessage | undefined) => {
  const steps: Array<Array<UIMessage["parts"][number]>> = [[]]
  const besideParts = (message?.parts ?? []).filter(isBeside)
  for (const part of message?.parts ?? []) {
    if (part.type === "step-start") steps.push([])
    else if (isBeside(part)) continue
    else steps.at(-1)?.push(part)
  }
  const filled = steps.filter(({ length }) => length > 0)
  const parts = filled.map((step) => step.toSorted((left, right) => keyOf(left).localeCompare(keyOf(right))))
  const json = JSON.stringify({ id: message?.id, metadata: message?.metadata, parts, beside: besideParts })
  return JSON.parse(json)
}

const isTool = (part: UIMessage["parts"][number]): part is DynamicToolUIPart => part.type === "dynamic-tool"

describe("AI SDK", () => {
  it.live(
    "rebuilds a response from its packets, and the same one from the store",
    () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(story, (one) =>
            Effect.gen(function* () {
              const stages = yield* play(one)
              let seen: UIMessage | undefined
              for (const [index, { live, pending, stored, told }] of stages.entries()) {
                const packets = yield* encode(live, told)
                const { errors, message } = yield* rebuild(packets, seen)
                seen = message
                const isFailed =
                  index === stages.length - 1 && one.end === "failure" && live.at(-1)?._tag === "RunFailed"
                assert.strictEqual(errors.length, isFailed ? 1 : 0, errors.join("\n"))
                const whole = yield* rebuild(yield* encode([...told, ...live]))
                const replayed = yield* rebuild(yield* encode(stored))
                assert.deepStrictEqual(showMessage(message), showMessage(whole.message), "in pieces and at once")
                assert.deepStrictEqual(
                  showMessage(replayed.message),
                  showMessage(whole.message),
                  "from the store and live"
                )

                const parts = message?.parts ?? []
                const wanted = transcript(stored)
                const textOf = (type: string) =>
                  parts.flatMap((part) => (part.type === type && "text" in part ? [part.text] : [])).join("")
                assert.strictEqual(textOf("text"), wanted.text)
                assert.strictEqual(textOf("reasoning"), wanted.reasoning)
                const tools = new Map(parts.filter(isTool).map((part) => [part.toolCallId, part]))
                for (const [id, name, args] of wanted.calls) {
                  const part = tools.get(id)
                  assert.deepStrictEqual([part?.toolName, part?.input], [name, args])
                }
                for (const [id, said] of wanted.results) {
                  const part = tools.get(id)
                  if (part?.state === "output-denied") assert.match(said, /refused/)
                  else assert.strictEqual(part?.state === "output-error" ? part.errorText : part?.output, said)
                }
                const open = parts
                  .filter(isTool)
                  .flatMap(({ approval, state }) => (state === "approval-requested" ? [approval?.id] : []))
                assert.deepStrictEqual(open.toSorted(), pending.map(({ id }) => id).toSorted())
                const end = live.at(-1)
                const usage = end !== undefined && "usage" in end ? end.usage : undefined
                assert.deepStrictEqual(message?.metadata, {
                  usage,
                  stopReason:
                    end?._tag === "RunCompleted" ? end.stopReason : end?._tag === "RunFailed" ? "failed" : "interrupted"
                })
                assert.deepStrictEqual(packets.at(-1)?.type, end?._tag === "RunInterrupted" ? "abort" : "finish")
              }
            }).pipe(Effect.provide(Layer.fresh(services)), Effect.runPromise)
          ),
          {
            numRuns: scaled(80),
            examples: [
              [
                {
                  rounds: [
                    { calls: ["ask", "add", "ask"], reasoning: true, text: true, restarts: true },
                    { calls: ["pay", "add", "cite"], reasoning: false, text: true, restarts: false },
                    { calls: ["plan", "broken", "nothing"], reasoning: true, text: false, restarts: true }
                  ],
                  end: "picture",
                  decisions: [true, false]
                }
              ]
            ]
          }
        )
      ),
    60_000
  )

  it.effect("leaves out results of calls of an earlier message, whose request nobody answered", () =>
    Effect.gen(function* () {
      const pay = Tool.make("pay", { description: "Pays", parameters: {}, execute: () => Effect.succeed("paid") })
      const agent = Agent.make({
        name: "helper",
        prompt: "You help.",
        tools: [pay],
        middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
      })
      const answer = (input: string) =>
        Stream.runCollect(
          Agent.stream(agent, input, { threadId: "t" }).pipe(AiSdk.encode({ messageId: `${input}-answer` }))
        )
      yield* answer("pay")
      const { errors, message } = yield* rebuild(yield* answer("never mind"))
      assert.deepStrictEqual(errors, [])
      assert.deepStrictEqual(
        message?.parts.map((part) => (part.type === "text" ? part.text : part.type)),
        ["step-start", "I leave it."]
      )
    }).pipe(
      Effect.provide([
        TestChatModel.script([TestChatModel.calls([{ name: "pay", arguments: {} }]), "I leave it."]),
        SessionStore.journal.pipe(Layer.provide(MemorySessions.layer))
      ])
    )
  )
})
