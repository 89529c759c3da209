/** One machine without a database server: invariants of a killed process. */
import { spawn } from "node:child_process"
import { rmSync, writeFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { did } from "./children/agents.ts"
import { folder } from "./places.ts"

const file = new URL("children/single.ts", import.meta.url).pathname

/** Runs the machine; ends it after a given line, or reads its output. */
const run = (path: string, what: string, until?: string) =>
  Effect.callback<string>((resume) => {
    const child = spawn(process.execPath, ["--conditions=@effect-deepagents/source", file, path, what], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    let said = ""
    child.stdout.on("data", (chunk) => {
      said += String(chunk)
    })
    child.on("close", () => resume(Effect.succeed(said)))
    return Effect.sync(() => child.kill("SIGKILL"))
  }).pipe(
    Effect.raceFirst(
      until === undefined
        ? Effect.never
        : Effect.suspend(() =>
            did(path).some((line) => line.what === until) ? Effect.succeed("") : Effect.fail("")
          ).pipe(Effect.retry(Schedule.spaced("20 millis")))
    )
  )

describe("one machine with SQLite", () => {
  it.live(
    "goes on after kill -9 with what was posted, and makes no payment twice",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      writeFileSync(`${path}/hold-pay`, "")
      yield* run(path, "post", "pay 1")
      rmSync(`${path}/hold-pay`)
      assert.deepStrictEqual(JSON.parse(yield* run(path, "send")), {
        text: "done 1",
        history: ["human", "ai", "tool", "ai", "tool", "ai"]
      })
      assert.strictEqual(did(path).filter(({ what }) => what === "pay 1").length, 1)
    }, Effect.scoped),
    60_000
  )
})
