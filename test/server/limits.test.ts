/** A tenant's limits: requests in a minute, and the spending of its runs. Other tenants do not notice. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent } from "effect-deepagents"
import { Budget } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Ledger, Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { ask, readFrames, serve } from "./door.ts"
import { foldFrames, showState } from "./reader.ts"

const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)
const model = TestChatModel.reactive(() => "Hello.")

describe("a tenant", () => {
  it.live("has its requests counted, over all routes, and is told when to come again", () =>
    Effect.gen(function* () {
      const helper = Agent.make({ name: "helper", prompt: "" })
      const runs = Server.layer({ helper }).pipe(Layer.provide(model))
      const url = yield* serve(runs, { rate: 5 })
      for (let index = 0; index < 5; index++) assert.strictEqual((yield* ask(`${url}/threads`)).status, 200)
      for (const path of ["threads", "agents", "threads/t/state", "metrics"]) {
        const refused = yield* ask(`${url}/${path}`)
        assert.deepStrictEqual([refused.status, refused.at("code")], [429, "Rate"], path)
      }
      const late = yield* Effect.promise(() =>
        fetch(`${url}/threads`, { headers: { authorization: "Bearer token-of-ada" } })
      )
      assert.match(late.headers.get("retry-after") ?? "", /^\d+$/)
      const taken = yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "x" } })
      assert.strictEqual(taken.status, 429)
      assert.strictEqual((yield* ask(`${url}/threads`, { token: "token-of-eve" })).status, 200)
      assert.strictEqual((yield* ask(`${url}/health`, { token: "" })).status, 200)
      assert.strictEqual((yield* ask(`${url}/threads`, { token: "token-of-mallory" })).status, 401)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.live("spends from accounts of its own, over all of its threads", () =>
    Effect.gen(function* () {
      const clerk = Agent.make({
        name: "helper",
        prompt: "",
        middleware: [
          Budget.accounts({
            caps: () =>
              Effect.map(
                Server.Caller,
                ({ tenant }) => ({ account: `tenant:${tenant}`, window: "ever", max: { modelCalls: 2 } }) as const
              ),
            onExhausted: "finalAnswer"
          })
        ]
      })
      const runs = Server.layer({ helper: clerk }).pipe(Layer.provide([model, Ledger.layerMemory]))
      const url = yield* serve(runs)
      const endOf = (thread: string, token: string) =>
        Effect.gen(function* () {
          yield* ask(`${url}/threads/${thread}/runs`, { token, body: { agent: "helper", input: "x" } })
          const { frames } = yield* readFrames(`${url}/threads/${thread}/events`, { token })
          return showState(foldFrames(frames)).end
        })
      const ends = yield* Effect.forEach(["a", "b", "c"], (thread) => endOf(thread, "token-of-ada"))
      assert.deepStrictEqual(ends, ["RunCompleted completed", "RunCompleted completed", "RunCompleted budget:rounds"])
      assert.strictEqual(yield* endOf("a", "token-of-eve"), "RunCompleted completed")
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})
