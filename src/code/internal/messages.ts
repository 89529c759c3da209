/** The messages between a program and the thread that runs its scripts. Each order gets one report. */

/** The start values of a script. The guest reads them as one JSON text. */
export interface Setup {
  /** The seed of `Math.random`. */
  readonly seed: number
  /** The time at which the clock of the script begins, in milliseconds since the epoch. */
  readonly now: number
  readonly tools: ReadonlyArray<string>
  readonly calls: number
  /** The most characters that the script may send at once. */
  readonly size: number
  /** The arguments as JSON. */
  readonly args: string
}

export type Order =
  | {
      readonly id: number
      readonly _tag: "Begin"
      readonly source: string
      readonly setup: string
      readonly memory: number
      readonly time: number
    }
  | { readonly id: number; readonly _tag: "Settle"; readonly answers: string }
  | { readonly id: number; readonly _tag: "Reset" }

/** Why a script ended, as the thread can tell. */
export type Fault = "Syntax" | "Threw" | "Time" | "Memory" | "Size" | "Crashed"

export type Report =
  | { readonly id: number; readonly _tag: "Ready" }
  | {
      readonly id: number
      readonly _tag: "Rest"
      /** The computing time of the script so far, in milliseconds. */
      readonly spent: number
      /** The bytes that the memory of the thread has grown to. */
      readonly held: number
      /** JSON of the calls and lines since the last report: `[id, kind, name, json]` each. */
      readonly said: string
    }
  | {
      readonly id: number
      readonly _tag: "Failed"
      readonly spent: number
      readonly fault: Fault
      readonly message: string
      readonly stack: string
    }
  | { readonly id: number; readonly _tag: "Clean"; readonly held: number }

/** The name of a script in stack traces. */
export const scriptName = "script.ts"

/** The most characters that a script may send at once: the host reads them in one go. */
export const maxSaid = 2_000_000

/** The most values in the arguments of the calls that a script makes at once: the host looks at each of them. */
export const maxValues = 100_000
