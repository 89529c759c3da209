/**
 * Replaces literal texts in order. If one is missing, it changes nothing and gives a diagnosis.
 *
 * A text that is not there, but for quotes, dashes, special spaces, composed characters or spaces at the ends of lines, is
 * replaced if one place fits.
 *
 * In a file whose lines all end with `\r\n`, replacements with `\n` are converted. Other files need an exact match. `$&` and the like are plain text.
 */
import * as Result from "effect/Result"
import type { Replacement } from "../../../core/Backend.ts"
import type * as BackendError from "../../../core/BackendError.ts"
import { forEachOccurrence } from "../search/find.ts"
import { diagnose } from "./diagnosis.ts"
import { lineAt, usesCrlf } from "./endings.ts"
import { findTolerantly } from "./tolerant.ts"

/**
 * The result of edits: the new text, how many places were replaced, and the lines of the new text at which those begin.
 */
export interface EditedText {
  readonly text: string
  readonly replaced: number
  readonly lines: ReadonlyArray<number>
  /** A text was found but for quotes, dashes, special spaces, composed characters or spaces at the ends of lines. */
  readonly isInexact?: true
}

/** The number of lines that are named for an ambiguous text. */
const maxLinesNamed = 100

/** The lines of ascending indexes of a text, each line once. */
const linesOf = (text: string, indexes: ReadonlyArray<number>): ReadonlyArray<number> => {
  const lines: Array<number> = []
  let position = { index: 0, line: 1 }
  for (const index of indexes) {
    position = { index, line: lineAt(text, index, position) }
    if (position.line !== lines.at(-1)) lines.push(position.line)
  }
  return lines
}

/** The places where edits began so far, as ascending indexes of the text, brought along by the edits that follow. */
type Places = ReadonlyArray<number>

interface Step {
  readonly text: string
  readonly places: Places
  readonly replaced: number
  readonly isInexact: boolean
}

/** Merges the places of earlier edits with the places of an edit, in order, as indexes of the new text. */
const mergePlaces = (places: Places, newPlaces: Places, oldLength: number, newLength: number): Places => {
  const growth = newLength - oldLength
  const merged: Array<number> = []
  const add = (index: number) => {
    if (index !== merged.at(-1)) merged.push(index)
  }
  let next = 0
  newPlaces.forEach((at, n) => {
    for (; next < places.length && (places[next] ?? 0) < at; next++) add((places[next] ?? 0) + n * growth)
    // Places inside of a replaced text begin with it.
    while (next < places.length && (places[next] ?? 0) < at + oldLength) next++
    add(at + n * growth)
  })
  for (; next < places.length; next++) add((places[next] ?? 0) + newPlaces.length * growth)
  return merged
}

const replaceAt = (text: string, places: Places, oldLength: number, replacement: string): string => {
  const parts: Array<string> = []
  let from = 0
  for (const at of places) {
    parts.push(text.slice(from, at), replacement)
    from = at + oldLength
  }
  parts.push(text.slice(from))
  return parts.join("")
}

const noMatch = (hint: string): Result.Result<never, BackendError.Reason> => Result.fail({ _tag: "NoMatch", hint })

const toCrlf = (text: string): string => text.replaceAll("\n", "\r\n")

const applyOne = (step: Step, replacement: Replacement, crlf: boolean): Result.Result<Step, BackendError.Reason> => {
  if (replacement.old === "") return noMatch("`old` must not be empty; to give a file a whole new text, write it")
  if (replacement.old === replacement.new) return noMatch("`old` and `new` are the same, so there is nothing to change")
  const convert = crlf && !replacement.old.includes("\r") && !replacement.new.includes("\r")
  const from = convert ? toCrlf(replacement.old) : replacement.old
  const to = convert ? toCrlf(replacement.new) : replacement.new
  const all = replacement.replaceAll === true
  const indexes: Array<number> = []
  let count = 0
  // Overlapping places are not the same place: without `replaceAll` they are as ambiguous as others.
  forEachOccurrence(step.text, from, { overlapping: !all }, (at) => {
    count++
    if (all || count <= maxLinesNamed) indexes.push(at)
    return true
  })
  if (count === 0) {
    const change = all ? undefined : findTolerantly(step.text, from, to)
    return change === undefined
      ? noMatch(diagnose(step.text, replacement.old))
      : Result.succeed({
          text: `${step.text.slice(0, change.from)}${change.text}${step.text.slice(change.to)}`,
          places: mergePlaces(step.places, [change.from], change.to - change.from, change.text.length),
          replaced: step.replaced + 1,
          isInexact: true
        })
  }
  if (count > 1 && !all) return Result.fail({ _tag: "NotUnique", count, lines: linesOf(step.text, indexes) })
  return Result.succeed({
    text: replaceAt(step.text, indexes, from.length, to),
    places: mergePlaces(step.places, indexes, from.length, to.length),
    replaced: step.replaced + count,
    isInexact: step.isInexact
  })
}

/**
 * Applies replacements in order. Fails with `NoMatch` (with a hint) or `NotUnique`. `text` is the whole file as
 * {@link decodeText} gives it.
 */
export const applyEdits = (
  text: string,
  replacements: ReadonlyArray<Replacement>
): Result.Result<EditedText, BackendError.Reason> => {
  const crlf = usesCrlf(text)
  let step: Step = { text, places: [], replaced: 0, isInexact: false }
  for (const replacement of replacements) {
    const next = applyOne(step, replacement, crlf)
    if (Result.isFailure(next)) return Result.fail(next.failure)
    step = next.success
  }
  const { isInexact, places, replaced } = step
  return Result.succeed({
    text: step.text,
    replaced,
    lines: linesOf(step.text, places),
    ...(isInexact ? { isInexact } : {})
  })
}
