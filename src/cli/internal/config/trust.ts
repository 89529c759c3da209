/** Trusted folders: only there the program reads agents, instructions, skills and settings of a project. */
import { randomUUID } from "node:crypto"
import { dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { orFail } from "../failure.ts"
import { type Places, trustFile } from "./places.ts"
import { readRecord } from "./settings.ts"

/** Files of a project that influence an agent. */
const brought = [
  ".deepagents",
  "AGENTS.md",
  ".claude/agents",
  ".mcp.json",
  ".vscode/mcp.json",
  ".cursor/mcp.json"
] as const

/** The real path of the folder, so that a link is the same folder. */
const real = Effect.fnUntraced(function* ({ project }: Places) {
  const fs = yield* FileSystem.FileSystem
  return yield* orFail("usage")(fs.realPath(project))
})

/** Lists the files of the folder that need trust. */
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

/** Writes a private temporary file, and moves it into place. */
const writeBeside = Effect.fnUntraced(function* <E extends { readonly message: string }, R>(
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

/** Writes a private file atomically. */
export const writePrivate = (file: string, text: string) =>
  writeBeside(file, text, (beside) => FileSystem.FileSystem.use((fs) => fs.rename(beside, file)))

/** Creates a private file. An existing file stays, also among processes that race. */
export const makePrivate = (file: string, text: string) =>
  writeBeside(file, text, (beside) =>
    FileSystem.FileSystem.use((fs) =>
      Effect.catchIf(
        fs.link(beside, file),
        ({ reason }) => reason._tag === "AlreadyExists",
        () => Effect.void
      )
    )
  )
