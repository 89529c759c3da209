/**
 * Keep a long conversation within the model's context window: the model sees a summary of the old part and the new part
 * as it is, while the transcript stays whole.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Summarization } from "effect-deepagents/middleware"
 *
 * const agent = Agent.make({
 *   name: "researcher",
 *   prompt: "You read a lot.",
 *   middleware: [Summarization.make()]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { Backend } from "../core/Backend.ts"
import { type ChatModel, type ModelRequest, turnPurpose } from "../core/ChatModel.ts"
import type { AiMessage } from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import type { ModelError } from "../core/ModelError.ts"
import { CurrentRun, type Run } from "../core/Run.ts"
import * as Tool from "../core/Tool.ts"
import { amountProblem } from "./internal/limits.ts"
import { modelOf, openModel } from "./internal/openModel.ts"
import { reissue } from "./internal/reissue.ts"
import {
  canWait,
  compact,
  type Draft,
  foldableTo,
  isRelieved,
  type Reason,
  relieved
} from "./internal/summarization/compact.ts"
import { summaryBody } from "./internal/summarization/fold.ts"
import * as Limits from "./internal/summarization/limits.ts"
import { learn, makeMemories, type Measure, type Memory, type Pending } from "./internal/summarization/memory.ts"
import { record as slot, type Record } from "./internal/summarization/record.ts"
import { firstOf, type Outside, refAt, type Situation, sizeOf } from "./internal/summarization/situation.ts"
import { type Counter as AnyCounter, estimate } from "./internal/summarization/tokens.ts"
import { locate } from "./internal/summarization/view.ts"

/** The name of this middleware: one of yours with it takes its place in a deep agent. */
const name = "Summarization"

/**
 * A length of a conversation: a fraction of the model's context window, tokens, or messages as the model sees them.
 * Options that describe one amount must hold together.
 */
type Amount = Limits.Amount

/** Counts tokens: of a text, and of an image or a file. It is asked once for each text. */
export type Counter = AnyCounter

/** The counter that is used unless another is given: an estimate for any script, code and JSON, without a tokeniser. */
export const defaultCounter: Counter = estimate

/**
 * The slot of decisions about the history of a thread: what is folded and the summary that tells of it, what
 * is cut or cleared, where the history was written, and `compactions`, how often.
 */
export const record = slot

/** The tool by which a model asks for a compaction. */
const compactTool = "compact_conversation"

/**
 * Options of compaction.
 *
 * - `trigger`: when a conversation is too long: at any of these amounts. 85 % of the window by default
 * - `tail`: how much of its end stays as it is, at most. 10 % of the window by default, and never over half of the
 *   trigger
 * - `contextWindowTokens`: the window of the model, where its layer does not know it
 * - `counter`: how tokens are counted; {@link defaultCounter} by default
 * - `model`: another model for the summaries, opened when it is first needed and closed when the run ends
 * - `keep`: what else must not be lost, as Markdown: it is put under each new summary, up to 10,000 characters of it
 * - `offload`: whether what goes out of sight is written to the `Backend` first, where the agent can read it again
 * - `tool`: whether the model gets `compact_conversation`
 * - `background`: whether the run works on while a summary is written; `true` by default. Turn it off for a server that
 *   answers one request at a time
 */
export interface Options {
  readonly trigger?: Amount | ReadonlyArray<Amount> | undefined
  readonly tail?: Amount | undefined
  readonly contextWindowTokens?: number | undefined
  readonly counter?: Counter | undefined
  readonly model?: Layer.Layer<ChatModel, unknown, unknown> | undefined
  readonly keep?: ((run: Run) => Effect.Effect<string, unknown, unknown>) | undefined
  readonly offload?: boolean | undefined
  readonly tool?: boolean | undefined
  readonly background?: boolean | undefined
}

type At<O, Key> = Key extends keyof O ? O[Key] : undefined
type KeepError<K> = K extends (run: Run) => Effect.Effect<infer _A, infer E, infer _R> ? E : never
type KeepServices<K> = K extends (run: Run) => Effect.Effect<infer _A, infer _E, infer R> ? R : never
type ModelServices<L> = L extends Layer.Layer<infer _A, infer _E, infer R> ? R : never
type OffloadServices<B> = true extends B ? Backend : never

/** Failures of a compaction: those of its `keep`. */
type Error<O> = KeepError<At<O, "keep">>

/** Services that a compaction needs. */
export type Services<O> =
  | KeepServices<At<O, "keep">>
  | ModelServices<At<O, "model">>
  | OffloadServices<At<O, "offload">>
  | ChatModel

/** Factor by which a request must grow before a compaction that did not help is tried again. */
const patience = 1.05

/** From how far on the way to the trigger the model may ask for a compaction. */
const mayAsk = 0.5

const countedIn = ({ frame, view }: Situation): number => frame + view.tokens

const tokensOf = (at: Situation): number => Math.ceil(countedIn(at) * at.ratio)

/** The request as the model is to see it. */
const shownOf = ({ view }: Situation, request: ModelRequest): ModelRequest =>
  view.messages === request.messages
    ? request
    : { ...request, messages: view.messages, cacheHints: [...new Set(request.cacheHints.map(view.indexOf))] }

const progressOf = (at: Situation): number => at.limits.progress(sizeOf(at, at.view))

const build = <E, R>(
  options: Options,
  services: Omit<Outside<E, R>, "author">
): Middleware.Middleware<E, R | ChatModel> => {
  const { background = true, model, trigger } = options
  const measure: Measure = {
    clauses: trigger === undefined ? Limits.defaultTrigger : "length" in trigger ? trigger : [trigger],
    tail: options.tail ?? Limits.defaultTail,
    counter: options.counter ?? estimate,
    contextWindowTokens: options.contextWindowTokens
  }
  const memories = makeMemories(measure)
  const { corrected, situate, windowOf } = memories

  const outside: Outside<E, R> = {
    ...services,
    author: (run) =>
      Effect.gen(function* () {
        if (model === undefined) return { name: modelOf(run).modelId, window: undefined, session: undefined }
        const memory = memories.of(run)
        // Its needs are among those of the middleware.
        memory.author ??= yield* openModel(model as Layer.Layer<ChatModel, unknown, R>, run)
        return memory.author
      })
  }

  /** Says once a run that the window is assumed, if it matters. */
  const tellWindow = ({ record, run }: Situation): Effect.Effect<void> => {
    const memory = memories.of(run)
    const matters = measure.clauses.some((clause) => clause.fraction !== undefined)
    if (memory.isWindowTold || !matters || windowOf(run, record) !== undefined) return Effect.void
    memory.isWindowTold = true
    return run.warn(
      "summarization-window",
      `The context window of "${modelOf(run).modelId}" is not known, so ${Limits.unknownWindow} tokens are assumed; give contextWindowTokens to its layer or to Summarization.make.`
    )
  }

  /** Remembers a compaction and says so. Gives the situation after it: the same one if there was nothing to be done. */
  const decided = Effect.fnUntraced(function* (at: Situation, request: ModelRequest, changed: Record) {
    const { record, run } = at
    const memory = memories.of(run)
    const before = tokensOf(at)
    const tokens = at.view.tokens
    if (changed === record && !record.requested) {
      memory.retryAt = Math.max(1, progressOf(at) * patience)
      return at
    }
    const isShorter = situate(run, request, changed).view.tokens < tokens
    const compactions = record.compactions + (isShorter ? 1 : 0)
    yield* run.state.set(slot, { ...changed, requested: false, ratio: at.ratio, compactions })
    const after = situate(run, request, yield* run.state.get(slot))
    memory.retryAt = Math.max(1, progressOf(after) * patience)
    if (isShorter) yield* run.compacted(before, tokensOf(after))
    return after
  })

  const compacted = Effect.fnUntraced(function* (at: Situation, request: ModelRequest, reason: Reason, draft?: Draft) {
    yield* tellWindow(at)
    return yield* decided(at, request, yield* compact(outside, at, reason, draft))
  })

  /** Has a summary written while the run works on, where only one helps: what is sent meanwhile keeps its beginning. */
  const begun = Effect.fnUntraced(function* (at: Situation, request: ModelRequest) {
    const { history, record, run } = at
    yield* tellWindow(at)
    const cheap = yield* relieved(outside, at)
    const end = cheap === undefined ? foldableTo(at, "due") : undefined
    if (end === undefined) return yield* decided(at, request, cheap ?? (yield* compact(outside, at, "due")))
    const fiber = yield* Effect.result(summaryBody(outside, at, end)).pipe(
      Effect.forkIn(run.scope, { startImmediately: true })
    )
    memories.of(run).pending = { through: refAt(history, end - 1), fold: record.fold, fiber }
    return at
  })

  /** Puts a summary that was written meanwhile in its place, and waits for it if need be. */
  const joined = Effect.fnUntraced(function* (pending: Pending, run: Run, request: ModelRequest) {
    const body = yield* Fiber.join(pending.fiber)
    memories.of(run).pending = undefined
    const at = situate(run, request, yield* run.state.get(slot))
    const end = locate(at.history, pending.through) + 1
    // Somebody else decided on the same stretch, or it is there no more.
    if (at.record.fold !== pending.fold || end <= firstOf(at)) return at
    return yield* compacted(at, request, "due", { end, body })
  })

  /** Takes a summary that is there when the run ends; one that is not is not waited for. */
  const left = Effect.fnUntraced(function* (run: Run) {
    const { pending, sent } = memories.of(run)
    if (pending === undefined || sent === undefined) return
    memories.of(run).pending = undefined
    const exit = pending.fiber.pollUnsafe()
    if (exit === undefined) yield* Fiber.interrupt(pending.fiber)
    else if (Exit.isSuccess(exit) && Result.isSuccess(exit.value)) yield* joined(pending, run, sent)
  })

  /** Asks once more with less, after an overflow; if there is no less, the overflow stands. */
  const again = Effect.fnUntraced(function* (error: ModelError, run: Run, request: ModelRequest) {
    const before = situate(run, request, yield* run.state.get(slot))
    const tokens = before.view.tokens
    const learnt = situate(run, request, corrected(before, error))
    const { pending } = memories.of(run)
    const ready = pending === undefined ? learnt : yield* joined(pending, run, request)
    const isEnough = ready.view.tokens < tokens && isRelieved(ready)
    const after = isEnough ? ready : yield* compacted(ready, request, "overflow")
    if (after.view.tokens >= tokens) return yield* Effect.fail(error)
    yield* run.warn("summarization-overflow", `${error.message}; asking again with less of the conversation`)
    return after
  })

  /** Shortens what is too long before it is sent. */
  const shortened = (at: Situation, request: ModelRequest, memory: Memory) => {
    const { record, run } = at
    const { pending } = memory
    if (pending !== undefined) {
      const isAwaited = record.requested || !canWait(at) || pending.fiber.pollUnsafe() !== undefined
      return isAwaited ? joined(pending, run, request) : Effect.succeed(at)
    }
    const isDue = progressOf(at) >= memory.retryAt
    if (!isDue && !record.requested) return Effect.succeed(at)
    // The beginning of the run is shortened first: a run of one turn would end before a summary is written.
    const isAside = background && memory.sent !== undefined && !record.requested && canWait(at)
    return isAside ? begun(at, request) : compacted(at, request, isDue ? "due" : "asked")
  }

  const prepared = (run: Run, request: ModelRequest) =>
    Effect.flatMap(run.state.get(slot), (record) => {
      const memory = memories.of(run)
      return Effect.map(shortened(situate(run, request, record), request, memory), (ready) => {
        memory.progress = progressOf(ready)
        memory.sent = request
        return ready
      })
    })

  const tool = Tool.make(compactTool, {
    description:
      "Has the older part of this conversation replaced by a summary, to make room. Use it between two pieces of work, when you do not need the details of the first any more.",
    parameters: {},
    annotations: { idempotent: true, destructive: false, openWorld: false },
    execute: () =>
      Effect.gen(function* () {
        const run = yield* CurrentRun
        const progress = run === undefined ? 0 : memories.of(run).progress
        if (run === undefined || progress < mayAsk) {
          return `There is nothing to compact yet: the conversation has ${Math.round(progress * 100)} % of the length at which it is compacted by itself. Go on.`
        }
        yield* run.state.update(slot, (current) => ({ ...current, requested: true }))
        return "The older part of the conversation will be summarised before your next turn. Go on with your work."
      })
  })

  return Middleware.make<E, R | ChatModel>({
    name,
    check: () => {
      const amounts = [{ contextWindowTokens: options.contextWindowTokens }, ...measure.clauses, measure.tail]
      return amounts.map((one) => amountProblem(name, { ...one })).find((problem) => problem !== undefined)
    },
    state: [slot],
    tools: options.tool === true ? [tool] : undefined,
    afterAgent: background ? left : undefined,
    wrapModelCall: (request, next, run) =>
      request.purpose !== turnPurpose
        ? next(request)
        : reissue<E, R | ChatModel>(
            Effect.map(prepared(run, request), (ready) => {
              const memory = memories.of(run)
              let isFirst = true
              let counted = countedIn(ready)
              const done = ({ usage }: AiMessage): void => learn(memory, counted, usage?.inputTokens ?? 0)
              const less = (error: ModelError) => {
                if (!isFirst || error.reason._tag !== "ContextOverflow") return Effect.fail(error)
                isFirst = false
                return Effect.map(again(error, run, request), (after) => {
                  counted = countedIn(after)
                  return { turn: next(shownOf(after, request)), reason: error.message }
                })
              }
              return { turn: next(shownOf(ready, request)), again: less, done }
            })
          )
  })
}

/**
 * Shortens what the model sees of a conversation when it comes near to the context window. It is a view: `run.messages`
 * and the result stay whole, and what was decided is in the state ({@link record}), by message id, so a run that goes
 * on from `state` and `history` sees the same. Between two compactions what was sent before is sent again unchanged,
 * and a round costs what is new in it.
 *
 * When the `trigger` is reached:
 *
 * 1. Arguments of old tool calls that have over 2,000 characters in all are cut, each to its first 200; if that is not
 * enough, old tool results are cleared. Each leaves a note. Enough is 70 % of the trigger. 2. Otherwise everything but
 * the tail is folded under a summary, which is asked for through the run's own middleware with the purpose `"summary"`.
 * An earlier summary is part of what it tells of. In front of it stay the leading system messages and what the user
 * said first and last (shortened if very long); under it, the files that tools changed and what `keep` says. The cut is
 * never between a call and its results. The run works on while a summary is written, and sends what it sent before and
 * what is new, until the summary is there; it waits for one from a tenth over the trigger or 95 % of the window on, and
 * before the first request of a run. 3. A summary that fails, or is longer than what it tells of, is a `Warning`
 * (`summarization-failed`) and the results are cleared instead. Only a request over 95 % of the window leaves old
 * messages out without one (`summarization-dropped`).
 *
 * When a provider says that a request does not fit (`ContextOverflow`), more is folded, the newest results are cut too
 * if they must be, and it is asked once more, with `TurnRestarted` if parts went out; a second overflow fails the call.
 *
 * Tokens are counted by `counter`, corrected by the usage that the provider told for the last turn. Events:
 * `Compacted`, with the tokens of the request before and after. Requests of another purpose than a turn are left alone.
 * One value may serve many agents at once. Put it once into an agent's stack, after `ModelFallback`, so that an
 * overflow is compacted before another model is asked, and before what marks a request for a provider's cache.
 */
export const make = <const O extends Options = {}>(
  options?: O & Options & { readonly [Key in Exclude<keyof O, keyof Options>]: never }
): Middleware.Middleware<Error<O>, Services<O>> => {
  type Needs = Services<O>
  return build<Error<O>, Needs>(options ?? {}, {
    // The failures and needs of the options are those that the types above read off them.
    keep: options?.keep as Outside<Error<O>, Needs>["keep"],
    backend: (options?.offload === true ? Backend : Effect.succeed(undefined)) as Outside<Error<O>, Needs>["backend"]
  })
}
