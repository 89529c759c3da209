/** Processes that are stopped or killed while the gates of a turn are asked, as in a rolling deployment. */
import { existsSync, readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { bundle } from "../bundle.ts"
import { runChild } from "../child.ts"
import { scaled } from "../scale.ts"
import { folder } from "./places.ts"

const file = bundle(new URL("children/restarted.ts", import.meta.url))

interface End {
  readonly stopReason: string
  readonly text: string
  readonly asked: number
}

/** Runs a process; ends it by a signal so many milliseconds after its gate began. Gives its last line, if there is one. */
const run = (args: ReadonlyArray<string>, signal?: NodeJS.Signals, after = 0) =>
  Effect.map(
    runChild(file, args, (text, child) => {
      if (signal !== undefined && text.includes("gate\n")) setTimeout(() => child.kill(signal), after)
    }),
    ({ text }): End | undefined => {
      const line = text.split("\n").findLast((one) => one.startsWith("{"))
      return line === undefined ? undefined : JSON.parse(line)
    }
  )

it.live(
  "an approval is asked however often its process is restarted, and nothing is told as begun that was not",
  Effect.fnUntraced(function* () {
    const path = yield* folder
    const restarts = scaled(32)
    let nth = 0
    let cut = 0
    for (let input = 0; nth < restarts; input++) {
      const about = `order ${input}`
      for (let tries = 0; ; tries++) {
        // A gate takes 5 to 65 ms; it is cut off somewhere in it, or just behind it.
        const delay = 5 + ((nth * 37) % 60)
        const end = yield* run(
          [path, about, "ask", `${delay}`],
          // The fifth is let run, however slow the machine is.
          tries === 4 ? undefined : nth % 2 === 0 ? "SIGTERM" : "SIGKILL",
          (nth * 53) % (delay + 15)
        )
        nth++
        if (end === undefined && tries < 4) {
          cut++
          continue
        }
        assert.deepStrictEqual(end, { stopReason: "suspended", text: "", asked: 1 }, about)
        break
      }
      const end = yield* run([path, about, "approve", "0"])
      assert.deepStrictEqual(end, { stopReason: "completed", text: `shipped ${about}`, asked: 0 })
    }
    assert.isAbove(cut, 0)
    const did = existsSync(`${path}/did.txt`) ? readFileSync(`${path}/did.txt`, "utf8").trim().split("\n") : []
    assert.strictEqual(new Set(did).size, did.length)
  }, Effect.scoped),
  600_000
)
