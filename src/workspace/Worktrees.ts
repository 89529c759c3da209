/**
 * Several agents at work on one repository at once, each on a branch in a folder of its own, and their merge.
 *
 * Work in a worktree sees the branch's files as its root, and its commands begin there. What it leaves is committed to
 * the branch, and the folder is removed. A merge takes the branches one after the other into what is checked out: one
 * that conflicts is taken back whole, and told with the files and what conflicts in them, so that somebody can decide.
 *
 * Worktrees part the work of agents that mean well; they are no isolation, since a command can leave its folder. Git
 * runs no program that the repository names: no hook, filter, merge driver or signing program.
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
import * as Schema from "effect/Schema"
import * as Semaphore from "effect/Semaphore"
import * as Agent from "../core/Agent.ts"
import { Backend } from "../core/Backend.ts"
import { Sandbox } from "../core/Sandbox.ts"
import * as Tool from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import { cut } from "../support/text/text.ts"
import { oneLine } from "../support/text/untrusted.ts"
import * as Commands from "./internal/git/commands.ts"
import * as Names from "./internal/git/names.ts"
import * as Repository from "./internal/git/repository.ts"
import { rooted } from "./internal/git/rooted.ts"
import { complaint, gitWords, pinned, quoted, runLine, succeeded } from "./internal/git/run.ts"

/**
 * `repository` is the folder of the sandbox that has it (default its root). `author` is who commits (default `agent`,
 * `agent@localhost`). `base` is where a new branch begins (default what is checked out).
 */
export interface Options {
  readonly repository?: string | undefined
  readonly author?: { readonly name: string; readonly email: string } | undefined
  readonly base?: string | undefined
}

/**
 * The work that was done on a branch: `value` is what it gave, `commit` what it left there (not there if it changed
 * nothing), `changes` the files, a line each. `kept` is the folder, if it stays because repositories in it would be lost
 * with it.
 */
export interface Worked<A> {
  readonly value: A
  readonly branch: string
  readonly commit?: string
  readonly changes: string
  readonly kept?: string
}

/** The outcome of the merge of a branch. */
export type Merged =
  | { readonly _tag: "Merged"; readonly branch: string; readonly commit: string }
  | { readonly _tag: "UpToDate"; readonly branch: string }
  | {
      readonly _tag: "Conflicts"
      readonly branch: string
      readonly files: ReadonlyArray<string>
      /** Conflicts, as git marks them; its beginning, where it is long. */
      readonly diff: string
    }

const folder = ".worktrees"

/** One change of the repository at a time: git locks, and fails instead of waiting. */
const locks = new WeakMap<object, Map<string, Semaphore.Semaphore>>()

const lockOf = (sandbox: object, repository: string): Semaphore.Semaphore => {
  const known = locks.get(sandbox) ?? new Map<string, Semaphore.Semaphore>()
  locks.set(sandbox, known)
  const lock = known.get(repository) ?? Semaphore.makeUnsafe(1)
  known.set(repository, lock)
  return lock
}

const identity = ({ author = { name: "agent", email: "agent@localhost" } }: Options) => ({
  GIT_AUTHOR_NAME: author.name,
  GIT_AUTHOR_EMAIL: author.email,
  GIT_COMMITTER_NAME: author.name,
  GIT_COMMITTER_EMAIL: author.email
})

/** Git on the repository itself, as whoever commits. */
const gitOf = (options: Options) =>
  Effect.flatMap(Repository.open(options.repository ?? "/"), (repository) =>
    Commands.harmless(repository, identity(options))
  )

/** Programs of the repository run for no diff, and none of repositories in it. */
const plain = ["--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "--ignore-submodules=dirty"]

/** The folder of a branch, which no other branch has. */
const folderOf = (branch: string): string =>
  `${folder}/${[...branch].map((one) => (/[A-Za-z0-9._-]/.test(one) ? one : `%${one.codePointAt(0)?.toString(16) ?? ""}`)).join("")}`

/** A worktree: its branch, its folder in the repository, git there as it was opened, and the commit that it began at. */
interface Tree {
  readonly branch: string
  readonly path: string
  readonly git: Commands.Git
  readonly head: string
}

/** What became of a worktree: what is committed there, and the folder if it is kept; or why nothing could be committed. */
type Left =
  | { readonly _tag: "Committed"; readonly worked: Omit<Worked<unknown>, "value" | "branch"> }
  | { readonly _tag: "Uncommitted"; readonly error: ToolError.ToolError }

const placeOf = (path: string, { repository = "" }: Options): string =>
  `${repository === "/" ? "" : repository}/${path}`

/** Removes the folder of a worktree with all that is in it, also where its `.git` leads elsewhere by now. */
const remove = (git: Commands.Git, path: string): Effect.Effect<void, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const removing = Commands.attempt(git, ["worktree", "remove", "--force", "--force", "--", path])
    const first = yield* removing
    if (first.exitCode === 0) return
    const { at, cwd } = git.repository
    const name = path.slice(folder.length + 1)
    const place = yield* quoted([`${at === "/" ? "" : at}/${folder}`])
    // The folder must be where it was made: a link in its place leads to somebody else's files.
    const clear = `cd ${folder} && [ "$(pwd -P)" = ${place} ] && rm -rf -- ${yield* quoted([name])}`
    yield* Effect.flatMap(runLine(clear, { cwd }), succeeded)
    const second = yield* removing
    const isGone = second.exitCode === 0 || second.stderr.includes("is not a working tree")
    if (!isGone) yield* succeeded(second)
  })

/** Checks the branch out in its folder. The folder of worktrees is not seen by git itself. */
const open = Effect.fnUntraced(function* (
  branch: string,
  options: Options
): Effect.fn.Return<Tree, ToolError.ToolError, Sandbox> {
  const sandbox = yield* Sandbox
  const git = yield* gitOf(options)
  const path = folderOf(branch)
  const place = placeOf(path, options)
  yield* sandbox
    .write(placeOf(`${folder}/.gitignore`, options), "*\n")
    .pipe(Effect.mapError((error) => ToolError.make(error.message)))
  const there = yield* runLine(`[ -e ${yield* quoted([path])} ]`, { cwd: git.repository.cwd })
  if (there.exitCode === 0) {
    return yield* ToolError.make(
      `the folder ${place} is there already, from work that was not finished: commit what is in it, remove it by git_worktree, and try again`
    )
  }
  const known = (yield* Commands.run(git, ["branch", "--list", "--format=%(refname:short)", branch])).stdout.trim()
  const start = options.base === undefined ? [] : [yield* Names.revision(options.base)]
  const what = known === "" ? ["-b", branch, "--", path, ...start] : ["--", path, branch]
  const making = Effect.gen(function* () {
    yield* Commands.run(git, ["worktree", "add", "--quiet", ...what])
    // Nobody has worked there yet: this is what git is held to from now on.
    const repository = yield* Repository.openNow(place)
    const { at, common } = git.repository
    if (repository.top !== `${at === "/" ? "" : at}/${path}` || repository.common !== common) {
      return yield* ToolError.make(`${place} is not where the worktree was made: a link leads elsewhere`)
    }
    const own = yield* Commands.harmless(repository, identity(options))
    const { stdout } = yield* Commands.run(own, ["rev-parse", "HEAD"])
    return { branch, path, git: own, head: stdout.trim() }
  })
  return yield* Effect.onError(making, () => Effect.ignore(remove(git, path)))
})

/** Tells whether the worktree has repositories in it, whose commits are nowhere else. */
const hasInner = Effect.fnUntraced(function* ({ git, head }: Tree, now: string) {
  const { cwd, dir, top } = git.repository
  const diff = yield* quoted(gitWords(["-C", top, "diff-tree", "-r", "--no-renames", head, now]))
  const line = `[ -d ${yield* quoted([`${dir}/modules`])} ] || ${diff} | grep -q "^:[0-7]* 160000 "`
  const answer = yield* runLine(line, { cwd, env: { ...git.env, ...pinned(git.repository) } })
  return answer.exitCode === 0
})

/** Commits what is in a worktree, and says what is there since it began. */
const commit = Effect.fnUntraced(function* (
  tree: Tree,
  options: Options
): Effect.fn.Return<Omit<Worked<unknown>, "value" | "branch">, ToolError.ToolError, Sandbox> {
  // Settings may be others than before the work.
  const git = yield* Commands.harmless(tree.git.repository, identity(options))
  const at = yield* Commands.attempt(git, ["symbolic-ref", "--quiet", "HEAD"])
  if (at.stdout.trim() !== `refs/heads/${tree.branch}`) {
    return yield* ToolError.make(`the folder is not on the branch ${tree.branch} any more`)
  }
  const inner = yield* Commands.stage(git, "all")
  if (yield* Commands.hasStaged(git, "all")) {
    const how = ["--quiet", "--no-verify", "--no-gpg-sign", "--no-status"]
    yield* Commands.run(git, ["commit", ...how, "-m", `Work on ${tree.branch}`])
  }
  const now = (yield* Commands.run(git, ["rev-parse", "HEAD"])).stdout.trim()
  const isKept = inner.length > 0 || (yield* hasInner(tree, now))
  const kept = isKept ? { kept: placeOf(tree.path, options) } : {}
  if (now === tree.head) return { changes: "", ...kept }
  const { stdout } = yield* Commands.run(git, ["diff", ...plain, "--stat", tree.head, now])
  return { commit: now, changes: cut(stdout.trimEnd(), 4_000), ...kept }
})

/** Commits what is in a worktree, and removes its folder unless something would be lost with it. */
const leave = (tree: Tree, options: Options): Effect.Effect<Left, never, Sandbox> => {
  const place = placeOf(tree.path, options)
  return Effect.gen(function* () {
    const worked = yield* commit(tree, options)
    if (worked.kept === undefined) yield* Effect.flatMap(gitOf(options), (git) => Effect.ignore(remove(git, tree.path)))
    const left: Left = { _tag: "Committed", worked }
    return left
  }).pipe(
    Effect.catch(({ message }) => {
      const error = ToolError.make(
        `The work on branch ${tree.branch} is not committed: ${message}. It is kept in the folder ${place}: commit it there, then remove the folder by git_worktree.`
      )
      const left: Left = { _tag: "Uncommitted", error }
      return Effect.as(Effect.logWarning(error.message), left)
    })
  )
}

/** Does work in a worktree, and gives how it ended and what became of the worktree. */
const workIn = <A, E, R>(
  given: string,
  work: Effect.Effect<A, E, R>,
  options: Options
): Effect.Effect<
  { readonly branch: string; readonly exit: Exit.Exit<A, E>; readonly left: Left },
  ToolError.ToolError,
  Exclude<R, Sandbox | Backend> | Sandbox
> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const branch = yield* Names.branch(given)
      const sandbox = yield* Sandbox
      const lock = lockOf(sandbox, options.repository ?? "/")
      yield* restore(lock.take(1))
      const tree = yield* Effect.ensuring(open(branch, options), lock.release(1))
      const own = rooted(sandbox, placeOf(tree.path, options))
      Repository.remember(own, "/", tree.git.repository)
      const exit = yield* work.pipe(
        Effect.provide(Layer.merge(Layer.succeed(Sandbox, own), Layer.succeed(Backend, own))),
        restore,
        Effect.exit
      )
      const left = yield* lock.withPermit(leave(tree, options))
      return { branch, exit, left }
    })
  )

/**
 * Does work on a branch, in a folder of its own that is removed when it is done; a branch that there is not is made.
 * The `Sandbox` and the `Backend` of the work have the branch's files as their root. What it leaves is committed, also
 * if it fails or is interrupted, so that nothing is lost. If it can't be committed, the folder stays and the failure
 * names it.
 */
export const within = <A, E, R>(
  branch: string,
  work: Effect.Effect<A, E, R>,
  options: Options = {}
): Effect.Effect<Worked<A>, E | ToolError.ToolError, Exclude<R, Sandbox | Backend> | Sandbox> =>
  Effect.flatMap(
    workIn(branch, work, options),
    ({ branch, exit, left }): Effect.Effect<Worked<A>, E | ToolError.ToolError> => {
      if (Exit.isFailure(exit)) {
        return left._tag === "Committed"
          ? Effect.failCause(exit.cause)
          : Effect.failCause(Cause.combine(exit.cause, Cause.fail(left.error)))
      }
      return left._tag === "Committed"
        ? Effect.succeed({ value: exit.value, branch, ...left.worked })
        : Effect.fail(left.error)
    }
  )

const conflictsOf = Effect.fnUntraced(function* (branch: string, git: Commands.Git) {
  const shown = ["diff", ...plain, "--diff-filter=U"]
  const names = yield* Commands.run(git, [...shown, "--name-only", "-z"])
  const diff = yield* Commands.attempt(git, shown)
  const files = names.stdout.split("\0").filter((file) => file !== "")
  return { _tag: "Conflicts", branch, files, diff: cut(diff.stdout, 12_000) } satisfies Merged
})

/** Merges a branch. Whatever goes wrong, nothing half merged stays. */
const mergeOne = Effect.fnUntraced(function* (
  given: string,
  options: Options
): Effect.fn.Return<Merged, ToolError.ToolError, Sandbox> {
  const branch = yield* Names.branch(given)
  const git = yield* gitOf(options)
  const head = (yield* Commands.run(git, ["rev-parse", "HEAD"])).stdout.trim()
  const how = ["--no-ff", "--no-edit", "--quiet", "--no-verify", "--no-gpg-sign", "--no-verify-signatures"]
  const merging = Effect.gen(function* () {
    const answer = yield* Commands.attempt(git, ["merge", ...how, branch])
    if (answer.exitCode === 0) {
      const commit = (yield* Commands.run(git, ["rev-parse", "HEAD"])).stdout.trim()
      const merged: Merged = commit === head ? { _tag: "UpToDate", branch } : { _tag: "Merged", branch, commit }
      return merged
    }
    const conflicts = yield* conflictsOf(branch, git)
    if (conflicts.files.length === 0) return yield* ToolError.make(`${branch} can't be merged: ${complaint(answer)}`)
    return conflicts
  })
  const aborting = Effect.gen(function* () {
    const isMerging = yield* Commands.attempt(git, ["rev-parse", "--quiet", "--verify", "MERGE_HEAD"])
    if (isMerging.exitCode !== 0) return
    const answer = yield* Commands.attempt(git, ["merge", "--abort"])
    if (answer.exitCode === 0) return
    return yield* ToolError.make(
      `the merge of ${branch} is half done and can't be taken back: ${complaint(answer)}. Run git merge --abort.`
    )
  })
  return yield* Effect.uninterruptible(
    Effect.flatMap(Effect.exit(merging), (exit) =>
      Exit.isSuccess(exit) && exit.value._tag !== "Conflicts" ? exit : Effect.andThen(aborting, exit)
    )
  )
})

/**
 * Merges branches into what is checked out, one after the other. One that conflicts is taken back whole, and the next is
 * tried. Fails if something is uncommitted there.
 */
export const merge = (
  branches: ReadonlyArray<string>,
  options: Options = {}
): Effect.Effect<ReadonlyArray<Merged>, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const status = ["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty"]
    const { stdout } = yield* Commands.run(yield* gitOf(options), status)
    if (stdout.trim() !== "") {
      return yield* ToolError.make(
        `something is uncommitted in the repository; commit it before branches are merged:\n${cut(stdout, 2_000)}`
      )
    }
    return yield* Effect.forEach(branches, (branch) => mergeOne(branch, options))
  }).pipe((merging) =>
    Effect.flatMap(Sandbox, (sandbox) => lockOf(sandbox, options.repository ?? "/").withPermit(merging))
  )

const told = (merged: Merged): string => {
  switch (merged._tag) {
    case "Merged":
      return `${merged.branch}: merged, as ${merged.commit.slice(0, 10)}.`
    case "UpToDate":
      return `${merged.branch}: has nothing that is not there already.`
    case "Conflicts":
      return `${merged.branch}: CONFLICTS in ${merged.files.map(oneLine).join(", ")}; nothing of it was merged.\n${merged.diff}`
  }
}

/** Says to the lead what is on a branch. */
const noteOf = (branch: string, left: Left): string => {
  if (left._tag === "Uncommitted") return left.error.message
  const { changes, commit: at, kept } = left.worked
  const inner = kept === undefined ? "" : `\nThe folder ${kept} is kept: it has repositories of their own in it.`
  return at === undefined
    ? `[Nothing was changed on branch ${branch}.${inner}]`
    : `[On branch ${branch}, commit ${at.slice(0, 10)}, not merged yet:\n${changes}${inner}]`
}

/**
 * Makes two tools: `code_in_worktree` has the agent do a task on a branch, in a worktree of its own, several at once if
 * they are called in one turn; `merge_branches`, which needs a decision, merges branches and tells conflicts.
 */
export const tools = <O, E, R>(
  options: Options & { readonly agent: Agent.Agent<O, E, R> }
): readonly [Tool.Tool<Exclude<R, Sandbox | Backend> | Sandbox | ToolContext>, Tool.NeedingApproval<Sandbox>] => {
  const { agent } = options
  const code = (
    branch: string,
    task: string
  ): Effect.Effect<string, unknown, Exclude<R, Sandbox | Backend> | Sandbox | ToolContext> =>
    Effect.flatMap(workIn(branch, Agent.delegate(agent, task), options), ({ branch, exit, left }) => {
      const note = noteOf(branch, left)
      return Exit.match(exit, {
        onSuccess: ({ text }) =>
          left._tag === "Committed" ? Effect.succeed(`${text}\n\n${note}`) : ToolError.make(`${text}\n\n${note}`),
        onFailure: (cause) =>
          Effect.failCause(
            Cause.map(cause, (error) => ToolError.make(`${ToolError.fromUnknown(error).message}\n\n${note}`))
          )
      })
    })
  const coding = Tool.make("code_in_worktree", {
    description: `Has the agent ${agent.name} do a task on a branch of the repository, in a folder of its own: ${agent.description}. Call it several times in one turn for parts that do not touch the same files. What it did is committed to the branch, and not merged: use merge_branches.`,
    parameters: {
      branch: Schema.String.annotate({ description: "The branch, for this task alone; one that there is not is made" }),
      task: Schema.String.annotate({ description: "All that the agent must know: it sees nothing else" })
    },
    reaches: Agent.toolNames(agent),
    execute: ({ branch, task }) => code(branch, task)
  })
  const merging = Tool.make("merge_branches", {
    description:
      "Merges branches into what is checked out, one after the other. One that conflicts is left out whole: you are told the files and what conflicts in them.",
    parameters: { branches: Schema.NonEmptyArray(Schema.String) },
    needsApproval: true,
    execute: ({ branches }) =>
      Effect.map(merge(branches, options), (all) =>
        ToolOutput.make(all.map(told).join("\n"), {
          isError: all.every(({ _tag }) => _tag === "Conflicts"),
          details: { kind: "merge", branches: all.map(({ _tag, branch }) => ({ branch, outcome: _tag })) }
        })
      )
  })
  return [coding, merging]
}
