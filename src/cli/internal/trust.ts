import { dirname, join } from "node:path"
/** Folders that the user trusts: only there a project's own agents, instructions, skills and settings are read. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { orFail } from "./failure.ts"
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
  const fs = yield* FileSystem.FileSystem
  const file = trustFile(places)
  const folders = { ...(yield* readRecord(file)), [yield* real(places)]: true }
  yield* writePrivate(file, `${JSON.stringify(folders, null, 2)}\n`).pipe(
    Effect.provideService(FileSystem.FileSystem, fs)
  )
})

/** Writes a file wholly or not at all, for its owner only. */
export const writePrivate = Effect.fnUntraced(function* (file: string, text: string) {
  const fs = yield* FileSystem.FileSystem
  const beside = `${file}.${process.pid}.tmp`
  yield* orFail("failed")(
    fs
      .makeDirectory(dirname(file), { recursive: true, mode: 0o700 })
      .pipe(Effect.andThen(fs.writeFileString(beside, text, { mode: 0o600 })), Effect.andThen(fs.rename(beside, file)))
  )
})
