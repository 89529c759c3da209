import { assert, describe, it } from "@effect/vitest"
import { Cron as Times, DateTime, Effect, Fiber, Layer } from "effect"
import { Agent, Message } from "effect-deepagents"
import { AgentClient, AgentEntity, Cron } from "effect-deepagents/durable"
import { MemorySessions } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { MessageStorage, RunnerHealth, Runners, RunnerStorage, Sharding, ShardingConfig } from "effect/cluster"
import { TestClock } from "effect/testing"

const entity = AgentEntity.make({ name: "a", agent: Agent.make({ name: "a", prompt: "" }) })

const model = TestChatModel.reactive(() => "done")

/** The storage that outlives a runner. */
const storage = MessageStorage.layerMemory.pipe(
  Layer.provideMerge(MemorySessions.layer),
  Layer.provideMerge(ShardingConfig.layer())
)

/** A runner with the agent and its times, on the storage that is there. */
const runner = (options: Partial<Cron.Options>) =>
  Layer.merge(
    AgentEntity.layer(entity),
    Cron.layer(entity, {
      name: "hourly",
      cron: Times.parseUnsafe("0 * * * *", "UTC"),
      threadId: "t",
      input: (at) => DateTime.formatIso(at),
      ...options
    })
  ).pipe(
    Layer.provideMerge(Sharding.layer),
    Layer.provide([Runners.layerNoop, RunnerStorage.layerMemory, RunnerHealth.layerNoop]),
    Layer.provide(model)
  )

/** Lets the clock go on in steps that a cluster's own loops can follow. */
const pass = Effect.fnUntraced(function* (minutes: number) {
  for (let n = 0; n < minutes * 2; n++) {
    yield* TestClock.adjust("30 seconds")
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
  }
})

const inputs = Effect.gen(function* () {
  const client = yield* AgentClient.of(entity, "t")
  const fiber = yield* Effect.forkChild(client.history)
  while (fiber.pollUnsafe() === undefined) yield* pass(1)
  const history = yield* Fiber.join(fiber)
  return history.filter(({ role }) => role === "human").map((message) => Message.text(message).slice(11, 16))
})

describe("Cron", () => {
  it.effect.each([
    ["skip", ["01:00", "02:00", "08:00"]],
    ["once", ["01:00", "02:00", "03:00", "08:00"]],
    ["all", ["01:00", "02:00", "03:00", "04:00", "05:00", "06:00", "07:00", "08:00"]]
  ] as const)("times without a runner: %s", ([missed, expected]) =>
    Effect.gen(function* () {
      yield* Effect.andThen(pass(150), inputs).pipe(Effect.provide(runner({ missed }), { local: true }))
      yield* TestClock.adjust("5 hours")
      const seen = yield* Effect.andThen(pass(45), inputs).pipe(Effect.provide(runner({ missed }), { local: true }))
      assert.deepStrictEqual(seen, [...expected])
    }).pipe(Effect.provide(storage))
  )

  it.effect("times are of the time zone, and the thread may depend on them", () =>
    Effect.gen(function* () {
      const seen = yield* Effect.andThen(pass(150), inputs)
      assert.deepStrictEqual(seen, ["01:30"])
    }).pipe(
      Effect.provide(
        runner({
          cron: Times.parseUnsafe("30 2 * * *", "Europe/Berlin"),
          threadId: (at) => (DateTime.getPartUtc(at, "hour") === 1 ? "t" : "elsewhere")
        })
      ),
      Effect.provide(storage)
    )
  )
})
