/** Checks names from models: none may be an option of git, or lead out of the repository. */
import * as Effect from "effect/Effect"
import * as ToolError from "../../../core/ToolError.ts"
import { isGitName } from "../../../support/text/gitNames.ts"

const control = /\p{Cc}/u

const quoteName = (name: string): string => JSON.stringify(name.slice(0, 100))

/** Names that git may read as paths outside of the repository: `git diff` compares any two files. */
const outside = /^[/~]|\.\.\//

/** Checks the name of a revision, a range or a branch. */
export const checkRevision = (name: string): Effect.Effect<string, ToolError.ToolError> =>
  name === "" || name.startsWith("-") || name.length > 1_000 || control.test(name) || outside.test(name)
    ? Effect.fail(
        ToolError.make(`${quoteName(name)} is no revision: give a branch, a tag, a commit or a range (main..work)`)
      )
    : Effect.succeed(name)

/** Names that git rejects for branches, and names that look like an option. */
const badBranch = /^[-./]|\.\.|[\s~^:?*[\\]|@\{|\/\/|\/\.|\.lock(?:\/|$)|[./]$|^@$/

/** Checks the name of a new branch. */
export const checkBranch = (name: string): Effect.Effect<string, ToolError.ToolError> =>
  name === "" || name.length > 200 || control.test(name) || badBranch.test(name)
    ? Effect.fail(
        ToolError.make(
          `${quoteName(name)} can't be the name of a branch: use letters, digits, "-", "_" and "/", and begin with a letter`
        )
      )
    : Effect.succeed(name)

/** Checks and normalises a path from the root of the repository. A leading `/` is optional. */
export const checkPath = (name: string): Effect.Effect<string, ToolError.ToolError> => {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".")
  if (parts.some(isGitName)) {
    return Effect.fail(
      ToolError.make(`${quoteName(name)} belongs to git itself: name a file or folder of the work tree`)
    )
  }
  return name.length > 4_096 || control.test(name) || parts.includes("..")
    ? Effect.fail(
        ToolError.make(`${quoteName(name)} is no path of the repository: write it from its root, without ".."`)
      )
    : Effect.succeed(parts.length === 0 ? "." : parts.join("/"))
}
