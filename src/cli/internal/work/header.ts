/** The first line of a chat. */
import { homedir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import manifest from "../../../../package.json" with { type: "json" }
import { cleanLine } from "../../../support/text/clean.ts"
import type { Places } from "../config/places.ts"

/** Reads the branch of a folder from git's own file. `undefined` without one. */
export const readBranch = Effect.fnUntraced(function* (folder: string) {
  const fs = yield* FileSystem.FileSystem
  const head = yield* Effect.orElseSucceed(fs.readFileString(join(folder, ".git", "HEAD")), () => "")
  return /^ref: refs\/heads\/(.+)$/m.exec(head)?.[1]
})

/** Writes the version, the folder, the branch, the model and the isolation of commands. */
export const writeHeader = Effect.fnUntraced(function* ({ project }: Places, model: string, sandbox: string) {
  const branch = yield* readBranch(project)
  const home = homedir()
  const folder = project.startsWith(`${home}/`) ? `~${project.slice(home.length)}` : project
  return cleanLine(
    `deepagents ${manifest.version} · ${folder}${branch === undefined ? "" : ` (${branch})`} · ${model}${sandbox === "" ? "" : ` · ${sandbox}`}`
  )
})
