/** A project may hold the folder of the program, as the home folder does. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { MemorySessions } from "effect-deepagents/sessions"
import { openCheckpoints } from "../../src/cli/internal/work/checkpoints.ts"
import type { Edit } from "../sessions/checkpoints/edits.ts"
import { aFolder, sandboxIn } from "../sessions/checkpoints/places.ts"

it.effect(
  "the turns of a chat leave out the locks and drafts of other chats below the project",
  Effect.fnUntraced(function* () {
    const project = yield* aFolder
    const data = join(project, ".local/share/deepagents")
    mkdirSync(join(data, "threads"), { recursive: true })
    writeFileSync(join(data, "threads/lock"), "")
    yield* Effect.gen(function* () {
      const folders = { list: () => [], add: () => undefined }
      const places = { config: join(project, ".config"), data, project }
      const checkpoints = yield* openCheckpoints({ folders, places }, (problem) =>
        Effect.die(problem).pipe(Effect.asVoid)
      )
      if (checkpoints === undefined) return assert.fail("no checkpoints")
      const recording = yield* checkpoints.begin({ threadId: "t", leaf: null })
      const sandbox = recording.watch(yield* sandboxIn(project))
      const edits: ReadonlyArray<Edit> = ["a", ".local/share/deepagents/threads/lock"].map((path) => ({
        _tag: "write",
        path,
        text: "two"
      }))
      yield* sandbox.execute("[]")
      yield* sandbox.execute(JSON.stringify(edits))
      yield* recording.end(null)
      const steps = yield* checkpoints.plan(yield* checkpoints.turns("t"), "before")
      assert.deepStrictEqual(
        steps.map(({ path }) => path),
        [join(project, "a")]
      )
    }).pipe(Effect.provide([FilesystemBackend.layer({ root: project }), MemorySessions.layer]))
  }, Effect.scoped)
)
