/**
 * Runs git in a sandbox: by a list of arguments, each quoted for the shell that the sandbox has, never by a text that
 * somebody else put together.
 *
 * Nothing that a repository says is run by reading it: no pager, no external diff, no text conversion, no filter, no file
 * system monitor, no hook, no way of fetching.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as CommandLine from "effect/process/CommandLine"
import * as Stream from "effect/Stream"
import type { BackendError } from "../../../core/BackendError.ts"
import { Sandbox } from "../../../core/Sandbox.ts"
import * as ToolError from "../../../core/ToolError.ts"
import { cut } from "../../../support/text.ts"

/** The output that is kept of a command, in characters of each channel. */
const kept = 400_000

/** The time that a command may take. */
const patience = Duration.seconds(30)

/** A request to git. `hooks`: those of the repository run, as for a person who commits. */
export interface Request {
  readonly cwd: string
  readonly args: ReadonlyArray<string>
  readonly hooks?: boolean | undefined
  readonly stdin?: string | undefined
  readonly env?: { readonly [name: string]: string } | undefined
}

/** Outcome of the request. */
export interface Answer {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
  readonly truncated: boolean
}

const environment = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_PAGER: "cat",
  GIT_EDITOR: "true",
  GIT_OPTIONAL_LOCKS: "0",
  LC_ALL: "C"
}

/** Paths are names, never patterns; names are shown as they are. */
const always = ["--no-pager", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.quotePath=false"]

const withoutHooks = ["-c", "core.hooksPath=/dev/null"]

/** A commit or file that is not here is not fetched: the repository says by which program (`core.sshCommand`). */
const offline = { GIT_NO_LAZY_FETCH: "1", GIT_ALLOW_PROTOCOL: "none" }

const failed = (error: BackendError): ToolError.ToolError =>
  ToolError.make(
    error.reason._tag === "TimedOut"
      ? `git did not come to an end within ${Duration.toSeconds(patience)} seconds`
      : `git could not be run: ${error.message}`
  )

/** Runs git, whatever its exit code. */
export const attempt = ({
  args,
  cwd,
  env,
  hooks = false,
  stdin
}: Request): Effect.Effect<Answer, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const sandbox = yield* Sandbox
    const command = yield* Effect.fromResult(
      CommandLine.join(["git", ...always, ...(hooks ? [] : withoutHooks), ...args])
    ).pipe(Effect.mapError(() => ToolError.make("a name or a text for git can't have a NUL character")))
    const output = { stdout: "", stderr: "" }
    let truncated = false
    const exitCode = yield* sandbox
      .executeStream(command, {
        cwd,
        timeout: patience,
        env: { ...environment, ...(hooks ? {} : offline), ...env },
        stdin
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

/** Settings by which git would run programs to compare files, or compare files of another place. */
const settings = "^(filter\\..*\\.(clean|smudge|process|required)|core\\.worktree)$"

/**
 * The environment in which a repository's own settings of that kind count for nothing: whoever may write files could
 * have programs run by them. Those of the person (git-lfs is one) do.
 */
const harmless = (cwd: string): Effect.Effect<{ readonly [name: string]: string }, ToolError.ToolError, Sandbox> =>
  Effect.gen(function* () {
    const answer = yield* attempt({ cwd, args: ["config", "-z", "--show-scope", "--get-regexp", settings] })
    if (answer.exitCode > 1) return yield* ToolError.make(complaint(answer))
    if (answer.truncated) return yield* ToolError.make("the settings of this repository are too long to look through")
    const fields = answer.stdout.split("\0")
    const own = fields.flatMap((field, index) => {
      const scope = index % 2 === 0 ? "" : fields[index - 1]
      return scope === "local" || scope === "worktree" ? [field.split("\n")[0] ?? ""] : []
    })
    const filters = [...new Set(own.filter((key) => key.startsWith("filter.")))]
    return Object.fromEntries([
      ...(own.includes("core.worktree") ? [["GIT_WORK_TREE", "."]] : []),
      ...(filters.length === 0 ? [] : [["GIT_CONFIG_COUNT", String(filters.length)]]),
      ...filters.flatMap((key, index) => [
        [`GIT_CONFIG_KEY_${index}`, key],
        [`GIT_CONFIG_VALUE_${index}`, key.endsWith(".required") ? "false" : ""]
      ])
    ])
  })

/** Runs git to read, and nothing that the repository brings along. */
export const look = (request: Request): Effect.Effect<Answer, ToolError.ToolError, Sandbox> =>
  Effect.flatMap(harmless(request.cwd), (env) => run({ ...request, env }))

/** Git's words on a failure, for whoever asked. */
export const complaint = ({ exitCode, stderr, stdout }: Answer): string => {
  const said = (stderr.trim() === "" ? stdout : stderr).trim()
  return said === "" ? `git failed with exit code ${exitCode}` : cut(said, 4_000)
}

/** Runs git, and fails with what it says if its exit code is not 0. */
export const run = (request: Request): Effect.Effect<Answer, ToolError.ToolError, Sandbox> =>
  Effect.flatMap(attempt(request), (answer) =>
    answer.exitCode === 0 ? Effect.succeed(answer) : Effect.fail(ToolError.make(complaint(answer)))
  )
