/** Commands in a terminal of the client, and a sandbox that uses it. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as BackendError from "../../core/BackendError.ts"
import type * as Sandbox from "../../core/Sandbox.ts"
import { ToolContext } from "../../core/ToolContext.ts"
import { valueAt } from "../../support/json/valueAt.ts"
import type { AcpError } from "../AcpError.ts"
import type { Client } from "./client.ts"
import { withFolder } from "./paths.ts"
import type { Call } from "./updates.ts"

/** The most bytes of output that the client keeps of a command. */
const mostOutput = 1_000_000

const toBackendError = (error: AcpError) =>
  BackendError.make("execute", "", { _tag: "Unavailable" }, { detail: error.message })

const signals: { readonly [name: string]: number } = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGKILL: 9, SIGTERM: 15 }

/** Gives the exit code of a shell for a command that a signal ended. */
const exitCodeOf = (ended: { readonly exitCode?: number | null; readonly signal?: string | null }): number =>
  ended.exitCode ??
  (ended.signal === undefined || ended.signal === null ? 1 : 128 + (valueAt(signals, ended.signal) ?? 15))

/**
 * Runs commands in terminals of the client, which shows them. `onTerminal` tells which call a terminal belongs to.
 * Input for a command, and all operations on files, stay with the sandbox.
 */
export const withTerminal = (
  sandbox: Sandbox.Service,
  options: {
    readonly client: Client
    readonly sessionId: string
    readonly cwd: string
    readonly onTerminal: (call: Call, terminalId: string) => Effect.Effect<void>
  }
): Sandbox.Service => {
  const { client, cwd, onTerminal, sessionId } = options
  const execute = Effect.fnUntraced(function* (command: string, settings: Sandbox.ExecuteOptions = {}) {
    const env = Object.entries(settings.env ?? {}).map(([name, value]) => ({ name, value }))
    const { terminalId } = yield* Effect.mapError(
      client.request("terminal/create", {
        sessionId,
        command: "/bin/sh",
        args: ["-c", command],
        cwd: withFolder(settings.cwd ?? ".", cwd),
        outputByteLimit: mostOutput,
        ...(env.length === 0 ? {} : { env })
      }),
      toBackendError
    )
    const at = { sessionId, terminalId }
    const run = Effect.gen(function* () {
      const call = yield* Effect.serviceOption(ToolContext)
      if (Option.isSome(call)) yield* onTerminal(call.value, terminalId)
      const limit = Duration.fromInputUnsafe(settings.timeout ?? "2 minutes")
      const ended = yield* client.request("terminal/wait_for_exit", at).pipe(
        Effect.mapError(toBackendError),
        Effect.timeoutOrElse({
          duration: limit,
          orElse: () =>
            Effect.flatMap(Effect.option(client.request("terminal/output", at)), (reply) =>
              Effect.fail(
                BackendError.make(
                  "execute",
                  "",
                  { _tag: "TimedOut", limit: Duration.toMillis(limit) },
                  {
                    detail: Option.match(reply, {
                      onNone: () => undefined,
                      onSome: ({ output }) => output.slice(-2_000)
                    })
                  }
                )
              )
            )
        }),
        Effect.onError(() => Effect.ignore(client.request("terminal/kill", at)))
      )
      const { output, truncated } = yield* Effect.mapError(client.request("terminal/output", at), toBackendError)
      return { output, truncated, exitCode: exitCodeOf(ended) } satisfies Sandbox.ExecuteResult
    })
    return yield* Effect.ensuring(run, Effect.ignore(client.request("terminal/release", at)))
  })
  return {
    ...sandbox,
    execute: (command, settings) =>
      settings?.stdin === undefined ? execute(command, settings) : sandbox.execute(command, settings),
    executeStream: (command, settings) =>
      settings?.stdin === undefined
        ? Stream.unwrap(
            Effect.map(execute(command, settings), ({ output, ...ended }) =>
              Stream.make<ReadonlyArray<Sandbox.ExecuteEvent>>(
                { _tag: "Output", channel: "stdout", text: output },
                { _tag: "Exited", ...ended }
              )
            )
          )
        : sandbox.executeStream(command, settings)
  }
}
