/** The input history and the draft, which outlive the process. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Options } from "./options.ts"
import type { Ui } from "./ui.ts"

/** The most lines of the history that are read, and the longest line in characters. */
const most = { lines: 1_000, length: 10_000 } as const

const readText = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.String))

export interface SessionHistory {
  readonly said: (text: string) => void
}

/** Restores the history and the draft, and stores both. The draft is written after a short pause. */
export const keep = Effect.fnUntraced(function* (
  options: Pick<Options<unknown, unknown>, "draft" | "history">,
  ui: Ui
) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { draft, history } = options
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  const readFile = (file: string) => Effect.orElseSucceed(fs.readFileString(file), () => "")
  const folder = (file: string) => Effect.ignore(fs.makeDirectory(path.dirname(file), { recursive: true }))
  if (history !== undefined) {
    yield* folder(history)
    const all = (yield* readFile(history)).split("\n")
    const lines = all.slice(-most.lines)
    if (all.length > 2 * most.lines) {
      const shorter = `${history}.${process.pid}`
      const write = fs.writeFileString(shorter, lines.join("\n"), { mode: 0o600 })
      yield* Effect.ignore(Effect.andThen(write, fs.rename(shorter, history)))
    }
    ui.remember(
      lines.flatMap((line) => Result.match(readText(line), { onFailure: () => [], onSuccess: (text) => [text] }))
    )
  }
  if (draft !== undefined) {
    yield* folder(draft)
    const storedDraft = (yield* readFile(draft)).trimEnd()
    if (storedDraft !== "") ui.input.set(storedDraft)
    let savedText = storedDraft
    const write = Effect.suspend(() => {
      const text = ui.draft()
      if (text === savedText) return Effect.void
      savedText = text
      return Effect.ignore(fs.writeFileString(draft, text, { mode: 0o600 }))
    })
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("500 millis"), write)))
    yield* Effect.addFinalizer(() => write)
  }
  return {
    said: (text) => {
      if (history === undefined || text.length > most.length) return
      fork(Effect.ignore(fs.writeFileString(history, `${JSON.stringify(text)}\n`, { flag: "a", mode: 0o600 })))
    }
  } satisfies SessionHistory
})
