/**
 * Several agents at work on one repository at once, each on a branch in a folder of its own, and their merge.
 *
 * Work in a worktree sees the branch's files as its root, and its commands begin there. What it leaves is committed to
 * the branch, and the folder is removed. A merge takes the branches one after the other into what is checked out: one
 * that conflicts is taken back whole, and told with the files and what conflicts in them, so that somebody can decide.
 *
 * Worktrees part the work of agents that mean well; they are no isolation, since a command can leave its folder. Hooks
 * of the repository do not run.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { DeepAgent } from "effect-deepagents/deep"
 * import { Worktrees } from "effect-deepagents/tools"
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
import { cut } from "../support/text.ts"
import { oneLine } from "../support/untrusted.ts"
import * as Names from "./internal/git/names.ts"
import { rooted } from "./internal/git/rooted.ts"
import { attempt, complaint, run } from "./internal/git/run.ts"

/**
 * `repository` is the folder of the sandbox that has it (default its root). `author` is who commits (default `agent`,
 * `agent@localhost`). `base` is where a new branch begins (default what is checked out).
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly repository?: string | undefined
  readonly author?: { readonly name: string; readonly email: string } | undefined
  readonly base?: string | undefined
}

/**
 * The work that was done on a branch: `value` is what it gave, `commit` what it left there (not there if it changed
 * nothing), `changes` the files, a line each.
 *
 * @category models
 * @since 0.1.0
 */
export interface Worked<A> {
  readonly value: A
  readonly branch: string
  readonly commit?: string
  readonly changes: string
}

/**
 * The outcome of the merge of a branch.
 *
 * @category models
 * @since 0.1.0
 */
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

const gitOf = (options: Options) => {
  const cwd = options.repository ?? "/"
  return {
    run: (...args: ReadonlyArray<string>) => run({ cwd, args, env: identity(options) }),
    attempt: (...args: ReadonlyArray<string>) => attempt({ cwd, args, env: identity(options) }),
    within: (path: string, ...args: ReadonlyArray<string>) =>
      run({ cwd: `${cwd}/${path}`, args, env: identity(options) })
  }
}

const locked = <A, E, R>(options: Options, work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Sandbox> =>
  Effect.flatMap(Sandbox, (sandbox) => lockOf(sandbox, options.repository ?? "/").withPermit(work))

/** The folder of a branch, which no other branch has. */
const folderOf = (branch: string): string =>
  `${folder}/${[...branch].map((one) => (/[A-Za-z0-9._-]/.test(one) ? one : `%${one.codePointAt(0)?.toString(16) ?? ""}`)).join("")}`

/** Checks the branch out in its folder. The folder of worktrees is not seen by git itself. */
const open = Effect.fnUntraced(function* (branch: string, options: Options) {
  const sandbox = yield* Sandbox
  const git = gitOf(options)
  const path = folderOf(branch)
  const ignored = `${options.repository ?? ""}/${folder}/.gitignore`
  yield* sandbox.write(ignored, "*\n").pipe(Effect.mapError((error) => ToolError.make(error.message)))
  const known = (yield* git.run("branch", "--list", "--format=%(refname:short)", branch)).stdout.trim() !== ""
  const start = options.base === undefined ? [] : [yield* Names.revision(options.base)]
  yield* known
    ? git.run("worktree", "add", "--quiet", "--", path, branch)
    : git.run("worktree", "add", "--quiet", "-b", branch, "--", path, ...start)
  const { stdout } = yield* git.within(path, "rev-parse", "HEAD")
  return { path, head: stdout.trim() }
})

/** Commits what is in the folder of a branch, and says what is there since `head`. */
const commit = Effect.fnUntraced(function* (branch: string, path: string, head: string, options: Options) {
  const git = gitOf(options)
  yield* git.within(path, "add", "--all")
  const dirty = (yield* git.within(path, "status", "--porcelain", "--untracked-files=no")).stdout.trim() !== ""
  if (dirty) yield* git.within(path, "commit", "--quiet", "--no-verify", "--no-gpg-sign", "-m", `Work on ${branch}`)
  const now = (yield* git.within(path, "rev-parse", "HEAD")).stdout.trim()
  if (now === head) return { changes: "" }
  const { stdout } = yield* git.within(path, "diff", "--no-ext-diff", "--no-textconv", "--stat", head, now)
  return { commit: now, changes: cut(stdout.trimEnd(), 4_000) }
})

/**
 * Does work on a branch, in a folder of its own that is removed when it is done; a branch that there is not is made.
 * The `Sandbox` and the `Backend` of the work have the branch's files as their root. What it leaves is committed, also
 * if it fails or is interrupted, so that nothing is lost.
 *
 * @category running
 * @since 0.1.0
 */
export const within = <A, E, R>(
  branch: string,
  work: Effect.Effect<A, E, R>,
  options: Options = {}
): Effect.Effect<Worked<A>, E | ToolError.ToolError, Exclude<R, Sandbox | Backend> | Sandbox> =>
  Effect.gen(function* () {
    const name = yield* Names.branch(branch)
    const sandbox = yield* Sandbox
    const done = (path: string, head: string) =>
      locked(
        options,
        Effect.ensuring(
          commit(name, path, head, options),
          Effect.ignore(gitOf(options).run("worktree", "remove", "--force", "--", path))
        )
      )
    return yield* Effect.acquireUseRelease(
      locked(options, open(name, options)),
      ({ head, path }) => {
        const own = rooted(sandbox, `${options.repository ?? ""}/${path}`)
        return work.pipe(
          Effect.provide(Layer.merge(Layer.succeed(Sandbox, own), Layer.succeed(Backend, own))),
          Effect.flatMap((value) =>
            Effect.map(done(path, head), (left): Worked<A> => ({ value, branch: name, ...left }))
          )
        )
      },
      ({ head, path }, exit) => (Exit.isSuccess(exit) ? Effect.void : Effect.ignore(done(path, head)))
    )
  })

const conflictsOf = Effect.fnUntraced(function* (branch: string, options: Options) {
  const git = gitOf(options)
  const names = yield* git.run("diff", "--name-only", "--diff-filter=U", "-z")
  const diff = yield* git.attempt("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--diff-filter=U")
  const files = names.stdout.split("\0").filter((file) => file !== "")
  return { _tag: "Conflicts", branch, files, diff: cut(diff.stdout, 12_000) } satisfies Merged
})

const mergeOne = Effect.fnUntraced(function* (
  given: string,
  options: Options
): Effect.fn.Return<Merged, ToolError.ToolError, Sandbox> {
  const branch = yield* Names.branch(given)
  const git = gitOf(options)
  const head = yield* git.run("rev-parse", "HEAD")
  const merging = git.attempt("merge", "--no-ff", "--no-edit", "--quiet", "--no-verify", "--no-gpg-sign", branch)
  return yield* Effect.uninterruptible(
    Effect.gen(function* () {
      const answer = yield* merging
      if (answer.exitCode === 0) {
        const commit = (yield* git.run("rev-parse", "HEAD")).stdout.trim()
        const merged: Merged =
          commit === head.stdout.trim() ? { _tag: "UpToDate", branch } : { _tag: "Merged", branch, commit }
        return merged
      }
      const conflicts = yield* conflictsOf(branch, options)
      if (conflicts.files.length === 0) return yield* ToolError.make(`${branch} can't be merged: ${complaint(answer)}`)
      yield* git.run("merge", "--abort")
      return conflicts
    })
  )
})

/**
 * Merges branches into what is checked out, one after the other. One that conflicts is taken back whole, and the next is
 * tried. Fails if something is uncommitted there.
 *
 * @category running
 * @since 0.1.0
 */
export const merge = (
  branches: ReadonlyArray<string>,
  options: Options = {}
): Effect.Effect<ReadonlyArray<Merged>, ToolError.ToolError, Sandbox> =>
  locked(
    options,
    Effect.gen(function* () {
      const status = yield* gitOf(options).run("status", "--porcelain", "--untracked-files=no")
      if (status.stdout.trim() !== "") {
        return yield* ToolError.make(
          `something is uncommitted in the repository; commit it before branches are merged:\n${cut(status.stdout, 2_000)}`
        )
      }
      return yield* Effect.forEach(branches, (branch) => mergeOne(branch, options))
    })
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

const answerOf = (text: string, { branch, changes, commit: at }: Worked<unknown>): string =>
  at === undefined
    ? `${text}\n\n[Nothing was changed on branch ${branch}.]`
    : `${text}\n\n[On branch ${branch}, commit ${at.slice(0, 10)}, not merged yet:\n${changes}]`

/**
 * Makes two tools: `code_in_worktree` has the agent do a task on a branch, in a worktree of its own, several at once if
 * they are called in one turn; `merge_branches`, which needs a decision, merges branches and tells conflicts.
 *
 * @category constructors
 * @since 0.1.0
 */
export const tools = <O, E, R>(
  options: Options & { readonly agent: Agent.Agent<O, E, R> }
): readonly [Tool.Tool<Exclude<R, Sandbox | Backend> | Sandbox | ToolContext>, Tool.NeedingApproval<Sandbox>] => {
  const { agent } = options
  const code = (
    branch: string,
    task: string
  ): Effect.Effect<string, unknown, Exclude<R, Sandbox | Backend> | Sandbox | ToolContext> =>
    Effect.map(within(branch, Agent.delegate(agent, task), options), (worked) => answerOf(worked.value.text, worked))
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
