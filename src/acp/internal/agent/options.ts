/** Options of an agent of others, public by `AcpAgent`. */
import type * as Duration from "effect/Duration"
import type * as Redacted from "effect/Redacted"
import type { Isolation } from "../../../backends/OsSandbox.ts"
import type { Prices } from "../../../core/Usage.ts"

/** An agent of others. */
export interface Options<R = never> {
  /** The name of the agent, in events, errors and for models. */
  readonly name: string
  /** Tells other agents when to choose it. Default: empty. */
  readonly description?: string | undefined
  /** The program and its arguments. */
  readonly command: readonly [program: string, ...args: ReadonlyArray<string>]
  /**
   * The folder of the machine in which the program starts, and which stands for the working folder of the `Backend`.
   * Default: the working folder of the backend, if the backend is the machine's; else a new, empty folder.
   */
  readonly cwd?: string | undefined
  /** Variables for the program, beside `PATH`, `HOME` and the like. Default: none. */
  readonly env?: { readonly [name: string]: string | Redacted.Redacted<string> } | undefined
  /**
   * Opens the sandbox of its process: more files, and a way to the network. `OsSandbox` makes the sandbox. `none` runs
   * the process with your rights. Default: the process reaches the working folder, and no network. Where bubblewrap can't
   * isolate, it runs with your rights, and a warning says so.
   */
  readonly isolation?: Isolation<R> | "none" | undefined
  /** The mode in which it works, by its own names. Default: its own choice. */
  readonly mode?: string | undefined
  /** Prices for an estimate of its cost, if it reports none. Default: only reported costs are counted. */
  readonly prices?: Prices | undefined
  /** The time without a message after which it is cancelled. Waiting for a person does not count. Default: 10 minutes. */
  readonly silence?: Duration.Input | undefined
}
