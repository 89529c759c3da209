/** `deepagents schedule`: the list of a folder, and who fires it. */
import { type ChildProcess, spawn } from "node:child_process"
import { globSync, mkdtempSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { endChild } from "../child.ts"
import { isFull } from "../scale.ts"
import { ask } from "../server/door.ts"
import { build } from "./built.ts"

const { bin } = build()

/** Runs the program until it ends, or prints the awaited text. */
const start = (home: string, args: ReadonlyArray<string>, isUp?: RegExp) =>
  Effect.callback<{ readonly child: ChildProcess; readonly text: string }>((resume) => {
    const child = spawn(process.execPath, [bin, "--demo", "--cwd", home, ...args], {
      env: { PATH: process.env["PATH"] ?? "", HOME: home, XDG_DATA_HOME: join(home, "data"), TZ: "Asia/Tokyo" }
    })
    let text = ""
    const take = (chunk: Buffer) => {
      text += chunk.toString()
      if (isUp?.test(text) === true) resume(Effect.succeed({ child, text }))
    }
    child.stdout.on("data", take)
    child.stderr.on("data", take)
    child.on("close", () => resume(Effect.succeed({ child, text })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const schedule = (home: string, ...args: ReadonlyArray<string>) =>
  Effect.map(start(home, ["schedule", ...args]), ({ text }) => text)

describe("deepagents schedule", () => {
  it.live(
    "keeps a list for the folder, which `schedule run` and `serve` fire, one of them at a time",
    () =>
      Effect.gen(function* () {
        const home = mkdtempSync(join(tmpdir(), "schedule-"))
        if (isFull) {
          assert.include(yield* schedule(home, "list"), "There are no schedules")
          assert.include(yield* schedule(home, "add", "never", "every day", "hello"), "a schedule is as")
        }
        const added = yield* schedule(home, "add", "tick", "* * * * * *", "hello", "there", "--thread", "all")
        assert.match(added, /Added\. Its next time is .* \(Asia\/Tokyo\)/)
        if (isFull) assert.include(yield* schedule(home, "add", "tick", "0 7 * * *", "hello"), "remove it first")
        const { schedules } = JSON.parse(yield* schedule(home, "list", "--json"))
        assert.deepStrictEqual(
          schedules.map((one: Record<string, unknown>) => [one["name"], one["input"], one["thread"], one["missed"]]),
          [["tick", "hello there", "all", "skip"]]
        )
        const runner = yield* start(home, ["schedule", "run"], /Ctrl-C ends it/)
        assert.include(runner.text, "1 schedule ")
        assert.include((yield* start(home, ["serve", "--port", "0"])).text, "Another process serves")
        yield* endChild(runner.child)
        const server = yield* start(home, ["serve", "--port", "0"], /within a minute/)
        yield* Effect.addFinalizer(() => Effect.sync(() => server.child.kill("SIGKILL")))
        const [file = ""] = globSync(join(home, "data/deepagents/serve/*/server.json"))
        const { token, url }: { token: string; url: string } = JSON.parse(readFileSync(file, "utf8"))
        const inputs = ask(`${url}/threads/all/history`, { token }).pipe(
          Effect.map(({ text }) => text.split("hello there").length - 1)
        )
        const before = yield* inputs
        let now = before
        while (now <= before) {
          yield* Effect.sleep("200 millis")
          now = yield* inputs
        }
        assert.include(yield* schedule(home, "remove", "tick"), "Removed.")
        if (isFull) assert.include(yield* schedule(home, "remove", "tick"), "there is no schedule")
      }).pipe(Effect.scoped),
    240_000
  )
})
