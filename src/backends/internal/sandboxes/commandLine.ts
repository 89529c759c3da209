/** Commands that no shell can be given, whichever it is. */
import * as BackendError from "../../../core/BackendError.ts"

const variable = /^[A-Za-z_][A-Za-z0-9_]*$/

/** The reason that a command with these variables can't be run in a folder; `undefined` if nothing is wrong with it. */
export const refusalOf = (
  folder: string,
  command: string,
  env: { readonly [name: string]: string } = {}
): BackendError.BackendError | undefined => {
  const unnamed = Object.keys(env).find((name) => !variable.test(name))
  if (unnamed !== undefined) {
    const problem = `${JSON.stringify(unnamed.slice(0, 100))} in env is no name of a variable; one has letters, digits and _, and begins with no digit`
    return BackendError.make("execute", folder, { _tag: "InvalidPath", problem })
  }
  const detail = "a command, and what is in env, can't have a NUL character"
  return [command, ...Object.values(env)].some((text) => text.includes("\0"))
    ? BackendError.make("execute", folder, { _tag: "Unsupported" }, { detail })
    : undefined
}
