import { BackendError } from "effect-deepagents"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
/** Run by tests as another process that counts in a file of a folder. */
import * as Effect from "effect/Effect"

const [root = "", path = "", times = "1"] = process.argv.slice(2)

const program = Effect.gen(function* () {
  const backend = yield* FilesystemBackend.make({ root })
  const increment = Effect.gen(function* () {
    const file = yield* backend.read(path)
    const next = file.kind === "text" ? Number(file.text) + 1 : 1
    yield* backend.write(path, String(next), { version: file.version })
  })
  const isConflict = (error: unknown) => BackendError.isBackendError(error) && error.reason._tag === "Conflict"
  yield* Effect.repeat(Effect.retry(increment, { while: isConflict }), { times: Number(times) - 1 })
})

await Effect.runPromise(program)
