/**
 * A backend that also runs commands.
 *
 * A layer of a sandbox provides both services, `Sandbox` and `Backend`, by one value: files written by the one are
 * there for the other.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Sandbox } from "effect-deepagents"
 *
 * const test = Sandbox.Sandbox.use((sandbox) => sandbox.execute("npm test", { timeout: "5 minutes" })).pipe(
 *   Effect.map(({ exitCode, output }) => (exitCode === 0 ? "green" : output))
 * )
 * ```
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { wholeSpan, wholeStreamSpan } from "../support/effect/span.ts"
import { defined } from "../support/json/defined.ts"
import * as Backend from "./Backend.ts"
import type { BackendError } from "./BackendError.ts"

/** Options of a command. */
export interface ExecuteOptions {
  /** The time limit of the command. Default: 2 minutes. */
  readonly timeout?: Duration.Input | undefined
  /** The folder that the command runs in, a path of the backend. Default: its working folder. */
  readonly cwd?: string | undefined
  /** Variables beside the layer's own. Default: none. */
  readonly env?: { readonly [name: string]: string } | undefined
  /** The input of the command. Default: closed. */
  readonly stdin?: string | undefined
}

/**
 * The result of a command. `output` is its stdout and stderr in the order of arrival; `truncated` says that its middle
 * is missing. A command that a signal ended has the exit code of a shell (128 + n). `left` names the processes that
 * still ran when the shell had exited, and were ended with it; it is absent if no process was left or if this is not known.
 */
export interface ExecuteResult {
  readonly output: string
  readonly exitCode: number
  readonly truncated: boolean
  readonly left?: ReadonlyArray<string>
}

/** The events of a running command: pieces of output, then its end. */
export type ExecuteEvent =
  | { readonly _tag: "Output"; readonly channel: "stdout" | "stderr"; readonly text: string }
  | {
      readonly _tag: "Exited"
      readonly exitCode: number
      readonly truncated: boolean
      readonly left?: ReadonlyArray<string>
    }

/**
 * Operations beside those of a backend. `command` is a line for a POSIX shell. A failing command is no failure: it has
 * an exit code. A command over its time is killed with all its children, and fails with `TimedOut` (`detail` is the end
 * of its output). An interrupted command is killed too.
 *
 * `reaches` says whether commands could access a path of the backend, or anything below it. Rules for files can only be
 * enforced elsewhere.
 */
export interface Service extends Backend.Service {
  readonly id: string
  readonly execute: (command: string, options?: ExecuteOptions) => Effect.Effect<ExecuteResult, BackendError>
  readonly executeStream: (command: string, options?: ExecuteOptions) => Stream.Stream<ExecuteEvent, BackendError>
  readonly reaches: (path: string) => boolean
}

/** The files and commands of an agent. */
export class Sandbox extends Context.Service<Sandbox, Service>()("effect-deepagents/Sandbox") {}

/**
 * The isolation of the commands of a sandbox. Layers of sandboxes that isolate provide it beside `Sandbox`, so a tool
 * that needs it in `R` does not compile with `LocalShell`. `network` is the reach of commands.
 *
 * For a sandbox of your own, provide it yourself: `Layer.succeed(Sandbox.Isolated, { by: "remote", network: "open" })`.
 * `by: "nothing"` runs such tools with all rights of your process, knowingly.
 */
export class Isolated extends Context.Service<
  Isolated,
  {
    readonly by: "bubblewrap" | "seatbelt" | "docker" | "remote" | "interpreter" | "nothing"
    readonly network: "none" | "rules" | "open"
  }
>()("effect-deepagents/Sandbox/Isolated") {}

/** Checks that a backend runs commands. */
export const isSandbox = (backend: Backend.Service): backend is Service => "execute" in backend

/**
 * The same sandbox with a span for each operation, as `Backend.traced`. The command is no attribute: it may hold
 * secrets.
 */
export const traced = (service: Service): Service => ({
  ...service,
  ...Backend.traced(service),
  execute: (command, options) => wholeSpan("Sandbox.execute")(service.execute(command, options)),
  executeStream: (command, options) => wholeStreamSpan("Sandbox.executeStream")(service.executeStream(command, options))
})

/** Both services, by one value. */
export const context = (service: Service): Context.Context<Sandbox | Backend.Backend> =>
  Context.make(Sandbox, service).pipe(Context.add(Backend.Backend, service))

/** Makes the layer of a sandbox: both services, by one value, with a span for each operation. */
export const layer = <E, R>(
  make: Effect.Effect<Service, E, R>
): Layer.Layer<Sandbox | Backend.Backend, E, Exclude<R, Scope.Scope>> =>
  Layer.effectContext(Effect.map(make, (service) => context(traced(service))))

/** Like {@link layer}, for a sandbox that isolates: provides `Isolated` too. */
export const layerIsolated = <E, R>(
  make: Effect.Effect<Service, E, R>,
  isolated: Isolated["Service"]
): Layer.Layer<Sandbox | Backend.Backend | Isolated, E, Exclude<R, Scope.Scope>> =>
  Layer.merge(layer(make), Layer.succeed(Isolated, isolated))

/** Runs a streamed command to its end, for layers whose `execute` is the stream put together. */
export const collect = (
  events: Stream.Stream<ExecuteEvent, BackendError>
): Effect.Effect<ExecuteResult, BackendError> =>
  Stream.runFold(
    events,
    (): ExecuteResult => ({ output: "", exitCode: -1, truncated: false }),
    (sum, event) =>
      event._tag === "Output"
        ? { ...sum, output: sum.output + event.text }
        : { ...sum, exitCode: event.exitCode, truncated: event.truncated, ...defined({ left: event.left }) }
  )
