/** A machine of its own, in a process that a test may kill. */
import { Effect, Schedule } from "effect"
import { bundle } from "../bundle.ts"
import { runChild } from "../child.ts"
import { did } from "./children/agents.ts"

const file = bundle(new URL("children/single.ts", import.meta.url))

/** Runs the machine; ends it after a given line, or reads its output. */
export const runMachine = (path: string, what: string, until?: string) =>
  Effect.map(runChild(file, [path, what]), ({ text }) => text).pipe(
    Effect.raceFirst(
      until === undefined
        ? Effect.never
        : Effect.suspend(() =>
            did(path).some((line) => line.what === until) ? Effect.succeed("") : Effect.fail("")
          ).pipe(Effect.retry(Schedule.spaced("20 millis")))
    )
  )
