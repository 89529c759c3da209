/** The folder in which commands and file tools work, as the machine has it. */
import { globSync, realpathSync } from "node:fs"
import { homedir } from "node:os"
import { join, resolve } from "node:path"
import * as Result from "effect/Result"
import type * as CommandRule from "../../../backends/CommandRule.ts"
import { namesPrograms } from "./gitPrograms.ts"

/** The place of commands, and the tools that run them. */
export interface Place {
  readonly where: CommandRule.Where
  readonly isCommand: (tool: string) => boolean
}

/** The most files that a pattern with wildcards may stand for. */
const most = 2_000

const realOf = (path: string): ReadonlyArray<string> =>
  Result.getOrElse(
    Result.try(() => [realpathSync(path)]),
    () => []
  )

/** The whole path of the machine for a path of a call. */
export const machinePath = (path: string, folder: string): string =>
  path.startsWith("~/") ? join(homedir(), path.slice(2)) : resolve(folder, path)

/** The place of commands. `isHidden` keeps files from being free to read; a chat adds folders while it runs. */
export const placeOf = (
  folder: string,
  isHidden: (path: string) => boolean = () => false,
  added: () => ReadonlyArray<string> = () => []
): CommandRule.Where => {
  const [cwd = folder] = realOf(folder)
  return {
    cwd,
    get folders() {
      return [cwd, ...added().flatMap(realOf)]
    },
    namesPrograms: () => namesPrograms(cwd),
    look: (path) => {
      const isPlain = !/(?<!\\)[*?[]/.test(path)
      const found = isPlain
        ? realOf(path.replaceAll(/\\(.)/g, "$1"))
        : Result.getOrElse(
            Result.try(() => globSync(path.replaceAll(/\*{2,}/g, "*")).flatMap(realOf)),
            () => undefined
          )
      return found === undefined || found.length > most || found.some(isHidden) ? undefined : found
    }
  }
}
