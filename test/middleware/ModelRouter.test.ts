import { assert, describe, it } from "@effect/vitest"
import { Context, Data, Effect, Layer, Schema } from "effect"
import { Agent, type ChatModel, Message, Middleware, ModelError, Tool } from "effect-deepagents"
import { ModelFallback, ModelRouter, Summarization } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { agentWith, prompt } from "./run.ts"

/** Models that report their names and their requests. */
const models = () => {
  const asked: Array<string> = []
  const one = (
    modelId: string,
    own: TestChatModel.Options,
    answer?: (request: ChatModel.ModelRequest) => TestChatModel.Turn
  ) =>
    TestChatModel.reactive(
      (request) => {
        asked.push(request.purpose === "turn" ? modelId : `${modelId}:${request.purpose}`)
        return answer?.(request) ?? TestChatModel.text(`from ${modelId}`)
      },
      { modelId, ...own }
    )
  return { asked, one }
}

const look = Tool.make("look", {
  description: "Looks",
  parameters: { at: Schema.String },
  execute: () => Effect.succeed("seen")
})

/** Calls a tool for so many rounds, and then answers. */
const rounds = (modelId: string, count: number) => (request: ChatModel.ModelRequest) =>
  request.messages.filter(({ role }) => role === "tool").length < count && request.tools.length > 0
    ? TestChatModel.calls([{ name: "look", arguments: { at: `${request.messages.length}` } }])
    : TestChatModel.text(`from ${modelId}`)

describe("ModelRouter", () => {
  it.effect("asks the model that the first rule names which names one, else the run's own", () =>
    Effect.gen(function* () {
      const { asked, one } = models()
      const router = ModelRouter.make({
        models: { a: one("a", {}), b: one("b", {}) },
        rules: [
          ({ request }) => (Message.text(request.messages[0] ?? Message.human("")) === "a?" ? "a" : undefined),
          ({ run }) => Effect.succeed(run.messages.length > 1 ? ("b" as const) : undefined)
        ]
      })
      const agent = agentWith(router)
      const own = one("own", {})
      const ask = (input: Agent.Input) =>
        Effect.map(Agent.run(agent, input).pipe(Effect.provide(own)), ({ text }) => text)
      assert.strictEqual(yield* ask("a?"), "from a")
      assert.strictEqual(yield* ask("?"), "from own")
      assert.strictEqual(yield* ask([Message.human("?"), Message.ai("!"), Message.human("??")]), "from b")
      assert.deepStrictEqual(asked, ["a", "own", "b"])
    })
  )

  it.effect("decides for each round, and opens a model once a run", () =>
    Effect.gen(function* () {
      const { asked, one } = models()
      let built = 0
      const large = Layer.effectDiscard(Effect.sync(() => void built++)).pipe(
        Layer.provideMerge(one("large", {}, rounds("large", 4)))
      )
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [look],
        middleware: [
          ModelRouter.make({
            models: { small: one("small", {}, rounds("small", 4)), large },
            rules: [({ run }) => (run.round > 2 ? "large" : "small")]
          })
        ]
      })
      const own = one("own", {})
      for (let times = 1; times <= 2; times++) {
        const { text } = yield* Agent.run(agent, prompt).pipe(Effect.provide(own))
        assert.strictEqual(text, "from large")
        assert.strictEqual(built, times)
      }
      assert.deepStrictEqual(asked.slice(0, 5), ["small", "small", "large", "large", "large"])
    })
  )

  it.effect("chooses by purpose", () =>
    Effect.gen(function* () {
      const { asked, one } = models()
      const note = Middleware.make({
        name: "note",
        afterModel: (run, message) => Effect.asVoid(run.call({ messages: [message], purpose: "note" }))
      })
      const agent = agentWith(
        note,
        ModelRouter.make({ models: { small: one("small", {}) }, rules: [ModelRouter.byPurpose({ note: "small" })] })
      )
      yield* Agent.run(agent, prompt).pipe(Effect.provide(one("own", {})))
      assert.deepStrictEqual(asked, ["own", "small:note"])
    })
  )

  it.effect("chooses by price among the models that the request fits in", () =>
    Effect.gen(function* () {
      const { one } = models()
      const cheap = { input: 1, output: 1 }
      const dear = { input: 10, output: 10 }
      const catalogue = {
        tiny: one("tiny", { prices: { input: 0.1, output: 0.1 }, contextWindowTokens: 3_000 }),
        blind: one("blind", { prices: cheap, contextWindowTokens: 100_000, supportsVision: false }),
        seeing: one("seeing", { prices: dear, contextWindowTokens: 1_000_000, supportsVision: true }),
        unpriced: one("unpriced", {})
      }
      const agent = agentWith(
        ModelRouter.make({
          models: catalogue,
          rules: [ModelRouter.cheapest(["unpriced", "seeing", "blind", "tiny"])]
        })
      )
      const ask = (input: Agent.Input) =>
        Effect.map(Agent.run(agent, input).pipe(Effect.provide(one("own", {}))), ({ text }) => text)
      assert.strictEqual(yield* ask("short"), "from tiny")
      assert.strictEqual(yield* ask("long ".repeat(2_000)), "from blind")
      assert.strictEqual(yield* ask("long ".repeat(200_000)), "from seeing")
      const seen = Message.human("?", { images: [{ url: "https://a.example/x.png" }] })
      assert.strictEqual(yield* ask([seen]), "from seeing")
      assert.strictEqual(yield* ask("endless ".repeat(2_000_000)), "from own")
    })
  )

  it.effect("chooses the first that fits", () =>
    Effect.gen(function* () {
      const { one } = models()
      const router = ModelRouter.make({
        models: { a: one("a", { contextWindowTokens: 4_000 }), b: one("b", { contextWindowTokens: undefined }) },
        rules: [ModelRouter.fitting(["a", "b"])]
      })
      const ask = (input: string) =>
        Effect.map(Agent.run(agentWith(router), input).pipe(Effect.provide(one("own", {}))), ({ text }) => text)
      assert.strictEqual(yield* ask("short"), "from a")
      assert.strictEqual(yield* ask("long ".repeat(5_000)), "from b")
    })
  )

  describe("a classifier", () => {
    const classified = (answer: TestChatModel.Turn, input: Agent.Input = prompt) =>
      Effect.gen(function* () {
        const { asked, one } = models()
        const requests: Array<ChatModel.ModelRequest> = []
        const small = one("small", {}, (request) => {
          requests.push(request)
          return request.purpose === "route" ? answer : rounds("small", 2)(request)
        })
        const agent = Agent.make({
          name: "a",
          prompt: "",
          tools: [look],
          middleware: [
            ModelRouter.make({
              models: { small, large: one("large", {}, rounds("large", 2)) },
              rules: [
                ModelRouter.byClassifier({ models: { small: "simple", large: "hard" }, by: "small" }),
                () => "small"
              ]
            })
          ]
        })
        const { events } = yield* AgentTest.collect(agent, input).pipe(Effect.provide(one("own", {})))
        const warnings = events.flatMap((event) => (event._tag === "Warning" ? [event.message] : []))
        return { asked, requests, warnings, last: events.at(-1) }
      })

    it.effect("is asked once a message, and shown nothing but it", () =>
      Effect.gen(function* () {
        const history = [Message.human("secret of before"), Message.ai("ok"), Message.human("Prove it.")]
        const { asked, requests, warnings } = yield* classified(TestChatModel.text(" Large.\n"), history)
        assert.deepStrictEqual(asked, ["small:route", "large", "large", "large"])
        assert.deepStrictEqual(warnings, [])
        const [request] = requests
        assert.notInclude(JSON.stringify(request?.messages), "secret")
        assert.include(JSON.stringify(request?.messages), "Prove it.")
        assert.deepStrictEqual([request?.tools, request?.toolChoice], [[], "none"])
      })
    )

    it.effect("that names none, or several, or fails, leaves the choice to the next rule", () =>
      Effect.gen(function* () {
        const answers = ["", "I would say medium", "small or large", "largesmall", "LARGE-ish"]
        for (const answer of answers) {
          const { asked, warnings } = yield* classified(TestChatModel.text(answer))
          assert.deepStrictEqual(asked, ["small:route", "small", "small", "small"], answer)
          assert.strictEqual(warnings.length, 1)
        }
        const failed = yield* classified(TestChatModel.fail({ _tag: "Overloaded" }))
        assert.strictEqual(failed.last?._tag, "RunCompleted")
        // Each round may try again.
        assert.strictEqual(failed.asked.filter((one) => one === "small:route").length, 3)
      })
    )
  })

  describe("overflow", () => {
    const full = TestChatModel.fail({ _tag: "ContextOverflow" }, { after: "So" })

    it.effect("goes to the larger model, and stays there for the run", () =>
      Effect.gen(function* () {
        const { asked, one } = models()
        const agent = Agent.make({
          name: "a",
          prompt: "",
          tools: [look],
          middleware: [
            ModelRouter.make({ models: { large: one("large", {}, rounds("large", 2)) }, rules: [], overflow: "large" })
          ]
        })
        const own = one("own", {}, (request) => (request.messages.length > 2 ? full : rounds("own", 2)(request)))
        const { events } = yield* AgentTest.collect(agent, prompt).pipe(Effect.provide(own))
        assert.deepStrictEqual(asked, ["own", "own", "large", "large"])
        const told = events.flatMap((event) =>
          event._tag === "Warning" ? [event.code] : event._tag === "TurnRestarted" ? ["restarted"] : []
        )
        assert.deepStrictEqual(told, ["model-router", "restarted"])
        assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
      })
    )

    it.effect("of the largest model is a failure, and other failures are no overflow", () =>
      Effect.gen(function* () {
        const { asked, one } = models()
        const large = one("large", {}, () => full)
        const agent = agentWith(ModelRouter.make({ models: { large }, rules: [], overflow: "large" }))
        const error = yield* Effect.flip(Agent.run(agent, prompt).pipe(Effect.provide(one("own", {}, () => full))))
        assert.isTrue(ModelError.isModelError(error) && error.reason._tag === "ContextOverflow")
        const busy = one("busy", {}, () => TestChatModel.fail({ _tag: "Overloaded" }))
        yield* Effect.flip(Agent.run(agent, prompt).pipe(Effect.provide(busy)))
        assert.deepStrictEqual(asked, ["own", "large", "busy"])
      })
    )
  })

  it.effect("sticky, it keeps the first choice for the thread, over a resume", () =>
    Effect.gen(function* () {
      const { asked, one } = models()
      const make = (names: ReadonlyArray<"a" | "b">) => {
        let turn = 0
        return agentWith(
          ModelRouter.make({
            models: Object.fromEntries(names.map((name) => [name, one(name, {})])) as Record<
              "a" | "b",
              Layer.Layer<ChatModel.ChatModel>
            >,
            rules: [() => (turn++ === 0 ? names[0] : names[1])],
            sticky: true
          })
        )
      }
      const own = one("own", {})
      const agent = make(["a", "b"])
      const first = yield* Agent.run(agent, prompt).pipe(Effect.provide(own))
      assert.deepStrictEqual(first.state["model-router"], { model: "a" })
      const resumed = { history: first.messages, state: first.state }
      assert.strictEqual((yield* Agent.run(agent, "on", resumed).pipe(Effect.provide(own))).text, "from a")
      assert.strictEqual((yield* Agent.run(make(["b", "a"]), "on", resumed).pipe(Effect.provide(own))).text, "from a")
      // A name that is no longer there.
      assert.strictEqual((yield* Agent.run(make(["b"]), "on", resumed).pipe(Effect.provide(own))).text, "from b")
      assert.deepStrictEqual(asked, ["a", "a", "a", "b"])
    })
  )

  it.effect("leaves an earlier choice alone", () =>
    Effect.gen(function* () {
      const { asked, one } = models()
      const down = one("down", {}, () => TestChatModel.fail({ _tag: "Overloaded" }))
      const agent = agentWith(
        ModelFallback.make([one("rescue", {})]),
        ModelRouter.make({ models: { down }, rules: [() => "down"] })
      )
      assert.strictEqual((yield* Agent.run(agent, prompt).pipe(Effect.provide(one("own", {})))).text, "from rescue")
      assert.deepStrictEqual(asked, ["down", "rescue"])
    })
  )

  it.effect("a model that can't be opened fails the call with its own failure, and rules do without it", () =>
    Effect.gen(function* () {
      class NoKey extends Data.TaggedError("NoKey") {}
      const { one } = models()
      const broken = Layer.effectDiscard(Effect.fail(new NoKey())).pipe(Layer.provideMerge(one("broken", {})))
      const own = one("own", {})
      const chosen = agentWith(ModelRouter.make({ models: { broken }, rules: [() => "broken"] }))
      const error = yield* Effect.flip(Agent.run(chosen, prompt).pipe(Effect.provide(own)))
      assert.strictEqual(error._tag, "NoKey")
      const asked = agentWith(ModelRouter.make({ models: { broken }, rules: [ModelRouter.fitting(["broken"])] }))
      assert.strictEqual((yield* Agent.run(asked, prompt).pipe(Effect.provide(own))).text, "from own")
    })
  )

  it.effect("a rule's failure ends the run, and a rule without a choice is skipped", () =>
    Effect.gen(function* () {
      const { one } = models()
      class Closed extends Data.TaggedError("Closed") {}
      class Hours extends Context.Service<Hours, { readonly open: boolean }>()("test/Hours") {}
      const own = one("own", {})
      const agent = agentWith(
        ModelRouter.make({
          models: { a: one("a", {}) },
          rules: [
            () => Effect.flatMap(Hours, ({ open }) => (open ? Effect.succeed("a" as const) : Effect.fail(new Closed())))
          ]
        })
      )
      const at = (open: boolean) => Agent.run(agent, prompt).pipe(Effect.provide([own, Layer.succeed(Hours, { open })]))
      assert.strictEqual((yield* at(true)).text, "from a")
      assert.strictEqual((yield* Effect.flip(at(false)))._tag, "Closed")

      const names: ReadonlyArray<string> = ["nobody", "constructor", "__proto__", ""]
      for (const name of names) {
        // Who writes JavaScript can name anything.
        const typo = agentWith(ModelRouter.make({ models: { a: one("a", {}) }, rules: [() => name as "a"] }))
        const { events } = yield* AgentTest.collect(typo, prompt).pipe(Effect.provide(own))
        assert.isTrue(events.some((event) => event._tag === "Warning" && event.code === "model-router"))
        assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
      }
    })
  )

  it.effect("an agent with a router of nothing, or an overflow to nobody, does not run", () =>
    Effect.gen(function* () {
      const { one } = models()
      const empty = agentWith(ModelRouter.make({ models: {}, rules: [] }))
      const nobody = agentWith(ModelRouter.make({ models: { a: one("a", {}) }, rules: [], overflow: "b" as "a" }))
      for (const agent of [empty, nobody]) {
        const error = yield* Effect.flip(Agent.run(agent, prompt).pipe(Effect.provide(one("own", {}))))
        assert.strictEqual(error._tag, "AgentError")
      }
    })
  )

  it.effect("summaries go to the model for them", () =>
    Effect.gen(function* () {
      const { asked, one } = models()
      const agent = agentWith(
        Summarization.make({ contextWindowTokens: 3_000 }),
        ModelRouter.make({ models: { small: one("small", {}) }, rules: [ModelRouter.byPurpose({ summary: "small" })] })
      )
      const history = Array.from({ length: 40 }, (_, index) =>
        index % 2 === 0 ? Message.human("word ".repeat(100)) : Message.ai("word ".repeat(100))
      )
      yield* Agent.run(agent, prompt, { history }).pipe(Effect.provide(one("own", {})))
      assert.isTrue(asked.includes("small:summary"))
      assert.isFalse(asked.includes("own:summary"))
    })
  )
})
