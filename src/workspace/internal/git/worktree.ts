/** A worktree: opens a branch in its own folder, commits what changed there, and removes the folder. */
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import { Sandbox, type Service as SandboxService } from "../../../core/Sandbox.ts"
import * as ToolError from "../../../core/ToolError.ts"
import { cut } from "../../../support/text/text.ts"
import * as Commands from "./commands.ts"
import * as Names from "./names.ts"
import * as Repository from "./repository.ts"
import { environmentOf, failOnExit, gitWords, quoteWords, runLine } from "./run.ts"

/** Options of worktrees. */
export interface Options {
  /** Folder of the repository in the sandbox. Default: its root. */
  readonly repository?: string | undefined
  /** Author of commits. Default: `agent`, `agent@localhost`. */
  readonly author?:
    | {
        /** Name in commits. */
        readonly name: string
        /** Email address in commits. */
        readonly email: string
      }
    | undefined
  /** Revision at which a new branch begins. Default: the current branch. */
  readonly base?: string | undefined
}

/** The result of work on a branch. `kept` is the folder, if it stays to preserve nested repositories. */
export interface BranchWork<A> {
  readonly value: A
  readonly branch: string
  /** Last commit of the work. Missing if nothing changed. */
  readonly commit?: string
  /** Changed files, one line each. */
  readonly changes: string
  readonly kept?: string
}

const folder = ".worktrees"

/** Locks by repository, since git fails instead of waiting for its own lock. */
const locks = new WeakMap<object, Map<string, Semaphore.Semaphore>>()

/** The lock of a repository. */
export const lockOf = (sandbox: object, repository: string): Semaphore.Semaphore => {
  const ofSandbox = locks.get(sandbox) ?? new Map<string, Semaphore.Semaphore>()
  locks.set(sandbox, ofSandbox)
  const lock = ofSandbox.get(repository) ?? Semaphore.makeUnsafe(1)
  ofSandbox.set(repository, lock)
  return lock
}

const identity = ({ author = { name: "agent", email: "agent@localhost" } }: Options) => ({
  GIT_AUTHOR_NAME: author.name,
  GIT_AUTHOR_EMAIL: author.email,
  GIT_COMMITTER_NAME: author.name,
  GIT_COMMITTER_EMAIL: author.email
})

/** Makes git for the repository, with the author of commits. */
export const makeGit = (options: Options) =>
  Effect.flatMap(Repository.openRepository(options.repository ?? "."), (repository) =>
    Commands.makeSafe(repository, identity(options))
  )

/** Disables programs of the repository, and of nested repositories, in diffs. */
export const plain = ["--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "--ignore-submodules=dirty"]

/** Makes the unique folder of a branch. */
const folderOf = (branch: string): string =>
  `${folder}/${[...branch].map((one) => (/[A-Za-z0-9._-]/.test(one) ? one : `%${one.codePointAt(0)?.toString(16) ?? ""}`)).join("")}`

/** A worktree. `head` is its first commit. */
interface Tree {
  readonly branch: string
  readonly path: string
  /** The path of its folder in the sandbox. */
  readonly place: string
  readonly git: Commands.Git
  readonly head: string
}

/** The commit of a closed worktree, or the reason why it stays open. */
export type ClosedWorktree = Result.Result<Omit<BranchWork<unknown>, "value" | "branch">, ToolError.ToolError>

/** The folder of the repository. */
export const repositoryOf = ({ paths }: SandboxService, { repository = paths?.cwd ?? "/" }: Options): string =>
  repository

const placeOf = (sandbox: SandboxService, path: string, options: Options): string => {
  const repository = repositoryOf(sandbox, options)
  return `${repository === "/" ? "" : repository}/${path}`
}

/** Removes the folder of a worktree, also if its `.git` was redirected. */
const removeTree = (git: Commands.Git, path: string): Effect.Effect<void, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const removeByGit = Commands.attempt(git, ["worktree", "remove", "--force", "--force", "--", path])
    const first = yield* removeByGit
    if (first.exitCode === 0) return
    const { at, cwd } = git.repository
    const name = path.slice(folder.length + 1)
    const place = yield* quoteWords([`${at === "/" ? "" : at}/${folder}`])
    // The folder must be at its original place: a link could lead to files of others.
    const clear = `cd ${folder} && [ "$(pwd -P)" = ${place} ] && rm -rf -- ${yield* quoteWords([name])}`
    yield* Effect.flatMap(runLine(clear, { cwd }), failOnExit)
    const second = yield* removeByGit
    const isGone = second.exitCode === 0 || second.stderr.includes("is not a working tree")
    if (!isGone) yield* failOnExit(second)
  })

/** Checks a branch out in its folder. Git ignores the folder of worktrees. */
export const openTree = Effect.fnUntraced(function* (
  branch: string,
  options: Options
): Effect.fn.Return<Tree, ToolError.ToolError, Sandbox> {
  const sandbox = yield* Sandbox
  const git = yield* makeGit(options)
  const path = folderOf(branch)
  const place = placeOf(sandbox, path, options)
  yield* sandbox
    .write(placeOf(sandbox, `${folder}/.gitignore`, options), "*\n")
    .pipe(Effect.mapError((error) => ToolError.make(error.message)))
  const there = yield* runLine(`[ -e ${yield* quoteWords([path])} ]`, { cwd: git.repository.cwd })
  if (there.exitCode === 0) {
    return yield* ToolError.make(
      `the folder ${place} is there already, from work that was not finished: commit what is in it, remove it by git_worktree, and try again`
    )
  }
  const existing = (yield* Commands.run(git, ["branch", "--list", "--format=%(refname:short)", branch])).stdout.trim()
  const start = options.base === undefined ? [] : [yield* Names.checkRevision(options.base)]
  const what = existing === "" ? ["-b", branch, "--", path, ...start] : ["--", path, branch]
  const makeTree = Effect.gen(function* () {
    yield* Commands.run(git, ["worktree", "add", "--quiet", ...what])
    // No agent has worked here yet, so this state can be trusted.
    const repository = yield* Repository.reopenRepository(place)
    const { at, common } = git.repository
    if (repository.top !== `${at === "/" ? "" : at}/${path}` || repository.common !== common) {
      return yield* ToolError.make(`${place} is not where the worktree was made: a link leads elsewhere`)
    }
    const own = yield* Commands.makeSafe(repository, identity(options))
    const { stdout } = yield* Commands.run(own, ["rev-parse", "HEAD"])
    return { branch, path, place, git: own, head: stdout.trim() }
  })
  return yield* Effect.onError(makeTree, () => Effect.ignore(removeTree(git, path)))
})

/** Returns true if the worktree has nested repositories, whose commits exist only there. */
const hasNested = Effect.fnUntraced(function* ({ git, head }: Tree, last: string) {
  const { cwd, dir, top } = git.repository
  const diff = yield* quoteWords(gitWords(["-C", top, "diff-tree", "-r", "--no-renames", head, last]))
  const line = `[ -d ${yield* quoteWords([`${dir}/modules`])} ] || ${diff} | grep -q "^:[0-7]* 160000 "`
  const answer = yield* runLine(line, { cwd, env: { ...git.env, ...environmentOf(git.repository) } })
  return answer.exitCode === 0
})

/** Commits all changes of a worktree, and lists them. */
const commitTree = Effect.fnUntraced(function* (
  tree: Tree,
  options: Options
): Effect.fn.Return<Omit<BranchWork<unknown>, "value" | "branch">, ToolError.ToolError, Sandbox> {
  // The work may have changed settings.
  const git = yield* Commands.makeSafe(tree.git.repository, identity(options))
  const at = yield* Commands.attempt(git, ["symbolic-ref", "--quiet", "HEAD"])
  if (at.stdout.trim() !== `refs/heads/${tree.branch}`) {
    return yield* ToolError.make(`the folder is not on the branch ${tree.branch} any more`)
  }
  const nested = yield* Commands.stageChanges(git, "all")
  if (yield* Commands.hasStaged(git, "all")) {
    const how = ["--quiet", "--no-verify", "--no-gpg-sign", "--no-status"]
    yield* Commands.run(git, ["commit", ...how, "-m", `Work on ${tree.branch}`])
  }
  const last = (yield* Commands.run(git, ["rev-parse", "HEAD"])).stdout.trim()
  const isKept = nested.length > 0 || (yield* hasNested(tree, last))
  const keptPlace = isKept ? { kept: tree.place } : {}
  if (last === tree.head) return { changes: "", ...keptPlace }
  const { stdout } = yield* Commands.run(git, ["diff", ...plain, "--stat", tree.head, last])
  return { commit: last, changes: cut(stdout.trimEnd(), 4_000), ...keptPlace }
})

/** Commits all changes of a worktree, and removes its folder unless that would lose something. */
export const closeTree = (tree: Tree, options: Options): Effect.Effect<ClosedWorktree, never, Sandbox> =>
  commitTree(tree, options).pipe(
    Effect.tap(({ kept }) =>
      kept === undefined
        ? Effect.flatMap(makeGit(options), (git) => Effect.ignore(removeTree(git, tree.path)))
        : Effect.void
    ),
    Effect.mapError(({ message }) =>
      ToolError.make(
        `The work on branch ${tree.branch} is not committed: ${message}. It is kept in the folder ${tree.place}: commit it there, then remove the folder by git_worktree.`
      )
    ),
    Effect.tapError(({ message }) => Effect.logWarning(message)),
    Effect.result
  )
