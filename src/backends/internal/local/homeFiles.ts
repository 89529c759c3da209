/**
 * Finds the files of a person's home by which programs start. Shells, logins, SSH, editors and package managers read
 * hidden files there. Other programs are in `bin` and `Library`.
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
 * Tells whether a real path is such a file, or a folder that has the home in it. `folder` is the folder from which an agent
 * may change the path. A person who opens a folder among these files allows changes of its files.
 */
export const isHomeFile = (real: string, folder: string): boolean => {
  const home = findHome()
  if (home === undefined) return false
  // A moved home could come back with other files.
  if (Path.isWithin(home, real)) return true
  if (!Path.isWithin(real, home)) return false
  const [name = ""] = real.slice(home.length + 1).split("/")
  const starts = name.startsWith(".") || programs.has(name.toLowerCase())
  return starts && !Path.isWithin(folder, `${home}/${name}`)
}
