/** One machine without a database server: invariants of a killed process. */
import { rmSync, writeFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { did } from "./children/agents.ts"
import { folder } from "./places.ts"
import { runMachine } from "./single.ts"

describe("one machine with SQLite", () => {
  it.live(
    "goes on after kill -9 with what was posted, and makes no payment twice",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      writeFileSync(`${path}/hold-pay`, "")
      yield* runMachine(path, "post", "pay 1")
      rmSync(`${path}/hold-pay`)
      assert.deepStrictEqual(JSON.parse(yield* runMachine(path, "send")), {
        text: "done 1",
        history: ["human", "ai", "tool", "ai", "tool", "ai"]
      })
      assert.strictEqual(did(path).filter(({ what }) => what === "pay 1").length, 1)
    }, Effect.scoped),
    60_000
  )
})
