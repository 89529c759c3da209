/** The transport to a server that is a process: in a group of its own, which is ended as a whole. */
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client"
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import type { PlatformError } from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type * as Pull from "effect/Pull"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { neededVariables } from "../../../support/effect/environment.ts"
import type { StdioServer } from "../../McpConfig.ts"
import { type ReadMessage, understood } from "./answers.ts"
import { type Frame, lines, parse } from "./framing.ts"

/** The time that a server has to end by itself once its input has ended, and once it was asked to. */
const patience = { input: "500 millis", signal: "1 second" } as const

const isMessage = (json: unknown): json is JSONRPCMessage =>
  Predicate.hasProperty(json, "jsonrpc") && json.jsonrpc === "2.0"

/** Collects the output of a process outside of the protocol. */
export interface Notes {
  readonly add: (text: string) => void
}

/** Messages on their way out. Who takes them is woken at once, not in a later turn of the event loop. */
const makeOutbox = () => {
  let waiting: Array<Uint8Array> = []
  let hasEnded = false
  const news = Latch.makeUnsafe(false)
  const take = Effect.suspend(function next(): Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>> {
    const batch = waiting
    if (!Arr.isArrayNonEmpty(batch)) return hasEnded ? Cause.done() : Effect.flatMap(news.await, next)
    waiting = []
    news.closeUnsafe()
    return Effect.succeed(batch)
  })
  return {
    taken: Stream.fromPull(Effect.succeed(take)),
    add: (message: Uint8Array): void => {
      waiting.push(message)
      news.openUnsafe()
    },
    end: (): void => {
      hasEnded = true
      news.openUnsafe()
    }
  }
}

/**
 * Starts a server. When the scope is closed its input ends, then its group is asked to end, then it is killed: closing
 * waits for that, 2.5 seconds at most.
 */
export const open = (
  config: StdioServer,
  maxMessage: number,
  notes: Notes,
  readFirst: ReadMessage
): Effect.Effect<Transport & { readonly pid: number }, PlatformError, ChildProcessSpawner | Scope.Scope> =>
  Effect.gen(function* () {
    const spawner = yield* ChildProcessSpawner
    const env: Record<string, string | Redacted.Redacted<string>> = { ...(yield* neededVariables), ...config.env }
    const handle = yield* spawner.spawn(
      ChildProcess.make(config.command, config.args ?? [], {
        env,
        extendEnv: false,
        cwd: config.cwd,
        forceKillAfter: patience.signal,
        stdin: { stream: "pipe", endOnDone: true }
      })
    )
    const outbox = makeOutbox()
    const started = yield* Deferred.make<void>()
    let isClosed = false
    const encoder = new TextEncoder()

    const transport: Transport & { readonly stderr: null; readonly pid: number } = {
      // The client takes a transport with these two for one to a process: silence then means an older protocol.
      stderr: null,
      pid: handle.pid,
      start: () => {
        Deferred.doneUnsafe(started, Effect.void)
        return Promise.resolve()
      },
      send: (message: JSONRPCMessage) => {
        if (isClosed) return Promise.reject(new Error("the process has ended"))
        outbox.add(encoder.encode(`${JSON.stringify(message)}\n`))
        return Promise.resolve()
      },
      close: () => {
        close()
        return Promise.resolve()
      }
    }
    const close = (): void => {
      if (isClosed) return
      isClosed = true
      transport.onclose?.()
    }

    const decoder = new TextDecoder()
    const readFrame = (frame: Frame): JSONRPCMessage | undefined => {
      if (frame._tag === "TooLong") {
        if (frame.answer === undefined) transport.onerror?.(new Error(`a message of ${frame.size} bytes was left out`))
        return frame.answer
      }
      const text = decoder.decode(frame.bytes)
      if (text.trim() === "") return undefined
      const json = parse(text)
      // The client checks the rest of a message.
      if (Result.isSuccess(json) && isMessage(json.success)) return readFirst(understood(json.success))
      notes.add(`${text}\n`)
      return undefined
    }
    /** The client forgets a call's notifications when its answer comes before they were handled. */
    const take = (frames: ReadonlyArray<Frame>, from: number): Effect.Effect<void> => {
      for (let at = from; at < frames.length; at++) {
        const frame = frames[at]
        const message = frame === undefined ? undefined : readFrame(frame)
        if (message === undefined) continue
        const result = Result.try(() => transport.onmessage?.(message))
        if (Result.isFailure(result)) notes.add("a message that can't be taken apart was left out\n")
        if (!("id" in message)) return Effect.flatMap(Effect.yieldNow, () => take(frames, at + 1))
      }
      return Effect.void
    }

    yield* Effect.forkScoped(Effect.ignore(Stream.run(outbox.taken, handle.stdin)))
    const feed = lines(maxMessage)
    const reading = Stream.runForEach(handle.stdout, (chunk) => Effect.suspend(() => take(feed(chunk), 0)))
    const words = new TextDecoder()
    const hearing = yield* Effect.forkScoped(
      Effect.ignore(
        Stream.runForEach(handle.stderr, (chunk) => Effect.sync(() => notes.add(words.decode(chunk, { stream: true }))))
      )
    )
    // Its last words say why it ended, and may come after the end of its output.
    yield* Effect.forkScoped(
      Effect.andThen(Deferred.await(started), Effect.ignore(reading)).pipe(
        Effect.andThen(Effect.exit(handle.exitCode)),
        Effect.andThen(Fiber.await(hearing)),
        Effect.andThen(Effect.sync(close))
      )
    )
    // Children that the process left behind may hold its output open.
    yield* Effect.forkScoped(
      Effect.exit(handle.exitCode).pipe(Effect.andThen(Effect.sleep("250 millis")), Effect.andThen(Effect.sync(close)))
    )
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        isClosed = true
      }).pipe(
        Effect.andThen(Effect.sync(outbox.end)),
        Effect.andThen(Effect.timeoutOption(Effect.exit(handle.exitCode), patience.input))
      )
    )
    return transport
  })
