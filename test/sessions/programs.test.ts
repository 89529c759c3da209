/** Programs whose process is killed at each of their effects. */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { sampled } from "../scale.ts"
import { folder } from "./places.ts"

const run = (...args: ReadonlyArray<string>) =>
  Effect.callback<{ readonly text: string; readonly code: number | null }>((resume) => {
    const file = new URL("children/program.ts", import.meta.url).pathname
    const child = spawn(process.execPath, ["--conditions=@effect-deepagents/source", file, ...args], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    let text = ""
    child.stdout.on("data", (chunk) => {
      text += String(chunk)
    })
    child.on("close", (code) => resume(Effect.succeed({ code, text })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

const hold = (name: string, effects: number, expected: string) =>
  describe(`the program "${name}"`, () => {
    const whole = Effect.cached(
      Effect.scoped(
        Effect.gen(function* () {
          const path = yield* folder
          const { text } = yield* run(path, name, "0", "run")
          return { ...JSON.parse(text), did: readFileSync(`${path}/did.txt`, "utf8").trim().split("\n") }
        })
      )
    ).pipe(Effect.runSync)
    for (const at of sampled(Array.from({ length: effects }, (_, index) => index + 1))) {
      it.live(
        `ends with all of its work when it is killed at its effect ${at}`,
        Effect.fnUntraced(function* () {
          const { did: once, text } = yield* whole
          assert.strictEqual(text, expected)
          assert.strictEqual(once.length, effects)
          const path = yield* folder
          assert.deepStrictEqual(yield* run(path, name, `${at}`, "run"), { code: null, text: "" })
          const second = yield* run(path, name, "0", "resume")
          assert.deepStrictEqual(JSON.parse(second.text).text, expected)
          assert.deepStrictEqual(JSON.parse(second.text).inside, [])
          const did = readFileSync(`${path}/did.txt`, "utf8").trim().split("\n")
          const killed = did[at - 1] ?? ""
          // Only the step or the turn in flight is done again, and no tool.
          assert.deepStrictEqual(
            did.filter((line, index) => did.indexOf(line) !== index),
            killed.startsWith("build") ? [] : [killed]
          )
        }, Effect.scoped),
        60_000
      )
    }
  })

hold("ten", 10, "55")
hold("goal", 12, "3 rounds")
