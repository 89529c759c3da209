/** Runs commands of a shell with a folder, variables, a timeout and bounded output. */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type BackendError, make as makeError } from "../../../core/BackendError.ts"
import type { ExecuteResult, ExecuteEvent, ExecuteOptions } from "../../../core/Sandbox.ts"
import * as Path from "../files/path.ts"
import { refusalOf } from "../sandboxes/commandLine.ts"
import * as Command from "./command.ts"
import type { Variables } from "./environment.ts"
import { fault, on } from "./failure.ts"
import * as Jail from "./jail.ts"
import * as Output from "./output.ts"
import type { Reaper } from "./reaper.ts"

/** `leftovers` is the scope of the layer: processes that commands left behind have ended when it is closed. */
export interface Shell {
  readonly jail: Jail.Jail
  readonly path: string
  readonly variables: Variables
  readonly outputLimit: number
  readonly leftovers: Scope.Scope
  readonly reaper: Reaper
  /** Isolates a program, which ends with the scope. Without it, the program runs unconfined. */
  readonly enclose?: ((program: Program) => Effect.Effect<Program, never, Scope.Scope>) | undefined
}

/** A program with its variables and its monitor. */
export type Program = Pick<Command.Spec, "file" | "args" | "env" | "monitor">

const operation = "execute"
const defaultTimeout = Duration.minutes(2)
const shownAtTimeout = 2000
const merger = "/bin/sh"

/** Joins both channels in one pipe to keep their order. The shell replaces the shell that redirects. */
const mergeChannels = (shell: Shell, command: string) => ({
  file: merger,
  args: ["-c", 'exec "$0" -c -- "$1" 2>&1', shell.path, command]
})

const separateChannels = (shell: Shell, command: string) => ({ file: shell.path, args: ["-c", "--", command] })

/** A running command: text as it comes. `undefined` is its end. */
interface Session {
  readonly next: Effect.Effect<ReadonlyArray<Output.Piece> | undefined, BackendError>
  readonly exitCode: () => number
  readonly left: Effect.Effect<{ readonly left?: ReadonlyArray<string> }, BackendError>
}

/** More of an output is not looked at for names. */
const lookedAt = 1_000_000

/** Finds hidden variables in a command and its output, and says so if the command fails. */
const makeMissing = (
  hidden: ReadonlyArray<string>,
  command: string,
  own: ExecuteOptions["env"]
): { readonly add: (text: string) => void; readonly end: (exitCode: number) => ReadonlyArray<Output.Piece> } => {
  const unsetNames = hidden.filter((name) => /^\w+$/.test(name) && own?.[name] === undefined)
  const words = new RegExp(`(?<!\\w)(?:${unsetNames.join("|")})(?!\\w)`, "g")
  const named = new Set<string>(unsetNames.length === 0 ? [] : command.match(words))
  let looked = 0
  let tail = ""
  return {
    add: (text) => {
      if (unsetNames.length === 0 || looked > lookedAt) return
      looked += text.length
      const part = tail + text
      for (const name of part.match(words) ?? []) named.add(name)
      tail = part.slice(-80)
    },
    end: (exitCode) => {
      if (exitCode === 0 || named.size === 0) return []
      const names = [...named].toSorted().slice(0, 5).join(", ")
      named.clear()
      const text = `\n[not passed on to commands: ${names}; it looks like a secret. The user can let it through: shell.env.show]\n`
      return [{ channel: "stderr", text }]
    }
  }
}

const folderOf = Effect.fnUntraced(function* (jail: Jail.Jail, cwd: string) {
  const { names, stats } = yield* Jail.locate(jail, Path.segments(cwd), true)
  if (stats === undefined) return yield* Effect.fail(fault({ _tag: "NotFound" }))
  if (!stats.isDirectory()) return yield* Effect.fail(fault({ _tag: "NotDirectory" }))
  return names
})

const open = Effect.fnUntraced(function* (
  shell: Shell,
  command: string,
  program: { readonly file: string; readonly args: ReadonlyArray<string> },
  options: ExecuteOptions | undefined
): Effect.fn.Return<Session, BackendError, Scope.Scope> {
  const folder = options?.cwd ?? "/"
  const cwd = yield* Effect.fromResult(Path.normalize(operation, folder))
  const refusal = refusalOf(folder, command, options?.env)
  if (refusal !== undefined) return yield* Effect.fail(refusal)
  const timeout = Duration.max(Duration.fromInputUnsafe(options?.timeout ?? defaultTimeout), Duration.zero)
  const env = { ...shell.variables.env, ...options?.env }
  const enclosed = shell.enclose === undefined ? { ...program, env } : yield* shell.enclose({ ...program, env })
  const missing = makeMissing(shell.variables.hidden, command, options?.env)
  const scope = yield* Effect.scope
  const names = yield* on(operation, folder, folderOf(shell.jail, cwd))
  const running = yield* on(
    operation,
    folder,
    Jail.holding(shell.jail, names, (held) =>
      Scope.provide(
        Command.start({ ...enclosed, cwd: held.self.toString(), stdin: options?.stdin }, shell.leftovers, shell.reaper),
        scope
      )
    )
  )
  const decoder = Output.decoder()
  const last = Output.keeper(2 * shownAtTimeout)
  const deadline = yield* Deferred.make<never, BackendError>()
  const limit = Duration.toMillis(timeout)
  yield* Effect.sleep(timeout).pipe(
    Effect.andThen(
      Effect.suspend(() => {
        const detail = last.end(shownAtTimeout)
        const error = makeError(operation, folder, { _tag: "TimedOut", limit }, detail === "" ? {} : { detail })
        return Deferred.fail(deadline, error)
      })
    ),
    Effect.andThen(running.end),
    Effect.forkScoped
  )
  const take = Effect.map(running.take, (chunks) => {
    const pieces = chunks === undefined ? [...decoder.end(), ...missing.end(running.exitCode())] : decoder.add(chunks)
    for (const { text } of pieces) {
      last.add(text)
      missing.add(text)
    }
    return chunks === undefined && pieces.length === 0 ? undefined : pieces
  })
  const leftNames = running.left.pipe(
    Effect.map((names) => (names.length === 0 ? {} : { left: names })),
    Effect.mapError((failed) => ({ ...failed, detail: `${failed.detail}: ${last.end(shownAtTimeout)}` }))
  )
  return {
    next: Effect.raceFirst(Deferred.await(deadline), take),
    exitCode: running.exitCode,
    left: on(operation, folder, leftNames)
  }
})

/** Runs a command to its end. */
export const execute = (
  shell: Shell,
  command: string,
  options: ExecuteOptions | undefined
): Effect.Effect<ExecuteResult, BackendError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { next, exitCode, left } = yield* open(shell, command, mergeChannels(shell, command), options)
      const keeper = Output.keeper(shell.outputLimit)
      for (let pieces = yield* next; pieces !== undefined; pieces = yield* next) {
        for (const { text } of pieces) keeper.add(text)
      }
      return { ...keeper.kept(), exitCode: exitCode(), ...(yield* left) }
    })
  )

/** Runs a command piece by piece, as fast as its output is taken. */
export const executeStream = (
  shell: Shell,
  command: string,
  options: ExecuteOptions | undefined
): Stream.Stream<ExecuteEvent, BackendError> =>
  Stream.unwrap(
    Effect.map(open(shell, command, separateChannels(shell, command), options), ({ next, exitCode, left }) =>
      Stream.paginate(undefined, () =>
        Effect.flatMap(
          next,
          (pieces): Effect.Effect<readonly [ReadonlyArray<ExecuteEvent>, Option.Option<undefined>], BackendError> =>
            pieces === undefined
              ? Effect.map(left, (names) => [
                  [{ _tag: "Exited", exitCode: exitCode(), truncated: false, ...names }],
                  Option.none()
                ])
              : Effect.succeed([pieces.map((piece) => ({ _tag: "Output", ...piece })), Option.some(undefined)])
        )
      )
    )
  )
