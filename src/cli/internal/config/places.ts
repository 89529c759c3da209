/** The folders of the program, by the XDG base directory specification. */
import { homedir } from "node:os"
import { isAbsolute, join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { Failure, fail, wordsOf } from "../failure.ts"
import { readSmall } from "../project/folders.ts"

/** A folder from the environment. The specification ignores relative paths. */
const xdg = (variable: string, otherwise: string): string => {
  const value = process.env[variable] ?? ""
  return isAbsolute(value) ? value : join(homedir(), otherwise)
}

/**
 * - `config`: settings, agents, skills and servers that the user wrote
 * - `data`: sessions, credentials, memory and thread files that the program writes
 * - `project`: the working folder of the agent
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

/** The most bytes of a file of the program or of its user. */
const mostBytes = 20_000_000

/** Reads a text file. Returns `undefined` if the file does not exist. */
export const textOf = (file: string): Effect.Effect<string | undefined, Failure, FileSystem.FileSystem> =>
  Effect.flatMap(readSmall(file, mostBytes), (read) =>
    read !== undefined && "problem" in read ? fail("usage", `${file}: ${read.problem}`) : Effect.succeed(read?.text)
  )

/** Makes a private folder of the program, with its parents. */
export const makeFolder = (path: string): Effect.Effect<string, Failure, FileSystem.FileSystem> =>
  FileSystem.FileSystem.use((fs) =>
    Effect.mapError(
      Effect.as(fs.makeDirectory(path, { recursive: true, mode: 0o700 }), path),
      (error) =>
        new Failure({
          exit: "failed",
          message: `No folder can be made there: ${wordsOf(error)}. Free some space, or set XDG_DATA_HOME (sessions, keys) and XDG_CONFIG_HOME (settings) to folders that you may write to.`
        })
    )
  )
