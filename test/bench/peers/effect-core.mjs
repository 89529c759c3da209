// The least that an agent loop in Effect can cost: no hooks, spans, retries or persistence. What ours is measured by.
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { historyOf, prompt } from "../script.mjs"

const user = (text) => ({ role: "user", text })
const ai = (text, toolCalls = []) => ({ role: "ai", text, toolCalls })

const answer = ({ id }, text) => ({ role: "tool", id, text })

export const history = (length) =>
  historyOf(length, { user, ai, answer, call: ({ id, json, name }, text) => ai(text, [{ id, name, json }]) })

const pump = async (iterable, queue) => {
  for await (const part of iterable) Queue.offerUnsafe(queue, part)
  Queue.endUnsafe(queue)
}

const fromAsyncIterable = (iterable) =>
  Stream.unwrap(
    Effect.map(Queue.unbounded(), (queue) => {
      void pump(iterable, queue)
      return Stream.fromQueue(queue)
    })
  )

export const make = (script) => {
  const nextTurn = (messages) =>
    script.batch === 0
      ? fromAsyncIterable(script.turn(messages.length))
      : Stream.flattenArray(fromAsyncIterable(script.batches()))

  const decode = Schema.decodeUnknownEffect(Schema.Struct({ n: Schema.Finite }))
  const step = ({ n }) => (script.toolTime > 0 ? Effect.promise(() => script.step(n)) : Effect.succeed(script.step(n)))
  const call = Effect.fnUntraced(function* ({ id, json }) {
    const text = yield* step(yield* decode(JSON.parse(json)))
    return { role: "tool", id, text }
  })

  const loop = Effect.fnUntraced(function* (messages, events) {
    while (true) {
      let text = ""
      const calls = []
      yield* Stream.runForEachArray(nextTurn(messages), (parts) => {
        for (const part of parts) {
          if (typeof part === "string") text += part
          else calls.push(part)
        }
        Queue.offerAllUnsafe(events, parts)
        return Effect.void
      })
      messages.push(ai(text, calls))
      if (calls.length === 0) return
      const results = yield* Effect.forEach(calls, call, { concurrency: "unbounded" })
      messages.push(...results)
      Queue.offerAllUnsafe(events, results)
    }
  })

  const stream = (before) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const events = yield* Queue.unbounded()
        const messages = [{ role: "system", text: prompt }, ...before, user("go")]
        yield* Effect.forkScoped(Queue.into(loop(messages, events), events))
        return Stream.fromQueue(events)
      })
    )

  return async (before = []) => {
    let streamed = ""
    await Effect.runPromise(
      Stream.runForEachArray(stream(before), (events) => {
        for (const event of events) if (typeof event === "string") streamed += event
        return Effect.void
      })
    )
    return streamed
  }
}
