/** A real run for tests of tools: an effect inside of one of its tool calls has its `ToolContext`. */
import { Deferred, Effect } from "effect"
import { Agent, Tool, type ToolContext } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

/** Runs an effect inside of a tool call. */
export const inRun = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  model?: TestChatModel.Options
): Effect.Effect<A, E, Exclude<R, ToolContext.ToolContext>> =>
  Effect.gen(function* () {
    const done = yield* Deferred.make<A, E>()
    const probe = Tool.make("probe", {
      description: "Runs the test",
      parameters: {},
      execute: () => Effect.as(Deferred.into(effect, done), "done")
    })
    const agent = Agent.make({ name: "tested", prompt: "You are tested.", tools: [probe] })
    yield* Agent.run(agent, "Go").pipe(
      Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "probe" }]), "done"], model)),
      Effect.orDie
    )
    return yield* Deferred.await(done)
    // The agent needs the services of the effect without the context of the run.
  }) as Effect.Effect<A, E, Exclude<R, ToolContext.ToolContext>>
