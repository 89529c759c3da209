/** The process of an agent of others: in a sandbox or a group of its own, with few variables, its last words kept. */
import type * as Acp from "@agentclientprotocol/sdk"
import * as Effect from "effect/Effect"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import type { Isolation } from "../../../backends/OsSandbox.ts"
import type { Run } from "../../../core/Run.ts"
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

/** A program to start. */
export interface Program<R> {
  readonly name: string
  readonly command: readonly [string, ...ReadonlyArray<string>]
  readonly cwd: string
  readonly env?: { readonly [name: string]: string | Redacted.Redacted<string> } | undefined
  readonly isolation?: Isolation<R> | "none" | undefined
}

const toPlain = (env: Program<never>["env"] = {}): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env).map(([name, value]) => [name, Redacted.isRedacted(value) ? Redacted.value(value) : value])
  )

const notStarted = (detail: string) => new AcpError({ reason: "NotStarted", detail })

const withoutNetwork = "\n[it ran in a sandbox without network; the option `isolation` opens more]"

/** Makes the command of the program. It runs in a sandbox, unless the options or the machine rule that out. */
const makeCommand = Effect.fnUntraced(function* <R>({ command, cwd, env, isolation, name }: Program<R>, run: Run) {
  const [program, ...args] = command
  const variables = { ...(yield* neededVariables), ...env }
  const unconfined = ChildProcess.make(program, args, { env: variables, extendEnv: false, cwd })
  if (isolation === "none") return { process: unconfined, hint: "" }
  const Sandbox = yield* Effect.promise(() => import("../../../backends/OsSandbox.ts"))
  const probed = yield* Sandbox.probe
  if (probed.works) {
    // The home is hidden, and `/tmp` is another one.
    const { HOME: _home, TMPDIR: _folder, ...rest } = toPlain(variables)
    const own = { ...rest, ...toPlain(env) }
    const process = yield* Effect.mapError(
      Sandbox.makeProgram({ ...isolation, command, cwd, env: own }),
      ({ message }) => notStarted(`${name} can't be isolated: ${message}`)
    )
    return { process, hint: isolation?.egress === undefined ? withoutNetwork : "" }
  }
  const why = `${probed.why}; ${probed.mend}`
  if (isolation !== undefined) return yield* notStarted(`${name} can't be isolated: ${why}`)
  yield* run.warn(
    "isolation",
    `${name} is not isolated: its own files, commands and network are held by nothing. ${why}`
  )
  return { process: unconfined, hint: "" }
})

/** Starts the program. Its sandbox or its group is ended with the scope. */
export const startChild = Effect.fnUntraced(function* <R>(sdk: Sdk, program: Program<R>, run: Run) {
  const spawner = yield* ChildProcessSpawner
  const { hint, process } = yield* makeCommand(program, run)
  const handle = yield* Effect.mapError(
    spawner.spawn(
      ChildProcess.make(process.command, process.args, {
        ...process.options,
        forceKillAfter: patience,
        stdin: { stream: "pipe", endOnDone: true }
      })
    ),
    ({ message }) => notStarted(`${program.command[0]} can't be started: ${message}`)
  )
  let errorOutput = ""
  const decoder = new TextDecoder()
  yield* Effect.forkScoped(
    Effect.ignore(
      Stream.runForEach(handle.stderr, (chunk) =>
        Effect.sync(() => {
          errorOutput = (errorOutput + decoder.decode(chunk, { stream: true })).slice(-keptWords)
        })
      )
    )
  )
  const stream = yield* makeStream(sdk, { input: handle.stdout, output: handle.stdin }, {})
  return { stream, words: () => `${visible(errorOutput)}${hint}`.trim() } satisfies Child
})
