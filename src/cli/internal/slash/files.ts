/** Slash commands about files, by the backend of the agent. */
import * as Effect from "effect/Effect"
import type * as Backend from "../../../core/Backend.ts"
import { clean, cleanLine } from "../../../support/text/clean.ts"
import { problem, type Room, toProblem } from "../chat/room.ts"

/** A path as a person writes it: from the working folder, if it is in there. */
const shortPath = ({ paths }: Backend.Service, path: string): string =>
  paths !== undefined && path.startsWith(`${paths.cwd}/`) ? path.slice(paths.cwd.length + 1) : path

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
