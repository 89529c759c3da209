/** Slash commands about files, by the backend of the agent. */
import * as Effect from "effect/Effect"
import * as TextDiff from "effect/TextDiff"
import type * as Backend from "../../../core/Backend.ts"
import { clean, cleanLine } from "../../../support/text/clean.ts"
import { problem, type Room, toProblem } from "../chat/room.ts"

const text = (bytes: Uint8Array | undefined): string => (bytes === undefined ? "" : new TextDecoder().decode(bytes))

/** The longest text that is compared, in characters. */
const comparable = 1_000_000

/** Compares a file with its state before a turn, in the direction of the change or of its undo. */
export const fileDiff = (
  backend: Backend.Service,
  path: string,
  was: Uint8Array | undefined,
  isKnown: boolean,
  direction: "forth" | "back"
): Effect.Effect<{ readonly path: string; readonly diff: string }> =>
  Effect.map(backend.download([path]), ([found]) => {
    const is = text(found?.ok === true ? found.value : undefined)
    const before = text(was)
    if (!isKnown || is.length + before.length > comparable) return { path, diff: "(too large to compare)" }
    const [from, to] = direction === "forth" ? [before, is] : [is, before]
    return {
      path,
      diff: from === to ? "(as it was)" : clean(TextDiff.unified(TextDiff.lines(from, to, { maxEdits: 400 })))
    }
  })

/** A path as a person writes it: from the working folder, if it is in there. */
const shortPath = ({ paths }: Backend.Service, path: string): string =>
  paths !== undefined && path.startsWith(`${paths.cwd}/`) ? path.slice(paths.cwd.length + 1) : path

/** Shows a diff under the name of its command. */
export const showDiff = <E, R>(
  { backend, ui }: Room<E, R>,
  name: "diff" | "undo",
  { diff, path }: { readonly path: string; readonly diff: string }
): void =>
  ui.parts([
    { kind: "tool", name, gist: shortPath(backend, path), isError: false, summary: "", diff, output: "", millis: 0 }
  ])

export const diff = Effect.fnUntraced(function* <E, R>(room: Room<E, R>) {
  const files = new Map(
    room.recorder
      .turns()
      .toReversed()
      .flatMap(({ files: changed }) => [...changed])
  )
  if (files.size === 0) return yield* Effect.fail(problem("No file was changed by a tool in this chat."))
  for (const file of files.values()) {
    showDiff(room, "diff", yield* fileDiff(room.backend, file.path, file.was, file.isKnown, "forth"))
  }
})

export const files = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, argument: string) {
  const pattern = argument.trim()
  const listing = pattern.includes("*")
    ? yield* toProblem(room.backend.glob({ pattern, limit: 200 }))
    : yield* toProblem(room.backend.ls(pattern === "" ? "." : pattern))
  const lines = listing.entries.map(
    ({ kind, path }) => `${cleanLine(shortPath(room.backend, path))}${kind === "directory" ? "/" : ""}`
  )
  room.ui.show(`\`\`\`\n${lines.length === 0 ? "(nothing)" : lines.join("\n")}\n\`\`\``)
})

export const showFile = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, argument: string) {
  const path = argument.trim()
  if (path === "") return yield* Effect.fail(problem("Say which file: /read src/index.ts"))
  const file = yield* toProblem(room.backend.read(path))
  if (file.kind === "binary") return yield* Effect.fail(problem(`${path} is no text (${file.mimeType})`))
  room.ui.parts([
    { kind: "code", language: path.split(".").at(-1) ?? "", text: clean(file.text), isFirst: true, more: false }
  ])
})
