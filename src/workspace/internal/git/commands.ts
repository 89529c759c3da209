/** Git commands on an opened repository. */
import * as Effect from "effect/Effect"
import type { Sandbox } from "../../../core/Sandbox.ts"
import * as ToolError from "../../../core/ToolError.ts"
import * as Programs from "./programs.ts"
import * as Repository from "./repository.ts"
import {
  type Answer,
  describeFailure,
  type Environment,
  gitWords,
  offline,
  environmentOf,
  quoteWords,
  type Repository as Opened,
  runLine,
  failOnExit
} from "./run.ts"

type GitWork<A> = Effect.Effect<A, ToolError.ToolError, Sandbox>

/** A repository, with the environment that disables its programs. */
export interface Git {
  readonly repository: Opened
  readonly env: Environment
}

/** Makes an environment that disables all programs of the repository. */
export const makeSafe = (repository: Opened, env: Environment = {}): GitWork<Git> =>
  Effect.map(Programs.makeSafeEnvironment(repository), (own) => ({ repository, env: { ...own, ...env } }))

/** Runs git. A non-zero exit code is not a failure. */
export const attempt = (
  { env, repository }: Git,
  args: ReadonlyArray<string>,
  options: { readonly hooks?: string | undefined; readonly stdin?: string | undefined } = {}
): GitWork<Answer> =>
  Effect.flatMap(quoteWords(gitWords(args, options.hooks)), (line) =>
    runLine(line, {
      cwd: repository.cwd,
      // Approved hooks may use the network.
      env: { ...(options.hooks === undefined ? offline : {}), ...env, ...environmentOf(repository) },
      stdin: options.stdin
    })
  )

/** Runs git. Fails with its message if the exit code is not 0. */
export const run = (
  git: Git,
  args: ReadonlyArray<string>,
  options?: { readonly hooks?: string | undefined; readonly stdin?: string | undefined }
): GitWork<Answer> => Effect.flatMap(attempt(git, args, options), failOnExit)

/** Runs a read-only command in the repository of a folder. */
export const runReadOnly = (cwd: string, args: ReadonlyArray<string>): GitWork<Answer> =>
  Effect.flatMap(Effect.flatMap(Repository.openRepository(cwd), makeSafe), (git) => run(git, args))

const isClean = (git: Git, args: ReadonlyArray<string>): GitWork<boolean> =>
  Effect.flatMap(attempt(git, args), (answer) =>
    answer.exitCode > 1 ? Effect.fail(ToolError.make(describeFailure(answer))) : Effect.succeed(answer.exitCode === 0)
  )

/** Converts a path of the opened folder to a path from the top of the work tree. */
export const toTopPath = ({ repository: { at, top } }: Git, path: string): string => {
  const inside = at === top ? "" : at.slice(top === "/" ? 1 : top.length + 1)
  const parts = [inside, path].filter((part) => part !== "" && part !== ".")
  return parts.length === 0 ? "." : parts.join("/")
}

/**
 * Stages the changes of some paths (from the top), or all. Returns nested repositories without a commit, which can't be
 * staged. It avoids `add --all`, which would run `git status` in nested repositories, with their settings.
 */
export const stageChanges = (git: Git, paths: ReadonlyArray<string> | "all"): GitWork<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const { repository } = git
    const only = paths === "all" ? [] : ["--", ...paths]
    const words = (...args: ReadonlyArray<string>) => quoteWords(gitWords(["-C", repository.top, ...args]))
    const changed = ["diff-files", "--ignore-submodules=dirty"]
    const fresh = ["ls-files", "--others", "--exclude-standard", "-z"]
    const folders = ["--directory", "--no-empty-directory"]
    const add = yield* words("add", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
    // Folders are shorter than lists of their files, but would include neighbours of named files.
    const lines = [
      `${yield* words(...changed, "--name-only", "-z", ...only)} | ${add}`,
      `${yield* words(...fresh, ...(paths === "all" ? folders : only))} | ${add}`
    ]
    const env = { ...offline, ...git.env, ...environmentOf(repository) }
    const answers = yield* Effect.forEach(lines, (line) => runLine(line, { cwd: repository.cwd, env }))
    const failure = answers.find(({ exitCode }) => exitCode !== 0)
    if (paths !== "all") return failure === undefined ? [] : yield* ToolError.make(describeFailure(failure))
    // The shell hides a failure of the first command of a pipe, so this checks for unstaged changes.
    const { stdout } = yield* run(git, ["-C", repository.top, ...fresh])
    const unstaged = stdout.split("\0").filter((name) => name !== "")
    const isStaged = yield* isClean(git, ["-C", repository.top, ...changed, "--quiet"])
    if (isStaged && unstaged.every((name) => name.endsWith("/"))) return unstaged
    return yield* ToolError.make(
      failure === undefined ? "something else is changing the files" : describeFailure(failure)
    )
  })

/** Returns true if changes are staged, in some paths (from the top) or anywhere. */
export const hasStaged = (git: Git, paths: ReadonlyArray<string> | "all"): GitWork<boolean> => {
  const plain = ["--cached", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"]
  const only = paths === "all" ? [] : ["--", ...paths]
  return Effect.map(isClean(git, ["-C", git.repository.top, "diff", ...plain, ...only]), (clean) => !clean)
}
