/**
 * The files in a person's home by which programs start: those of shells, logins, SSH, editors and package managers, and
 * the settings of programs. They are hidden, or in a folder of programs.
 */
import { realpathSync } from "node:fs"
import { homedir } from "node:os"
import * as Result from "effect/Result"
import * as Path from "../files/path.ts"
import * as System from "./system.ts"

/** Folders of programs that are not hidden. macOS starts the agents of `Library`. */
const programs: ReadonlySet<string> = new Set(["bin", "library"])

/** The home without links; `undefined` if the person has none of their own. */
const findHome = (): string | undefined => {
  const home = Result.getOrUndefined(System.attempt(() => realpathSync.native(homedir())))
  return home === "/" ? undefined : home
}

/**
 * Tells whether a real path is such a file, and `folder`, from which an agent may change it, is not itself in the same
 * part of the home: a person who opens a folder means its files.
 */
export const isHomeFile = (real: string, folder: string): boolean => {
  const home = findHome()
  if (home === undefined || real === home || !Path.isWithin(real, home)) return false
  const [name = ""] = real.slice(home.length + 1).split("/")
  const starts = name.startsWith(".") || programs.has(name.toLowerCase())
  return starts && !Path.isWithin(folder, `${home}/${name}`)
}
