/** Opens a repository once, so that later changes of its `.git` can't redirect git. */
import * as Effect from "effect/Effect"
import { Sandbox } from "../../../core/Sandbox.ts"
import * as ToolError from "../../../core/ToolError.ts"
import { describeFailure, gitWords, offline, quoteWords, type Repository, runLine } from "./run.ts"

/** Finds the work tree by its `.git`, since settings could name another folder. */
const findTop = [
  "at=$(pwd -P) || exit 1",
  "top=$at",
  '[ "$top" = / ] && top=',
  'until [ -e "$top/.git" ]; do [ -n "$top" ] || break; top=${top%/*}; done',
  '[ -e "$top/.git" ] || { echo "this folder is in no git repository" >&2; exit 128; }',
  'printf "%s\\n%s\\n" "$at" "${top:-/}"',
  // Git must not search above this folder.
  'above=${top%/*}; cd "$top/" && export GIT_WORK_TREE=. GIT_CEILING_DIRECTORIES="${above:-/}"'
].join("\n")

const parse = (cwd: string, stdout: string): Repository | undefined => {
  const [at, top, dir, common, ...rest] = stdout.split("\n")
  return [at, top, dir, common].every((path) => path?.startsWith("/")) && rest.length === 1
    ? { cwd, at: at ?? "", top: top ?? "", dir: dir ?? "", common: common ?? "" }
    : undefined
}

/** Opens the repository of a folder anew. */
export const reopenRepository = (cwd: string): Effect.Effect<Repository, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const find = yield* quoteWords(gitWords(["rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir"]))
    const answer = yield* runLine(`${findTop} && ${find}`, { cwd, env: offline })
    if (answer.exitCode !== 0) return yield* ToolError.make(describeFailure(answer))
    const repository = parse(cwd, answer.stdout)
    if (repository !== undefined) return repository
    return yield* ToolError.make(
      "the paths of this repository can't be read: git 2.31 or newer is needed, without line breaks in paths"
    )
  })

const repositories = new WeakMap<object, Map<string, Repository>>()

/** Stores the repository of a folder of a sandbox. */
export const storeRepository = (sandbox: object, cwd: string, repository: Repository): void => {
  const all = repositories.get(sandbox) ?? new Map<string, Repository>()
  repositories.set(sandbox, all.set(cwd, { ...repository, cwd }))
}

/** Returns the repository of a folder as of its first use. */
export const openRepository = (cwd: string): Effect.Effect<Repository, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const sandbox = yield* Sandbox
    const before = repositories.get(sandbox)?.get(cwd)
    if (before !== undefined) return before
    const repository = yield* reopenRepository(cwd)
    storeRepository(sandbox, cwd, repository)
    return repository
  })
