/** Writes server-sent events, and keeps idle connections alive. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { encode } from "../../../core/AgentEvent.ts"
import { transformPull } from "../../../support/effect/pulled.ts"
import { joinBytes } from "../../../support/store/joinBytes.ts"
import type { Frame } from "../position.ts"
import { type Failure, toBody, toProblem } from "./problem.ts"

const encoder = new TextEncoder()

/** The connections that wait for something to write. */
export type Beats = Set<() => void>

/** Makes the beats of a server: one timer for all of its connections. */
export const makeBeats: Effect.Effect<Beats, never, Scope.Scope> = Effect.gen(function* () {
  const beats: Beats = new Set()
  const tick = Effect.sync(() => {
    for (const wake of Array.from(beats)) wake()
  })
  yield* Effect.forkScoped(Effect.forever(Effect.delay(tick, "15 seconds")))
  return beats
})

const beat = encoder.encode(": beat\n\n")

/** Waits for the end of a pull, or the next beat. */
const awaitBeat = (beats: Beats, pull: Fiber.Fiber<unknown, unknown>): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const wake = () => {
      leave()
      beats.delete(wake)
      resume(Effect.void)
    }
    const leave = pull.addObserver(wake)
    beats.add(wake)
    return Effect.sync(() => {
      leave()
      beats.delete(wake)
    })
  })

/** The bytes of frames, which all readers of a log share. */
const bytesCache = new WeakMap<Frame, Uint8Array>()

const write = (frame: Frame): string =>
  frame._tag === "Reset"
    ? `id: ${frame.position}\nevent: reset\ndata: ${JSON.stringify({ to: frame.to })}\n\n`
    : `id: ${frame.position}\nevent: event\ndata: ${JSON.stringify(encode(frame.event))}\n\n`

/** Encodes a frame, once for all readers. */
const encodeFrame = (frame: Frame): Uint8Array => {
  const cachedBytes = bytesCache.get(frame)
  if (cachedBytes !== undefined) return cachedBytes
  const bytes = encoder.encode(write(frame))
  bytesCache.set(frame, bytes)
  return bytes
}

/** Encodes frames of runs. */
export const encodeFrames = <E, R>(frames: Stream.Stream<Frame, E, R>): Stream.Stream<Uint8Array, E, R> =>
  Stream.mapArray(frames, (some) => [joinBytes(some.map(encodeFrame))])

/**
 * Encodes packets of a protocol. `name` gives the name of the event of a packet, `id` its id and `data` its data, `last` is
 * the line behind them.
 */
export const encodePackets = <Packet, E, R>(
  packets: Stream.Stream<Packet, E, R>,
  options: {
    readonly name?: (packet: Packet) => string
    readonly id?: (packet: Packet) => string | number
    readonly data?: (packet: Packet) => unknown
    readonly last?: string
  } = {}
): Stream.Stream<Uint8Array, E, R> => {
  const { data = (packet) => packet, id, last, name } = options
  const write = (packet: Packet): string => {
    const head = name === undefined ? "" : `event: ${name(packet)}\n`
    // Clients that are cut within an event must not know its id.
    return `${head}data: ${JSON.stringify(data(packet))}\n${id === undefined ? "" : `id: ${id(packet)}\n`}\n`
  }
  const bytes = Stream.mapArray(packets, (some) => [encoder.encode(some.map(write).join(""))] as const)
  return last === undefined ? bytes : Stream.concat(bytes, Stream.make(encoder.encode(`data: ${last}\n\n`)))
}

/** Writes comments while a stream waits, and its failure as the last event: one step, since idle readers hold each of them. */
const writeEvents = (beats: Beats, bytes: Stream.Stream<Uint8Array, Failure>): Stream.Stream<Uint8Array> =>
  transformPull(bytes, (pull) => {
    const fork = Effect.forkChild(pull, { startImmediately: true })
    let pending: Effect.Success<typeof fork> | undefined
    let isOpened = false
    let isOver = false
    return Effect.gen(function* () {
      if (isOver) return yield* Cause.done()
      // The head of the response leaves with the first bytes: a reader of an idle thread must not wait for a beat.
      if (!isOpened) {
        isOpened = true
        return [beat] as const
      }
      const fiber = (pending ??= yield* fork)
      if (fiber.pollUnsafe() === undefined) yield* awaitBeat(beats, fiber)
      const exit = fiber.pollUnsafe()
      if (exit === undefined) return [beat] as const
      pending = undefined
      if (Exit.isSuccess(exit)) return exit.value
      const failure = Cause.findError(exit.cause)
      if (Result.isFailure(failure)) return yield* Effect.failCause(failure.failure)
      isOver = true
      if (Cause.isDone(failure.success)) return yield* Cause.done()
      yield* Effect.logWarning("A stream of events failed", failure.success)
      return [encoder.encode(`event: error\ndata: ${JSON.stringify(toBody(toProblem(failure.success)))}\n\n`)] as const
    })
  })

/**
 * Answers with server-sent events. A failure behind the head of the response is told as an event `error`, and ends the
 * stream.
 */
export const respondEvents = (
  beats: Beats,
  bytes: Stream.Stream<Uint8Array, Failure>,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(writeEvents(beats, bytes), {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-store", "x-accel-buffering": "no", "x-content-type-options": "nosniff", ...headers }
  })
