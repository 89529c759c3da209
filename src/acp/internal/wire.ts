/** The stream of a connection: standard input and output as the protocol reads and writes them. */
import type * as Acp from "@agentclientprotocol/sdk"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as Queue from "effect/Queue"
import type { Scope } from "effect/Scope"
import type * as Sink from "effect/Sink"
import { Stdio } from "effect/Stdio"
import * as Stream from "effect/Stream"
import type { Sdk } from "./sdk.ts"

/** A stream of messages, and work that waits until the answer with an id is written. */
export interface Wire {
  readonly stream: Acp.Stream
  readonly afterAnswer: (id: string | number | null, work: () => void) => void
}

/** Runs work right after the answer with its id was written. */
export const withAnswers = (stream: Acp.Stream): Wire => {
  const waiting = new Map<string | number | null, () => void>()
  const writer = stream.writable.getWriter()
  const writable = new WritableStream<Acp.AnyMessage>({
    write: async (message) => {
      await writer.write(message)
      if ("method" in message || !("id" in message)) return
      const work = waiting.get(message.id)
      waiting.delete(message.id)
      work?.()
    },
    close: () => writer.close(),
    abort: (reason) => writer.abort(reason)
  })
  return { stream: { readable: stream.readable, writable }, afterAnswer: (id, work) => void waiting.set(id, work) }
}

/** The most messages that wait to be written. A client that reads slowly slows the run. */
const mostWaiting = 64

/** Reads and writes messages on streams of bytes. */
export const makeStream = Effect.fnUntraced(function* <E, E2>(
  sdk: Sdk,
  pipes: {
    readonly input: Stream.Stream<Uint8Array, E>
    readonly output: Sink.Sink<void, Uint8Array, unknown, E2>
  },
  options: Acp.NdJsonStreamOptions
): Effect.fn.Return<Acp.Stream, never, Scope> {
  const out = yield* Queue.bounded<Uint8Array>(mostWaiting)
  yield* Effect.forkScoped(
    Effect.ensuring(Effect.ignore(Stream.run(Stream.fromQueue(out), pipes.output)), Queue.shutdown(out))
  )
  const run = yield* FiberSet.makeRuntimePromise<never, boolean, never>()
  const output = new WritableStream<Uint8Array>({
    write: async (bytes) => {
      const isTaken = await run(Queue.offer(out, bytes))
      if (!isTaken) return Promise.reject(new Error("the other side reads no more"))
    }
  })
  return sdk.ndJsonStream(output, Stream.toReadableStream(Stream.orDie(pipes.input)), options)
})

/** Reads and writes messages on standard input and output. */
export const stdioStream = Effect.fnUntraced(function* (sdk: Sdk, options: Acp.NdJsonStreamOptions) {
  const stdio = yield* Stdio
  return yield* makeStream(sdk, { input: stdio.stdin, output: stdio.stdout({ endOnDone: false }) }, options)
})
