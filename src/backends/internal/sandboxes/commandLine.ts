/** Checks commands and variables that no shell can run. */
import * as BackendError from "../../../core/BackendError.ts"

const variable = /^[A-Za-z_][A-Za-z0-9_]*$/

/** The error of a command with invalid variables or a NUL character; `undefined` for a valid command. */
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
