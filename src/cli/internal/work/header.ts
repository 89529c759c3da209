/** The first line of a chat. */
import { homedir } from "node:os"
import * as Effect from "effect/Effect"
import manifest from "../../../../package.json" with { type: "json" }
import { cleanLine } from "../../../support/text/clean.ts"
import type { Places } from "../config/places.ts"
import { readBranch } from "../project/head.ts"

/** Writes the version, the folder, the branch, the model and the isolation of commands. */
export const writeHeader = Effect.fnUntraced(function* ({ project }: Places, model: string, sandbox: string) {
  const branch = yield* readBranch(project)
  const home = homedir()
  const folder = project.startsWith(`${home}/`) ? `~${project.slice(home.length)}` : project
  return cleanLine(
    `deepagents ${manifest.version} · ${folder}${branch === undefined ? "" : ` (${branch})`} · ${model}${sandbox === "" ? "" : ` · ${sandbox}`}`
  )
})
