/** Names that models give git: none may be taken for an option, or lead out of the repository. */
import * as Effect from "effect/Effect"
import * as ToolError from "../../../core/ToolError.ts"
import { isGitName } from "../../../support/text/gitNames.ts"

const control = /\p{Cc}/u

const shown = (name: string): string => JSON.stringify(name.slice(0, 100))

/** Names that git takes for paths out of the folder, where that is no repository (`git diff` compares any two files). */
const outside = /^[/~]|\.\.\//

/** A revision, a range of them, or a branch that there is. */
export const revision = (name: string): Effect.Effect<string, ToolError.ToolError> =>
  name === "" || name.startsWith("-") || name.length > 1_000 || control.test(name) || outside.test(name)
    ? Effect.fail(
        ToolError.make(`${shown(name)} is no revision: give a branch, a tag, a commit or a range (main..work)`)
      )
    : Effect.succeed(name)

/** Names of branches that git refuses, and those that begin like an option. */
const unfit = /^[-./]|\.\.|[\s~^:?*[\\]|@\{|\/\/|\/\.|\.lock(?:\/|$)|[./]$|^@$/

/** A new branch. */
export const branch = (name: string): Effect.Effect<string, ToolError.ToolError> =>
  name === "" || name.length > 200 || control.test(name) || unfit.test(name)
    ? Effect.fail(
        ToolError.make(
          `${shown(name)} can't be the name of a branch: use letters, digits, "-", "_" and "/", and begin with a letter`
        )
      )
    : Effect.succeed(name)

/** A path of the repository, from its root, with or without a "/" before it. */
export const path = (name: string): Effect.Effect<string, ToolError.ToolError> => {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".")
  if (parts.some(isGitName)) {
    return Effect.fail(ToolError.make(`${shown(name)} belongs to git itself: name a file or folder of the work tree`))
  }
  return name.length > 4_096 || control.test(name) || parts.includes("..")
    ? Effect.fail(ToolError.make(`${shown(name)} is no path of the repository: write it from its root, without ".."`))
    : Effect.succeed(parts.length === 0 ? "." : parts.join("/"))
}
