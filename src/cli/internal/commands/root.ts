/** The root of the commands, with the shared flags and the context they make. */
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import type { Context } from "../work/app.ts"
import { type SharedFlags, shared } from "./flags.ts"

export const root = Command.make("deepagents").pipe(Command.withSharedFlags(shared))

export const load = <Module>(module: () => Promise<Module>) => Effect.promise(module)

export const contextFor = Effect.fnUntraced(function* (flags: SharedFlags, asks: boolean) {
  const { contextOf } = yield* load(() => import("../work/context.ts"))
  return yield* contextOf(flags, asks)
})

/** The context of a command that runs an agent. */
export const running = Effect.flatMap(root, (flags) => contextFor(flags, true))

/** Runs a command without an agent. Its module loads on call. */
export const runWithoutAgent = <Module>(module: () => Promise<Module>) =>
  Effect.fnUntraced(function* <A, E, R>(work: (module: Module, context: Context) => Effect.Effect<A, E, R>) {
    const context = yield* contextFor(yield* root, false)
    return yield* work(yield* load(module), context)
  })
