/** The folder in which commands and file tools work, as the machine has it. */
import { globSync, lstatSync, realpathSync } from "node:fs"
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

/** Tells whether the home of the person, or a folder of the program, is in a folder. */
export const holdsHome = (folder: string, own: ReadonlyArray<string>): boolean => {
  const [real = folder] = realOf(folder)
  const prefix = real === "/" ? real : `${real}/`
  return [homedir(), ...own].some((path) => {
    const [at = path] = realOf(path)
    return at === real || at.startsWith(prefix)
  })
}

/** Tells whether a path is a file, and no folder or link. */
export const isFile = (path: string): boolean =>
  Result.getOrElse(
    Result.try(() => lstatSync(path).isFile()),
    () => false
  )

/** The most colons of a word that may name a file of a revision. */
const mostColons = 8

/** The files that a word of git may name by a revision, as `HEAD:path` does. `undefined` for too many. */
const filesOfRevision = (path: string, cwd: string): ReadonlyArray<string> | undefined => {
  const word = path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path
  const [, ...parts] = word.split(":")
  return parts.length > mostColons ? undefined : parts.map((_, at) => resolve(cwd, parts.slice(at).join(":")))
}

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
      const plain = path.replaceAll(/\\(.)/g, "$1")
      const realPaths = isPlain
        ? realOf(plain)
        : Result.getOrElse(
            Result.try(() => globSync(path.replaceAll(/\*{2,}/g, "*")).flatMap(realOf)),
            () => undefined
          )
      const ofRevision = isPlain ? filesOfRevision(plain, cwd) : []
      if (realPaths === undefined || ofRevision === undefined || realPaths.length > most) return undefined
      return [...realPaths, ...ofRevision].some(isHidden) ? undefined : realPaths
    }
  }
}
