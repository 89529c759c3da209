/** Run by a test as a user who may not write everything: prints the outcome of two writes. */
import { Effect } from "effect"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"

const [root = ""] = process.argv.slice(2)

const program = Effect.gen(function* () {
  const backend = yield* FilesystemBackend.make({ root })
  const outcome = (path: string) =>
    Effect.match(backend.write(path, "new"), {
      onSuccess: () => "Success",
      onFailure: (error) => error.reason._tag
    })
  return { theirs: yield* outcome("/theirs.txt"), mine: yield* outcome("/mine.txt") }
})

process.stdout.write(JSON.stringify(await Effect.runPromise(program)))
