/** Paths of a session, as the machine has them. */
import { isAbsolute, relative, resolve, sep } from "node:path"

/** The path of the machine that a path of a tool names. */
export const withFolder = (path: string, cwd: string): string => (isAbsolute(path) ? path : resolve(cwd, path))

/** Tells whether a path lies in a folder. */
export const isWithin = (path: string, folder: string): boolean => {
  const from = relative(folder, path)
  return from === "" || (from !== ".." && !from.startsWith(`..${sep}`) && !isAbsolute(from))
}
