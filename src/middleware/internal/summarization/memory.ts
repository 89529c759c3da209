/** Memory of a run while it is under way: counts, the view, and how far the counts can be trusted. */
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

/** A summary that is written while the run works on: of everything up to `through` that `fold` does not tell of. */
export interface Pending {
  readonly through: Ref
  readonly fold: Fold | undefined
  readonly fiber: Fiber.Fiber<Result.Result<string, unknown>>
}

/** The limits for a window of so many tokens. */
interface Known {
  readonly known: number | undefined
  readonly limits: Limits
}

/** Memory of one run, beside its state. */
export interface Memory {
  readonly meter: Meter
  readonly frame: Frame
  readonly viewOf: (history: Situation["history"], record: Record) => View
  /** Real tokens for one that the meter counts, as the provider's last usage says. */
  ratio: number | undefined
  /** The window that an overflow must have had which named no limit, in tokens. */
  window: number | undefined
  /** The limits for the window that was known last. */
  limits: Known | undefined
  /**
   * Share of the way to the trigger that the last request had gone, and the one from which trying again is worth it.
   */
  progress: number
  retryAt: number
  isWindowTold: boolean
  author: Author | undefined
  /** The last request of this run, as it came. */
  sent: ModelRequest | undefined
  pending: Pending | undefined
}

/** The measures of conversations. */
export interface Measure {
  readonly clauses: ReadonlyArray<Amount>
  readonly tail: Amount
  readonly counter: Counter
  readonly contextWindowTokens: number | undefined
}

/** Below this a request says nothing about how good the counter is: what surrounds messages outweighs them. */
const leastCounted = 500

const largestRatio = 4

/** A ratio that can be: a counter may be wrong by so much, and a provider's numbers may be nonsense. */
const sound = (ratio: number): number => (Number.isFinite(ratio) ? Math.min(largestRatio, Math.max(0.5, ratio)) : 1)

/** A limit that a provider names, if it can be one: not far below what it took before. */
const isLimit = (tokens: number | undefined, sent: number): tokens is number =>
  tokens !== undefined && Number.isFinite(tokens) && tokens > sent / 20

/** Learns from the tokens that a provider counted for a request what one that the meter counts is worth. */
export const learn = (memory: Memory, counted: number, read: number): void => {
  if (read > 0 && counted >= leastCounted) memory.ratio = sound(read / counted)
}

/** The smallest window that anybody spoke of, in tokens; `undefined` if nobody did. */
const smallest = (...windows: ReadonlyArray<number | undefined>): number | undefined =>
  windows.reduce(
    (least, one) => (least === undefined || one === undefined ? (least ?? one) : Math.min(least, one)),
    undefined
  )

/** The window of a run's model as its layer, the options or its provider say. */
const namedWindow = ({ contextWindowTokens }: Measure, run: Run, { window }: Record): number | undefined =>
  smallest(
    contextWindowTokens ?? run.model?.contextWindowTokens,
    window !== undefined && window.model === run.model?.modelId ? window.tokens : undefined
  )

/** Makes the memories of the runs that one middleware serves; each is gone with its run. */
export const makeMemories = (measure: Measure) => {
  const memories = Attached.make<Run, Memory>()
  const counted = nothingCounted()
  const meters = {
    seeing: makeMeter(measure.counter, true, counted),
    blind: makeMeter(measure.counter, false, counted)
  }
  // Most runs have the window that the last one had.
  let last: Known | undefined

  const of = (run: Run): Memory => {
    const known = memories.get(run)
    if (known !== undefined) return known
    const meter = run.model?.supportsVision === true ? meters.seeing : meters.blind
    const made: Memory = {
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
      sent: undefined,
      pending: undefined
    }
    memories.set(run, made)
    return made
  }

  /** The window of a run's model as far as anybody knows. */
  const windowOf = (run: Run, record: Record): number | undefined =>
    smallest(namedWindow(measure, run, record), of(run).window)

  const limitsIn = (memory: Memory, known: number | undefined): Limits => {
    if (memory.limits !== undefined && memory.limits.known === known) return memory.limits.limits
    if (last === undefined || last.known !== known)
      last = { known, limits: limitsOf(measure.clauses, measure.tail, known) }
    memory.limits = last
    return last.limits
  }

  /** The situation of a run that is about to send a request. */
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

  /** Learns from an overflow, of the window and of our counts: the record with a limit that the provider named. */
  const corrected = (at: Situation, error: ModelError): Record => {
    const { record, run } = at
    const memory = of(run)
    const { limit, used } = error.reason._tag === "ContextOverflow" ? error.reason : {}
    const counted = Math.max(1, at.frame + at.view.tokens)
    const sent = used !== undefined && used > 0 ? used : counted * at.ratio
    const named = isLimit(limit, sent) ? limit : undefined
    const window = smallest(named, windowOf(run, record))
    // It did not fit, so it was more than the window; where that can't be, the window is less than anybody said.
    const needed = ((window ?? 0) * 1.05) / counted
    memory.ratio = sound(Math.max(at.ratio, sent / counted, needed <= largestRatio ? needed : 0))
    if (window === undefined || needed > largestRatio) memory.window = Math.floor(counted * memory.ratio * 0.9)
    return named === undefined || named !== window
      ? record
      : { ...record, window: { model: run.model?.modelId ?? "", tokens: Math.floor(named) } }
  }

  return { of, situate, windowOf, corrected }
}
