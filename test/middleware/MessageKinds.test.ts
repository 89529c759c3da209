/** Kinds of messages: the model's view of them, and the thread's. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Schema } from "effect"
import { Agent, Content, Message, Middleware } from "effect-deepagents"
import { MessageKinds, PromptCaching } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"

const Deploy = Schema.Struct({ version: Schema.String, at: Schema.DateFromMillis })
const deploy = MessageKinds.define(
  "deploy",
  Deploy,
  ({ at, version }) => `${version} went live in ${at.getUTCFullYear()}`
)
const seen = MessageKinds.define("seen", Schema.Struct({ page: Schema.String }))
const photo = MessageKinds.define("photo", Schema.String, (url) => [Content.image({ url })])

const live = deploy.make({ version: "2.1", at: new Date(0) })
const kinds = MessageKinds.make({ kinds: [deploy, seen, photo] })

const texts = Effect.map(TestChatModel.requests, (requests) =>
  requests.map(({ messages }) => messages.map((message) => Message.text(message)))
)

describe("MessageKinds", () => {
  it.effect("shows the model what a kind says, leaves out the others, and keeps all in the thread", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", middleware: [kinds] })
      const stranger = MessageKinds.define("stranger", Schema.String, (value) => value)
      const broken = Message.human('{"version":2}', { source: "kind:deploy" })
      const input = [live, seen.make({ page: "/x" }), stranger.make("who?"), broken, Message.human("go")]
      yield* Agent.run(agent, input, { threadId: "t" })
      // A later run reads them from the thread.
      yield* Agent.run(agent, "again", { threadId: "t" })
      assert.deepStrictEqual(yield* texts, [
        ["2.1 went live in 1970", "go"],
        ["2.1 went live in 1970", "go", "one", "again"]
      ])
      const { messages = [] } = (yield* SessionStore.checkpoint("t")) ?? {}
      assert.deepStrictEqual(messages.slice(0, 5), input)
      assert.deepStrictEqual(Option.getOrThrow(deploy.read(live)), { version: "2.1", at: new Date(0) })
      assert.deepStrictEqual(
        messages.map((message) => Option.isSome(seen.read(message))),
        [false, true, false, false, false, false, false, false]
      )
    }).pipe(
      Effect.provide([
        TestChatModel.script(["one", "two"]),
        SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
      ])
    )
  )

  it.effect("shows blocks, in side calls too, and keeps the marks of a cache on the messages that stay", () =>
    Effect.gen(function* () {
      const asking = Middleware.make({
        name: "asking",
        beforeModel: (run) =>
          run.round > 0
            ? Effect.void
            : Effect.asVoid(Effect.orDie(run.call({ messages: run.messages, purpose: "side" })))
      })
      const hinting = Middleware.make({
        name: "hinting",
        wrapModelCall: (request, next) => next({ ...request, cacheHints: request.messages.map((_, place) => place) })
      })
      const agent = Agent.make({ name: "a", prompt: "", middleware: [PromptCaching.make(), hinting, asking, kinds] })
      const input = [
        seen.make({ page: "/x" }),
        Message.human("go"),
        seen.make({ page: "/y" }),
        photo.make("https://x.y/z.png")
      ]
      yield* Agent.run(agent, input)
      const requests = yield* TestChatModel.requests
      assert.strictEqual(requests.length, 2)
      for (const { cacheHints, messages } of requests) {
        assert.deepStrictEqual(
          messages.map(({ content }) => content.map(({ type }) => type)),
          [["text"], ["image"]]
        )
        assert.deepStrictEqual(cacheHints, [0, 1])
      }
    }).pipe(Effect.provide(TestChatModel.script(["side", "done"])))
  )

  it.effect("refuses two kinds of one name", () =>
    Effect.gen(function* () {
      const twice = MessageKinds.make({ kinds: [seen, MessageKinds.define("seen", Schema.String)] })
      const agent = Agent.make({ name: "a", prompt: "", middleware: [twice] })
      const error = yield* Effect.flip(Agent.run(agent, "go"))
      assert.include(error.message, 'two kinds have the name "seen"')
    }).pipe(Effect.provide(TestChatModel.reactive(() => "done")))
  )
})
