/** Starts a container and a command in it, says so, and waits to be killed. */
import { Effect } from "effect"
import * as DockerSandbox from "effect-deepagents/backends/DockerSandbox"

const [, , socket, image = "", folder] = process.argv

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const box = yield* DockerSandbox.make({ socket, folder, manifest: { image } })
      yield* Effect.forkScoped(box.execute("echo > started; while :; do sleep 0.1; echo > beat; done"))
      yield* Effect.never
    })
  )
)
