import { describe, expect, it } from "@effect/vitest"
import { Array, Context, Deferred, Effect, Exit, Fiber, Layer, Ref, Schema, Stream } from "effect"
import { Agent, Content, Message, Tool, ToolContext, ToolError, ToolOutput } from "effect-deepagents"
import * as Toolkit from "effect-deepagents/models/bridges/EffectAiToolkit"
import { TestChatModel } from "effect-deepagents/testing"
import { LanguageModel, Prompt, Tool as AiTool, Toolkit as AiToolkit } from "effect/ai"
import { call, finish, script, text } from "./provider.ts"

class OutOfStock extends Schema.TaggedError<OutOfStock>()("OutOfStock", { item: Schema.String, left: Schema.Finite }) {}

const Price = AiTool.make("price", {
  description: "The price of an item",
  parameters: Schema.Struct({ item: Schema.String, count: Schema.FiniteFromString }).annotate({ identifier: "Order" }),
  success: Schema.Struct({ total: Schema.Finite })
})
const Buy = AiTool.make("buy", {
  parameters: Schema.Struct({ item: Schema.String }),
  success: Schema.String,
  failure: OutOfStock
}).annotate(AiTool.Title, "Buys an item")
const Reserve = AiTool.make("reserve", {
  parameters: Schema.Struct({ item: Schema.String }),
  failure: Schema.Struct({ left: Schema.Finite }),
  failureMode: "return"
}).annotate(AiTool.Readonly, true)

const shop = AiToolkit.make(Price, Buy, Reserve)
const open = shop.toLayer({
  price: ({ count }) => Effect.succeed({ total: count * 2 }),
  buy: ({ item }) => (item === "tea" ? Effect.succeed("sold") : Effect.fail(new OutOfStock({ item, left: 0 }))),
  reserve: ({ item }) => (item === "tea" ? Effect.void : Effect.fail({ left: 3 }))
})

const toolOf = <R>(tools: ReadonlyArray<Tool.Tool<R>>, name: string): Tool.Tool<R> => {
  const found = tools.find((tool) => tool.name === name)
  expect(found).toBeDefined()
  return found!
}

const failureOf = <R>(tool: Tool.Tool<R>, args: Parameters<typeof Tool.run>[1]) => Effect.flip(Tool.run(tool, args))

describe("fromToolkit", () => {
  const tools = Toolkit.fromToolkit(shop)

  it("tells name, description, JSON Schema and annotations", () => {
    expect(tools.map((tool) => tool.name)).toEqual(["price", "buy", "reserve"])
    expect(toolOf(tools, "price").description).toBe("The price of an item")
    expect(toolOf(tools, "price").parameters).toMatchObject({
      type: "object",
      required: ["item", "count"],
      properties: { item: { type: "string" }, count: { type: "string" } }
    })
    expect(toolOf(tools, "buy").description).toBe("Buys an item")
    expect(toolOf(tools, "buy").annotations).toEqual({
      readOnly: false,
      destructive: true,
      idempotent: false,
      openWorld: true
    })
    expect(toolOf(tools, "reserve").annotations).toMatchObject({ readOnly: true, destructive: false })
  })

  it.effect("decodes the arguments for the handler and encodes its result for the model", () =>
    Effect.gen(function* () {
      const output = yield* Tool.run(toolOf(tools, "price"), { item: "tea", count: "21" })
      expect(ToolOutput.text(output)).toBe(`{"total":42}`)
      expect(ToolOutput.text(yield* Tool.run(toolOf(tools, "buy"), { item: "tea" }))).toBe("sold")
      expect(ToolOutput.text(yield* Tool.run(toolOf(tools, "reserve"), { item: "tea" }))).not.toBe("")
    }).pipe(Effect.provide(open))
  )

  it.effect("tells the model the problem of arguments, before and in the handler's own decoding", () =>
    Effect.gen(function* () {
      const missing = yield* failureOf(toolOf(tools, "price"), { item: "tea" })
      expect(missing).toMatchObject({ _tag: "ToolError", reason: "InvalidArguments" })
      expect(missing.message).toContain("count")
      const wrong = yield* failureOf(toolOf(tools, "price"), { item: "tea", count: "many" })
      expect(wrong).toMatchObject({ _tag: "ToolError", reason: "InvalidArguments" })
      expect(wrong.message).toContain("count")
    }).pipe(Effect.provide(open))
  )

  it.effect("turns failures of both failure modes into messages that the model can act on", () =>
    Effect.gen(function* () {
      const thrown = yield* failureOf(toolOf(tools, "buy"), { item: "cake" })
      expect(thrown).toMatchObject({ reason: "Failed", message: `{"_tag":"OutOfStock","item":"cake","left":0}` })
      expect(thrown.cause).toBeInstanceOf(OutOfStock)
      const returned = yield* failureOf(toolOf(tools, "reserve"), { item: "cake" })
      expect(returned).toMatchObject({ reason: "Failed", message: `{"left":3}` })
    }).pipe(Effect.provide(open))
  )

  it.effect("tells the model of a result that does not encode", () =>
    Effect.gen(function* () {
      const Broken = AiTool.make("broken", { success: Schema.String.check(Schema.isMinLength(3)) })
      const broken = AiToolkit.make(Broken)
      const failure = yield* failureOf(Toolkit.fromToolkit(broken)[0]!, {}).pipe(
        Effect.provide(broken.toLayer({ broken: () => Effect.succeed("x") }))
      )
      expect(failure.reason).toBe("Failed")
      expect(failure.message).toContain("broken")
    })
  )

  it.effect("invariant 10: a run goes on after arguments that do not decode, and after a failure", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "buyer", prompt: "", tools })
      const result = yield* Agent.run(agent, "Buy")
      expect(result.text).toBe("done")
      expect(result.messages.filter((message) => message.role === "tool").map((message) => message.isError)).toEqual([
        true,
        true,
        false
      ])
    }).pipe(
      Effect.provide(open),
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "price", arguments: { item: "tea", count: "no" } }]),
          TestChatModel.calls([{ name: "buy", arguments: { item: "cake" } }]),
          TestChatModel.calls([{ name: "buy", arguments: { item: "tea" } }]),
          "done"
        ])
      )
    )
  )

  it.effect("sends preliminary results as progress, in order, and only the last to the model", () =>
    Effect.gen(function* () {
      const Count = AiTool.make("count", { success: Schema.Finite })
      const counting = AiToolkit.make(Count)
      const agent = Agent.make({ name: "counter", prompt: "", tools: Toolkit.fromToolkit(counting) })
      const events = yield* Stream.runCollect(Agent.stream(agent, "Count")).pipe(
        Effect.provide(
          counting.toLayer({
            count: (_, context) =>
              Effect.as(
                Effect.forEach(Array.range(1, 40), (n) => context.preliminary(n)),
                41
              )
          })
        )
      )
      expect(events.flatMap((event) => (event._tag === "ToolProgress" ? [event.progress] : []))).toEqual(
        Array.range(1, 40)
      )
      const answered = events.flatMap((event) =>
        event._tag === "MessageAppended" && event.message.role === "tool" ? [Message.text(event.message)] : []
      )
      expect(answered).toEqual(["41"])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "count" }]), "done"])))
  )

  it.effect("shows the model the tool's mapped result", () =>
    Effect.gen(function* () {
      const Draw = AiTool.make("draw", {
        success: Schema.String,
        toModelOutput: (title) => [
          Prompt.textPart({ text: title }),
          Prompt.filePart({ mediaType: "image/png", data: new Uint8Array([1, 2, 3]) })
        ]
      })
      const drawing = AiToolkit.make(Draw)
      const output = yield* Tool.run(Toolkit.fromToolkit(drawing)[0]!, {}).pipe(
        Effect.provide(drawing.toLayer({ draw: () => Effect.succeed("A cat") }))
      )
      expect(output.content).toEqual([Content.text("A cat"), Content.image({ base64: "AQID", mimeType: "image/png" })])
    })
  )

  it.effect("interrupts the handler with the call", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      const released = yield* Ref.make(false)
      const Wait = AiTool.make("wait")
      const waiting = AiToolkit.make(Wait)
      const fiber = yield* Tool.run(Toolkit.fromToolkit(waiting)[0]!, {}).pipe(
        Effect.provide(
          waiting.toLayer({
            wait: () =>
              Effect.andThen(Deferred.succeed(started, undefined), Effect.never).pipe(
                Effect.ensuring(Ref.set(released, true))
              )
          })
        ),
        Effect.forkChild
      )
      yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      expect(yield* Ref.get(released)).toBe(true)
    })
  )

  it.effect("leaves a defect of the handler a defect", () =>
    Effect.gen(function* () {
      const Die = AiTool.make("die", { failureMode: "return" })
      const dying = AiToolkit.make(Die)
      const exit = yield* Effect.exit(
        Tool.run(Toolkit.fromToolkit(dying)[0]!, {}).pipe(
          Effect.provide(dying.toLayer({ die: () => Effect.die("broken") }))
        )
      )
      expect(Exit.hasDies(exit)).toBe(true)
    })
  )

  it.effect("takes the handlers' own services from the place of their building", () =>
    Effect.gen(function* () {
      class Till extends Context.Service<Till, { readonly cash: number }>()("test/Till") {}
      const Cash = AiTool.make("cash", { success: Schema.Finite })
      const till = AiToolkit.make(Cash)
      const layer = till
        .toLayer(Effect.map(Till, ({ cash }) => ({ cash: () => Effect.succeed(cash) })))
        .pipe(Layer.provide(Layer.succeed(Till, { cash: 7 })))
      const handlers = yield* Effect.provide(till, layer)
      expect(ToolOutput.text(yield* Tool.run(Toolkit.fromHandlers(handlers)[0]!, {}))).toBe("7")
    })
  )

  describe("needsApproval", () => {
    const Pay = AiTool.make("pay", {
      parameters: Schema.Struct({ euros: Schema.FiniteFromString }),
      needsApproval: ({ euros }, { messages }) => euros > 10 || messages.length > 1,
      success: Schema.String
    })
    const paying = AiToolkit.make(Pay)
    const handlers = paying.toLayer({ pay: () => Effect.succeed("paid") })

    it.effect("is not walked around: without an approver the call is refused", () =>
      Effect.gen(function* () {
        const [pay] = Toolkit.fromToolkit(paying)
        expect(ToolOutput.text(yield* Tool.run(pay!, { euros: "5" }))).toBe("paid")
        expect(yield* failureOf(pay!, { euros: "50" })).toMatchObject({ reason: "Rejected" })
      }).pipe(Effect.provide(handlers))
    )

    it.effect("asks the approver, with the arguments of its decision", () =>
      Effect.gen(function* () {
        const asked = yield* Ref.make<ReadonlyArray<unknown>>([])
        const agent = Agent.make({
          name: "payer",
          prompt: "",
          tools: Toolkit.fromToolkit(paying, {
            approve: (request) =>
              Effect.as(
                Ref.update(asked, (all) => [...all, request]),
                request.arguments["euros"] !== "99"
              )
          })
        })
        const result = yield* Agent.run(agent, "Pay")
        expect(result.messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))).toEqual([
          "paid",
          "The call of pay was not approved."
        ])
        expect(yield* Ref.get(asked)).toEqual([
          { callId: "a", toolName: "pay", arguments: { euros: "50" } },
          { callId: "b", toolName: "pay", arguments: { euros: "99" } }
        ])
      }).pipe(
        Effect.provide(handlers),
        Effect.provide(
          TestChatModel.script([
            TestChatModel.calls([{ name: "pay", id: "a", arguments: { euros: "50" } }]),
            TestChatModel.calls([{ name: "pay", id: "b", arguments: { euros: "99" } }]),
            "done"
          ])
        )
      )
    )
  })

  it("leaves out tools that only the provider can run", () => {
    const Search = AiTool.providerDefined({ id: "x.search", customName: "Search", providerName: "search" })
    expect(Toolkit.fromToolkit(AiToolkit.make(Search(), Buy)).map((tool) => tool.name)).toEqual(["buy"])
  })
})

describe("toToolkit", () => {
  it("has calls of a tool that needs approval asked about there, too", () => {
    const pay = Tool.make("pay", {
      description: "Pays",
      parameters: { n: Schema.Finite },
      execute: () => Effect.succeed("paid"),
      needsApproval: ({ n }) => n > 1
    })
    const look = Tool.make("look", { description: "Looks", parameters: {}, execute: () => Effect.succeed("x") })
    const { toolkit } = Toolkit.toToolkit([pay, look])
    expect(Object.values(toolkit.tools).map((tool) => tool.needsApproval)).toEqual([true, undefined])
  })

  const add = Tool.make("add", {
    description: "Adds two numbers",
    parameters: { left: Schema.Finite, right: Schema.Finite },
    annotations: { readOnly: true, idempotent: true },
    execute: ({ left, right }) => Effect.succeed(String(left + right))
  })
  const divide = Tool.make("divide", {
    description: "Divides",
    parameters: { by: Schema.Finite },
    execute: ({ by }) =>
      by === 0
        ? Effect.fail(new ToolError.ToolError({ reason: "Failed", message: "not by zero", cause: "secret" }))
        : Effect.succeed(
            ToolOutput.make([Content.text("ok"), Content.image({ base64: "AQID", mimeType: "image/png" })])
          )
  })
  const bridged = Toolkit.toToolkit([add, divide])

  const resultOf = (name: string, params: unknown) =>
    Effect.gen(function* () {
      const handlers = yield* bridged.toolkit
      const results = yield* Stream.runCollect(yield* handlers.handle(name, params))
      return results[0]!
    }).pipe(Effect.provide(bridged.layer))

  it("tells name, description, JSON Schema and annotations", () => {
    const tool = bridged.toolkit.tools["add"]!
    expect(tool.description).toBe("Adds two numbers")
    expect(AiTool.getJsonSchema(tool)).toEqual(add.parameters)
    expect(Context.get(tool.annotations, AiTool.Readonly)).toBe(true)
    expect(Context.get(tool.annotations, AiTool.Idempotent)).toBe(true)
    expect(Context.get(tool.annotations, AiTool.Destructive)).toBe(false)
    // Never said: what effect/ai takes for granted.
    expect(Context.get(tool.annotations, AiTool.OpenWorld)).toBe(true)
    expect(AiTool.getStrictMode(tool)).toBe(false)
  })

  it.effect("gives content as the result and as the model's view", () =>
    Effect.gen(function* () {
      expect(yield* resultOf("add", { left: 1, right: "2" })).toMatchObject({
        isFailure: false,
        result: { content: [{ type: "text", text: "3" }] },
        modelOutput: [{ type: "text", text: "3" }]
      })
      const drawn = yield* resultOf("divide", { by: 1 })
      expect(drawn.modelOutput).toMatchObject([
        { type: "text", text: "ok" },
        { type: "file", mediaType: "image/png", data: new Uint8Array([1, 2, 3]) }
      ])
    })
  )

  it.effect("gives every failure as a result, without its cause", () =>
    Effect.gen(function* () {
      const failed = yield* resultOf("divide", { by: 0 })
      expect(failed).toMatchObject({ isFailure: true, encodedResult: { reason: "Failed", message: "not by zero" } })
      expect(JSON.stringify(failed.encodedResult)).not.toContain("secret")
      expect(yield* resultOf("add", { left: "one" })).toMatchObject({
        isFailure: true,
        encodedResult: { reason: "InvalidArguments" }
      })
      expect(yield* resultOf("add", "no object")).toMatchObject({
        isFailure: true,
        encodedResult: { reason: "InvalidArguments" }
      })
    })
  )

  it.effect("does not end a stream of effect/ai on arguments that do not decode", () =>
    Effect.gen(function* () {
      const parts = yield* Stream.runCollect(LanguageModel.streamText({ prompt: "Add", toolkit: bridged.toolkit }))
      const results = parts.flatMap((part) => (part.type === "tool-result" ? [part] : []))
      expect(results.map(({ id, isFailure }) => [id, isFailure])).toEqual([
        ["1", true],
        ["2", false]
      ])
      expect(parts.at(-1)?.type).toBe("finish")
    }).pipe(
      Effect.provide(bridged.layer),
      Effect.provide(
        script([
          [
            ...text("Adding"),
            ...call("1", "add", { left: "?" }),
            ...call("2", "add", { left: 1, right: 1 }),
            finish("tool-calls")
          ]
        ])
      )
    )
  )

  it.effect("needs the tools' services at the place of use", () =>
    Effect.gen(function* () {
      class Stock extends Context.Service<Stock, { readonly left: number }>()("test/Stock") {}
      const count = Tool.make("count", {
        description: "",
        parameters: {},
        execute: () => Effect.map(Stock, ({ left }) => String(left))
      })
      const { layer, toolkit } = Toolkit.toToolkit([count])
      const results = Effect.gen(function* () {
        const handlers = yield* toolkit
        return yield* Stream.runCollect(yield* handlers.handle("count", {}))
      }).pipe(Effect.provide(layer))
      const [one] = yield* Effect.provideService(results, Stock, { left: 4 })
      const [two] = yield* Effect.provideService(results, Stock, { left: 5 })
      expect([one?.modelOutput, two?.modelOutput]).toMatchObject([[{ text: "4" }], [{ text: "5" }]])
    })
  )

  it.effect("there and back again, a tool is the same to a model", () =>
    Effect.gen(function* () {
      const [again] = Toolkit.fromToolkit(bridged.toolkit)
      expect(again).toMatchObject({ name: "add", description: "Adds two numbers", parameters: add.parameters })
      expect(again!.annotations).toEqual({ readOnly: true, destructive: false, idempotent: true, openWorld: true })
      expect(ToolOutput.text(yield* Tool.run(again!, { left: 2, right: 3 }))).toBe("5")
      expect((yield* failureOf(again!, { left: 2 })).reason).toBe("InvalidArguments")
      const back = Toolkit.fromToolkit(bridged.toolkit)[1]!
      expect((yield* failureOf(back, { by: 0 })).message).toBe("not by zero")
    }).pipe(Effect.provide(bridged.layer))
  )
})

it.effect("a handler that declares ToolContext reaches the run", () =>
  Effect.gen(function* () {
    const Who = AiTool.make("who", { success: Schema.String, dependencies: [ToolContext.ToolContext] })
    const asking = AiToolkit.make(Who)
    const agent = Agent.make({ name: "ada", prompt: "", tools: Toolkit.fromToolkit(asking) })
    const result = yield* Agent.run(agent, "Who are you?").pipe(
      Effect.provide(asking.toLayer({ who: () => Effect.map(ToolContext.ToolContext, ({ agent: name }) => name) }))
    )
    expect(result.messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))).toEqual([
      "ada"
    ])
  }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "who" }]), "done"])))
)
