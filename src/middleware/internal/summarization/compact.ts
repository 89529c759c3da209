/** Shortens the model's view of a conversation: cheap steps first, then a summary, then harder ones. */
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import { defined } from "../../../support/json/defined.ts"
import { dropped, pinsOf, summarised, summaryBody } from "./fold.ts"
import { lastGroupOf, tailOf } from "./limits.ts"
import type { Record } from "./record.ts"
import {
  firstOf,
  offloaded,
  refAt,
  type Outside,
  type Situation,
  sizeOf,
  stretchOf,
  tailSize,
  withRecord
} from "./situation.ts"
import { locate, type View, viewOf } from "./view.ts"

/** The reason for a compaction: the trigger, a request for one, or the provider's overflow. */
export type Reason = "due" | "asked" | "overflow"

/** Share of the trigger that the cheap steps must reach: else the next compaction follows in a few rounds. */
const relief = 0.7

/** A request this near to the window must be shortened. */
const brim = 0.95

/** From this multiple of the trigger on, requests wait for a running summary. */
const hard = 1.1

/** Share of the window for a request after an overflow. */
const afterOverflow = 0.7

/** Limits of texts when nothing else helps, in characters: first of tools' texts, then of all. */
const clips = [
  { limit: 8_000, all: false },
  { limit: 2_000, all: false },
  { limit: 8_000, all: true },
  { limit: 500, all: false },
  { limit: 2_000, all: true },
  { limit: 500, all: true }
]

/** Cuts old arguments up to an index, and clears results. Earlier cuts stay. */
const trimTo = (
  { history, record }: Situation,
  index: number,
  results: boolean,
  folder: string | undefined
): Record => ({
  ...record,
  trim: defined({
    through: refAt(history, Math.max(index, locate(history, record.trim?.through))),
    results: results || record.trim?.results === true,
    folder
  })
})

/** Cheap steps in order: only arguments, or results too. */
const steps = [false, true]

/** Applies the first cheap step that shortens a request to `isEnough`, without a model call. */
const trim = Effect.fnUntraced(function* <E, R>(
  outside: Outside<E, R>,
  at: Situation,
  end: number,
  which: ReadonlyArray<boolean>,
  isEnough: (view: View) => boolean
) {
  for (const results of which) {
    const candidate = trimTo(at, end - 1, results, undefined)
    const view = viewOf(at.history, candidate, at.meter)
    if (view.tokens >= at.view.tokens || !isEnough(view)) continue
    if (candidate.trim?.results !== true) return candidate
    const offload = yield* offloaded(outside, at, candidate.trim.through.index + 1)
    return offload === undefined ? candidate : { ...trimTo(at, end - 1, true, offload.folder), offload }
  }
  return undefined
})

const isWithin = (at: Situation, tokens: number): boolean => sizeOf(at, at.view).tokens <= tokens

/** Shortens even the tail: clears all results but the last, then cuts texts. */
const squeezed = Effect.fnUntraced(function* <E, R>(outside: Outside<E, R>, at: Situation, target: number) {
  const end = lastGroupOf(stretchOf(at))
  const cleared = end === 0 ? undefined : yield* trim(outside, at, end, [true], () => true)
  let best = withRecord(at, cleared ?? at.record)
  for (const clip of clips) {
    if (isWithin(best, target)) break
    const through = refAt(at.history, at.history.length - 1)
    const candidate = withRecord(at, { ...best.record, clip: { through, ...clip } })
    if (candidate.view.tokens < best.view.tokens) best = candidate
  }
  return best.record
})

/** A summary of everything before `end`, or the reason for its absence. */
export interface Draft {
  readonly end: number
  readonly body: Result.Result<string, unknown>
}

/** Finds the end of the messages to summarise; `undefined` if the summary would hide no message. */
export const foldableTo = (at: Situation, reason: Reason): number | undefined => {
  const first = firstOf(at)
  const end = tailOf(stretchOf(at), tailSize(at, reason === "overflow" ? 0.5 : 1))
  const pins = pinsOf(at, end - 1).filter((pin) => pin.index >= first)
  return end - first > pins.length ? end : undefined
}

/** Reports whether a request can still be sent unchanged, though it is due. */
export const canWait = (at: Situation): boolean =>
  at.limits.progress(sizeOf(at, at.view)) < hard && isWithin(at, brim * at.limits.window)

/** Reports whether a request is short enough after an overflow. */
export const isRelieved = (at: Situation): boolean => isWithin(at, afterOverflow * at.limits.window)

/** The record with enough cheap steps; `undefined` if they are not enough. */
export const relieved = <E, R>(outside: Outside<E, R>, at: Situation) => {
  const end = tailOf(stretchOf(at), tailSize(at, 1))
  const isEnough = (view: View) => at.limits.progress(sizeOf(at, view)) <= relief
  return end > firstOf(at) ? trim(outside, at, end, steps, isEnough) : Effect.undefined
}

/**
 * Shortens a request; returns the same record if that is impossible. A draft, written while the run continued, replaces
 * a new summary.
 */
export const compact = Effect.fnUntraced(function* <E, R>(
  outside: Outside<E, R>,
  start: Situation,
  reason: Reason,
  draft?: Draft
) {
  const { limits } = start
  if (reason === "due" && draft === undefined) {
    const cheap = yield* relieved(outside, start)
    if (cheap !== undefined) return cheap
  }
  let at = start
  const end = draft?.end ?? foldableTo(start, reason)
  if (end !== undefined) {
    const body = draft?.body ?? (yield* Effect.result(summaryBody(outside, start, end)))
    const folded = yield* summarised(outside, start, end, body)
    at = withRecord(start, folded ?? start.record)
    if (folded === undefined) {
      const cheap = reason === "due" ? yield* trim(outside, start, end, [true], () => true) : undefined
      at = withRecord(start, cheap ?? start.record)
      if (reason === "overflow" || !isWithin(at, brim * limits.window)) {
        at = withRecord(at, (yield* dropped(outside, at, end)) ?? at.record)
      }
    }
  }
  const target = reason === "overflow" ? afterOverflow * limits.window : limits.window
  return isWithin(at, target) ? at.record : yield* squeezed(outside, at, target)
})
