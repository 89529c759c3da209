/**
 * Answer a request that was answered before from a store, without asking the model.
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
import { makeFingerprints } from "./internal/fingerprint.ts"
import { timeOf, timeProblem } from "./internal/limits.ts"
import { askedOf, nameOf } from "./internal/openModel.ts"

/** The name of this middleware. */
const name = "ResponseCache"

/** An answer, and when it was given (milliseconds since the epoch). */
const Entry = Schema.fromJsonString(Schema.Struct({ at: Schema.Finite, message: Schema.Unknown }))

const encodeEntry = Schema.encodeEffect(Entry)
const decodeEntry = Schema.decodeEffect(Entry)

/** The parts of an answer that is there. */
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

/**
 * Keeps answers in the `KeyValueStore`, by a fingerprint (SHA-256) of the model's name and of all that it is told:
 * prompt, messages, tools, choice of tools, schema and parameters. Ids, labels and usage do not count; nor do settings
 * of the model's layer, which are not known here. A request with the same
 * fingerprint gets the same answer, without usage, as nothing was used; a `response-cache` event
 * (`AgentEvent.Custom`) says so. An answer is good for `ttl` (for ever, if left out).
 *
 * Only complete things are kept: answers and calls of tools. Failures, refusals, and answers that were filtered, cut, paused
 * or malformed are not; nor are turns in which the provider ran tools of its own, which may leave something behind on
 * its side, unless `providerTools` is true. `when` says which requests are looked at at all.
 *
 * Entries hold the answer and a time: no key, no part of the request. They are plain text to whoever reads the store;
 * who may share answers shares a store (or a `KeyValueStore.prefix` of one). A store that fails is as good as none: the
 * model is asked, and a `Warning` (`response-cache`) says so.
 */
export const make = (options?: {
  readonly ttl?: Duration.Input | undefined
  readonly providerTools?: boolean | undefined
  readonly when?: ((request: ModelRequest) => boolean) | undefined
}): Middleware.Middleware<never, KeyValueStore> => {
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

          const found = yield* Effect.catch(store.get(key), failed)
          const known = found === undefined ? undefined : yield* Effect.option(read(found))
          if (known?._tag === "Some" && now - known.value.at < ttl) {
            const id = (yield* IdGenerator)()
            yield* run.custom("response-cache", { key, at: known.value.at })
            return Stream.fromIterable(replay({ ...known.value.message, id }))
          }

          let isHosted = false
          let done: Message.AiMessage | undefined
          const watch = (part: TurnPart): void => {
            if (part._tag === "ToolCallStart" && part.providerExecuted === true) isHosted = true
            else if (part._tag === "TurnDone") done = part.message
            else if (part._tag === "TurnRestarted") done = undefined
          }
          const keep = Effect.suspend(() => {
            if (done === undefined || (isHosted && !allowsHosted) || !isComplete(done)) return Effect.void
            const { usage: _, ...message } = done
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

const read = Effect.fnUntraced(function* (entry: string) {
  const { at, message } = yield* decodeEntry(entry)
  const decoded = yield* Message.decode(message)
  return decoded.role === "ai" ? { at, message: decoded } : yield* Effect.fail("not an answer")
})

const isComplete = ({ malformedToolCalls, stopReason }: Message.AiMessage): boolean =>
  malformedToolCalls.length === 0 && (stopReason === "stop" || stopReason === "toolCalls")
