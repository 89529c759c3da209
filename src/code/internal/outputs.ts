/** Keeps the printed lines and the result of a script. A text that is too long goes into a file. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Backend } from "../../core/Backend.ts"
import { type Json, stringify } from "../../core/Json.ts"
import { sha256Sync } from "../../support/store/sha256.ts"
import { cut, cutMiddle } from "../../support/text/text.ts"
import type { ScriptLine } from "../Scripts.ts"

/** The most characters that are kept of one script. Further lines are counted only. */
const maxKept = 8_000_000

/** The lines that a script has printed. */
export interface PrintedLines {
  readonly lines: Array<string>
  length: number
  dropped: number
}

/** The progress of a script, from its lines and phases: `message` is shown as it is. */
export const progressOf = ({ kind, text }: ScriptLine): Json => ({
  [kind === "phase" ? "phase" : "message"]: cut(text, 2_000)
})

export const makePrinted = (): PrintedLines => ({ lines: [], length: 0, dropped: 0 })

export const print = (printed: PrintedLines, line: string): void => {
  if (printed.length + line.length > maxKept) {
    printed.dropped++
    return
  }
  printed.lines.push(line)
  printed.length += line.length
}

/** The printed lines, and the value that the script returned. */
export const textOf = ({ dropped, lines }: PrintedLines, value: Json | undefined): string =>
  [
    ...lines,
    ...(dropped === 0 ? [] : [`[${dropped} lines were too long to keep]`]),
    ...(value === undefined || value === null ? [] : [typeof value === "string" ? value : stringify(value)])
  ].join("\n")

/**
 * Stores a text that is too long as a file, and gives its beginning and end. Without a backend the middle is lost. `key`
 * names the file: a digest of the text would block the program.
 */
export const shorten = Effect.fnUntraced(function* (text: string, limit: number, key: string) {
  if (text.length <= limit) return text
  const backend = Option.getOrUndefined(yield* Effect.serviceOption(Backend))
  if (backend === undefined) {
    return cutMiddle(text, limit, (left) => `\n[… ${left} of ${text.length} characters left out …]\n`)
  }
  const path = `${backend.paths?.scratch ?? ""}/script_results/${sha256Sync(key).slice(0, 32)}.txt`
  const isStored = yield* Effect.match(backend.write(path, text), { onSuccess: () => true, onFailure: () => false })
  const where = isStored ? `; all of it is in ${path}` : ""
  return cutMiddle(text, limit, (left) => `\n[… ${left} of ${text.length} characters left out${where} …]\n`)
})
