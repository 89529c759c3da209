/** Git commands on an opened repository. */
import * as Effect from "effect/Effect"
import type { Sandbox } from "../../../core/Sandbox.ts"
import * as ToolError from "../../../core/ToolError.ts"
import * as Programs from "./programs.ts"
import * as Repository from "./repository.ts"
import {
  type Answer,
  complaint,
  type Environment,
  gitWords,
  offline,
  pinned,
  quoted,
  type Repository as Opened,
  runLine,
  succeeded
} from "./run.ts"

type Running<A> = Effect.Effect<A, ToolError.ToolError, Sandbox>

/** A way to run git: on a repository, with the variables that keep the repository's programs from running. */
export interface Git {
  readonly repository: Opened
  readonly env: Environment
}

/** Makes the way to run git that runs nothing of the repository. */
export const harmless = (repository: Opened, env: Environment = {}): Running<Git> =>
  Effect.map(Programs.harmless(repository), (own) => ({ repository, env: { ...own, ...env } }))

/** Runs git, whatever its exit code. */
export const attempt = (
  { env, repository }: Git,
  args: ReadonlyArray<string>,
  options: { readonly hooks?: string | undefined; readonly stdin?: string | undefined } = {}
): Running<Answer> =>
  Effect.flatMap(quoted(gitWords(args, options.hooks)), (line) =>
    runLine(line, {
      cwd: repository.cwd,
      // Hooks of a person may use the network.
      env: { ...(options.hooks === undefined ? offline : {}), ...env, ...pinned(repository) },
      stdin: options.stdin
    })
  )

/** Runs git, and fails with what it says if its exit code is not 0. */
export const run = (
  git: Git,
  args: ReadonlyArray<string>,
  options?: { readonly hooks?: string | undefined; readonly stdin?: string | undefined }
): Running<Answer> => Effect.flatMap(attempt(git, args, options), succeeded)

/** Runs git to read, in the repository of a folder. */
export const look = (cwd: string, args: ReadonlyArray<string>): Running<Answer> =>
  Effect.flatMap(Effect.flatMap(Repository.open(cwd), harmless), (git) => run(git, args))

const isClean = (git: Git, args: ReadonlyArray<string>): Running<boolean> =>
  Effect.flatMap(attempt(git, args), (answer) =>
    answer.exitCode > 1 ? Effect.fail(ToolError.make(complaint(answer))) : Effect.succeed(answer.exitCode === 0)
  )

/** The path of a name of the opened folder, from the top of the work tree. */
export const fromTop = ({ repository: { at, top } }: Git, path: string): string => {
  const inside = at === top ? "" : at.slice(top === "/" ? 1 : top.length + 1)
  const parts = [inside, path].filter((part) => part !== "" && part !== ".")
  return parts.length === 0 ? "." : parts.join("/")
}

/**
 * Stages changes: those of some paths (from the top), or all. Gives the repositories in this one that could not be
 * staged, as they have no commit. Git's own `add --all` would run `git status` in each repository that lies in this one,
 * with the settings of that one.
 */
export const stage = (git: Git, paths: ReadonlyArray<string> | "all"): Running<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    const { repository } = git
    const only = paths === "all" ? [] : ["--", ...paths]
    const words = (...args: ReadonlyArray<string>) => quoted(gitWords(["-C", repository.top, ...args]))
    const changed = ["diff-files", "--ignore-submodules=dirty"]
    const fresh = ["ls-files", "--others", "--exclude-standard", "-z"]
    const folders = ["--directory", "--no-empty-directory"]
    const add = yield* words("add", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
    // Folders in the place of their files are fewer names; named files must not bring their neighbours along.
    const lines = [
      `${yield* words(...changed, "--name-only", "-z", ...only)} | ${add}`,
      `${yield* words(...fresh, ...(paths === "all" ? folders : only))} | ${add}`
    ]
    const env = { ...offline, ...git.env, ...pinned(repository) }
    const answers = yield* Effect.forEach(lines, (line) => runLine(line, { cwd: repository.cwd, env }))
    const failure = answers.find(({ exitCode }) => exitCode !== 0)
    if (paths !== "all") return failure === undefined ? [] : yield* ToolError.make(complaint(failure))
    // The shell does not tell whether the first command of a pipe failed, so what is left is looked at.
    const { stdout } = yield* run(git, ["-C", repository.top, ...fresh])
    const left = stdout.split("\0").filter((name) => name !== "")
    const isStaged = yield* isClean(git, ["-C", repository.top, ...changed, "--quiet"])
    if (isStaged && left.every((name) => name.endsWith("/"))) return left
    return yield* ToolError.make(failure === undefined ? "something else is changing the files" : complaint(failure))
  })

/** Tells whether something is staged, in some paths (from the top) or at all. */
export const hasStaged = (git: Git, paths: ReadonlyArray<string> | "all"): Running<boolean> => {
  const plain = ["--cached", "--quiet", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty"]
  const only = paths === "all" ? [] : ["--", ...paths]
  return Effect.map(isClean(git, ["-C", git.repository.top, "diff", ...plain, ...only]), (clean) => !clean)
}
