/** A run that is interrupted while its store is away: it finally stores a whole conversation. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, Schema, Stream } from "effect"
import { Agent, Checkpoint, Journal, Tool } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { isFull } from "../scale.ts"
import { onPostgres } from "./children/postgres.ts"
import { aSchema, Postgres } from "./places.ts"
import { makeProxy } from "./proxy.ts"

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { n: Schema.Int },
  execute: ({ n }) => Effect.succeed(`paid ${n}`)
})
const agent = Agent.make({ name: "a", prompt: "", tools: [pay] })

/** Pays five times, then says so. */
const model = TestChatModel.reactive(({ messages }) => {
  const paid = messages.filter(({ role }) => role === "tool").length
  return paid >= 5 ? "done" : TestChatModel.calls([{ name: "pay", id: `pay-${paid}`, arguments: { n: paid } }])
})

layer(Postgres.layer, { timeout: 60_000, excludeTestServices: true })("Postgres", (it) => {
  it.effect(
    "stores an unstored step with the next ones, when the run is interrupted at any moment",
    Effect.fnUntraced(function* () {
      const place = yield* Effect.orDie(aSchema)
      const url = new URL(place.url)
      const proxy = yield* makeProxy(Number(url.port))
      url.port = String(proxy.port)
      const log: Array<string> = []
      yield* Effect.gen(function* () {
        for (const steps of isFull ? [1, 2, 3, 4, 5] : [2]) {
          const threadId = `t${steps}`
          // The connection is lost behind so many steps, and back when the run has been told to stop.
          const journal = yield* Journal.Journal
          let left = steps
          const cutting: Journal.Journal["Service"] = {
            open: (id) =>
              Effect.map(journal.open(id), (thread) => ({
                ...thread,
                append: (entries) =>
                  Effect.andThen(
                    Effect.suspend(() => (left-- === 0 ? proxy.cut : Effect.void)),
                    thread.append(entries)
                  )
              }))
          }
          const running = yield* Effect.forkChild(
            Effect.provideService(Stream.runDrain(Agent.stream(agent, "pay", { threadId })), Journal.Journal, cutting)
          )
          yield* Effect.raceFirst(
            Effect.ignore(Fiber.join(running)),
            Effect.repeat(Effect.sleep("10 millis"), { until: () => left < 0 })
          )
          const stopping = yield* Effect.forkChild(Fiber.interrupt(running))
          // A journal tries for about three seconds: the append fails, and that of the end does not.
          yield* Effect.sleep("3500 millis")
          yield* proxy.mend
          yield* Fiber.join(stopping)
          const messages = (yield* SessionStore.checkpoint(threadId))?.messages ?? []
          assert.deepStrictEqual(AgentTest.pairingProblems(messages), [], `cut behind step ${steps}`)
          assert.strictEqual(messages[0]?.role, "human")
          const { text } = yield* Agent.run(agent, Checkpoint.resume(undefined), { threadId })
          assert.strictEqual(text, "done")
        }
      }).pipe(
        Effect.provide(
          Layer.merge(
            model,
            SessionStore.journal.pipe(Layer.provideMerge(onPostgres({ ...place, url: url.toString() }, 1)))
          )
        ),
        Effect.provide(Logger.layer([Logger.make(({ message }) => void log.push(String(message)))]))
      )
      assert.isFalse(
        log.some((line) => line.includes("[object Object]") || line.includes("[Object]")),
        log.join("\n")
      )
    }, Effect.scoped),
    60_000
  )
})
