/** Diffs of changed files, for people. */
import * as TextDiff from "effect/TextDiff"

/** A change as people are shown it: a unified diff, cut if it is long. */
export interface Diff {
  readonly diff: string
  readonly added: number
  readonly removed: number
  readonly truncated: boolean
}

/** Bounds of the texts, in characters, and of the changes that are looked for, so that a diff takes next to no time. */
const maxText = 1_000_000
const maxEdits = 400

/** The length of the longest diff, in characters. */
export const maxDiff = 20_000

const countOf = (edits: ReadonlyArray<TextDiff.Edit<string>>, tag: "Insert" | "Delete"): number =>
  edits.reduce((sum, edit) => (edit._tag === tag ? sum + edit.items.length : sum), 0)

const cutDiff = (diff: string): string => diff.slice(0, Math.max(diff.lastIndexOf("\n", maxDiff) + 1, 0))

/** The difference of two texts; `undefined` if they are too long for it. */
export const diffOf = (before: string, after: string): Diff | undefined => {
  if (before.length + after.length > maxText) return undefined
  const edits = TextDiff.lines(before, after, { maxEdits })
  const diff = TextDiff.unified(edits)
  const truncated = diff.length > maxDiff
  return {
    diff: truncated ? cutDiff(diff) : diff,
    added: countOf(edits, "Insert"),
    removed: countOf(edits, "Delete"),
    truncated
  }
}

/**
 * Moves the line numbers of a diff: it is of a part of a file, after `before` lines of the old and `after` of the new.
 */
export const shift = (diff: string, before: number, after: number): string =>
  diff
    .split("\n")
    .map((line) =>
      line.replace(
        /^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@$/,
        (_, oldLine: string, oldCount = "", newLine: string, newCount = "") =>
          `@@ -${Number(oldLine) + before}${oldCount} +${Number(newLine) + after}${newCount} @@`
      )
    )
    .join("\n")
