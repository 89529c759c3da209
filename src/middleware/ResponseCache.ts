/**
 * Answers a repeated request from a store, without a model call.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { KeyValueStore } from "effect/persistence"
 * import { Agent } from "effect-deepagents"
 * import { ResponseCache } from "effect-deepagents/middleware"
 *
 * const agent = Agent.make({
 *   name: "librarian",
 *   prompt: "You know every book.",
 *   middleware: [ResponseCache.make({ ttl: "1 day" })]
 * })
 *
 * const answer = Agent.run(agent, "Who wrote Emma?").pipe(Effect.provide(KeyValueStore.layerMemory))
 * ```
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { KeyValueStore } from "effect/persistence/KeyValueStore"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { ModelRequest, TurnPart } from "../core/ChatModel.ts"
import { IdGenerator } from "../core/IdGenerator.ts"
import * as Message from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import { makeFingerprints } from "./internal/fingerprint.ts"
import { timeOf, timeProblem } from "./internal/limits.ts"
import { askedOf, nameOf } from "./internal/openModel.ts"
import * as shapes from "./internal/shapes.ts"

const name = "ResponseCache"

/** An answer and its time (milliseconds since the epoch). */
const Entry = Schema.fromJsonString(Schema.Struct({ at: Schema.Finite, message: Schema.Unknown }))

const encodeEntry = Schema.encodeEffect(Entry)
const decodeEntry = Schema.decodeEffect(Entry)

/** The parts of a stored answer. */
const replay = (message: Message.AiMessage): ReadonlyArray<TurnPart> => [
  ...message.content.flatMap((block): ReadonlyArray<TurnPart> =>
    block.type === "text" || block.type === "reasoning"
      ? [{ _tag: block.type === "text" ? "TextDelta" : "ReasoningDelta", text: block.text }]
      : []
  ),
  ...message.toolCalls.flatMap((call): ReadonlyArray<TurnPart> => [
    { _tag: "ToolCallStart", id: call.id, name: call.name },
    { _tag: "ToolCallDelta", id: call.id, delta: JSON.stringify(call.arguments) }
  ]),
  { _tag: "TurnDone", message }
]

const refuseMake = makeMiddlewareCheck(name, shapes.responseCacheMake)

/**
 * Stores answers in the `KeyValueStore` by a fingerprint (SHA-256) of the model's name and the request: prompt,
 * messages, tools, tool choice, schema and parameters. Ids, labels, usage and settings of the model's layer do not
 * count. An equal fingerprint gets the same answer without usage, and a `response-cache` event (`AgentEvent.Custom`).
 * Answers expire after `ttl` (never by default).
 *
 * Only complete answers and tool calls are stored: no failures, refusals, or answers that were filtered, cut, paused or
 * malformed. Turns in which the provider ran its own tools are stored only if `providerTools` is true, since those may
 * have side effects. `when` selects the requests.
 *
 * Entries hold the answer and a time: no key, no part of the request. They are plain text to every reader of the store,
 * so share a store (or a `KeyValueStore.prefix` of one) only where answers may be shared. If the store fails, the model
 * is asked and a `Warning` (`response-cache`) reports it.
 */
export const make = (options?: {
  /** The time after which an answer expires. Default: never. */
  readonly ttl?: Duration.Input | undefined
  /** Also stores turns in which the provider ran its own tools, which may have side effects. Default: `false`. */
  readonly providerTools?: boolean | undefined
  /** Selects the requests whose answers are stored. Default: all requests. */
  readonly when?: ((request: ModelRequest) => boolean) | undefined
}): Middleware.Middleware<never, KeyValueStore> => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const ttl = Duration.toMillis(timeOf(options?.ttl ?? Duration.infinity))
  const allowsHosted = options?.providerTools ?? false
  const isWanted = options?.when ?? (() => true)
  const fingerprintOf = makeFingerprints()
  return Middleware.make<never, KeyValueStore>({
    name,
    check: () => timeProblem(name, { ttl: options?.ttl }),
    wrapModelCall: (request, next, run) => {
      if (!isWanted(request)) return next(request)
      return Stream.unwrap(
        Effect.gen(function* () {
          const store = yield* KeyValueStore
          const key = `model-response/${yield* fingerprintOf(nameOf(askedOf(request, run)), request)}`
          const now = yield* Clock.currentTimeMillis
          const failed = (cause: unknown) =>
            Effect.as(run.warn("response-cache", `the store of answers failed: ${String(cause)}`), undefined)

          const cachedText = yield* Effect.catch(store.get(key), failed)
          const cachedEntry = cachedText === undefined ? undefined : yield* Effect.option(readEntry(cachedText))
          if (cachedEntry?._tag === "Some" && now - cachedEntry.value.at < ttl) {
            const id = (yield* IdGenerator)()
            yield* run.custom("response-cache", { key, at: cachedEntry.value.at })
            return Stream.fromIterable(replay({ ...cachedEntry.value.message, id }))
          }

          let isHosted = false
          let answer: Message.AiMessage | undefined
          const watch = (part: TurnPart): void => {
            if (part._tag === "ToolCallStart" && part.providerExecuted === true) isHosted = true
            else if (part._tag === "TurnDone") answer = part.message
            else if (part._tag === "TurnRestarted") answer = undefined
          }
          const keep = Effect.suspend(() => {
            if (answer === undefined || (isHosted && !allowsHosted) || !isComplete(answer)) return Effect.void
            const { usage: _, ...message } = answer
            return encodeEntry({ at: now, message: Message.encode(message) }).pipe(
              Effect.flatMap((entry) => store.set(key, entry)),
              Effect.catch(failed)
            )
          })
          const turn = Stream.mapArray(next(request), (parts) => {
            parts.forEach(watch)
            return parts
          })
          return Stream.concat(turn, Stream.fromEffectDrain(keep))
        })
      )
    }
  })
}

const readEntry = Effect.fnUntraced(function* (entry: string) {
  const { at, message } = yield* decodeEntry(entry)
  const decoded = yield* Message.decode(message)
  return decoded.role === "ai" ? { at, message: decoded } : yield* Effect.fail("not an answer")
})

const isComplete = ({ malformedToolCalls, stopReason }: Message.AiMessage): boolean =>
  malformedToolCalls.length === 0 && (stopReason === "stop" || stopReason === "toolCalls")
