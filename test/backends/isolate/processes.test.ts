/** Background processes in bubblewrap: each command has ids of its own, and they still take input, end and are ended. */
import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Sandbox } from "effect-deepagents"
import { Processes } from "effect-deepagents/backends"
import * as OsSandbox from "effect-deepagents/backends/OsSandbox"
import { ProcessTable } from "../../../src/backends/internal/processes/service.ts"
import { describeIsolated, folders, processesWith, until } from "./box.ts"

describeIsolated("background processes in bubblewrap", () => {
  it.live(
    "take input to its end, serve other commands, and are ended",
    () =>
      Effect.gen(function* () {
        const { root } = yield* folders
        const layer = Layer.provideMerge(Processes.layer(), OsSandbox.layer({ root, ripgrep: false }))
        yield* Effect.gen(function* () {
          const table = yield* ProcessTable
          const reader = yield* table.start("cat; echo over; exit 3")
          yield* table.send(reader.id, "one\n", false)
          yield* table.send(reader.id, "two\n", true)
          const end = Effect.gen(function* () {
            while ((yield* table.read(reader.id)).process.end === undefined) yield* Effect.sleep("50 millis")
            return yield* table.read(reader.id)
          })
          const read = yield* end
          assert.strictEqual(read.text, "one\ntwo\nover\n")
          assert.deepStrictEqual(read.process.end, { exitCode: 3 })
          const word = `serving-${process.pid}`
          const server = yield* table.start(`python3 -m http.server --bind 127.0.0.1 8126; : ${word}`)
          assert.isUndefined(server.end)
          const { execute } = yield* Sandbox.Sandbox
          const asked = yield* execute("curl -s --retry 20 --retry-connrefused --retry-delay 1 http://127.0.0.1:8126/")
          assert.include(asked.output, "Directory listing")
          assert.isAbove(processesWith(word).length, 0)
          yield* table.kill(server.id)
          yield* until(() => processesWith(word).length === 0)
        }).pipe(Effect.provide(layer))
      }),
    40_000
  )
})
