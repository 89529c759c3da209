/** Makes commands of `effect/process` that run in a sandbox. */
import * as Effect from "effect/Effect"
import * as ChildProcess from "effect/process/ChildProcess"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { BackendError } from "../../../core/BackendError.ts"
import * as Enclosure from "./enclosure.ts"
import type { ProgramOptions } from "./options.ts"

/** Makes the command of a program in a sandbox. The report of its monitor is not read. */
export const make = Effect.fnUntraced(function* <R>(
  options: ProgramOptions<R>
): Effect.fn.Return<ChildProcess.StandardCommand, BackendError, R | Scope.Scope> {
  const { command, cwd, env } = options
  const [file, ...args] = command
  const enclosure = yield* Enclosure.make(options, () => [{ path: cwd, access: "write" }])
  const enclosed = yield* enclosure.enclose({ file, args, env: { ...enclosure.env, ...env } })
  const { feeds, seals } = enclosed.monitor ?? { feeds: [], seals: new Map() }
  const descriptors: Array<readonly [number, ChildProcess.AdditionalFdConfig]> = [
    // An inherited descriptor would be open in the program.
    ...[...seals.keys()].map((descriptor) => [descriptor, { type: "input", stream: Stream.empty }] as const),
    ...feeds.map((bytes, index) => [3 + index, { type: "input", stream: Stream.make(bytes) }] as const),
    [3 + feeds.length, { type: "duplex" }]
  ]
  const additionalFds = Object.fromEntries(
    descriptors.map(([descriptor, config]) => [ChildProcess.fdName(descriptor), config])
  )
  return ChildProcess.make(enclosed.file, enclosed.args, { cwd, env: enclosed.env, extendEnv: false, additionalFds })
})
