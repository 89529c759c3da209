/** Programs that run a command in a sandbox of its own, and whose end ends all that the command started. */
import type { ChildProcess } from "node:child_process"
import { Writable } from "node:stream"
import * as Effect from "effect/Effect"
import { type Fault, fault } from "./failure.ts"
import * as Group from "./group.ts"

/** The descriptors of a monitor. */
export interface Monitor {
  /** The inputs from descriptor 3 on, one after the other. The next descriptor is its report: see {@link attend}. */
  readonly feeds: ReadonlyArray<Uint8Array>
  /** Descriptors that the command must not inherit, and descriptors of this process that take their places. */
  readonly seals: ReadonlyMap<number, number>
}

type Descriptor = "ignore" | "pipe" | number

/** The descriptors of a command. */
export const stdioOf = (stdin: string | undefined, monitor: Monitor | undefined): Array<Descriptor> => {
  const own = [stdin === undefined ? "ignore" : "pipe", "pipe", "pipe"] as const
  if (monitor === undefined) return [...own]
  const all: Array<Descriptor> = [...own, ...monitor.feeds.map(() => "pipe" as const), "pipe"]
  for (const [descriptor, substitute] of monitor.seals) {
    while (all.length <= descriptor) all.push("ignore")
    if (all[descriptor] === "ignore" && descriptor > 2) all[descriptor] = substitute
  }
  return all
}

/** The first line of a report: the command begins now. A monitor that can't write it ends. */
export const beginning = "begins"

/** A running monitor. */
export interface RunningMonitor {
  readonly hasBegun: () => boolean
  /**
   * The names of the processes that the command left behind, once the monitor has ended. Fails if the command never began:
   * the monitor could not set up its sandbox.
   */
  readonly left: Effect.Effect<ReadonlyArray<string>, Fault>
}

/** The most that is read of a report. */
const maxReport = 4000

const neverBegan = fault(
  { _tag: "Unavailable" },
  "the sandbox of the command could not be set up; its output says what is missing"
)

/** Feeds a monitor, and reads its report to the end: {@link beginning}, then the names of left processes, a line each. */
export const attend = (child: ChildProcess, { feeds }: Monitor): RunningMonitor => {
  for (const [index, bytes] of feeds.entries()) {
    const into = child.stdio[3 + index]
    // The program may end before it reads.
    into?.on("error", () => undefined)
    if (into instanceof Writable) into.end(bytes)
  }
  const from = child.stdio[3 + feeds.length]
  let report = ""
  let isOver = false
  from?.on("data", (bytes: Buffer) => {
    if (report.length < maxReport) report += bytes.toString()
  })
  from?.on("error", () => undefined)
  from?.once("close", () => {
    isOver = true
  })
  const hasBegun = (): boolean => report.startsWith(`${beginning}\n`)
  const over = Effect.callback<void>((resume) => {
    const tell = (): void => resume(Effect.void)
    if (isOver || from === undefined || from === null) tell()
    else from.once("close", tell)
    return Effect.sync(() => from?.off("close", tell))
  })
  const names = Effect.suspend(() => {
    const [, ...lines] = report.split("\n")
    return hasBegun()
      ? Effect.succeed(lines.filter((line) => line !== "").map((line) => Group.shortName(line)))
      : Effect.fail(neverBegan)
  })
  return { hasBegun, left: Effect.andThen(over, names) }
}
