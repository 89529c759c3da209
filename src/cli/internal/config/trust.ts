/** Folders that the user trusts: only there a project's own agents, instructions, skills and settings are read. */
import { randomUUID } from "node:crypto"
import { dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { orFail } from "../failure.ts"
import { type Places, trustFile } from "./places.ts"
import { readRecord } from "./settings.ts"

/** Things of a project that an agent would follow. */
const brought = [
  ".deepagents",
  "AGENTS.md",
  ".claude/agents",
  ".mcp.json",
  ".vscode/mcp.json",
  ".cursor/mcp.json"
] as const

/** The real path of the folder: a link to it is no other folder. */
const real = Effect.fnUntraced(function* ({ project }: Places) {
  const fs = yield* FileSystem.FileSystem
  return yield* orFail("usage")(fs.realPath(project))
})

/** Files of the folder that count only once it is trusted. */
export const bringsOf = Effect.fnUntraced(function* ({ project }: Places) {
  const fs = yield* FileSystem.FileSystem
  return yield* Effect.filter(brought, (name) => Effect.orElseSucceed(fs.exists(join(project, name)), () => false))
})

export const isTrusted = Effect.fnUntraced(function* (places: Places) {
  const folders = yield* readRecord(trustFile(places))
  return folders[yield* real(places)] === true
})

export const trust = Effect.fnUntraced(function* (places: Places) {
  const file = trustFile(places)
  const folders = { ...(yield* readRecord(file)), [yield* real(places)]: true }
  yield* writePrivate(file, `${JSON.stringify(folders, null, 2)}\n`)
})

/** Puts a text into a file of its own, for its owner only, and has it brought to its place. */
const written = Effect.fnUntraced(function* <E extends { readonly message: string }, R>(
  file: string,
  text: string,
  place: (beside: string) => Effect.Effect<void, E, R>
) {
  const fs = yield* FileSystem.FileSystem
  const beside = `${file}.${randomUUID()}.tmp`
  yield* fs.makeDirectory(dirname(file), { recursive: true, mode: 0o700 })
  yield* fs
    .writeFileString(beside, text, { mode: 0o600 })
    .pipe(Effect.andThen(place(beside)), Effect.ensuring(Effect.ignore(fs.remove(beside, { force: true }))))
}, orFail("failed"))

/** Writes a file wholly or not at all, for its owner only. */
export const writePrivate = (file: string, text: string) =>
  written(file, text, (beside) => FileSystem.FileSystem.use((fs) => fs.rename(beside, file)))

/** Makes a file for its owner only, unless it is there: of several processes at once, the first one's stays. */
export const makePrivate = (file: string, text: string) =>
  written(file, text, (beside) =>
    FileSystem.FileSystem.use((fs) =>
      Effect.catchIf(
        fs.link(beside, file),
        ({ reason }) => reason._tag === "AlreadyExists",
        () => Effect.void
      )
    )
  )
