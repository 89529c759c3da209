/** The output of a command: its beginning and its end for the model, and all of it, up to a size, for a file. */
import * as Effect from "effect/Effect"
import type * as Sandbox from "../../../core/Sandbox.ts"
import { sha256 } from "../../../support/store/hash.ts"
import { headOf } from "../../../support/text/text.ts"

/** The most characters of the output for the model: its beginning, and more of its end. */
export const headLength = 10_000
export const tailLength = 20_000

/** The most of an output that is kept in a file, in bytes: its beginning. Every backend takes a file of this size. */
const wholeSize = 8 * 1024 * 1024

/** The folder of outputs that are too long to show, in the one for such files. */
const folder = "large_results"

/** The most files in that folder. The oldest are deleted first. */
const keptFiles = 200

/** A unit of text has at most three bytes. */
const bytesOfUnit = 3

const encoder = new TextEncoder()

/** The beginning of a text: at most `size` bytes in UTF-8. */
const beginningOf = (text: string, size: number): string => {
  if (text.length * bytesOfUnit <= size) return text
  const room = new Uint8Array(size)
  return headOf(text, encoder.encodeInto(text, room).read)
}

/** Keeps the beginning and the end of an output, and the text for a file. */
export interface Transcript {
  readonly push: (text: string) => void
  /** The last characters. */
  readonly tail: (length: number) => string
  readonly shown: () => { readonly text: string; readonly left: number }
  /** The beginning of the output for a file. */
  readonly whole: () => string
  readonly length: () => number
}

export const makeTranscript = (): Transcript => {
  let head = ""
  let tail = ""
  let length = 0
  let pieces: Array<string> = []
  let room = wholeSize
  return {
    push: (text) => {
      length += text.length
      if (room > 0) {
        const part = beginningOf(text, room)
        pieces.push(part)
        // A character that is cut is the end of the file.
        room = part.length < text.length ? 0 : room - encoder.encode(part).length
        // Many small pieces weigh more than their text.
        if (pieces.length > 1_000) pieces = [pieces.join("")]
      }
      const free = headLength - head.length
      if (free > 0) head += text.slice(0, free)
      if (text.length > free) tail += text.slice(Math.max(0, free))
      // Cut now and then, not for each piece.
      if (tail.length > 2 * tailLength) tail = tail.slice(-tailLength)
    },
    tail: (count) => (head + tail).slice(-count),
    whole: () => pieces.join("").toWellFormed(),
    length: () => length,
    shown: () => {
      const end = tail.slice(-tailLength)
      return { text: head + end, left: length - head.length - end.length }
    }
  }
}

/** A file with an output. `isWhole`: all of the output is in it. */
export interface OutputFile {
  readonly path: string
  readonly isWhole: boolean
}

const nameOf = (text: string): Effect.Effect<string> =>
  Effect.map(sha256(encoder.encode(text)), (hash) => `${hash.slice(0, 32)}.txt`)

/** Deletes a file if its content still matches its name. Files that somebody made or changed stay. */
const drop = Effect.fnUntraced(function* (sandbox: Sandbox.Service, path: string) {
  const [file] = yield* sandbox.download([path])
  if (file?.ok !== true) return
  const hash = yield* sha256(Uint8Array.from(file.value))
  if (path.endsWith(`/${hash.slice(0, 32)}.txt`)) yield* sandbox.delete(path)
})

/** Deletes the oldest files over the limit. Where the times of files are unknown, they stay: a sandbox ends with them. */
const prune = Effect.fnUntraced(function* (sandbox: Sandbox.Service, place: string, current: string) {
  const { entries } = yield* sandbox.ls(place)
  const own = entries.flatMap(({ kind, modifiedAt, path }) =>
    kind === "file" && modifiedAt !== undefined && /\/[0-9a-f]{32}\.txt$/.test(path) ? [{ path, modifiedAt }] : []
  )
  const old = own
    .filter(({ path }) => path !== current)
    .toSorted((left, right) => left.modifiedAt - right.modifiedAt)
    .slice(0, Math.max(0, own.length - keptFiles))
  yield* Effect.forEach(old, ({ path }) => Effect.ignore(drop(sandbox, path)), { discard: true })
})

/** Saves an output to a file; `undefined` for an output that is shown completely, and where no file can be written. */
export const keep = Effect.fnUntraced(function* (sandbox: Sandbox.Service, transcript: Transcript) {
  if (transcript.shown().left === 0) return undefined
  const place = `${sandbox.paths?.scratch ?? ""}/${folder}`
  const write = Effect.fnUntraced(function* (text: string) {
    const path = `${place}/${yield* nameOf(text)}`
    yield* sandbox.write(path, text)
    return { path, isWhole: text.length === transcript.length() } satisfies OutputFile
  })
  const text = transcript.whole()
  return yield* write(text).pipe(
    // A backend may have a lower limit.
    Effect.catchReason("BackendError", "TooLarge", ({ limit }) => write(beginningOf(text, limit))),
    Effect.tap(({ path }) => Effect.ignore(prune(sandbox, place, path))),
    Effect.orElseSucceed(() => undefined)
  )
})
