import { Effect, Fiber, Layer } from "effect"
import { AgentEntity } from "effect-deepagents/durable"
import { MemorySessions } from "effect-deepagents/sessions"
import { TestRunner } from "effect/cluster"
import { TestClock } from "effect/testing"

/** A runner in this process, with all threads of the agent. */
export const runner = <O, E, R>(entity: AgentEntity.AgentEntity<O, E, R>) =>
  AgentEntity.layer(entity).pipe(Layer.provideMerge(TestRunner.layer), Layer.provideMerge(MemorySessions.layer))

/** Lets the runner take its shards, and the clock go on while something is waited for. */
export const ticking = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect)
    while (fiber.pollUnsafe() === undefined) {
      yield* TestClock.adjust("100 millis")
      yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    }
    return yield* Fiber.join(fiber)
  })
