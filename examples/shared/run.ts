/**
 * Runs an example: a failure is one line, a bug has its stack, Ctrl-C winds up what was begun.
 */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Console, Effect, Option, type Scope } from "effect"

const explain = (cause: Cause.Cause<{ readonly message: string }>) => {
  if (Cause.hasInterruptsOnly(cause)) return Console.error("\nInterrupted.")
  const failure = Cause.findErrorOption(cause)
  return Console.error(Option.isSome(failure) ? `It failed: ${failure.value.message}` : Cause.pretty(cause))
}

export const main = <A, E extends { readonly message: string }>(
  program: Effect.Effect<A, E, NodeServices.NodeServices | Scope.Scope>
): void =>
  NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide(NodeServices.layer), Effect.onError(explain)), {
    disableErrorReporting: true
  })
