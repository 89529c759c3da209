/** Outputs of commands that are too long to show: all of them is in a file, on every kind of sandbox. */
import { readdirSync } from "node:fs"
import { mkdir } from "node:fs/promises"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { Backend, type Json, Sandbox } from "effect-deepagents"
import { CustomSandbox, FileTools } from "effect-deepagents/backends"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { TestBackend } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import { converse } from "./converse.ts"
import * as Shells from "./fixtures/localShell.ts"

const stdout = (text: string): Sandbox.ExecuteEvent => ({ _tag: "Output", channel: "stdout", text })
const exited: Sandbox.ExecuteEvent = { _tag: "Exited", exitCode: 0, truncated: false }

/** A sandbox whose commands print their texts of `outputs`. */
const printing = (outputs: (command: string) => ReadonlyArray<string>, maxFileSize?: number) =>
  Layer.effect(
    Sandbox.Sandbox,
    Effect.map(Backend.Backend, (backend) => {
      const run = (command: string) => Stream.fromIterable([...outputs(command).map(stdout), exited])
      return {
        ...backend,
        id: "test",
        reaches: () => true,
        executeStream: run,
        execute: (command: string) => Sandbox.collect(run(command))
      }
    })
  ).pipe(Layer.provideMerge(TestBackend.layer({ maxFileSize })))

const executing = (...rounds: ReadonlyArray<Json.JsonObject>) =>
  Effect.map(
    converse(
      rounds.map((args) => [["execute", args] as const]),
      { tools: FileTools.make({ execute: true, only: [] }) }
    ),
    ({ answers }) => answers.map(({ text }) => text)
  )

const pathIn = (text = ""): string => /\/large_results\/[0-9a-f]{32}\.txt/.exec(text)?.[0] ?? ""

const contentOf = (backend: Backend.Service, path: string) =>
  Effect.map(backend.download([path]), ([file]) => (file?.ok === true ? Buffer.from(file.value).toString() : ""))

const limit = 8 * 1024 * 1024

/** Characters of three and of four bytes. */
const whole = "€😀".repeat(1_400_000)

describe("outputs that are too long to show", () => {
  it.effect("are in a file as far as 8 MiB, counted in bytes, with no character in halves", () =>
    Effect.gen(function* () {
      const [text] = yield* executing({ command: "x" })
      assert.include(
        text,
        "the beginning of the output, up to the largest size of a file, is in the file /large_results"
      )
      const kept = yield* contentOf(yield* Backend.Backend, pathIn(text))
      const size = Buffer.byteLength(kept)
      assert.isTrue(size <= limit && size > limit - 16, `${size}`)
      assert.isTrue(whole.startsWith(kept))
    }).pipe(
      Effect.provide(
        printing(() => [whole.slice(0, 1_000_001), whole.slice(1_000_001, 1_000_002), whole.slice(1_000_002)])
      )
    )
  )

  it.effect("are in a file of the largest size that the backend takes", () =>
    Effect.gen(function* () {
      const [text] = yield* executing({ command: "x" })
      assert.include(text, "the beginning of the output")
      assert.strictEqual(yield* contentOf(yield* Backend.Backend, pathIn(text)), `${"ä".repeat(24_999)}`)
    }).pipe(Effect.provide(printing(() => ["ä".repeat(40_000)], 49_999)))
  )

  it.effect("go with the oldest files, but for those that were changed", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      const [text] = yield* executing({ command: "first" })
      const first = pathIn(text)
      yield* TestClock.adjust("1 second")
      const [changed] = yield* executing({ command: "changed" })
      yield* backend.write(pathIn(changed), "by hand")
      yield* backend.write("/large_results/notes.txt", "by hand")
      for (let index = 0; index < 201; index++) {
        yield* TestClock.adjust("1 second")
        yield* executing({ command: `${index}` })
      }
      const names = (yield* backend.ls("/large_results")).entries.map(({ path }) => path)
      assert.strictEqual(names.length, 202)
      assert.notInclude(names, first)
      assert.includeMembers(names, [pathIn(changed), "/large_results/notes.txt"])
    }).pipe(Effect.provide(printing((command) => [command.padEnd(30_001, ".")])))
  )
})

const lines = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}\n`).join("")

const holdsMiddle = <E>(name: string, layerOf: (root: string) => Layer.Layer<Sandbox.Sandbox | Backend.Backend, E>) =>
  it.live(`${name}: all of an output is in a file, also if it takes too long`, () =>
    Effect.gen(function* () {
      const shell = yield* Shells.make()
      const root = join(shell.folder, "root")
      yield* Effect.promise(() => mkdir(root, { recursive: true }))
      yield* Effect.gen(function* () {
        const backend = yield* Backend.Backend
        const [text, short] = yield* executing({ command: "seq 1 60000" }, { command: "echo short; echo err >&2" })
        assert.include(text, "all of the output is in the file /large_results/")
        assert.strictEqual(yield* contentOf(backend, pathIn(text)), lines(60_000))
        // A busy machine may need more time to write it.
        let content = ""
        for (let timeout = 1; timeout <= 16 && !content.startsWith(lines(60_001)); timeout *= 4) {
          const [late] = yield* executing({ command: "seq 1 60001; sleep 60", timeout })
          assert.include(late, `not done within ${timeout} second`)
          content = yield* contentOf(backend, pathIn(late))
          if (content !== "") assert.include(late, "All of its output is in the file")
        }
        assert.isTrue(content.startsWith(lines(60_001)), "of a command that took too long")
        assert.strictEqual(short, "short\nerr\n[Command succeeded with exit code 0]")
      }).pipe(Effect.provide(layerOf(root)))
    })
  )

describe("on machines", () => {
  holdsMiddle("a local shell", (root) => LocalShell.layer({ root }))
  const shellOf = (root: string, streams: boolean) =>
    Layer.unwrap(
      Effect.map(Shells.make(), (shell) => {
        const functions = Shells.functionsOf(shell)
        return CustomSandbox.layer(streams ? { ...functions, executeStream: Shells.streamOf(shell) } : functions, {
          root
        })
      })
    )
  holdsMiddle("a machine that streams", (root) => shellOf(root, true))
  holdsMiddle("a machine that does not", (root) => shellOf(root, false))

  it.live("a machine that does not stream keeps 8 MiB and the end, and leaves no files behind", () =>
    Effect.gen(function* () {
      const shell = yield* Shells.make()
      const ids = () => shell.commands.flatMap((line) => /[0-9a-f]{32}/.exec(line)?.[0] ?? [])
      const sandbox = yield* CustomSandbox.make(Shells.functionsOf(shell), { root: join(shell.folder, "root") })
      const command = "head -c 9000000 /dev/zero | tr '\\0' x; echo; echo end; exit 3"
      const events = yield* Stream.runCollect(sandbox.executeStream(command))
      const [output, end] = events
      assert.strictEqual(events.length, 2)
      const text = output?._tag === "Output" ? output.text : ""
      assert.isTrue(text.startsWith("x".repeat(limit)))
      assert.isTrue(text.endsWith("x\nend\n"))
      assert.deepStrictEqual(end, { _tag: "Exited", exitCode: 3, truncated: true })

      const running = yield* Effect.forkChild(Stream.runDrain(sandbox.executeStream("seq 1 99999; sleep 60")))
      while (!readdirSync("/tmp").some((name) => name.includes(ids().at(-1) ?? "-") && name.endsWith(".pid"))) {
        yield* Effect.sleep("20 millis")
      }
      yield* Fiber.interrupt(running)
      const left = readdirSync("/tmp").filter(
        (name) => ids().some((id) => name.includes(id)) && !name.endsWith(".dead")
      )
      assert.deepStrictEqual(left, [])
    })
  )
})
