/** The process of an agent of others: in a group of its own, with few variables, its last words kept. */
import type * as Acp from "@agentclientprotocol/sdk"
import * as Effect from "effect/Effect"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { neededVariables } from "../../../support/effect/environment.ts"
import { visible } from "../../../support/text/untrusted.ts"
import { AcpError } from "../../AcpError.ts"
import type { Sdk } from "../sdk.ts"
import { makeStream } from "../wire.ts"

/** The end of its standard error that is kept, in characters. */
const keptWords = 4_000

/** The time that it has to end by itself. */
const patience = "1 second"

/** A process that speaks the protocol. */
export interface Child {
  readonly stream: Acp.Stream
  /** The end of its standard error. */
  readonly words: () => string
}

/** Starts the program. Its group is ended with the scope. */
export const startChild = Effect.fnUntraced(function* (
  sdk: Sdk,
  options: {
    readonly command: readonly [string, ...ReadonlyArray<string>]
    readonly cwd: string
    readonly env?: { readonly [name: string]: string | Redacted.Redacted<string> } | undefined
  }
) {
  const spawner = yield* ChildProcessSpawner
  const [program, ...args] = options.command
  const handle = yield* Effect.mapError(
    spawner.spawn(
      ChildProcess.make(program, args, {
        env: { ...(yield* neededVariables), ...options.env },
        extendEnv: false,
        cwd: options.cwd,
        forceKillAfter: patience,
        stdin: { stream: "pipe", endOnDone: true }
      })
    ),
    ({ message }) => new AcpError({ reason: "NotStarted", detail: `${program} can't be started: ${message}` })
  )
  let said = ""
  const decoder = new TextDecoder()
  yield* Effect.forkScoped(
    Effect.ignore(
      Stream.runForEach(handle.stderr, (chunk) =>
        Effect.sync(() => {
          said = (said + decoder.decode(chunk, { stream: true })).slice(-keptWords)
        })
      )
    )
  )
  const stream = yield* makeStream(sdk, { input: handle.stdout, output: handle.stdin }, {})
  return { stream, words: () => visible(said).trim() } satisfies Child
})
