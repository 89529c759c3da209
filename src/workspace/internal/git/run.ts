/**
 * Runs git in a sandbox by a list of quoted arguments.
 *
 * Each command works on the opened repository, even if its `.git` changes later. It runs no program of the repository: no
 * pager, editor, external diff, text conversion, filter, merge driver, file system monitor or hook. It fetches nothing,
 * and runs nothing of nested repositories.
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
 * An opened repository. `cwd` is the working folder in the sandbox, and `at` its real path. `top` is the real path of the
 * work tree, `dir` of its git directory, `common` of the git directory that all work trees share.
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

/** Maximum characters of each output channel. */
const maxOutput = 400_000

/** Time limit of a command. */
const timeout = Duration.seconds(30)

const environment = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_PAGER: "cat",
  GIT_EDITOR: "true",
  GIT_SEQUENCE_EDITOR: "true",
  GIT_OPTIONAL_LOCKS: "0",
  LC_ALL: "C"
}

/** Variables that could redirect git to another repository. */
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

/** Settings of all commands. */
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

/** Arguments of all commands. Paths are literal. */
const always = ["--no-pager", "--literal-pathspecs", ...settings.flatMap((setting) => ["-c", setting])]

/** Disables fetching of missing objects, since the repository chooses its program (`core.sshCommand`). */
export const offline: Environment = { GIT_NO_LAZY_FETCH: "1", GIT_ALLOW_PROTOCOL: "none" }

const convertError = (error: BackendError): ToolError.ToolError =>
  ToolError.make(
    error.reason._tag === "TimedOut"
      ? `git did not come to an end within ${Duration.toSeconds(timeout)} seconds`
      : `git could not be run: ${error.message}`
  )

/** Runs a shell line of quoted words. A non-zero exit code is not a failure. */
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
        timeout,
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
            const room = maxOutput - output[event.channel].length
            truncated ||= event.text.length > room
            output[event.channel] += event.text.slice(0, Math.max(0, room))
            return code
          }
        ),
        Effect.mapError(convertError)
      )
    return { ...output, exitCode, truncated }
  })

/** Quotes words for the shell. */
export const quoteWords = (words: ReadonlyArray<string>): Effect.Effect<string, ToolError.ToolError> =>
  Effect.mapError(Effect.fromResult(CommandLine.join(words)), () =>
    ToolError.make("a name or a text for git can't have a NUL character")
  )

/** Makes the words of a git command. `hooks` is the folder of enabled hooks (default none). */
export const gitWords = (args: ReadonlyArray<string>, hooks = "/dev/null"): ReadonlyArray<string> => [
  "git",
  ...always,
  "-c",
  `core.hooksPath=${hooks}`,
  ...args
]

/** Makes the variables that bind git to the opened repository. */
export const environmentOf = ({ common, dir, top }: Repository): Environment => ({
  GIT_DIR: dir,
  GIT_COMMON_DIR: common,
  GIT_WORK_TREE: top
})

/** Returns the message of git on a failure. */
export const describeFailure = ({ exitCode, stderr, stdout }: Answer): string => {
  const message = (stderr.trim() === "" ? stdout : stderr).trim()
  return message === "" ? `git failed with exit code ${exitCode}` : cut(message, 4_000)
}

/** Fails with the message of git if the exit code is not 0. */
export const failOnExit = (answer: Answer): Effect.Effect<Answer, ToolError.ToolError> =>
  answer.exitCode === 0 ? Effect.succeed(answer) : Effect.fail(ToolError.make(describeFailure(answer)))
