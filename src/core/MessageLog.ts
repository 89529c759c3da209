/** A log of every message of a run, for audit, debugging and cost analysis. By default runs have no log. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type { PlatformError } from "effect/PlatformError"
import * as Semaphore from "effect/Semaphore"
import { encode, type Message } from "./Message.ts"

/** The place of a message: its agent, run, thread and round (0 for the input). */
export interface LogContext {
  readonly agent: string
  readonly path: ReadonlyArray<string>
  readonly runId: string
  readonly threadId: string | undefined
  readonly round: number
}

/** The log. It can't fail the run: a layer that can't write says so in Effect's own log. */
export interface MessageLog {
  readonly append: (message: Message, context: LogContext) => Effect.Effect<void>
}

/** The log that runs write to; `undefined` by default. */
export const MessageLog = Context.Reference<MessageLog | undefined>("effect-deepagents/MessageLog", {
  defaultValue: () => undefined
})

/** One entry of a log kept in memory. */
export interface Entry {
  readonly message: Message
  readonly context: LogContext
}

/** Logs into an array of yours. */
export const layerMemory = (entries: Array<Entry>): Layer.Layer<never> =>
  Layer.succeed(MessageLog, {
    append: (message, context) =>
      Effect.sync(() => {
        entries.push({ message, context })
      })
  })

/**
 * Logs to a file, one JSON object a line: `{ at, agent, path, runId, threadId?, round, message }` with the message in
 * its versioned encoding. Appends to what is there; lines of parallel runs never mix. A write that fails is reported as
 * a warning in Effect's log, and the run goes on.
 */
export const layerJsonl = (file: string): Layer.Layer<never, PlatformError, FileSystem.FileSystem> =>
  Layer.effect(
    MessageLog,
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const handle = yield* fs.open(file, { flag: "a" })
      const lock = yield* Semaphore.make(1)
      const encoder = new TextEncoder()
      return {
        append: Effect.fnUntraced(function* (message, { threadId, ...context }) {
          const at = yield* Clock.currentTimeMillis
          // A model's own data may lie deeper than can be written.
          const line = Effect.try(() =>
            JSON.stringify({
              at,
              ...context,
              ...(threadId === undefined ? {} : { threadId }),
              message: encode(message)
            })
          )
          yield* line.pipe(
            Effect.flatMap((text) => lock.withPermits(1)(handle.writeAll(encoder.encode(`${text}\n`)))),
            Effect.catch((error) => Effect.logWarning(`A message could not be logged to ${file}`, error))
          )
        })
      }
    })
  )
