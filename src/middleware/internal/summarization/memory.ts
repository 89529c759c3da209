/** Memory of a running run: counts, the view, and the accuracy of the counts. */
import type * as Fiber from "effect/Fiber"
import type * as Result from "effect/Result"
import type { ModelRequest } from "../../../core/ChatModel.ts"
import type { ModelError } from "../../../core/ModelError.ts"
import type { Run } from "../../../core/Run.ts"
import * as Attached from "../../../support/effect/attached.ts"
import { type Amount, type Limits, limitsOf } from "./limits.ts"
import type { Fold, Record, Ref } from "./record.ts"
import type { Situation } from "./situation.ts"
import type { Author } from "./summarise.ts"
import { type Counter, type Frame, makeMeter, type Meter, noFrame, nothingCounted } from "./tokens.ts"
import { makeViewer, type View } from "./view.ts"

/** A background summary: of everything up to `through` that `fold` does not cover. */
export interface PendingFold {
  readonly through: Ref
  readonly fold: Fold | undefined
  readonly fiber: Fiber.Fiber<Result.Result<string, unknown>>
}

/** The limits for a window in tokens. */
interface WindowLimits {
  readonly tokens: number | undefined
  readonly limits: Limits
}

/** Memory of one run, beside its state. */
export interface Memory {
  readonly meter: Meter
  readonly frame: Frame
  readonly viewOf: (history: Situation["history"], record: Record) => View
  /** The ratio of the provider's tokens to the meter's, from the last usage. */
  ratio: number | undefined
  /** The window implied by an overflow without a limit, in tokens. */
  window: number | undefined
  /** The limits for the last known window. */
  limits: WindowLimits | undefined
  /** The last request's share of the trigger, and the share from which another attempt is worthwhile. */
  progress: number
  retryAt: number
  isWindowTold: boolean
  author: Author | undefined
  /** The last request of this run. */
  lastRequest: ModelRequest | undefined
  pending: PendingFold | undefined
}

/** Measures of conversations. */
export interface Measure {
  readonly clauses: ReadonlyArray<Amount>
  readonly tail: Amount
  readonly counter: Counter
  readonly contextWindowTokens: number | undefined
}

/** A smaller request says nothing about the counter: the overhead outweighs the messages. */
const leastCounted = 500

const largestRatio = 4

/** Bounds a ratio: a counter is wrong by a limited factor, and a provider may report nonsense. */
const sound = (ratio: number): number => (Number.isFinite(ratio) ? Math.min(largestRatio, Math.max(0.5, ratio)) : 1)

/** Reports whether a provider's limit is plausible: not far below an accepted request. */
const isLimit = (tokens: number | undefined, sentTokens: number): tokens is number =>
  tokens !== undefined && Number.isFinite(tokens) && tokens > sentTokens / 20

/** Learns the ratio of the provider's tokens to the meter's from one request. */
export const learn = (memory: Memory, counted: number, actual: number): void => {
  if (actual > 0 && counted >= leastCounted) memory.ratio = sound(actual / counted)
}

/** The smallest named window in tokens; `undefined` without any. */
const smallest = (...windows: ReadonlyArray<number | undefined>): number | undefined =>
  windows.reduce(
    (least, one) => (least === undefined || one === undefined ? (least ?? one) : Math.min(least, one)),
    undefined
  )

/** The window of a run's model by its layer, the options or its provider. */
const namedWindow = ({ contextWindowTokens }: Measure, run: Run, { window }: Record): number | undefined =>
  smallest(
    contextWindowTokens ?? run.model?.contextWindowTokens,
    window !== undefined && window.model === run.model?.modelId ? window.tokens : undefined
  )

/** Makes the memories of a middleware's runs. Each ends with its run. */
export const makeMemories = (measure: Measure) => {
  const memories = Attached.make<Run, Memory>()
  const counted = nothingCounted()
  const meters = {
    seeing: makeMeter(measure.counter, true, counted),
    blind: makeMeter(measure.counter, false, counted)
  }
  // Most runs have the same window as the last one.
  let last: WindowLimits | undefined

  const of = (run: Run): Memory => {
    const existing = memories.get(run)
    if (existing !== undefined) return existing
    const meter = run.model?.supportsVision === true ? meters.seeing : meters.blind
    const memory: Memory = {
      meter,
      frame: noFrame(),
      viewOf: makeViewer(meter),
      ratio: undefined,
      window: undefined,
      limits: undefined,
      progress: 0,
      retryAt: 1,
      isWindowTold: false,
      author: undefined,
      lastRequest: undefined,
      pending: undefined
    }
    memories.set(run, memory)
    return memory
  }

  /** The known window of a run's model. */
  const windowOf = (run: Run, record: Record): number | undefined =>
    smallest(namedWindow(measure, run, record), of(run).window)

  const limitsIn = (memory: Memory, tokens: number | undefined): Limits => {
    if (memory.limits !== undefined && memory.limits.tokens === tokens) return memory.limits.limits
    if (last === undefined || last.tokens !== tokens)
      last = { tokens, limits: limitsOf(measure.clauses, measure.tail, tokens) }
    memory.limits = last
    return last.limits
  }

  /** The situation of a run before a request. */
  const situate = (run: Run, request: ModelRequest, record: Record): Situation => {
    const memory = of(run)
    return {
      run,
      history: request.messages,
      record,
      view: memory.viewOf(request.messages, record),
      meter: memory.meter,
      frame: memory.meter.frame(request, memory.frame),
      ratio: memory.ratio ?? sound(record.ratio),
      limits: limitsIn(memory, windowOf(run, record))
    }
  }

  /**
   * Learns from an overflow about the window and the counts. Returns the record with the limit that the provider named.
   */
  const corrected = (at: Situation, error: ModelError): Record => {
    const { record, run } = at
    const memory = of(run)
    const { limit, used } = error.reason._tag === "ContextOverflow" ? error.reason : {}
    const counted = Math.max(1, at.frame + at.view.tokens)
    const sentTokens = used !== undefined && used > 0 ? used : counted * at.ratio
    const named = isLimit(limit, sentTokens) ? limit : undefined
    const window = smallest(named, windowOf(run, record))
    // The request was larger than the window. If that is implausible, the window is smaller than reported.
    const needed = ((window ?? 0) * 1.05) / counted
    memory.ratio = sound(Math.max(at.ratio, sentTokens / counted, needed <= largestRatio ? needed : 0))
    if (window === undefined || needed > largestRatio) memory.window = Math.floor(counted * memory.ratio * 0.9)
    return named === undefined || named !== window
      ? record
      : { ...record, window: { model: run.model?.modelId ?? "", tokens: Math.floor(named) } }
  }

  return { of, situate, windowOf, corrected }
}
