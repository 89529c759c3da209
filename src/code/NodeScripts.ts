/**
 * Runs scripts on Node, each in its own thread with its own QuickJS.
 *
 * Needs the packages `quickjs-emscripten-core` and `@jitl/quickjs-wasmfile-release-sync`.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { CodeMode } from "effect-deepagents/code"
 * import * as NodeScripts from "effect-deepagents/code/NodeScripts"
 *
 * const agent = Agent.make({ name: "coder", prompt: "You write programs.", middleware: [CodeMode.make()] })
 * const program = Agent.run(agent, "Add the numbers up to 100").pipe(Effect.provide(NodeScripts.layer()))
 * ```
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeLayerCheck } from "../support/options/check.ts"
import { findLimitProblem } from "./internal/limits.ts"
import * as Pool from "./internal/pool.ts"
import * as shapes from "./internal/shapes.ts"
import { Scripts } from "./Scripts.ts"

/** Options of the threads. */
export interface Options {
  /** The threads that stay ready between scripts. The first script starts the first one. Default: 1. */
  readonly warm?: number | undefined
  /**
   * The scripts that run at once, each in its thread. A script that waits for tools or people counts; scripts inside of
   * scripts are counted on their own. Further scripts wait. Default: 8.
   */
  readonly most?: number | undefined
}

const refuseLayer = makeLayerCheck("NodeScripts.layer", shapes.nodeScriptsLayer)

/** Kept apart from `new Worker`, since bundlers that follow workers would require optional packages. */
const program = () => new URL("./internal/scriptWorker.ts", import.meta.url)

/**
 * Runs scripts in threads. A script that passes its limit of time or memory ends with its thread; other threads are
 * used again. The memory of a thread has a maximum of its own, 32 MiB above the limit of its script.
 */
export const layer = (options: Options = {}): Layer.Layer<Scripts> =>
  refuseLayer(options) ??
  Layer.effect(
    Scripts,
    Effect.suspend(() => {
      const { most = 8, warm = 1 } = options
      const problem =
        findLimitProblem("NodeScripts.layer", 1, { most }) ?? findLimitProblem("NodeScripts.layer", 0, { warm })
      return problem === undefined
        ? Effect.map(Pool.make({ program, warm, most }), Scripts.of)
        : Effect.die(new Error(problem))
    })
  )
