/** Answers questions about the program itself: help, the version, completions. They need nothing of the system. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import * as Stdio from "effect/Stdio"
import * as Terminal from "effect/Terminal"
import * as Program from "./program.ts"

const unused = Effect.die("a question about the program asks nothing of the system")

const layer = Layer.mergeAll(
  FileSystem.layerNoop({}),
  Path.layer,
  Stdio.layerTest({
    args: Effect.sync(() => process.argv.slice(2)),
    stdoutIsTerminal: Effect.sync(() => process.stdout.isTTY === true)
  }),
  Layer.succeed(
    Terminal.Terminal,
    Terminal.make({
      columns: Effect.succeed(80),
      rows: Effect.succeed(24),
      size: unused,
      readInput: unused,
      readLine: unused,
      display: () => unused
    })
  ),
  Layer.succeed(
    ChildProcessSpawner.ChildProcessSpawner,
    ChildProcessSpawner.make(() => unused)
  )
)

export const start = (): void => Program.run(layer)
