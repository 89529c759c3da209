/** Opens a repository once, so that what is written into its folder later leads git nowhere else. */
import * as Effect from "effect/Effect"
import { Sandbox } from "../../../core/Sandbox.ts"
import * as ToolError from "../../../core/ToolError.ts"
import { complaint, gitWords, offline, quoted, type Repository, runLine } from "./run.ts"

/** Finds the work tree by its `.git`: settings of the repository may name another folder. */
const findTop = [
  "at=$(pwd -P) || exit 1",
  "top=$at",
  '[ "$top" = / ] && top=',
  'until [ -e "$top/.git" ]; do [ -n "$top" ] || break; top=${top%/*}; done',
  '[ -e "$top/.git" ] || { echo "this folder is in no git repository" >&2; exit 128; }',
  'printf "%s\\n%s\\n" "$at" "${top:-/}"',
  // Git must not go on looking above the folder that was found.
  'above=${top%/*}; cd "$top/" && export GIT_WORK_TREE=. GIT_CEILING_DIRECTORIES="${above:-/}"'
].join("\n")

const parse = (cwd: string, stdout: string): Repository | undefined => {
  const [at, top, dir, common, ...rest] = stdout.split("\n")
  return [at, top, dir, common].every((path) => path?.startsWith("/")) && rest.length === 1
    ? { cwd, at: at ?? "", top: top ?? "", dir: dir ?? "", common: common ?? "" }
    : undefined
}

/** Opens the repository of a folder as it is now. */
export const openNow = (cwd: string): Effect.Effect<Repository, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const find = yield* quoted(gitWords(["rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir"]))
    const answer = yield* runLine(`${findTop} && ${find}`, { cwd, env: offline })
    if (answer.exitCode !== 0) return yield* ToolError.make(complaint(answer))
    const repository = parse(cwd, answer.stdout)
    if (repository !== undefined) return repository
    return yield* ToolError.make(
      "the paths of this repository can't be read: git 2.31 or newer is needed, without line breaks in paths"
    )
  })

const known = new WeakMap<object, Map<string, Repository>>()

/** Keeps a repository as the one of a sandbox's folder. */
export const remember = (sandbox: object, cwd: string, repository: Repository): void => {
  const all = known.get(sandbox) ?? new Map<string, Repository>()
  known.set(sandbox, all.set(cwd, { ...repository, cwd }))
}

/** Gives the repository of a folder, as it was when it was first asked for. */
export const open = (cwd: string): Effect.Effect<Repository, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const sandbox = yield* Sandbox
    const before = known.get(sandbox)?.get(cwd)
    if (before !== undefined) return before
    const repository = yield* openNow(cwd)
    remember(sandbox, cwd, repository)
    return repository
  })
