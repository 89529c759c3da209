/** Shows the changes of a restore: a diff of a text, a few words about anything else. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as TextDiff from "effect/TextDiff"
import type * as FileCheckpoints from "../../../sessions/FileCheckpoints.ts"
import { clean, cleanLine } from "../../../support/text/clean.ts"
import { type Room, toProblem } from "../chat/room.ts"

type Step = FileCheckpoints.Step
type State = Step["now"]

/** The largest file that is compared, in bytes, and the most paths whose diffs are shown. */
const most = { bytes: 1_000_000, paths: 20 } as const

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** Decodes a text. `undefined` for binary content. */
const textOf = (data: Uint8Array): Effect.Effect<string | undefined> =>
  data.subarray(0, 8_000).includes(0)
    ? Effect.undefined
    : Effect.orElseSucceed(
        Effect.try(() => decoder.decode(data)),
        () => undefined
      )

/** A path as the person knows it: from the folder on. */
export const nameOf = (folder: string | undefined, path: string): string =>
  cleanLine(folder !== undefined && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path)

const units = ["bytes", "kB", "MB", "GB"] as const

const sizeText = (bytes: number): string => {
  const power = Math.min(3, Math.floor(Math.log10(Math.max(1, bytes)) / 3))
  return `${Number((bytes / 1000 ** power).toPrecision(3))} ${units[power]}`
}

const modeText = (mode: number): string => mode.toString(8)

const describeState = (state: State): string => {
  if (state === undefined) return "nothing"
  if (state._tag === "Link") return `a link to ${cleanLine(state.to)}`
  return state._tag === "Folder" ? "a folder" : `a file of ${sizeText(state.size)}`
}

/** Describes the change of a path. */
const describeChange = (from: State, to: State): string => {
  if (from === undefined) return to?._tag === "File" ? "made" : `made: ${describeState(to)}`
  if (to === undefined) return from._tag === "File" ? "removed" : `removed: ${describeState(from)}`
  if (from._tag !== to._tag || from._tag === "Link") return `${describeState(from)} → ${describeState(to)}`
  return to._tag !== "Link" && from.mode !== to.mode ? `mode ${modeText(from.mode)} → ${modeText(to.mode)}` : ""
}

type Side = { readonly _tag: "Text"; readonly text: string } | { readonly _tag: "Other" | "Gone" }

/** Compares two states of a path. `read` gives the content of each. */
const compare = Effect.fnUntraced(function* <E, R>(
  from: State,
  to: State,
  read: (state: State) => Effect.Effect<Uint8Array | undefined, E, R>
) {
  const side = Effect.fnUntraced(function* (state: State) {
    if (state?._tag !== "File") return { _tag: "Text", text: "" } satisfies Side
    if (state.size > most.bytes) return { _tag: "Other" } satisfies Side
    const data = yield* read(state)
    const text = data === undefined ? undefined : yield* textOf(data)
    if (text !== undefined) return { _tag: "Text", text } satisfies Side
    return { _tag: data === undefined ? "Gone" : "Other" } satisfies Side
  })
  const words = describeChange(from, to)
  if (from?._tag !== "File" && to?._tag !== "File") return { words, diff: undefined }
  const sides: ReadonlyArray<Side> = [yield* side(from), yield* side(to)]
  const [before, after] = sides
  if (before?._tag === "Text" && after?._tag === "Text") {
    const diff =
      before.text === after.text
        ? undefined
        : clean(TextDiff.unified(TextDiff.lines(before.text, after.text, { maxEdits: 400 })))
    return { words, diff }
  }
  const sizes = [from, to].map((state) => (state?._tag === "File" ? sizeText(state.size) : "nothing")).join(" → ")
  const why = sides.some(({ _tag }) => _tag === "Gone")
    ? "its content was not kept"
    : [from, to].some((state) => state?._tag === "File" && state.size > most.bytes)
      ? "too large to compare"
      : "binary"
  return { words: [words, `${why}, ${sizes}`].filter((part) => part !== "").join("; "), diff: undefined }
})

/** Shows the changes of paths: from now to the aim for a restore, from the aim to now for a diff. */
export const showSteps = Effect.fnUntraced(function* <E, R>(
  room: Room<E, R>,
  checkpoints: FileCheckpoints.Service,
  name: "diff" | "redo" | "undo",
  steps: ReadonlyArray<Step>
) {
  const fs = yield* FileSystem.FileSystem
  const { folder } = room.options
  const readNow = (path: string) => Effect.orElseSucceed(fs.readFile(path), () => undefined)
  const contentAt =
    ({ now, path }: Step) =>
    (state: State) =>
      state === now
        ? readNow(path)
        : state?._tag === "File" && state.hash !== undefined
          ? toProblem(checkpoints.content(state.hash))
          : Effect.undefined
  const show = (path: string, words: string, diff: string | undefined, isError = false): void =>
    room.ui.parts([
      {
        kind: "tool",
        name,
        gist: nameOf(folder, path),
        isError,
        summary: words,
        diff,
        output: "",
        millis: 0
      }
    ])
  for (const step of steps.slice(0, most.paths)) {
    const { aim, left, now, path, status } = step
    if (status === "lost") {
      show(path, `can't be restored: its content was not kept (${describeState(aim)})`, undefined, true)
      continue
    }
    if (status === "conflict" && name !== "diff") {
      const since = yield* compare(left, now, contentAt(step))
      const isFound = since.words === "" && since.diff === undefined
      const words = isFound ? "found after a crash: it may be your own" : `changed by somebody since ${since.words}`
      show(path, words.trimEnd(), since.diff, true)
    }
    const [from, to] = name === "diff" ? [aim, now] : [now, aim]
    const { diff, words } = yield* compare(from, to, contentAt(step))
    show(path, words, diff)
  }
  const more = steps.slice(most.paths)
  if (more.length === 0) return
  const names = more.slice(0, 100).map(({ path }) => nameOf(folder, path))
  room.ui.note("info", `and ${more.length} more: ${names.join(", ")}${more.length > names.length ? " …" : ""}`)
})
