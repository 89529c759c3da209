import assert from "node:assert/strict"
import { test } from "node:test"
import { NodeHttpServer } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { MemorySessions } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { HttpBody, HttpClient } from "effect/http"
import { app } from "../src/app.ts"

test("it streams the events of an answer", async () => {
  const services = Layer.mergeAll(MemorySessions.layer, TestChatModel.script(["Hello, Ada."]))
  const program = Effect.gen(function* () {
    const client = yield* HttpClient.HttpClient
    const response = yield* client.post("/threads/ada", { body: HttpBody.text("Hello") })
    return yield* response.text
  })
  const body = await Effect.runPromise(
    Effect.provide(program, app.pipe(Layer.provide(services), Layer.provideMerge(NodeHttpServer.layerTest)))
  )
  assert.match(body, /"_tag":"TextDelta"/)
  assert.match(body, /"_tag":"RunCompleted"/)
})
