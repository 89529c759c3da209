/** A person presses Ctrl-C while a run is at work: the process ends at once and in silence, and the thread goes on. */
import { spawn } from "node:child_process"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { bundle } from "../bundle.ts"
import { folder } from "./places.ts"

const file = bundle(new URL("children/ctrlC.ts", import.meta.url))

/** Runs the program, and sends Ctrl-C once it printed `until`. */
const run = (args: ReadonlyArray<string>, until?: string) =>
  Effect.callback<{
    readonly code: number | null
    readonly signal: string | null
    readonly out: string
    readonly err: string
  }>((resume) => {
    const child = spawn(process.execPath, [file, ...args], {
      stdio: ["ignore", "pipe", "pipe"]
    })
    let out = ""
    let err = ""
    child.stdout.on("data", (chunk) => {
      out += String(chunk)
      if (until !== undefined && out.includes(until)) child.kill("SIGINT")
    })
    child.stderr.on("data", (chunk) => (err += String(chunk)))
    child.on("close", (code, signal) => resume(Effect.succeed({ code, signal, out, err })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

for (const [how, ended, said, later] of [
  ["promise", { code: null, signal: "SIGINT" }, "empty\nlooking\n", "unfinished\nlooking\nseen\n"],
  [
    "main",
    { code: 130, signal: null },
    "empty\nlooking\nwound up\n",
    "unfinished\nThis call was interrupted. Whether it had an effect is not known.\n"
  ]
] as const) {
  it.live(
    `a thread goes on behind Ctrl-C, with its program run by ${how === "main" ? "runMain" : "runPromise"}`,
    Effect.fnUntraced(function* () {
      const path = yield* folder
      assert.deepStrictEqual(yield* run([path, "hangs", how], "looking"), { ...ended, out: said, err: "" })
      assert.deepStrictEqual(yield* run([path, "ends", how]), { code: 0, signal: null, out: later, err: "" })
    }, Effect.scoped),
    60_000
  )
}
