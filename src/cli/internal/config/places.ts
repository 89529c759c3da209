/** The folders of the program, as the XDG base directories have them. */
import { homedir } from "node:os"
import { isAbsolute, join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { Failure, orFail, wordsOf } from "../failure.ts"

/** A folder of the environment; one that is not absolute counts as not set, as the specification says. */
const xdg = (variable: string, otherwise: string): string => {
  const value = process.env[variable] ?? ""
  return isAbsolute(value) ? value : join(homedir(), otherwise)
}

/**
 * - `config`: what the user wrote: settings, agents, skills, servers
 * - `data`: what the program keeps: sessions, credentials, memory, files of threads
 * - `project`: the folder that the agent works in
 */
export interface Places {
  readonly config: string
  readonly data: string
  readonly project: string
}

export const placesOf = (project: string): Places => ({
  config: join(xdg("XDG_CONFIG_HOME", ".config"), "deepagents"),
  data: join(xdg("XDG_DATA_HOME", ".local/share"), "deepagents"),
  project: resolve(project)
})

export const userSettings = ({ config }: Places): string => join(config, "config.json")
export const projectSettings = ({ project }: Places): string => join(project, ".deepagents", "config.json")
export const userServers = ({ config }: Places): string => join(config, "mcp.json")
export const sessionsFile = ({ data }: Places): string => join(data, "sessions.db")
export const trustFile = ({ config }: Places): string => join(config, "trusted.json")

/** The text of a file of settings, `undefined` where there is none. */
export const textOf = (file: string): Effect.Effect<string | undefined, Failure, FileSystem.FileSystem> =>
  FileSystem.FileSystem.use((fs) =>
    fs.readFileString(file).pipe(
      Effect.catchIf(
        ({ reason }) => reason._tag === "NotFound",
        () => Effect.undefined
      ),
      orFail("usage")
    )
  )

/** Makes a folder of the program's own, which nobody but its user reads, with those above it. */
export const makeFolder = (path: string): Effect.Effect<string, Failure, FileSystem.FileSystem> =>
  FileSystem.FileSystem.use((fs) =>
    Effect.mapError(
      Effect.as(fs.makeDirectory(path, { recursive: true, mode: 0o700 }), path),
      (error) =>
        new Failure({
          exit: "failed",
          message: `No folder can be made there: ${wordsOf(error)}. Make room for it, or set XDG_DATA_HOME (sessions, keys) and XDG_CONFIG_HOME (settings) to folders that you may write to.`
        })
    )
  )
