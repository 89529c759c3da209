/**
 * Keeps a long conversation within the model's context window: the model sees a summary of the old part and the recent
 * part unchanged, while the transcript stays whole.
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
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import * as Attached from "../support/effect/attached.ts"
import { amountProblem } from "./internal/limits.ts"
import { modelOf, openModel } from "./internal/openModel.ts"
import { reissue } from "./internal/reissue.ts"
import * as shapes from "./internal/shapes.ts"
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
import { learn, makeMemories, type Measure, type Memory, type PendingFold } from "./internal/summarization/memory.ts"
import { record as slot, type Record } from "./internal/summarization/record.ts"
import { firstOf, type Outside, refAt, type Situation, sizeOf } from "./internal/summarization/situation.ts"
import { type Counter as AnyCounter, estimate } from "./internal/summarization/tokens.ts"
import { locate } from "./internal/summarization/view.ts"

const name = "Summarization"

/**
 * A length of a conversation: a fraction of the model's context window, tokens, or messages of the model's view. If
 * several are set, all must be reached.
 */
type Amount = Limits.Amount

/** Counts the tokens of a text, an image or a file. Each text is counted once. */
export type Counter = AnyCounter

/** The default counter: an estimate for any script, code and JSON, without a tokeniser. */
export const defaultCounter: Counter = estimate

/**
 * The slot of decisions about a thread's history: the folded part and its summary, cut or cleared parts, the files of
 * the history, and `compactions`, their number.
 */
export const record = slot

/** The share of the model's window at which a conversation is compacted, unless `trigger` is set. */
export const defaultFraction = Limits.defaultFraction

/** How full the model's window was at the last request of a run, in tokens, and the length at which it is compacted. */
export interface WindowUse {
  readonly tokens: number
  readonly window: number
  /** The length at which the conversation is compacted. */
  readonly trigger: number
  /** The share of the trigger that is reached: at 1 the next request is compacted. */
  readonly progress: number
}

const fillings = Attached.make<Run, WindowUse>()

/** Says how full the window of a run is, and when it is compacted. `undefined` before the first request. */
export const filling = (run: Run): WindowUse | undefined => fillings.get(run)

/** The name of the tool by which a model requests a compaction. */
const compactTool = "compact_conversation"

/** Options of compaction. */
export interface Options {
  /** The length at which a conversation is compacted: at any of these amounts. Default: 85 % of the model's window. */
  readonly trigger?: Amount | ReadonlyArray<Amount> | undefined
  /** The longest end that stays unchanged, never over half of the trigger. Default: 10 % of the model's window. */
  readonly tail?: Amount | undefined
  /** The model's window in tokens. Default: the window that its layer knows. */
  readonly contextWindowTokens?: number | undefined
  /** The token counter. Default: {@link defaultCounter}. */
  readonly counter?: Counter | undefined
  /**
   * The model that writes summaries, opened at its first use and closed at the end of the run. Default: the agent's
   * model.
   */
  readonly model?: Layer.Layer<ChatModel, unknown, unknown> | undefined
  /**
   * Gives further content to preserve, as Markdown: it follows each new summary, with up to 10,000 characters.
   * Default: none.
   */
  readonly keep?: ((run: Run) => Effect.Effect<string, unknown, unknown>) | undefined
  /** Writes hidden messages to the `Backend` first, so that the agent can read them again. Default: `false`. */
  readonly offload?: boolean | undefined
  /** Offers the model the tool `compact_conversation`. Default: `false`. */
  readonly tool?: boolean | undefined
  /**
   * Continues the run while a summary is written. Turn it off for a server that answers one request at a time.
   * Default: `true`.
   */
  readonly background?: boolean | undefined
  /**
   * Has the provider compact the conversation at the trigger, if it can (Claude, OpenAI): its own summary goes back
   * with the turn. A request that is too long all the same, and other models, are compacted here. Default: `"here"`.
   */
  readonly by?: "here" | "provider" | undefined
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

/** Growth factor of a request before an ineffective compaction is tried again. */
const patience = 1.05

/** The share of the trigger from which the model may request a compaction. */
const mayAsk = 0.5

const countedIn = ({ frame, view }: Situation): number => frame + view.tokens

const tokensOf = (at: Situation): number => Math.ceil(countedIn(at) * at.ratio)

/** Makes the request of the model's view. */
const shownOf = ({ view }: Situation, request: ModelRequest): ModelRequest =>
  view.messages === request.messages
    ? request
    : { ...request, messages: view.messages, cacheHints: [...new Set(request.cacheHints.map(view.indexOf))] }

/** Reports whether the provider of a request compacts the conversation. */
const isByProvider = ({ by }: Options, run: Run, { session }: ModelRequest): boolean =>
  by === "provider" && (session?.model ?? run.model)?.abilities?.includes("compaction") === true

/** Makes the request of the model's view, which the provider compacts at the trigger, if it can. */
const sentOf = (options: Options, at: Situation, request: ModelRequest): ModelRequest => {
  const visibleRequest = shownOf(at, request)
  return isByProvider(options, at.run, request)
    ? { ...visibleRequest, compactAt: Math.floor(at.limits.trigger) }
    : visibleRequest
}

const progressOf = (at: Situation): number => at.limits.progress(sizeOf(at, at.view))

/** Notes how full the window is. Returns the share of the trigger. */
const noteFilling = (at: Situation): number => {
  const progress = progressOf(at)
  const { trigger, window } = at.limits
  fillings.set(at.run, { tokens: tokensOf(at), window, trigger, progress })
  return progress
}

/** Reports an assumed window once a run, if it matters. */
const tellWindow = (
  measure: Measure,
  memories: ReturnType<typeof makeMemories>,
  { record, run }: Situation
): Effect.Effect<void> => {
  const memory = memories.of(run)
  const matters = measure.clauses.some((clause) => clause.fraction !== undefined)
  if (memory.isWindowTold || !matters || memories.windowOf(run, record) !== undefined) return Effect.void
  memory.isWindowTold = true
  return run.warn(
    "summarization-window",
    `The context window of "${modelOf(run).modelId}" is not known, so ${Limits.unknownWindow} tokens are assumed; give contextWindowTokens to its layer or to Summarization.make.`
  )
}

/** The tool by which the model requests a compaction before its next turn. */
const makeCompactTool = (memories: ReturnType<typeof makeMemories>) =>
  Tool.make(compactTool, {
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

const measureOf = ({
  contextWindowTokens,
  counter = estimate,
  tail = Limits.defaultTail,
  trigger
}: Options): Measure => ({
  clauses: trigger === undefined ? Limits.defaultTrigger : "length" in trigger ? trigger : [trigger],
  tail,
  counter,
  contextWindowTokens
})

const build = <E, R>(
  options: Options,
  services: Omit<Outside<E, R>, "author">
): Middleware.Middleware<E, R | ChatModel> => {
  const { background = true, model } = options
  const measure = measureOf(options)
  const memories = makeMemories(measure)
  const { corrected, situate } = memories

  const outside: Outside<E, R> = {
    ...services,
    author: (run) =>
      Effect.gen(function* () {
        if (model === undefined) return { name: modelOf(run).modelId, window: undefined, session: undefined }
        const memory = memories.of(run)
        // The middleware has its requirements, too.
        memory.author ??= yield* openModel(model as Layer.Layer<ChatModel, unknown, R>, run)
        return memory.author
      })
  }

  /** Stores a compaction and reports it. Returns the situation after it: the same one if the record is unchanged. */
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
    yield* tellWindow(measure, memories, at)
    return yield* decided(at, request, yield* compact(outside, at, reason, draft))
  })

  /** Starts a summary in the background if only a summary helps. Requests keep their beginning meanwhile. */
  const startSummary = Effect.fnUntraced(function* (at: Situation, request: ModelRequest) {
    const { history, record, run } = at
    yield* tellWindow(measure, memories, at)
    const cheap = yield* relieved(outside, at)
    const end = cheap === undefined ? foldableTo(at, "due") : undefined
    if (end === undefined) return yield* decided(at, request, cheap ?? (yield* compact(outside, at, "due")))
    const fiber = yield* Effect.result(summaryBody(outside, at, end)).pipe(
      Effect.forkIn(run.scope, { startImmediately: true })
    )
    memories.of(run).pending = { through: refAt(history, end - 1), fold: record.fold, fiber }
    return at
  })

  /** Applies a background summary, and waits for it if need be. */
  const applySummary = Effect.fnUntraced(function* (pending: PendingFold, run: Run, request: ModelRequest) {
    const body = yield* Fiber.join(pending.fiber)
    memories.of(run).pending = undefined
    const at = situate(run, request, yield* run.state.get(slot))
    const end = locate(at.history, pending.through) + 1
    // Another compaction decided on the same messages, or they are gone.
    if (at.record.fold !== pending.fold || end <= firstOf(at)) return at
    return yield* compacted(at, request, "due", { end, body })
  })

  /** Applies a finished summary at the end of the run. It waits for no other. */
  const applyLast = Effect.fnUntraced(function* (run: Run) {
    const { pending, lastRequest } = memories.of(run)
    if (pending === undefined || lastRequest === undefined) return
    memories.of(run).pending = undefined
    const exit = pending.fiber.pollUnsafe()
    if (exit === undefined) yield* Fiber.interrupt(pending.fiber)
    else if (Exit.isSuccess(exit) && Result.isSuccess(exit.value)) yield* applySummary(pending, run, lastRequest)
  })

  /** Repeats a request with less after an overflow; if nothing can be removed, the overflow stands. */
  const relieveOverflow = Effect.fnUntraced(function* (error: ModelError, run: Run, request: ModelRequest) {
    const before = situate(run, request, yield* run.state.get(slot))
    const tokens = before.view.tokens
    const learnt = situate(run, request, corrected(before, error))
    const { pending } = memories.of(run)
    const ready = pending === undefined ? learnt : yield* applySummary(pending, run, request)
    const isEnough = ready.view.tokens < tokens && isRelieved(ready)
    const after = isEnough ? ready : yield* compacted(ready, request, "overflow")
    if (after.view.tokens >= tokens) return yield* Effect.fail(error)
    yield* run.warn("summarization-overflow", `${error.message}; asking again with less of the conversation`)
    return after
  })

  /** Shortens a request that is too long. */
  const shortened = (at: Situation, request: ModelRequest, memory: Memory) => {
    const { record, run } = at
    const { pending } = memory
    if (pending !== undefined) {
      const isAwaited = record.requested || !canWait(at) || pending.fiber.pollUnsafe() !== undefined
      return isAwaited ? applySummary(pending, run, request) : Effect.succeed(at)
    }
    const isDue = progressOf(at) >= memory.retryAt
    if (!isDue && !record.requested) return Effect.succeed(at)
    // The start of a run is compacted first: a run of one turn would end before a background summary.
    const isAside = background && memory.lastRequest !== undefined && !record.requested && canWait(at)
    return isAside ? startSummary(at, request) : compacted(at, request, isDue ? "due" : "asked")
  }

  const prepared = (run: Run, request: ModelRequest) =>
    Effect.flatMap(run.state.get(slot), (record) => {
      if (isByProvider(options, run, request)) return Effect.succeed(situate(run, request, record))
      const memory = memories.of(run)
      return Effect.map(shortened(situate(run, request, record), request, memory), (ready) => {
        memory.progress = noteFilling(ready)
        memory.lastRequest = request
        return ready
      })
    })

  return Middleware.make<E, R | ChatModel>({
    name,
    check: () => {
      const amounts = [{ contextWindowTokens: options.contextWindowTokens }, ...measure.clauses, measure.tail]
      return amounts.map((one) => amountProblem(name, { ...one })).find((problem) => problem !== undefined)
    },
    state: [slot],
    tools: options.tool === true ? [makeCompactTool(memories)] : undefined,
    afterAgent: background ? applyLast : undefined,
    wrapModelCall: (request, next, run) =>
      request.purpose !== turnPurpose
        ? next(request)
        : reissue<E, R | ChatModel>(
            Effect.map(prepared(run, request), (ready) => {
              let isFirst = true
              let counted = countedIn(ready)
              const onDone = ({ usage }: AiMessage): void => learn(memories.of(run), counted, usage?.inputTokens ?? 0)
              const less = (error: ModelError) => {
                if (!isFirst || error.reason._tag !== "ContextOverflow") return Effect.fail(error)
                isFirst = false
                return Effect.map(relieveOverflow(error, run, request), (after) => {
                  counted = countedIn(after)
                  return { turn: next(shownOf(after, request)), reason: error.message }
                })
              }
              return { turn: next(sentOf(options, ready, request)), nextAttempt: less, onDone }
            })
          )
  })
}

const refuseMake = makeMiddlewareCheck(name, shapes.summarizationMake)

/**
 * Shortens the model's view of a conversation near the context window. `run.messages` and the result stay whole. The
 * decisions are in the state ({@link record}) by message id, so a run that continues from `state` and `history` sees
 * the same view. Between two compactions the sent prefix stays unchanged, and a round costs only its new messages.
 *
 * At the `trigger`:
 *
 * 1. Old tool calls with over 2,000 characters of arguments get each argument cut to 200. If that is not enough, old
 *    tool results are cleared. Each leaves a note. The goal is 70 % of the trigger.
 * 2. Otherwise everything but the tail is folded under a summary, requested through the run's own middleware with the
 *    purpose `"summary"`. It includes an earlier summary. Before it stay the leading system messages, and the user's
 *    first and last messages (shortened if very long); after it, the files that tools changed and the text of `keep`.
 *    The cut never separates a call from its results. The run continues while a summary is written, and sends its
 *    previous view with the new messages. It waits for the summary from a tenth over the trigger or 95 % of the window
 *    on, and before the first request of a run.
 * 3. If a summary fails, or is longer than its source, a `Warning` (`summarization-failed`) reports it and the results
 *    are cleared instead. Only a request over 95 % of the window drops old messages without a summary
 *    (`summarization-dropped`).
 *
 * After a provider's `ContextOverflow`, more is folded, the newest results are cut if necessary, and the request is
 * repeated once, with `TurnRestarted` if parts were emitted. A second overflow fails the call.
 *
 * Tokens are counted by `counter`, corrected by the provider's usage of the last turn. Each compaction emits
 * `Compacted` with the request's tokens before and after. Only turns are compacted. One value may serve many agents.
 * Put it once into an agent's stack: after `ModelFallback`, so that an overflow is compacted before another model is
 * asked, and before middleware that sets cache marks.
 */
export const make = <const O extends Options = {}>(
  options?: O & Options & { readonly [Key in Exclude<keyof O, keyof Options>]: never }
): Middleware.Middleware<Error<O>, Services<O>> => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  type Needs = Services<O>
  return build<Error<O>, Needs>(options ?? {}, {
    // The types above derive the failures and requirements from the options.
    keep: options?.keep as Outside<Error<O>, Needs>["keep"],
    backend: (options?.offload === true ? Backend : Effect.succeed(undefined)) as Outside<Error<O>, Needs>["backend"]
  })
}
