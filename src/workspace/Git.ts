/**
 * Makes tools that run git in a sandbox. Reading needs no approval; changing does.
 *
 * Git gets a list of arguments, never a command line of the model. Names that begin with "-" are rejected; paths are
 * literal and stay within the repository. A command ends after 30 seconds.
 *
 * Git works on the repository as of the first use of the tools. It runs no program of the repository (hooks, filters,
 * drivers), so a file that needs a filter shows as changed. A commit runs hooks and filters, and a checkout filters, only
 * after a person approved these programs.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { FileTools } from "effect-deepagents/backends"
 * import { Git } from "effect-deepagents/workspace"
 *
 * // Its runs need a Sandbox for git, and Approvals for what changes the repository.
 * const coder = Agent.make({
 *   name: "coder",
 *   prompt: "You mend bugs, and commit what you did.",
 *   tools: [...FileTools.make(), ...Git.make()]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Sandbox } from "../core/Sandbox.ts"
import { readOptions, refuseTools } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import * as ToolError from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import { check } from "../support/options/check.ts"
import * as Commands from "./internal/git/commands.ts"
import * as Names from "./internal/git/names.ts"
import * as Programs from "./internal/git/programs.ts"
import * as Repository from "./internal/git/repository.ts"
import type { Answer } from "./internal/git/run.ts"
import * as shapes from "./internal/shapes.ts"

/** Options of the tools. */
export interface Options {
  /** Folder of the repository in the sandbox. Default: its root. */
  readonly repository?: string | undefined
}

/** Maximum characters of a result. */
const maxLength = 30_000

const text = (description: string) => Schema.String.annotate({ description })

const optional = (description: string) => Schema.optionalKey(text(description))

const revisionText = "A branch, a tag, a commit, or a range such as main..work"

const pathText = "A file or folder, from the root of the repository"

const renderAnswer = (answer: Answer, none: string): ToolOutput.ToolOutput => {
  const output = answer.stdout.trimEnd()
  const whole = output === "" ? none : ToolOutput.truncateText(output, maxLength)
  return ToolOutput.make(answer.truncated ? `${whole}\n[git wrote more than is kept]` : whole)
}

/** Shows submodules by their commits, since git would apply the settings of submodules to their files. */
const closed = "--ignore-submodules=dirty"

/** Disables programs of the repository in diffs. */
const plain = ["--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", closed]

const checkOptional = <A, E>(
  value: string | undefined,
  check: (name: string) => Effect.Effect<A, E>
): Effect.Effect<ReadonlyArray<A>, E> =>
  value === undefined ? Effect.succeed([]) : Effect.map(check(value), (one) => [one])

const toPathArguments = (paths: ReadonlyArray<string>): ReadonlyArray<string> =>
  paths.length === 0 ? [] : ["--", ...paths]

const clamp = (value: number | undefined, usual: number, most: number): number =>
  Math.max(1, Math.min(most, Math.trunc(value ?? usual) || usual))

const checkOptions = check(shapes.gitMake)

/**
 * Counts the files that differ from the last commit, with files that are new to git. `undefined` if they are too many to
 * be listed. Runs no program of the repository. Fails with `ToolError` if the folder `repository` of the sandbox
 * is in no repository.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { LocalShell } from "effect-deepagents/backends/LocalShell"
 * import { Git } from "effect-deepagents/workspace"
 *
 * const changes = Git.countChanges(".").pipe(Effect.provide(LocalShell.layer({ root: "." })))
 * ```
 */
export const countChanges = (repository: string): Effect.Effect<number | undefined, ToolError.ToolError, Sandbox> =>
  Effect.map(
    Commands.runReadOnly(repository, ["status", "--porcelain", "--no-renames", closed]),
    ({ stdout, truncated }) => {
      // A file that is deleted in the index and new in the folder has two lines.
      const names = stdout.split("\n").flatMap((line) => (line === "" ? [] : [line.slice("XY ".length)]))
      return truncated ? undefined : new Set(names).size
    }
  )

/**
 * Makes the tools that only read: `git_status`, `git_diff`, `git_log`, `git_show`, `git_blame`, `git_branches`,
 * `git_worktrees`.
 */
export const reading = (options: Options = {}): ReadonlyArray<Tool.Tool<Sandbox>> => {
  const [{ repository: cwd = "." }, problem] = readOptions(checkOptions, options)
  const git = (args: ReadonlyArray<string>, none: string) =>
    Effect.map(Commands.runReadOnly(cwd, args), (answer) => renderAnswer(answer, none))
  const annotations = { readOnly: true, idempotent: true, volatile: true, runsCommands: true, addresses: [] }
  // Results contain texts of others: files, commit messages, names.
  const quoting = { ...annotations, untrusted: true }
  return refuseTools(problem, [
    Tool.make("git_status", {
      description: "Shows the branch and which files of the repository are changed, staged or not tracked.",
      parameters: {},
      annotations,
      execute: () => git(["status", "--short", "--branch", closed], "nothing is changed")
    }),
    Tool.make("git_diff", {
      description:
        "Shows what is changed and not staged; with staged, what is; with revision, against that, or in that range.",
      parameters: {
        staged: Schema.optionalKey(Schema.Boolean.annotate({ description: "What is staged for the next commit" })),
        revision: optional(revisionText),
        path: optional(pathText)
      },
      annotations: { ...quoting, untrustedBy: { revision: ["", "HEAD"] } },
      execute: Effect.fnUntraced(function* ({ path, revision, staged }) {
        const paths = yield* checkOptional(path, Names.checkPath)
        const revisions = yield* checkOptional(revision, Names.checkRevision)
        const args = [
          "diff",
          ...plain,
          ...(staged === true ? ["--staged"] : []),
          ...revisions,
          ...toPathArguments(paths)
        ]
        return yield* git(args, "no differences")
      })
    }),
    Tool.make("git_log", {
      description: "Lists commits, the newest first: a line each.",
      parameters: {
        limit: Schema.optionalKey(Schema.Finite.annotate({ description: "How many, at most 200; 20 if left out" })),
        revision: optional(revisionText),
        path: optional(pathText)
      },
      annotations: quoting,
      execute: Effect.fnUntraced(function* ({ limit, path, revision }) {
        const paths = yield* checkOptional(path, Names.checkPath)
        const revisions = yield* checkOptional(revision, Names.checkRevision)
        const format = ["-n", String(clamp(limit, 20, 200)), "--no-color", "--no-show-signature", "--date=short"]
        const args = ["log", ...format, "--format=%h %ad %an: %s", ...revisions, ...toPathArguments(paths)]
        return yield* git(args, "no commits")
      })
    }),
    Tool.make("git_show", {
      description: "Shows a commit and what it changed, or a file as it was (revision main:src/a.ts).",
      parameters: { revision: optional("A branch, a tag or a commit; HEAD if left out") },
      annotations: quoting,
      execute: Effect.fnUntraced(function* ({ revision = "HEAD" }) {
        const name = yield* Names.checkRevision(revision)
        return yield* git(["show", ...plain, "--no-show-signature", "--stat", "--patch", name], "it is empty")
      })
    }),
    Tool.make("git_blame", {
      description: "Says of each line of a file which commit it is from, whose that was, and when.",
      parameters: {
        path: text(pathText),
        first: Schema.optionalKey(Schema.Finite.annotate({ description: "The first line, counted from 1" })),
        last: Schema.optionalKey(Schema.Finite.annotate({ description: "The last line" }))
      },
      annotations: quoting,
      execute: Effect.fnUntraced(function* ({ first = 1, last, path }) {
        const name = yield* Names.checkPath(path)
        const end = last === undefined ? "" : String(clamp(last, 1, 10_000_000))
        const lines = `${clamp(first, 1, 10_000_000)},${end}`
        return yield* git(["blame", "--no-textconv", "--date=short", "-L", lines, "--", name], "the file is empty")
      })
    }),
    Tool.make("git_branches", {
      description: "Lists the branches, with their last commits; * is before the one that is checked out.",
      parameters: {},
      annotations: quoting,
      execute: () => git(["branch", "--all", "--no-color", "-v"], "no branches")
    }),
    Tool.make("git_worktrees", {
      description: "Lists the folders in which branches of the repository are checked out.",
      parameters: {},
      annotations,
      execute: () => git(["worktree", "list"], "none")
    })
  ])
}

/** Makes the tools that change the repository: `git_commit`, `git_branch`, `git_worktree`. */
const changing = (options: Options = {}): ReadonlyArray<Tool.NeedingApproval<Sandbox>> => {
  const [{ repository: cwd = "." }, problem] = readOptions(checkOptions, options)
  const openSafely = Effect.flatMap(Repository.openRepository(cwd), Commands.makeSafe)
  /** Makes git with the approved programs of a checkout. */
  const approveCheckout = (doing: string) =>
    Effect.gen(function* () {
      const repository = yield* Repository.openRepository(cwd)
      const { env } = yield* Programs.approvePrograms(repository, "checkout", doing)
      return { repository, env }
    })
  return refuseTools(problem, [
    Tool.make("git_commit", {
      description: "Commits these files as they are, or with all every change of the repository.",
      parameters: {
        message: text("What was changed and why: a short line, then more if needed"),
        paths: Schema.optionalKey(Schema.Array(text(pathText))),
        all: Schema.optionalKey(Schema.Boolean.annotate({ description: "All that is changed, new or deleted" }))
      },
      annotations: { runsCommands: true },
      needsApproval: true,
      execute: Effect.fnUntraced(function* ({ all = false, message, paths = [] }) {
        if (message.trim() === "") return yield* ToolError.make("message is empty: say what was changed")
        if (all === paths.length > 0) {
          return yield* ToolError.make("say what is committed: give paths, or set all to true, not both")
        }
        const names = yield* Effect.forEach(paths, Names.checkPath)
        const repository = yield* Repository.openRepository(cwd)
        const { env, hooks } = yield* Programs.approvePrograms(repository, "commit", "git commit")
        const git = { repository, env }
        const fromTop = names.map((name) => Commands.toTopPath(git, name))
        const what = all ? "all" : fromTop
        yield* Commands.stageChanges(git, what)
        // To find that nothing changed, git itself would search nested repositories.
        if (!(yield* Commands.hasStaged(git, what))) {
          return yield* ToolError.make("there is nothing to commit: nothing is changed there, or git ignores it")
        }
        const args = ["-C", repository.top, "commit", "--quiet", "--no-status", "-F", "-", ...toPathArguments(fromTop)]
        yield* Commands.run(git, args, { hooks, stdin: message })
        const logArgs = ["log", "-n", "1", "--stat", "--no-color", "--no-show-signature", "--format=%h %s"]
        return renderAnswer(yield* Commands.runReadOnly(cwd, logArgs), "committed")
      })
    }),
    Tool.make("git_branch", {
      description:
        "Makes a branch, switches to one, or deletes one whose commits are all in another. Switching takes along what is changed, or fails.",
      parameters: {
        action: Schema.Literals(["create", "switch", "delete"]),
        name: text("The name of the branch"),
        from: optional("create: the revision that it begins at; the current one if left out")
      },
      annotations: { runsCommands: true },
      needsApproval: true,
      execute: Effect.fnUntraced(function* ({ action, from, name }) {
        const branch = yield* Names.checkBranch(name)
        const start = yield* checkOptional(from, Names.checkRevision)
        const args = {
          create: ["switch", "--quiet", "--create", branch, ...start],
          switch: ["switch", "--quiet", "--no-guess", branch],
          delete: ["branch", "--delete", branch]
        }
        const changesFiles = action === "switch" || (action === "create" && from !== undefined)
        const git = yield* changesFiles ? approveCheckout(`git ${args[action].join(" ")}`) : openSafely
        yield* Commands.run(git, args[action])
        return renderAnswer(yield* Commands.runReadOnly(cwd, ["status", "--short", "--branch", closed]), "done")
      })
    }),
    Tool.make("git_worktree", {
      description:
        "Checks a branch out in a folder of its own, so that it can be worked on beside the others; or removes such a folder, if nothing in it is uncommitted.",
      parameters: {
        action: Schema.Literals(["add", "remove"]),
        path: text("The folder, from the root of the repository"),
        branch: optional("add: the branch; one that there is not is made")
      },
      annotations: { runsCommands: true },
      needsApproval: true,
      execute: Effect.fnUntraced(function* ({ action, branch, path }) {
        const folder = yield* Names.checkPath(path)
        if (action === "remove") {
          yield* Commands.run(yield* openSafely, ["worktree", "remove", "--", folder])
          return `${path} is removed; its branch is still there.`
        }
        if (branch === undefined) return yield* ToolError.make("branch is missing: which branch is checked out?")
        const name = yield* Names.checkBranch(branch)
        const git = yield* approveCheckout(`git worktree add ${folder} ${name}`)
        const branches = yield* Commands.run(git, ["branch", "--list", "--format=%(refname:short)", name])
        const what = branches.stdout.trim() === "" ? ["-b", name, "--", folder] : ["--", folder, name]
        yield* Commands.run(git, ["worktree", "add", ...what])
        return `${name} is checked out in ${path}.`
      })
    })
  ])
}

/**
 * Makes the tools of {@link reading}, and `git_commit`, `git_branch` and `git_worktree`, which need an approval. A rule of
 * approvals for such a tool replaces the question.
 */
export const make = (options: Options = {}): ReadonlyArray<Tool.Tool<Sandbox> | Tool.NeedingApproval<Sandbox>> => [
  ...reading(options),
  ...changing(options)
]
