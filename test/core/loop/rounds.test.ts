import { assert, describe, it } from "@effect/vitest"
import { Effect, pipe, Schema, Stream } from "effect"
import {
  Agent,
  AgentState,
  Content,
  type ChatModel,
  Message,
  Middleware,
  StopWhen,
  Tool,
  ToolContext,
  Usage
} from "effect-deepagents"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"

const step = Tool.make("step", {
  description: "One step",
  parameters: { n: Schema.Int },
  execute: ({ n }) => Effect.succeed(`did ${n}`)
})

const stepCall = (n: number) => TestChatModel.calls([{ name: "step", arguments: { n } }])

const toolTexts = (messages: ReadonlyArray<Message.Message>) =>
  messages.filter((message) => message.role === "tool").map(Message.text)

describe("hook order", () => {
  it.effect("first registered is outermost; after hooks run in reverse", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const note = (entry: string) => Effect.sync(() => void log.push(entry))
      const makeMiddleware = (name: string) =>
        Middleware.make({
          name,
          beforeAgent: () => note(`beforeAgent ${name}`),
          beforeModel: () => note(`beforeModel ${name}`),
          wrapModelCall: (request, next) =>
            Stream.concat(
              Stream.fromEffectDrain(note(`model > ${name}`)),
              Stream.concat(next(request), Stream.fromEffectDrain(note(`model < ${name}`)))
            ),
          afterModel: () => note(`afterModel ${name}`),
          rulings: (_run, calls) =>
            Effect.as(
              note(`gate ${name}`),
              calls.map(() => undefined)
            ),
          wrapToolCall: (call, next) =>
            note(`tool > ${name}`).pipe(
              Effect.andThen(next(call)),
              Effect.tap(() => note(`tool < ${name}`))
            ),
          afterAgent: () => note(`afterAgent ${name}`)
        })
      const tool = Tool.make("t", { description: "", parameters: {}, execute: () => Effect.as(note("tool"), "ok") })
      yield* Agent.run(
        Agent.make({ name: "a", prompt: "", tools: [tool], middleware: [makeMiddleware("A"), makeMiddleware("B")] }),
        "go"
      )
      assert.deepStrictEqual(log, [
        "beforeAgent A",
        "beforeAgent B",
        "beforeModel A",
        "beforeModel B",
        "model > A",
        "model > B",
        "model < B",
        "model < A",
        "afterModel B",
        "afterModel A",
        "gate A",
        "gate B",
        "tool > A",
        "tool > B",
        "tool",
        "tool < B",
        "tool < A",
        "beforeModel A",
        "beforeModel B",
        "model > A",
        "model > B",
        "model < B",
        "model < A",
        "afterModel B",
        "afterModel A",
        "afterAgent B",
        "afterAgent A"
      ])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "t", arguments: {} }]), "done"])))
  )

  it.effect("a hook can rewrite the request, answer itself, jump to the end, and force the final answer", () =>
    Effect.gen(function* () {
      const rewriting = Middleware.make({
        name: "rewriting",
        prompt: "Section.",
        wrapModelCall: (request, next) => next({ ...request, systemPrompt: `${request.systemPrompt} Rewritten.` })
      })
      yield* Agent.run(Agent.make({ name: "a", prompt: "Base.", middleware: [rewriting] }), "go")
      const [request] = yield* TestChatModel.requests
      assert.strictEqual(request?.systemPrompt, "Base.\n\nSection. Rewritten.")

      const answering = Middleware.make({
        name: "answering",
        wrapModelCall: () => Stream.make<[ChatModel.TurnPart]>({ _tag: "TurnDone", message: Message.ai("mine") })
      })
      const own = yield* Agent.run(Agent.make({ name: "a", prompt: "", middleware: [answering] }), "go")
      assert.strictEqual(own.text, "mine")

      const ending = Middleware.make({
        name: "ending",
        beforeModel: () => Effect.succeed(Middleware.end("refused", Message.ai("no")))
      })
      const ended = yield* Agent.run(Agent.make({ name: "a", prompt: "", middleware: [ending] }), "go")
      assert.deepStrictEqual([ended.text, ended.stopReason, ended.rounds], ["no", "refused", 0])

      const forcing = Middleware.make({
        name: "forcing",
        afterModel: () => Effect.succeed(Middleware.forceFinalAnswer("budget:tokens"))
      })
      const forced = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [step], middleware: [forcing] }), "go")
      assert.deepStrictEqual([forced.text, forced.stopReason], ["forced", "budget:tokens"])
      assert.deepStrictEqual(AgentTest.pairingProblems(forced.messages), [])
    }).pipe(Effect.provide(TestChatModel.script(["ok", stepCall(1), "forced"])))
  )
})

describe("directives before the first round, and of an agent with an output schema", () => {
  const Answer = Schema.Struct({ n: Schema.Finite })
  const jumping = (directive: Middleware.Directive) =>
    Middleware.make({ name: "jumping", beforeAgent: () => Effect.succeed(directive) })

  it.effect("an answer in the model's place must fit the schema; without one the model is asked", () =>
    Effect.gen(function* () {
      const run = (directive: Middleware.Directive) =>
        Agent.run(Agent.make({ name: "a", prompt: "", output: Answer, middleware: [jumping(directive)] }), "go")
      const fits = yield* run(Middleware.end("stopCondition", Message.ai('{"n":1}')))
      assert.deepStrictEqual([fits.output, fits.rounds], [{ n: 1 }, 0])
      const error = yield* Effect.flip(run(Middleware.end("refused", Message.ai("no"))))
      assert.isTrue(error._tag === "AgentError" && error.reason._tag === "InvalidOutput" && error.reason.raw === "no")
      const asked = yield* run(Middleware.end("stopCondition"))
      assert.deepStrictEqual([asked.output, asked.stopReason], [{ n: 2 }, "stopCondition"])
      const forced = yield* run(Middleware.forceFinalAnswer("budget:time"))
      assert.deepStrictEqual([forced.output, forced.stopReason], [{ n: 3 }, "budget:time"])
    }).pipe(Effect.provide(TestChatModel.script(['{"n":2}', '{"n":3}'])))
  )
})

describe("an end after the model", () => {
  it.effect("answers the turn's calls before it says anything in the model's place", () =>
    Effect.gen(function* () {
      const ending = Middleware.make({
        name: "ending",
        afterModel: () => Effect.succeed(Middleware.end("refused", Message.ai("enough")))
      })
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [step], middleware: [ending] }), "go")
      assert.deepStrictEqual(
        result.messages.map((message) => message.role),
        ["human", "ai", "tool", "ai"]
      )
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      assert.deepStrictEqual([result.text, result.stopReason], ["enough", "refused"])
    }).pipe(Effect.provide(TestChatModel.script([stepCall(1)])))
  )
})

describe("a refusal of an agent with an output schema", () => {
  it.effect("is a typed error that says so", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", output: Schema.Struct({ n: Schema.Finite }) })
      const error = yield* Effect.flip(Agent.run(agent, "go"))
      assert.include(error.message, "the model refused to answer")
      assert.notInclude(error.message, "repairs")
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.text("I can't", { stopReason: "refusal" })])))
  )
})

describe("invariant 2: one door", () => {
  it.effect("forced final answers, repairs, side calls and sub-agents go through the middleware and are counted", () =>
    Effect.gen(function* () {
      const purposes: Array<string> = []
      const watching = Middleware.make({
        name: "watching",
        inherit: true,
        wrapModelCall: (request, next, run) => {
          purposes.push(`${run.agent} ${request.purpose} ${request.tools.length}`)
          return next(request)
        }
      })
      const asking = Middleware.make({
        name: "asking",
        afterAgent: (run) =>
          Effect.asVoid(Effect.orDie(run.call({ messages: [Message.human("grade it")], purpose: "grade" })))
      })
      const child = Agent.make({ name: "child", description: "", prompt: "" })
      const agent = Agent.make({
        name: "parent",
        prompt: "",
        tools: [Agent.asTool(child)],
        middleware: [watching, asking],
        maxRounds: 1
      })
      const { events } = yield* AgentTest.collect(agent, "go")
      assert.deepStrictEqual(purposes, ["parent turn 1", "child turn 0", "parent turn 0", "parent grade 0"])
      const last = events.at(-1)
      assert.isTrue(last?._tag === "RunCompleted")
      if (last?._tag !== "RunCompleted") return
      assert.strictEqual(Usage.totalTokens(last.usage), 4 * 11)
      assert.strictEqual(last.stopReason, "maxRounds")
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request, index) =>
          index === 0
            ? TestChatModel.calls([{ name: "child", arguments: { task: "t" } }], {
                usage: { inputTokens: 10, outputTokens: 1 }
              })
            : TestChatModel.text(request.purpose, { usage: { inputTokens: 10, outputTokens: 1 } })
        )
      )
    )
  )
})

describe("invariant 7: iteration cap", () => {
  it.effect("at maxRounds the model is called once more with no tools, so the answer is never empty", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "p", tools: [step], maxRounds: 2 }), "go")
      const requests = yield* TestChatModel.requests
      assert.deepStrictEqual(
        requests.map((request) => request.tools.length),
        [1, 1, 0]
      )
      assert.strictEqual(requests[2]?.toolChoice, "none")
      const asked = requests[2]?.messages.at(-1)
      assert.include(asked === undefined ? "" : Message.text(asked), "no more tools")
      assert.strictEqual(requests[2]?.systemPrompt, "p")
      assert.notInclude(result.messages.map(Message.text).join(), "no more tools")
      assert.deepStrictEqual([result.text, result.stopReason, result.rounds], ["that is all I know", "maxRounds", 3])
    }).pipe(Effect.provide(TestChatModel.script([stepCall(1), stepCall(2), "that is all I know"])))
  )

  it.effect("a model that calls tools even then is answered, and its earlier text is the answer", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [step], maxRounds: 1 }), "go")
      assert.deepStrictEqual([result.text, result.stopReason], ["thinking aloud", "maxRounds"])
      assert.strictEqual(result.output, "thinking aloud")
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "step", arguments: { n: 1 } }], { text: "thinking aloud" }),
          stepCall(2)
        ])
      )
    )
  )

  it.effect("an answer that the model never gave is said to be none", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [step], maxRounds: 1 }), "go")
      assert.deepStrictEqual([result.text, result.stopReason], ["The model gave no answer.", "maxRounds"])
    }).pipe(Effect.provide(TestChatModel.script([stepCall(1), ""])))
  )

  it.effect("two thousand rounds", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", tools: [step], maxRounds: 10_000 })
      const result = yield* Agent.run(agent, "go")
      assert.strictEqual(result.rounds, 2001)
      assert.strictEqual(result.messages.length, 1 + 2000 * 2 + 1)
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((_, index) => (index < 2000 ? stepCall(index) : TestChatModel.text("done")))
      )
    )
  )
})

describe("invariant 8: duplicate rounds", () => {
  const flaky = Tool.make("flaky", {
    description: "",
    parameters: { x: Schema.Json },
    execute: () => Effect.fail({ message: "broken" })
  })

  it.effect("first repeat: not executed, reported; second: forced final answer", () =>
    Effect.gen(function* () {
      let ran = 0
      const once = Tool.make("once", {
        description: "",
        parameters: {},
        execute: () => Effect.sync(() => `result ${++ran}`)
      })
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [once] }), "go")
      assert.strictEqual(ran, 1)
      const [first, second, third] = toolTexts(result.messages)
      assert.strictEqual(first, "result 1")
      assert.include(second, "its result is above")
      assert.include(third, "its result is above")
      assert.deepStrictEqual([result.text, result.stopReason], ["the end", "duplicateRounds"])
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "once", arguments: {} }]),
          TestChatModel.calls([{ name: "once", arguments: {} }]),
          TestChatModel.calls([{ name: "ONCE", arguments: {} }]),
          "the end"
        ])
      )
    )
  )

  it.effect("it is honest about each call that failed before", () =>
    Effect.gen(function* () {
      const calls = TestChatModel.calls([
        { name: "step", arguments: { n: 1 } },
        { name: "flaky", arguments: { x: { b: 1, a: 2 } } }
      ])
      const again = TestChatModel.calls([
        { name: "flaky", arguments: { x: { a: 2, b: 1 } } },
        { name: "step", arguments: { n: 1 } }
      ])
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [step, flaky] }), "go").pipe(
        Effect.provide(TestChatModel.script([calls, again, "done"]))
      )
      const texts = toolTexts(result.messages)
      assert.include(texts[2], "it failed")
      assert.include(texts[3], "its result is above")
    })
  )

  it.effect("other arguments, a malformed round between, or A B A are no repeats", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", tools: [step, flaky] })
      const result = yield* Agent.run(agent, "go")
      assert.strictEqual(result.stopReason, "completed")
      assert.notInclude(toolTexts(result.messages).join("\n"), "Not executed again")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          stepCall(1),
          stepCall(2),
          stepCall(1),
          TestChatModel.malformed("step("),
          stepCall(1),
          TestChatModel.calls([{ name: "flaky", arguments: { x: 1 } }]),
          TestChatModel.calls([{ name: "flaky", arguments: { x: "1" } }]),
          TestChatModel.calls([{ name: "flaky", arguments: { x: null } }]),
          "done"
        ])
      )
    )
  )
})

describe("stop reasons", () => {
  it.effect("a refusal and a cut answer are not completions", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "" })
      const refused = yield* Agent.run(agent, "go")
      assert.deepStrictEqual([refused.stopReason, refused.text], ["refused", "I can't"])
      const cut = yield* Agent.run(agent, "go")
      assert.strictEqual(cut.stopReason, "length")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.text("I can't", { stopReason: "refusal" }),
          TestChatModel.text("Once upon", { stopReason: "length" })
        ])
      )
    )
  )

  it.effect("a paused turn is continued", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "" }), "go")
      assert.deepStrictEqual([result.text, result.rounds], ["rest", 2])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.text("first", { stopReason: "pause" }), "rest"])))
  )
})

describe("stopWhen", () => {
  const found = AgentState.slot("found", { schema: Schema.Boolean, initial: false })
  const find = Tool.make("find", {
    description: "",
    parameters: { n: Schema.Int },
    execute: Effect.fnUntraced(function* ({ n }) {
      const { state } = yield* ToolContext.ToolContext
      yield* state.set(found, n === 2)
      return "looked"
    })
  })
  const calls = (n: number) => TestChatModel.calls([{ name: "find", arguments: { n } }])

  it.effect("rounds, toolCalled, stateIs and any effect end the run after a round of tools", () =>
    Effect.gen(function* () {
      const make = (condition: StopWhen.StopWhen) =>
        Agent.make({ name: "a", prompt: "", tools: [find], stopWhen: [condition] })
      const script = TestChatModel.script([calls(1), calls(2), calls(3), "done"], { exhaustive: false })
      const rounds = (condition: StopWhen.StopWhen) =>
        Effect.map(Agent.run(make(condition), "go"), (result) => [result.rounds, result.stopReason]).pipe(
          Effect.provide(script, { local: true })
        )
      assert.deepStrictEqual(yield* rounds(StopWhen.rounds(1)), [1, "stopCondition"])
      assert.deepStrictEqual(yield* rounds(StopWhen.toolCalled("find")), [1, "stopCondition"])
      assert.deepStrictEqual(yield* rounds(StopWhen.stateIs(found, (value) => value)), [2, "stopCondition"])
      assert.deepStrictEqual(yield* rounds((run) => Effect.succeed(run.messages.length > 6)), [3, "stopCondition"])
      assert.deepStrictEqual(yield* rounds(StopWhen.toolCalled("other")), [4, "completed"])
    })
  )

  it.effect("and, or and not join conditions, and ask no more of them than they must", () =>
    Effect.gen(function* () {
      let asked = 0
      const holds =
        (value: boolean): StopWhen.StopWhen =>
        () =>
          Effect.sync(() => (asked++, value))
      const agent = (condition: StopWhen.StopWhen) =>
        Agent.make({ name: "a", prompt: "", tools: [find], stopWhen: [condition] })
      for (const left of [true, false]) {
        for (const right of [true, false]) {
          const joined: ReadonlyArray<readonly [StopWhen.StopWhen, boolean, number]> = [
            [StopWhen.and(holds(left), holds(right)), left && right, left ? 2 : 1],
            [pipe(holds(left), StopWhen.or(holds(right))), left || right, left ? 1 : 2],
            [StopWhen.not(holds(left)), !left, 1]
          ]
          for (const [condition, stops, times] of joined) {
            asked = 0
            const { stopReason } = yield* Agent.run(agent(condition), "go").pipe(
              Effect.provide(TestChatModel.script([calls(1), "done"], { exhaustive: false }))
            )
            assert.strictEqual(stopReason, stops ? "stopCondition" : "completed")
            assert.strictEqual(asked, times)
          }
        }
      }
    })
  )
})

describe("structured output", () => {
  const Weather = Schema.Struct({ city: Schema.String, degrees: Schema.Finite })
  const agent = Agent.make({ name: "w", prompt: "", output: Weather, tools: [step] })

  it.effect("native: the schema goes with the request and the JSON comes back decoded, fences and all", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(result.output, { city: "Bern", degrees: 21 })
      const [request] = yield* TestChatModel.requests
      assert.deepStrictEqual(request?.outputSchema?.["required"], ["city", "degrees"])
      assert.strictEqual(request?.tools.length, 1)
    }).pipe(Effect.provide(TestChatModel.script(['```json\n{"city":"Bern","degrees":21}\n```'])))
  )

  it.effect("otherwise by a final_answer tool, whose arguments are the answer", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(result.output, { city: "Bern", degrees: 21 })
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      const [request] = yield* TestChatModel.requests
      assert.deepStrictEqual(
        request?.tools.map((tool) => tool.name),
        ["step", "final_answer"]
      )
    }).pipe(
      Effect.provide(
        TestChatModel.script(
          [
            stepCall(1),
            TestChatModel.calls([
              { name: "final_answer", arguments: { city: "Bern", degrees: 21 } },
              { name: "step", arguments: { n: 2 } }
            ])
          ],
          { structuredOutput: "tool" }
        )
      )
    )
  )

  for (const structuredOutput of ["native", "tool"] as const) {
    it.effect(`${structuredOutput}: an answer that does not decode is sent back twice, then a typed error`, () =>
      Effect.gen(function* () {
        const wrong =
          structuredOutput === "native"
            ? TestChatModel.text('{"city":"Bern"}')
            : TestChatModel.calls([{ name: "final_answer", arguments: { city: "Bern" } }])
        const right =
          structuredOutput === "native"
            ? TestChatModel.text('{"city":"Bern","degrees":1}')
            : TestChatModel.calls([{ name: "final_answer", arguments: { city: "Bern", degrees: 1 } }])
        const mended = yield* Agent.run(agent, "go").pipe(
          Effect.provide(TestChatModel.script([wrong, "prose", right], { structuredOutput }))
        )
        assert.strictEqual(mended.output.degrees, 1)
        const sentBack = mended.messages.findLast((message) => message.role === "human" || message.role === "tool")
        assert.isDefined(sentBack)
        assert.include(mended.messages.map(Message.text).join("\n"), "`degrees` is missing")

        const error = yield* Effect.flip(
          Agent.run(agent, "go").pipe(Effect.provide(TestChatModel.script([wrong, wrong, wrong], { structuredOutput })))
        )
        assert.isTrue(error._tag === "AgentError" && error.reason._tag === "InvalidOutput")
        if (error._tag === "AgentError" && error.reason._tag === "InvalidOutput") {
          assert.strictEqual(error.reason.raw, '{"city":"Bern"}')
        }
      })
    )

    it.effect(`${structuredOutput}: a model whose answer is wrong is made to give it, and nothing else`, () =>
      Effect.gen(function* () {
        const right =
          structuredOutput === "native"
            ? TestChatModel.text('{"city":"Bern","degrees":1}')
            : TestChatModel.calls([{ name: "final_answer", arguments: { city: "Bern", degrees: 1 } }])
        const choices = yield* Effect.gen(function* () {
          yield* Agent.run(agent, "go")
          return (yield* TestChatModel.requests).map(({ toolChoice }) => toolChoice)
        }).pipe(Effect.provide(TestChatModel.script([stepCall(1), "prose", right], { structuredOutput })))
        const forced = structuredOutput === "native" ? "none" : { tool: "final_answer" }
        assert.deepStrictEqual(choices, ["auto", "auto", forced])
      })
    )

    it.effect(`${structuredOutput}: a forced final answer still has the promised type`, () =>
      Effect.gen(function* () {
        const limited = Agent.make({ name: "w", prompt: "", output: Weather, tools: [step], maxRounds: 1 })
        const right =
          structuredOutput === "native"
            ? TestChatModel.text('{"city":"Bern","degrees":1}')
            : TestChatModel.calls([{ name: "final_answer", arguments: { city: "Bern", degrees: 1 } }])
        const result = yield* Agent.run(limited, "go").pipe(
          Effect.provide(TestChatModel.script([stepCall(1), right], { structuredOutput }))
        )
        assert.deepStrictEqual([result.output.city, result.stopReason], ["Bern", "maxRounds"])
        assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      })
    )
  }

  it.effect("excludes the model's words before its answer", () =>
    Effect.gen(function* () {
      const answer = (...texts: ReadonlyArray<string>) =>
        TestChatModel.message(Message.ai(texts.map((text) => Content.text(text))))
      const json = '{"city":"Bern","degrees":1}'
      for (const turn of [answer("I put it together.", `\n\n${json}`), answer(json.slice(0, 9), json.slice(9))]) {
        const result = yield* Agent.run(agent, "go").pipe(Effect.provide(TestChatModel.script([turn])))
        assert.deepStrictEqual(result.output, { city: "Bern", degrees: 1 })
      }
      const wrong = yield* Effect.flip(
        Agent.run(agent, "go").pipe(
          Effect.provide(TestChatModel.script([answer("{}", "prose"), answer("{}", "prose"), answer("{}", "prose")]))
        )
      )
      assert.include(wrong.message, "not JSON")
    })
  )

  it.effect("a schema that is no object is put under a key and taken out again", () =>
    Effect.gen(function* () {
      const list = Agent.make({ name: "l", prompt: "", output: Schema.Array(Schema.Finite) })
      const result = yield* Agent.run(list, "go")
      assert.deepStrictEqual(result.output, [1, 2])
    }).pipe(Effect.provide(TestChatModel.script(['{"value":[1,2]}'])))
  )
})

describe("input", () => {
  const agent = Agent.make({ name: "a", prompt: "" })

  it.effect("may answer the calls that the history left open, and is mended like a history", () =>
    Effect.gen(function* () {
      const history = [
        Message.human("go"),
        Message.ai("", {
          toolCalls: [
            { id: "1", name: "ask", arguments: {} },
            { id: "2", name: "ask", arguments: {} }
          ]
        })
      ]
      const result = yield* Agent.run(
        agent,
        [
          Message.tool("yes", { toolCallId: "2", toolName: "ask" }),
          Message.tool("nobody asked", { toolCallId: "9", toolName: "ask" }),
          Message.human("and?")
        ],
        { history }
      )
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      assert.deepStrictEqual(
        result.newMessages.map((message) => `${message.role} ${Message.text(message)}`),
        [
          "tool The result of this call was not written down: the run was cut off. Whether it took effect is not known: look before you repeat it.",
          "tool yes",
          "human and?",
          "ai ok"
        ]
      )
    }).pipe(Effect.provide(TestChatModel.script(["ok"])))
  )

  it.effect("nothing to answer is a typed error; a history to go on from is enough", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Agent.run(agent, ""))
      assert.isTrue(error._tag === "AgentError" && error.reason._tag === "InvalidInput")
      const result = yield* Agent.run(agent, [], { history: [Message.human("hello")] })
      assert.strictEqual(result.text, "hi")
      assert.strictEqual(result.newMessages.length, 1)
    }).pipe(Effect.provide(TestChatModel.script(["hi"])))
  )

  it.effect("an agent that can't run says why before it asks any model", () =>
    Effect.gen(function* () {
      const twice = Agent.make({ name: "twice", prompt: "", tools: [step, step] })
      const { error, events } = yield* AgentTest.collect(twice, "go")
      assert.include(String(error), 'two tools are named "step"')
      assert.deepStrictEqual(
        events.map((event) => event._tag),
        ["RunFailed"]
      )
      const bad = Agent.make({ name: "bad", prompt: "", maxRounds: 0 })
      assert.include(String(yield* Effect.flip(Agent.run(bad, "go"))), "maxRounds must be")
    }).pipe(Effect.provide(TestChatModel.script([])))
  )
})

describe("invariant 12: vision", () => {
  it.effect("a model without vision gets a note in the place of each image; the transcript keeps the image", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", tools: [step] })
      const question = Message.human("what is it?", { images: [{ url: "https://example.com/cat.png" }] })
      const result = yield* Agent.run(agent, question)
      const requests = yield* TestChatModel.requests
      for (const request of requests) {
        assert.strictEqual(request.messages.flatMap(Message.images).length, 0)
        assert.include(Message.text(request.messages[0]!), "An image was here")
      }
      assert.strictEqual(requests[1]?.messages.length, 3)
      assert.strictEqual(Message.images(result.messages[0]!).length, 1)
    }).pipe(Effect.provide(TestChatModel.script([stepCall(1), "a cat"], { supportsVision: false })))
  )
})

describe("state", () => {
  const list = AgentState.slot("list", { schema: Schema.Array(Schema.String), initial: [] })
  const union = AgentState.slot("union", {
    schema: Schema.Array(Schema.String),
    initial: [],
    shared: { merge: (current, incoming) => [...new Set([...current, ...incoming])] }
  })
  const put = Tool.make("put", {
    description: "",
    parameters: { value: Schema.String },
    execute: Effect.fnUntraced(function* ({ value }) {
      const { state } = yield* ToolContext.ToolContext
      yield* state.update(list, (values) => [...values, value])
      yield* state.set(union, [value])
      return "ok"
    })
  })

  it.effect("goes from run to run as JSON; an incompatible slot is a typed error that names it", () =>
    Effect.gen(function* () {
      const keeping = Middleware.make({ name: "keeping", state: [list] })
      const agent = Agent.make({ name: "a", prompt: "", tools: [put], middleware: [keeping] })
      const first = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(first.state, { list: ["x"], union: ["x"] })
      const second = yield* Agent.run(agent, "go", { state: { ...first.state, foreign: { kept: true } } })
      assert.deepStrictEqual(second.state, { list: ["x", "y"], union: ["x", "y"], foreign: { kept: true } })
      const error = yield* Effect.flip(Agent.run(agent, "go", { state: { list: [1] } }))
      assert.isTrue(error._tag === "AgentError" && error.reason._tag === "InvalidState" && error.reason.slot === "list")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "put", arguments: { value: "x" } }]),
          "one",
          TestChatModel.calls([{ name: "put", arguments: { value: "y" } }]),
          "two"
        ])
      )
    )
  )

  it.effect("a sub-agent has fresh slots; shared ones are merged, however many run at once", () =>
    Effect.gen(function* () {
      const child = Agent.make({ name: "child", description: "", prompt: "child", tools: [put] })
      const parent = Agent.make({ name: "parent", prompt: "parent", tools: [Agent.asTool(child), put] })
      const result = yield* Agent.run(parent, "go")
      assert.deepStrictEqual(result.state["list"], ["p"])
      assert.deepStrictEqual(result.state["union"], ["p", "a", "b", "c"])
    }).pipe(
      Effect.provide(
        TestChatModel.reactive((request) => {
          const last = request.messages.at(-1)
          const text = last === undefined ? "" : Message.text(last)
          if (last?.role === "tool") return TestChatModel.text("done")
          if (request.systemPrompt === "child") {
            return TestChatModel.calls([{ name: "put", arguments: { value: text } }])
          }
          return TestChatModel.calls([
            { name: "put", arguments: { value: "p" } },
            ...["a", "b", "c"].map((task) => ({ name: "child", arguments: { task } }))
          ])
        })
      )
    )
  )

  it.effect("restores a saved shared slot for its first user, parent or sub-agent", () =>
    Effect.gen(function* () {
      const child = Agent.make({ name: "child", description: "", prompt: "", tools: [put] })
      const parent = Agent.make({ name: "parent", prompt: "", tools: [Agent.asTool(child)] })
      const result = yield* Agent.run(parent, "go", { state: { union: ["old"] } })
      assert.deepStrictEqual(result.state["union"], ["old", "new"])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "child", arguments: { task: "t" } }]),
          TestChatModel.calls([{ name: "put", arguments: { value: "new" } }]),
          "child done",
          "done"
        ])
      )
    )
  )

  it.effect("two slots of one name are never one place", () =>
    Effect.gen(function* () {
      const other = AgentState.slot("list", { schema: Schema.Finite, initial: 0 })
      const mixed = Middleware.make({
        name: "mixed",
        beforeAgent: (run) => Effect.andThen(run.state.set(list, ["x"]), Effect.asVoid(run.state.get(other)))
      })
      const exit = yield* Effect.exit(Agent.run(Agent.make({ name: "a", prompt: "", middleware: [mixed] }), "go"))
      assert.include(String(exit), 'Two state slots are named "list"')
      const declared = Agent.make({
        name: "a",
        prompt: "",
        middleware: [Middleware.make({ name: "one", state: [list] }), Middleware.make({ name: "two", state: [other] })]
      })
      assert.include(String(yield* Effect.flip(Agent.run(declared, "go"))), 'two state slots are named "list"')
    }).pipe(Effect.provide(TestChatModel.script([])))
  )
  it.effect("a hook may continue the model: its text was no answer, its calls are answered first", () =>
    Effect.gen(function* () {
      const said: Array<string> = []
      const again = Middleware.make({
        name: "again",
        afterModel: (_run, message) =>
          Effect.sync(() => {
            said.push(Message.text(message))
            return said.length < 3
              ? Middleware.continueWith(Message.human(`again ${said.length}`, { source: "again" }))
              : undefined
          })
      })
      const agent = Agent.make({ name: "a", prompt: "", middleware: [again] })
      const result = yield* Agent.run(agent, "go")
      assert.strictEqual(result.text, "third")
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      assert.deepStrictEqual(
        result.messages.map((message) => [message.role, Message.text(message)]),
        [
          ["human", "go"],
          ["ai", "first"],
          ["human", "again 1"],
          ["ai", ""],
          ["tool", "Not executed: read what follows first."],
          ["human", "again 2"],
          ["ai", "third"]
        ]
      )
    }).pipe(
      Effect.provide(
        TestChatModel.script(["first", TestChatModel.calls([{ name: "nothing", arguments: {} }]), "third"])
      )
    )
  )
})
