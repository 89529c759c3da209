/** Runs a command in a folder, and says so for each piece of its output. */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Stream } from "effect"
import * as LocalShell from "effect-deepagents/backends/LocalShell"

const [root = "", command = ""] = process.argv.slice(2)

NodeRuntime.runMain(
  Effect.scoped(
    Effect.gen(function* () {
      const sandbox = yield* LocalShell.make({ root })
      yield* sandbox.execute("true")
      yield* Stream.runForEach(sandbox.executeStream(command), () => Console.log("runs"))
    })
  )
)
