import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Schema, Stream } from "effect"
import { Agent, type AgentEvent, type ModelError, Tool } from "effect-deepagents"
import { isModelError } from "../../../src/core/ModelError.ts"
import { isFull } from "../../scale.ts"
import { watched } from "../../watchdog.ts"
import { type Scenario, scenarios } from "./scenarios.ts"
import { type Respond, serve, type Server } from "./server.ts"
import { headerSecret, key, type Wire, wires } from "./wires.ts"

const confidential = "The launch is on Tuesday at the old harbour"

const done =
  (wire: Wire): Respond =>
  (response) => {
    const events = [...wire.open, ...wire.text("done"), ...wire.close("stop")]
    response.writeHead(200, { "content-type": wire.contentType }).end(Buffer.concat(events.map(wire.frame)))
  }

/** The outcome of a run. */
interface Ended {
  readonly exit: Exit.Exit<string, unknown>
  readonly events: ReadonlyArray<AgentEvent.AgentEvent>
  readonly ran: ReadonlyArray<number>
  readonly millis: number
  /** By how much the process grew, in bytes. */
  readonly memory: number
  readonly elsewhere: Server
}

const run = (wire: Wire, scenario: Scenario): Effect.Effect<Ended> =>
  Effect.gen(function* () {
    const elsewhere = yield* serve(() => done(wire))
    const server = yield* serve((count) =>
      count === 0 ? scenario.respond(wire, { elsewhere: elsewhere.url }) : done(wire)
    )
    const ran: Array<number> = []
    const charge = Tool.make("charge", {
      description: "Charges.",
      parameters: { n: Schema.Finite, x: Schema.optionalKey(Schema.Json) },
      execute: ({ n }) => Effect.sync(() => `charged ${ran.push(n)}`)
    })
    const agent = Agent.make({ name: "till", prompt: confidential, tools: [charge] })
    const began = Date.now()
    const before = process.memoryUsage.rss()
    let peak = before
    const sampler = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage.rss())
    }, 20)
    const events: Array<AgentEvent.AgentEvent> = []
    const exit = yield* Effect.gen(function* () {
      const handle = yield* Agent.start(agent, `${confidential}, they say`)
      const reader = yield* Effect.forkChild(
        Stream.runForEach(handle.events, (event) => Effect.sync(() => void events.push(event)))
      )
      const result = yield* Effect.exit(handle.await)
      yield* Fiber.join(reader)
      return Exit.map(result, ({ text }) => text)
    }).pipe(
      Effect.scoped,
      Effect.provide(wire.model({ url: server.url, timeout: scenario.timeout ?? 20_000 })),
      Effect.orDie
    )
    clearInterval(sampler)
    return { exit, events, ran, millis: Date.now() - began, memory: peak - before, elsewhere }
  }).pipe(Effect.scoped)

const terminal = new Set(["RunCompleted", "RunFailed", "RunInterrupted"])

const failureOf = (exit: Exit.Exit<string, unknown>): ModelError.ModelError => {
  if (Exit.isSuccess(exit)) throw new Error("the run did not fail")
  const failure = Cause.squash(exit.cause)
  if (!isModelError(failure)) throw new Error(`the run failed with something else: ${Cause.pretty(exit.cause)}`)
  return failure
}

const check = (wire: Wire, scenario: Scenario, { elsewhere, events, exit, memory, millis, ran }: Ended): void => {
  const expected = wire.ends?.[scenario.name] ?? scenario.ends
  assert.isBelow(millis, 15_000)
  assert.isBelow(memory / 2 ** 20, 400)
  const ends = events.filter(({ _tag }) => terminal.has(_tag))
  assert.strictEqual(ends.length, 1, "a run ends once")
  assert.strictEqual(ends[0], events.at(-1))
  assert.strictEqual(new Set(ran).size, ran.length, "no call runs twice")
  if (scenario.elsewhere === "untouched") assert.strictEqual(elsewhere.seen.length, 0)
  if (Exit.isSuccess(exit)) {
    assert.include(expected, "completed")
    if (scenario.says !== undefined) assert.include(exit.value, scenario.says)
    const usage = ends[0]?._tag === "RunCompleted" ? Object.values(ends[0].usage) : []
    assert.isTrue(usage.every((count) => Number.isFinite(count) && Number(count) >= 0))
    assert.includeMembers([...(scenario.runs ?? [])], [...ran])
    return
  }
  const failure = failureOf(exit)
  assert.include(expected, failure.reason._tag, failure.message)
  assert.deepStrictEqual(ran, [])
  const told = JSON.stringify([failure, failure.message, String(failure.stack), events])
  for (const secret of [key, headerSecret]) assert.notInclude(told, secret)
  assert.notInclude(JSON.stringify([failure, failure.message]), confidential)
  assert.isBelow(failure.message.length, 1_500)
}

for (const [index, wire] of (isFull ? wires : wires.filter((_, index) => index % 2 === 0)).entries()) {
  describe(`${wire.name} and a hostile server`, () => {
    for (const scenario of scenarios) {
      if (scenario.only !== undefined && !scenario.only(wire)) continue
      if (!isFull && (scenario.long === "full" || (scenario.long === "first" && index > 0))) continue
      it.live(
        scenario.name,
        () =>
          Effect.gen(function* () {
            // The SDK checks the two sums of each binary frame: 115 to 130 ms of a flood on a slow processor.
            const limit = wire.isText ? undefined : 250
            const ended = yield* watched(run(wire, scenario), limit)
            check(wire, scenario, ended)
            // A call that all can understand is made.
            if (!scenario.ends.includes("BadResponse") && scenario.runs?.length === 1) {
              assert.deepStrictEqual(ended.ran, scenario.runs)
            }
          }),
        60_000
      )
    }
  })
}
