/**
 * Runs git in a sandbox: by a list of arguments, each quoted for the shell that the sandbox has, never by a text that
 * somebody else put together.
 *
 * Each command works on the repository that was opened, whatever `.git` says by now, and runs no program that the
 * repository brings along: no pager, editor, external diff, text conversion, filter, merge driver, file system monitor
 * or hook, no way of fetching, and nothing of a repository in it.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as CommandLine from "effect/process/CommandLine"
import * as Stream from "effect/Stream"
import type { BackendError } from "../../../core/BackendError.ts"
import { Sandbox } from "../../../core/Sandbox.ts"
import * as ToolError from "../../../core/ToolError.ts"
import { cut } from "../../../support/text/text.ts"

/**
 * A repository as it was opened. `cwd` is the folder of the sandbox that git works in and `at` its real path; `top` is
 * the real path of the work tree, `dir` of its git directory, `common` of what all work trees share.
 */
export interface Repository {
  readonly cwd: string
  readonly at: string
  readonly top: string
  readonly dir: string
  readonly common: string
}

export type Environment = { readonly [name: string]: string }

/** Outcome of a command. */
export interface Answer {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
  readonly truncated: boolean
}

/** The output that is kept of a command, in characters of each channel. */
const kept = 400_000

/** The time that a command may take. */
const patience = Duration.seconds(30)

const environment = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_PAGER: "cat",
  GIT_EDITOR: "true",
  GIT_SEQUENCE_EDITOR: "true",
  GIT_OPTIONAL_LOCKS: "0",
  LC_ALL: "C"
}

/** Variables by which git would take parts of another repository. */
const foreign = [
  "GIT_INDEX_FILE",
  "GIT_OBJECT_DIRECTORY",
  "GIT_ALTERNATE_OBJECT_DIRECTORIES",
  "GIT_NAMESPACE",
  "GIT_PREFIX",
  "GIT_CONFIG",
  "GIT_GRAFT_FILE",
  "GIT_SHALLOW_FILE",
  "GIT_EXTERNAL_DIFF",
  "GIT_ATTR_SOURCE"
].join(" ")

/** Settings of all commands; names are shown as they are. */
const settings = [
  "core.quotePath=false",
  "core.fsmonitor=false",
  "core.protectHFS=true",
  "core.protectNTFS=true",
  "submodule.recurse=false",
  "safe.bareRepository=explicit",
  "merge.autoStash=false",
  "rerere.enabled=false",
  "maintenance.auto=false",
  "gc.auto=0"
]

/** Paths are names, never patterns. */
const always = ["--no-pager", "--literal-pathspecs", ...settings.flatMap((setting) => ["-c", setting])]

/** A commit or file that is not here is not fetched: the repository says by which program (`core.sshCommand`). */
export const offline: Environment = { GIT_NO_LAZY_FETCH: "1", GIT_ALLOW_PROTOCOL: "none" }

const failed = (error: BackendError): ToolError.ToolError =>
  ToolError.make(
    error.reason._tag === "TimedOut"
      ? `git did not come to an end within ${Duration.toSeconds(patience)} seconds`
      : `git could not be run: ${error.message}`
  )

/** Runs a line of the shell, made of quoted words, whatever its exit code. */
export const runLine = (
  line: string,
  options: { readonly cwd: string; readonly env?: Environment | undefined; readonly stdin?: string | undefined }
): Effect.Effect<Answer, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const sandbox = yield* Sandbox
    const output = { stdout: "", stderr: "" }
    let truncated = false
    const exitCode = yield* sandbox
      .executeStream(`unset ${foreign}; ${line}`, {
        cwd: options.cwd,
        timeout: patience,
        env: { ...environment, ...options.env },
        stdin: options.stdin
      })
      .pipe(
        Stream.runFold(
          () => -1,
          (code, event) => {
            if (event._tag === "Exited") {
              truncated ||= event.truncated
              return event.exitCode
            }
            const room = kept - output[event.channel].length
            truncated ||= event.text.length > room
            output[event.channel] += event.text.slice(0, Math.max(0, room))
            return code
          }
        ),
        Effect.mapError(failed)
      )
    return { ...output, exitCode, truncated }
  })

/** Quotes words for the shell. */
export const quoted = (words: ReadonlyArray<string>): Effect.Effect<string, ToolError.ToolError> =>
  Effect.mapError(Effect.fromResult(CommandLine.join(words)), () =>
    ToolError.make("a name or a text for git can't have a NUL character")
  )

/** A git command as words. `hooks` is the folder of the hooks that run (default none). */
export const gitWords = (args: ReadonlyArray<string>, hooks = "/dev/null"): ReadonlyArray<string> => [
  "git",
  ...always,
  "-c",
  `core.hooksPath=${hooks}`,
  ...args
]

/** The variables by which git works on the repository as it was opened. */
export const pinned = ({ common, dir, top }: Repository): Environment => ({
  GIT_DIR: dir,
  GIT_COMMON_DIR: common,
  GIT_WORK_TREE: top
})

/** Git's words on a failure, for whoever asked. */
export const complaint = ({ exitCode, stderr, stdout }: Answer): string => {
  const said = (stderr.trim() === "" ? stdout : stderr).trim()
  return said === "" ? `git failed with exit code ${exitCode}` : cut(said, 4_000)
}

/** Fails with what git says if its exit code is not 0. */
export const succeeded = (answer: Answer): Effect.Effect<Answer, ToolError.ToolError> =>
  answer.exitCode === 0 ? Effect.succeed(answer) : Effect.fail(ToolError.make(complaint(answer)))
