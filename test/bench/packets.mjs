/**
 * Packets of AI SDK a second: our mapper with its encoding to server-sent events, beside `createUIMessageStreamResponse`
 * of the package `ai`. Interleaved, the median of the rounds.
 * Run: `node test/bench/packets.mjs`
 */
import { createUIMessageStream, createUIMessageStreamResponse } from "ai"
import { Stream } from "effect"
import { AiSdk } from "../../src/server/index.ts"

const count = 20_000
const rounds = 7
const head = { runId: "run", path: ["helper"], at: 1 }
const message = {
  role: "ai",
  id: "m",
  content: [{ type: "text", text: "word, ".repeat(count) }],
  toolCalls: [],
  malformedToolCalls: [],
  stopReason: "stop"
}
const usage = { inputTokens: 1, outputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 }
const events = [
  { _tag: "RunStarted", seq: 0, ...head, agent: "helper" },
  { _tag: "RoundStarted", seq: 1, ...head, round: 1, messageId: "m" },
  ...Array.from({ length: count }, (_, index) => ({ _tag: "TextDelta", seq: index + 2, ...head, text: "word, " })),
  { _tag: "MessageAppended", seq: count + 2, ...head, message },
  { _tag: "RoundCompleted", seq: count + 3, ...head, round: 1, stopReason: "stop", usage },
  { _tag: "RunCompleted", seq: count + 4, ...head, stopReason: "completed", rounds: 1, usage }
]
const encoder = new TextEncoder()

/** Reads a body to its end. */
const read = async (body) => {
  let bytes = 0
  for await (const chunk of body) bytes += chunk.length
  return bytes
}

const ours = (size) => async () => {
  const bytes = Stream.fromIterable(events).pipe(
    Stream.rechunk(size),
    AiSdk.encode({ messageId: "answer" }),
    Stream.mapArray((some) => [encoder.encode(some.map((one) => `data: ${JSON.stringify(one)}\n\n`).join(""))])
  )
  return read(new Response(Stream.toReadableStream(bytes)).body)
}

const theirs = async () => {
  const stream = createUIMessageStream({
    execute: ({ writer }) => {
      writer.write({ type: "start-step" })
      writer.write({ type: "text-start", id: "m/0" })
      for (let index = 0; index < count; index++) writer.write({ type: "text-delta", id: "m/0", delta: "word, " })
      writer.write({ type: "text-end", id: "m/0" })
      writer.write({ type: "finish-step" })
    }
  })
  return read(createUIMessageStreamResponse({ stream }).body)
}

const runs = {
  "ours, 16 events at a time": ours(16),
  "ours, one at a time": ours(1),
  createUIMessageStreamResponse: theirs
}
const times = new Map(Object.keys(runs).map((name) => [name, []]))
for (let round = 0; round < rounds + 1; round++) {
  for (const [name, run] of Object.entries(runs)) {
    const begin = performance.now()
    await run()
    // The first round warms up.
    if (round > 0) times.get(name).push(performance.now() - begin)
  }
}
for (const [name, all] of times) {
  const median = all.toSorted((left, right) => left - right)[Math.floor(all.length / 2)]
  console.log(`${name}: ${Math.round(count / (median / 1_000)).toLocaleString("en")} packets/s`)
}
