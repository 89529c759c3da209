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
import * as Processes from "../backends/Processes.ts"
import * as Agent from "../core/Agent.ts"
import { Backend } from "../core/Backend.ts"
import { Sandbox } from "../core/Sandbox.ts"
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
import { describeFailure } from "./internal/git/run.ts"
import { makeWorking } from "./internal/git/working.ts"
import {
  type BranchWork,
  type ClosedWorktree,
  closeTree,
  lockOf,
  makeGit,
  openTree,
  type Options,
  plain,
  repositoryOf
} from "./internal/git/worktree.ts"
import * as shapes from "./internal/shapes.ts"

export type { BranchWork, Options } from "./internal/git/worktree.ts"

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
