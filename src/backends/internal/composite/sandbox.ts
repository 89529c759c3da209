/** Runs the commands of a composite in its default. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as BackendError from "../../../core/BackendError.ts"
import * as Sandbox from "../../../core/Sandbox.ts"
import * as Path from "../files/path.ts"
import { backendOf } from "./backend.ts"
import { locate, type Part, type Routes, toInner } from "./routes.ts"

/** The composite of a sandbox and other backends. */
export const sandboxOf = (sandbox: Sandbox.Service, routes: Routes): Sandbox.Service => {
  /** The options as the sandbox understands them. */
  const inSandbox = (
    options: Sandbox.ExecuteOptions | undefined
  ): Effect.Effect<Sandbox.ExecuteOptions | undefined, BackendError.BackendError> => {
    if (options?.cwd === undefined) return Effect.succeed(options)
    return Effect.flatMap(Effect.fromResult(locate(routes, "execute", options.cwd)), (place) =>
      place.part === routes.fallback
        ? Effect.succeed({ ...options, cwd: place.path })
        : Effect.fail(
            BackendError.make(
              "execute",
              place.inputPath,
              { _tag: "Unsupported" },
              { detail: "the files of this directory are not there for commands; choose another" }
            )
          )
    )
  }

  const isReached = (part: Part, path: string): boolean => {
    if (part === routes.fallback) return sandbox.reaches(path)
    const onSameHost = sandbox.onHost === true && part.backend.onHost === true
    return onSameHost || (Sandbox.isSandbox(part.backend) && part.backend.reaches(path))
  }

  return {
    ...backendOf(routes),
    id: sandbox.id,
    execute: (command, options) => Effect.flatMap(inSandbox(options), (inside) => sandbox.execute(command, inside)),
    executeStream: (command, options) =>
      Stream.unwrap(Effect.map(inSandbox(options), (inside) => sandbox.executeStream(command, inside))),
    reaches: (path) => {
      const normal = Path.resolve("reaches", path, sandbox.paths)
      if (Result.isFailure(normal)) return true
      const owner = routes.ownerOf(normal.success)
      return (
        isReached(owner, toInner(owner, normal.success)) ||
        routes.below(normal.success).some((part) => isReached(part, "/"))
      )
    }
  }
}
