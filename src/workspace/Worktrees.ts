/**
 * Lets several agents work on one repository in parallel, each on a branch in its own folder, and merges their branches.
 *
 * In a worktree, the files of the branch are the root, and commands start there. With the paths of a whole machine
 * (`HostShell`), the worktree is the working folder, and nothing outside of it is changed by file tools. Changes are
 * committed to the branch, and the folder is removed. Branches are merged one after the other into the current branch. A conflict undoes the merge of
 * its branch, and is reported with files and diff.
 *
 * Worktrees separate the work of cooperating agents, but do not isolate: a command can leave its folder. Git runs no
 * program of the repository: no hook, filter, merge driver or signing program.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { DeepAgent } from "effect-deepagents/deep"
 * import { Worktrees } from "effect-deepagents/workspace"
 *
 * const coder = DeepAgent.subagent({ name: "coder", description: "Writes code", prompt: "You code.", execute: true })
 *
 * // The lead gives out parts with code_in_worktree, several at once, and merges the branches.
 * const lead = DeepAgent.make({
 *   name: "lead",
 *   prompt: "You divide the work.",
 *   tools: Worktrees.tools({ agent: coder })
 * })
 * ```
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as Processes from "../backends/Processes.ts"
import * as Agent from "../core/Agent.ts"
import { Backend } from "../core/Backend.ts"
import { Sandbox, type Service as SandboxService } from "../core/Sandbox.ts"
import { readOptions, refuseTools } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import { check, makeEffectCheck } from "../support/options/check.ts"
import { cut } from "../support/text/text.ts"
import { oneLine } from "../support/text/untrusted.ts"
import * as Commands from "./internal/git/commands.ts"
import * as Names from "./internal/git/names.ts"
import * as Repository from "./internal/git/repository.ts"
import { makeRooted } from "./internal/git/rooted.ts"
import { describeFailure, environmentOf, failOnExit, gitWords, quoteWords, runLine } from "./internal/git/run.ts"
import { makeWorking } from "./internal/git/working.ts"
import * as shapes from "./internal/shapes.ts"

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

/** The outcome of a merge of one branch. */
type MergeOutcome =
  | { readonly _tag: "Merged"; readonly branch: string; readonly commit: string }
  | { readonly _tag: "UpToDate"; readonly branch: string }
  | {
      readonly _tag: "Conflicts"
      readonly branch: string
      readonly files: ReadonlyArray<string>
      /** Diff with the conflict marks of git, truncated if it is long. */
      readonly diff: string
    }

const folder = ".worktrees"

/** Locks by repository, since git fails instead of waiting for its own lock. */
const locks = new WeakMap<object, Map<string, Semaphore.Semaphore>>()

const lockOf = (sandbox: object, repository: string): Semaphore.Semaphore => {
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
const makeGit = (options: Options) =>
  Effect.flatMap(Repository.openRepository(options.repository ?? "."), (repository) =>
    Commands.makeSafe(repository, identity(options))
  )

/** Disables programs of the repository, and of nested repositories, in diffs. */
const plain = ["--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "--ignore-submodules=dirty"]

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
type ClosedWorktree = Result.Result<Omit<BranchWork<unknown>, "value" | "branch">, ToolError.ToolError>

/** The folder of the repository. */
const repositoryOf = ({ paths }: SandboxService, { repository = paths?.cwd ?? "/" }: Options): string => repository

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
const openTree = Effect.fnUntraced(function* (
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
const closeTree = (tree: Tree, options: Options): Effect.Effect<ClosedWorktree, never, Sandbox> =>
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

/** Runs work in a worktree, and closes the worktree. */
const workIn = <A, E, R>(
  branchName: string,
  work: Effect.Effect<A, E, R>,
  options: Options
): Effect.Effect<
  { readonly branch: string; readonly exit: Exit.Exit<A, E>; readonly closed: ClosedWorktree },
  ToolError.ToolError,
  Exclude<R, Sandbox | Backend | Processes.ProcessTable> | Sandbox
> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const branch = yield* Names.checkBranch(branchName)
      const sandbox = yield* Sandbox
      const lock = lockOf(sandbox, repositoryOf(sandbox, options))
      yield* restore(lock.take(1))
      const tree = yield* Effect.ensuring(openTree(branch, options), lock.release(1))
      const own =
        sandbox.paths === undefined ? makeRooted(sandbox, tree.place) : makeWorking(sandbox, sandbox.paths, tree.place)
      Repository.storeRepository(own, ".", tree.git.repository)
      const exit = yield* work.pipe(
        // Processes in the folder end before it is removed.
        Effect.provide(
          Layer.provideMerge(Processes.layer(), Layer.merge(Layer.succeed(Sandbox, own), Layer.succeed(Backend, own)))
        ),
        restore,
        Effect.exit
      )
      const closed = yield* lock.withPermit(closeTree(tree, options))
      return { branch, exit, closed }
    })
  )

const refuseRun = makeEffectCheck("Worktrees.runOnBranch", shapes.worktreesMerge)

/**
 * Runs work on a branch in its own folder, which is removed afterwards. A missing branch is created. The root of `Sandbox`
 * and `Backend` is the folder. Changes are committed, also if the work fails or is interrupted. If the commit fails, the
 * folder stays, and the failure names it.
 */
export const runOnBranch = <A, E, R>(
  branch: string,
  work: Effect.Effect<A, E, R>,
  options: Options = {}
): Effect.Effect<
  BranchWork<A>,
  E | ToolError.ToolError,
  Exclude<R, Sandbox | Backend | Processes.ProcessTable> | Sandbox
> =>
  refuseRun(options) ??
  Effect.flatMap(
    workIn(branch, work, options),
    ({ branch, exit, closed }): Effect.Effect<BranchWork<A>, E | ToolError.ToolError> => {
      if (Exit.isFailure(exit)) {
        return Result.isSuccess(closed)
          ? Effect.failCause(exit.cause)
          : Effect.failCause(Cause.combine(exit.cause, Cause.fail(closed.failure)))
      }
      return Result.isSuccess(closed)
        ? Effect.succeed({ value: exit.value, branch, ...closed.success })
        : Effect.fail(closed.failure)
    }
  )

const findConflicts = Effect.fnUntraced(function* (branch: string, git: Commands.Git) {
  const diffArgs = ["diff", ...plain, "--diff-filter=U"]
  const names = yield* Commands.run(git, [...diffArgs, "--name-only", "-z"])
  const diff = yield* Commands.attempt(git, diffArgs)
  const files = names.stdout.split("\0").filter((file) => file !== "")
  return { _tag: "Conflicts", branch, files, diff: cut(diff.stdout, 12_000) } satisfies MergeOutcome
})

/** Merges one branch, and undoes an incomplete merge. */
const mergeBranch = Effect.fnUntraced(function* (
  branchName: string,
  options: Options
): Effect.fn.Return<MergeOutcome, ToolError.ToolError, Sandbox> {
  const branch = yield* Names.checkBranch(branchName)
  const git = yield* makeGit(options)
  const head = (yield* Commands.run(git, ["rev-parse", "HEAD"])).stdout.trim()
  const how = ["--no-ff", "--no-edit", "--quiet", "--no-verify", "--no-gpg-sign", "--no-verify-signatures"]
  const merging = Effect.gen(function* () {
    const answer = yield* Commands.attempt(git, ["merge", ...how, branch])
    if (answer.exitCode === 0) {
      const commit = (yield* Commands.run(git, ["rev-parse", "HEAD"])).stdout.trim()
      const merged: MergeOutcome = commit === head ? { _tag: "UpToDate", branch } : { _tag: "Merged", branch, commit }
      return merged
    }
    const conflicts = yield* findConflicts(branch, git)
    if (conflicts.files.length === 0)
      return yield* ToolError.make(`${branch} can't be merged: ${describeFailure(answer)}`)
    return conflicts
  })
  const aborting = Effect.gen(function* () {
    const isMerging = yield* Commands.attempt(git, ["rev-parse", "--quiet", "--verify", "MERGE_HEAD"])
    if (isMerging.exitCode !== 0) return
    const answer = yield* Commands.attempt(git, ["merge", "--abort"])
    if (answer.exitCode === 0) return
    return yield* ToolError.make(
      `the merge of ${branch} is half done and can't be taken back: ${describeFailure(answer)}. Run git merge --abort.`
    )
  })
  return yield* Effect.uninterruptible(
    Effect.flatMap(Effect.exit(merging), (exit) =>
      Exit.isSuccess(exit) && exit.value._tag !== "Conflicts" ? exit : Effect.andThen(aborting, exit)
    )
  )
})

const refuseMerge = makeEffectCheck("Worktrees.merge", shapes.worktreesMerge)

/**
 * Merges branches into the current branch, one after the other. A branch with conflicts is not merged, and the next one
 * follows. Fails if the repository has uncommitted changes.
 */
export const merge = (
  branches: ReadonlyArray<string>,
  options: Options = {}
): Effect.Effect<ReadonlyArray<MergeOutcome>, ToolError.ToolError, Sandbox> =>
  refuseMerge(options) ??
  Effect.gen(function* () {
    const status = ["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty"]
    const { stdout } = yield* Commands.run(yield* makeGit(options), status)
    if (stdout.trim() !== "") {
      return yield* ToolError.make(
        `something is uncommitted in the repository; commit it before branches are merged:\n${cut(stdout, 2_000)}`
      )
    }
    return yield* Effect.forEach(branches, (branch) => mergeBranch(branch, options))
  }).pipe((merging) =>
    Effect.flatMap(Sandbox, (sandbox) => lockOf(sandbox, repositoryOf(sandbox, options)).withPermit(merging))
  )

const renderMerge = (merged: MergeOutcome): string => {
  switch (merged._tag) {
    case "Merged":
      return `${merged.branch}: merged, as ${merged.commit.slice(0, 10)}.`
    case "UpToDate":
      return `${merged.branch}: has nothing that is not there already.`
    case "Conflicts":
      return `${merged.branch}: CONFLICTS in ${merged.files.map(oneLine).join(", ")}; nothing of it was merged.\n${merged.diff}`
  }
}

/** Describes a branch for the lead agent. */
const describeBranch = (branch: string, closed: ClosedWorktree): string => {
  if (Result.isFailure(closed)) return closed.failure.message
  const { changes, commit: at, kept } = closed.success
  const inner = kept === undefined ? "" : `\nThe folder ${kept} is kept: it has repositories of their own in it.`
  return at === undefined
    ? `[Nothing was changed on branch ${branch}.${inner}]`
    : `[On branch ${branch}, commit ${at.slice(0, 10)}, not merged yet:\n${changes}${inner}]`
}

const checkTools = check(shapes.worktreesTools)

const pickOptions = ({ author, base, repository }: Options): Options => ({ author, base, repository })

/**
 * Makes two tools. `code_in_worktree` delegates a task to the agent on a branch in its own worktree; calls of one turn run
 * in parallel. `merge_branches` merges branches after an approval, and reports conflicts.
 */
export const tools = <O, E, R>(
  options: Options & {
    /** The agent that works on a branch. */
    readonly agent: Agent.Agent<O, E, R>
  }
): readonly [
  Tool.Tool<Exclude<R, Sandbox | Backend | Processes.ProcessTable> | Sandbox | ToolContext>,
  Tool.NeedingApproval<Sandbox>
] => {
  const [own, problem] = readOptions(checkTools, options)
  // Tools with a problem never run.
  const agent = problem === undefined ? own.agent : (Agent.make({ name: "agent", prompt: "" }) as typeof own.agent)
  const shared = pickOptions(own)
  const runTask = (
    branch: string,
    task: string
  ): Effect.Effect<string, unknown, Exclude<R, Sandbox | Backend | Processes.ProcessTable> | Sandbox | ToolContext> =>
    Effect.flatMap(workIn(branch, Agent.delegate(agent, task), shared), ({ branch, exit, closed }) => {
      const note = describeBranch(branch, closed)
      return Exit.match(exit, {
        onSuccess: ({ text }) =>
          Result.isSuccess(closed) ? Effect.succeed(`${text}\n\n${note}`) : ToolError.make(`${text}\n\n${note}`),
        onFailure: (cause) =>
          Effect.failCause(
            Cause.map(cause, (error) => ToolError.make(`${ToolError.fromUnknown(error).message}\n\n${note}`))
          )
      })
    })
  const codeTool = Tool.make("code_in_worktree", {
    description: `Has the agent ${agent.name} do a task on a branch of the repository, in a folder of its own: ${agent.description.replace(/\.$/, "")}. Call it several times in one turn for parts that do not touch the same files. What it did is committed to the branch, and not merged: use merge_branches.`,
    parameters: {
      branch: Schema.String.annotate({ description: "The branch, for this task alone; one that there is not is made" }),
      task: Schema.String.annotate({ description: "All that the agent must know: it sees nothing else" })
    },
    // What the coder reads from outside marks the tree of agents by itself.
    annotations: { openWorld: false },
    reaches: Agent.toolNames(agent),
    execute: ({ branch, task }) => runTask(branch, task)
  })
  const mergeTool = Tool.make("merge_branches", {
    description:
      "Merges branches into what is checked out, one after the other. One that conflicts is left out whole: you are told the files and what conflicts in them.",
    parameters: { branches: Schema.NonEmptyArray(Schema.String) },
    annotations: { openWorld: false },
    needsApproval: true,
    execute: ({ branches }) =>
      Effect.map(merge(branches, shared), (all) =>
        ToolOutput.make(all.map(renderMerge).join("\n"), {
          isError: all.every(({ _tag }) => _tag === "Conflicts"),
          details: { kind: "merge", branches: all.map(({ _tag, branch }) => ({ branch, outcome: _tag })) }
        })
      )
  })
  return refuseTools(problem, [codeTool, mergeTool])
}
