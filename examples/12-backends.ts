/**
 * Where files live: the same lines over seven layers. In memory, in the state of a run, in a folder, in a key-value
 * store, in several of them put together, and two that run commands too.
 */
import assert from "node:assert/strict"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, FileSystem, Layer, Result } from "effect"
import { Agent, Backend, Sandbox } from "effect-deepagents"
import { CompositeBackend, FileTools, MemoryBackend, StoreBackend } from "effect-deepagents/backends"
import * as Bash from "effect-deepagents/backends/Bash"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { TestChatModel } from "effect-deepagents/testing"
import { KeyValueStore } from "effect/persistence"

/** Writes a file, changes it and finds it: whatever is behind the service. */
const work = Effect.gen(function* () {
  const backend = yield* Backend.Backend
  const { version } = yield* backend.write("/notes/ada.md", "# Ada\nShe wrote programs.\n", { create: true })
  yield* backend.edit("/notes/ada.md", [{ old: "programs", new: "the first program" }], { version })
  const { files } = yield* backend.grep({ pattern: "first", glob: "*.md" })
  return files.flatMap(({ matches, path }) => matches.map(({ line, text }) => `${path}:${line}: ${text}`)).join("\n")
})

const show = <E, R>(name: string, found: Effect.Effect<string, E, R>) =>
  Effect.gen(function* () {
    const text = yield* found
    yield* Console.log(`${name.padEnd(10)} ${text}`)
    assert.match(text, /notes\/ada\.md:2: She wrote the first program\.$/)
  })

/** Files for as long as the layer lives. */
const memory = work.pipe(Effect.provide(MemoryBackend.layer()))

/** Files in the state of a run: they come with its result, and are in its checkpoints. */
const state = Effect.gen(function* () {
  const agent = Agent.make({ name: "writer", prompt: "You keep notes.", tools: FileTools.make() })
  const run = yield* Agent.run(agent, "What do we know of Ada?", { state: MemoryBackend.snapshot({ "/a.md": "A" }) })
  const files = yield* Effect.fromResult(MemoryBackend.files(run.state))
  assert.deepEqual(Object.keys(files).toSorted(), ["/a.md", "/notes/ada.md"])
  return `/notes/ada.md:2: ${String(files["/notes/ada.md"]).split("\n")[1]}`
}).pipe(
  Effect.provide([
    MemoryBackend.layerState,
    TestChatModel.script([
      TestChatModel.calls([
        {
          name: "write_file",
          arguments: { file_path: "/notes/ada.md", content: "# Ada\nShe wrote the first program.\n" }
        }
      ]),
      "It is in /notes/ada.md."
    ])
  ])
)

/** The files of a folder: nothing leads out of it. */
const filesystem = (root: string) =>
  Effect.gen(function* () {
    const backend = yield* Backend.Backend
    const escaped = yield* Effect.result(backend.read("/../etc/passwd"))
    assert(Result.isFailure(escaped))
    assert.equal(escaped.failure.reason._tag, "OutsideRoot")
    return yield* work
  }).pipe(Effect.provide(FilesystemBackend.layer({ root })))

/** Any key-value store: here one in memory, elsewhere a folder, SQL or the browser. */
const store = work.pipe(
  Effect.provide(StoreBackend.layer({ namespace: "notes" }).pipe(Layer.provide(KeyValueStore.layerMemory)))
)

/** Several put together: notes go to memory, the rest to a folder. */
const composite = (root: string) =>
  Effect.gen(function* () {
    const found = yield* work
    assert.deepEqual(
      (yield* Backend.Backend.use((backend) => backend.ls("/"))).entries.map(({ path }) => path),
      ["/notes", "/project.md"]
    )
    return found
  }).pipe(
    Effect.provide(
      CompositeBackend.layer({
        default: FilesystemBackend.layer({ root }),
        routes: { "/notes": MemoryBackend.layer() }
      })
    )
  )

const count = Effect.gen(function* () {
  const found = yield* work
  const { exitCode, output } = yield* Sandbox.Sandbox.use((sandbox) => sandbox.execute("wc -l < notes/ada.md"))
  assert.deepEqual([exitCode, output.trim()], [0, "2"])
  return found
})

/** A folder and this machine's shell. This is no isolation: a command can do what you can. */
const localShell = (root: string) => count.pipe(Effect.provide(LocalShell.layer({ root })))

/** A shell without a machine, over any backend: no programs of the host, no network. */
const bash = count.pipe(Effect.provide(Bash.layer().pipe(Layer.provide(MemoryBackend.layer()))))

const program = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const folder = fs.makeTempDirectoryScoped()
  yield* show("memory", memory)
  yield* show("state", state)
  yield* show("filesystem", filesystem(yield* folder))
  yield* show("store", store)
  const project = yield* folder
  yield* fs.writeFileString(`${project}/project.md`, "# Project\n")
  yield* show("composite", composite(project))
  yield* show("shell", localShell(yield* folder))
  yield* show("bash", bash)
})

NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
