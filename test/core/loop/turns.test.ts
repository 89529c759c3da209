import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Schema, Stream } from "effect"
import { Agent, type ChatModel, Message, Middleware, Tool } from "effect-deepagents"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"

const act = Tool.make("act", { description: "", parameters: {}, execute: () => Effect.succeed("did") })
const call = (id: string, name = "act") => ({ id, name, arguments: {} })
const turn = (text: string) => ({ _tag: "TurnDone", message: Message.ai(text) }) satisfies ChatModel.TurnPart
const restarted: ChatModel.TurnPart = { _tag: "TurnRestarted", reason: "again" }

const results = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [[message.toolCallId, message.isError]] : []))

/** Answers in the model's place. */
const instead = (parts: ReadonlyArray<ChatModel.TurnPart>, end: Stream.Stream<never> = Stream.empty) =>
  Middleware.make({
    name: "instead",
    wrapModelCall: () => Stream.concat(Stream.fromIterable(parts), end)
  })

describe("a turn that is restarted (invariant 11)", () => {
  it.effect("forgets earlier parts: an interruption keeps only the new ones", () =>
    Effect.gen(function* () {
      const parts: ReadonlyArray<ChatModel.TurnPart> = [
        { _tag: "ReasoningDelta", text: "old thought" },
        { _tag: "TextDelta", text: "old" },
        restarted,
        { _tag: "TextDelta", text: "new" }
      ]
      const said = yield* Deferred.make<void>()
      const end = Stream.drain(Stream.fromEffect(Effect.andThen(Deferred.succeed(said, undefined), Effect.never)))
      const agent = Agent.make({ name: "a", prompt: "", middleware: [instead(parts, end)] })
      const handle = yield* Agent.start(agent, "go")
      yield* Deferred.await(said)
      yield* handle.interrupt
      const last = (yield* handle.messages).at(-1)
      assert(last?.role === "ai")
      assert.strictEqual(Message.text(last), "new")
      assert.isUndefined(Message.reasoning(last))
      assert.strictEqual(last.stopReason, "interrupted")
    }).pipe(Effect.scoped, Effect.provide(TestChatModel.script([])))
  )

  it.effect("forgets a turn that was done: without another one it is incomplete", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", middleware: [instead([turn("void"), restarted])] })
      const error = yield* Effect.flip(Agent.run(agent, "go"))
      assert(error._tag === "ModelError")
      assert.strictEqual(error.reason._tag, "BadResponse")
      // On the side as well.
      const side: Array<string> = []
      const asks = Middleware.make({
        name: "asks",
        beforeAgent: (run) =>
          Effect.asVoid(
            Effect.catch(run.call({ messages: [Message.human("?")], purpose: "test" }), (failed) =>
              Effect.sync(() => side.push(failed._tag === "ModelError" ? failed.reason._tag : failed._tag))
            )
          )
      })
      const both = Agent.make({ name: "a", prompt: "", middleware: [asks, instead([turn("void"), restarted])] })
      yield* Effect.flip(Agent.run(both, "go"))
      assert.deepStrictEqual(side, ["BadResponse"])
    }).pipe(Effect.provide(TestChatModel.script([])))
  )
})

describe("a turn that was done (invariant 9)", () => {
  it.effect("is in the history once, when its tools are interrupted: its parts are no partial answer", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<void>()
      const hangs = Tool.make("act", {
        description: "",
        parameters: {},
        execute: () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
      })
      const handle = yield* Agent.start(Agent.make({ name: "a", prompt: "", tools: [hangs] }), "go")
      yield* Deferred.await(begun)
      yield* handle.interrupt
      const messages = yield* handle.messages
      assert.deepStrictEqual(
        messages.map((message) => [message.role, message.role === "ai" ? message.stopReason : Message.text(message)]),
        [
          ["human", "go"],
          ["ai", "toolCalls"],
          ["tool", "This call was interrupted. Whether it had an effect is not known."]
        ]
      )
    }).pipe(Effect.scoped, Effect.provide(TestChatModel.script([TestChatModel.calls([call("1")], { text: "I act" })])))
  )

  it.effect("keeps its message as it is when its only call is named as its tool is", () =>
    Effect.gen(function* () {
      const message = Message.ai("", { toolCalls: [call("own id")] })
      const lone = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [act] }), "go").pipe(
        Effect.provide(TestChatModel.script([TestChatModel.message(message), "done"]))
      )
      assert.strictEqual(lone.messages[1], message)
      // One that is named otherwise, has no id, or stands beside another one, is made so.
      for (const toolCalls of [[call("1", "Act")], [call("")], [call("2"), call("2")]]) {
        const { messages } = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [act] }), "go").pipe(
          Effect.provide(TestChatModel.script([TestChatModel.message(Message.ai("", { toolCalls })), "done"]))
        )
        const made = messages[1]
        assert(made?.role === "ai")
        assert.isTrue(made.toolCalls.every(({ id, name }) => id !== "" && name === "act"))
        assert.strictEqual(new Set(made.toolCalls.map(({ id }) => id)).size, toolCalls.length)
        assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
        assert.isTrue(results(messages).every(([, isError]) => isError === false))
      }
    })
  )
})

describe("a call that passes middleware", () => {
  it.effect("is decoded once, and once more for arguments that were changed", () =>
    Effect.gen(function* () {
      const decoded: Array<unknown> = []
      const counted = Schema.Int.check(Schema.makeFilter((n: number) => (decoded.push(n), true)))
      const tool = Tool.make("count", {
        description: "",
        parameters: { n: counted },
        execute: ({ n }) => Effect.succeed(`${n}`)
      })
      const passes = Middleware.make({ name: "passes", wrapToolCall: (asked, next) => next(asked) })
      const changes = Middleware.make({
        name: "changes",
        wrapToolCall: (asked, next) => next({ ...asked, arguments: { n: "2" } })
      })
      for (const [middleware, expected] of [
        [[passes], [1]],
        [
          [passes, changes],
          [1, 2]
        ]
      ] as const) {
        decoded.length = 0
        const agent = Agent.make({ name: "a", prompt: "", tools: [tool], middleware })
        const { messages } = yield* Agent.run(agent, "go").pipe(
          Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "count", arguments: { n: 1 } }]), "done"]))
        )
        assert.deepStrictEqual(decoded, [...expected])
        assert.strictEqual(Message.text(messages[2] ?? Message.human("")), `${expected.at(-1)}`)
      }
    })
  )
})

describe("calls that are declined", () => {
  const twice = TestChatModel.calls([call("1")])

  it.effect("are errors: of a turn that was cut or refused, or that a hook took over", () =>
    Effect.gen(function* () {
      for (const stopReason of ["length", "interrupted", "refusal", "contentFilter"] as const) {
        const { messages } = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [act] }), "go").pipe(
          Effect.provide(
            TestChatModel.script(
              [TestChatModel.message(Message.ai("", { toolCalls: [call("1")], stopReason })), "ok"],
              {
                exhaustive: false
              }
            )
          )
        )
        assert.deepStrictEqual(results(messages), [["1", true]], stopReason)
      }
      const hook = Middleware.make({
        name: "hook",
        afterModel: (run) =>
          Effect.succeed(run.round === 1 ? Middleware.continueWith(Message.human("wait")) : undefined)
      })
      const { messages } = yield* Agent.run(
        Agent.make({ name: "a", prompt: "", tools: [act], middleware: [hook] }),
        "go"
      ).pipe(Effect.provide(TestChatModel.script([twice, "ok"])))
      assert.deepStrictEqual(results(messages), [["1", true]])
      const capped = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [act], maxRounds: 1 }), "go").pipe(
        Effect.provide(TestChatModel.script([twice, TestChatModel.calls([call("2")])]))
      )
      assert.deepStrictEqual(results(capped.messages), [
        ["1", false],
        ["2", true]
      ])
    })
  )

  it.effect("report whether an answer was taken, and that calls beside it did not run", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", tools: [act], output: Schema.Struct({ n: Schema.Int }) })
      const answer = (id: string, n: unknown) => ({ id, name: Tool.finalAnswer, arguments: { n: n as number } })
      const { messages } = yield* Agent.run(agent, "go").pipe(
        Effect.provide(
          TestChatModel.script(
            [
              TestChatModel.calls([answer("1", "no number"), call("2")]),
              TestChatModel.calls([answer("3", 3), call("4")])
            ],
            { structuredOutput: "tool" }
          )
        )
      )
      assert.deepStrictEqual(results(messages), [
        ["1", true],
        ["2", true],
        ["3", false],
        ["4", true]
      ])
    })
  )
})
