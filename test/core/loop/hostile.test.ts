/** What models and tools must not be able to do to a run: end it, hang it, fill it. */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Logger, Schema, Stream } from "effect"
import {
  Agent,
  AgentEvent,
  AgentState,
  Content,
  Json,
  Message,
  Tool,
  ToolContext,
  ToolError,
  ToolOutput
} from "effect-deepagents"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { canonical, isTooDeep, maxDepth } from "../../../src/core/schema/jsonTree.ts"

const quiet = Effect.provide(Logger.layer([]))

const make = (tools: ReadonlyArray<Tool.Tool<ToolContext.ToolContext>>) => Agent.make({ name: "a", prompt: "", tools })

const results = (messages: ReadonlyArray<Message.Message>) => messages.filter((message) => message.role === "tool")

const texts = (messages: ReadonlyArray<Message.Message>) => results(messages).map(Message.text)

const call = (name: string, args: Json.JsonObject = {}, id?: string) =>
  TestChatModel.calls([{ name, arguments: args, ...(id === undefined ? {} : { id }) }])

/** Arrays and objects in each other, `depth` of them. */
const nested = (depth: number, inner: Json.Json = 1): Json.Json => {
  let value = inner
  for (let level = 0; level < depth; level++) value = level % 2 === 0 ? [value] : { a: value }
  return value
}

describe("arguments that lie deep in each other (invariants 10 and 13)", () => {
  interface Tree {
    readonly left?: Tree
  }
  const Tree = Schema.Struct({ left: Schema.optionalKey(Schema.suspend((): Schema.Codec<Tree> => Tree)) })
  type Lists = ReadonlyArray<Lists>
  const Lists: Schema.Codec<Lists> = Schema.Array(Schema.suspend(() => Lists))
  const ran: Array<string> = []
  const runs = (name: string) => () =>
    Effect.sync(() => {
      ran.push(name)
      return "ran"
    })
  const agent = make([
    Tool.make("any", { description: "", parameters: { x: Schema.Json }, execute: runs("any") }),
    Tool.make("tree", { description: "", parameters: { x: Tree }, execute: runs("tree") }),
    Tool.make("lists", { description: "", parameters: { x: Lists }, execute: runs("lists") }),
    Tool.dynamic("dynamic", { description: "", parameters: { type: "object" }, execute: runs("dynamic") })
  ])

  for (const depth of [3_000, 100_000]) {
    for (const name of ["any", "tree", "lists", "dynamic", "ghost"]) {
      it.effect(`${depth} levels, ${name}: a failed call that the model can mend`, () =>
        Effect.gen(function* () {
          const { error, events } = yield* AgentTest.collect(agent, "go")
          assert.isUndefined(error)
          const transcript = AgentEvent.transcript(events)
          assert.deepStrictEqual(AgentTest.pairingProblems(transcript), [])
          assert.strictEqual(results(transcript).length, 2)
          assert.include(texts(transcript)[0], "deep")
          assert.isTrue(results(transcript).every((message) => message.isError))
          assert.deepStrictEqual(ran, [])
          for (const event of events) assert.isString(JSON.stringify(AgentEvent.encode(event)))
        }).pipe(
          Effect.provide(
            TestChatModel.script([call(name, { x: nested(depth) }), call(name, { x: nested(depth) }), "done"])
          )
        )
      )
    }
  }

  it.effect("a text with deeply nested JSON does not pass for a list", () =>
    Effect.gen(function* () {
      const { messages } = yield* Agent.run(agent, "go")
      assert.include(texts(messages)[0], "`x`: expected array")
    }).pipe(
      Effect.provide(TestChatModel.script([call("lists", { x: "[".repeat(50_000) + "]".repeat(50_000) }), "done"]))
    )
  )

  it.effect("an answer that lies deep is sent back", () =>
    Effect.gen(function* () {
      const typed = Agent.make({ name: "a", prompt: "", output: Schema.Struct({ x: Schema.Json }) })
      const deep = `{"x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`
      const { output } = yield* Agent.run(typed, "go").pipe(
        Effect.provide(TestChatModel.script([deep, '{"x":1}'], { structuredOutput: "native" }))
      )
      assert.deepStrictEqual(output, { x: 1 })
    })
  )

  it("up to the limit they are arguments like all others", () => {
    assert.isFalse(isTooDeep(nested(maxDepth)))
    assert.isTrue(isTooDeep(nested(maxDepth + 1)))
    assert.strictEqual(canonical(nested(2, "x")), '{"a":["x"]}')
    assert.strictEqual(canonical(nested(100_000)).length, 50_000 * 2 + 50_000 * 6 + 1)
  })
})

describe("schemas that lead back to themselves", () => {
  type Lists = ReadonlyArray<Lists>
  const Lists: Schema.Codec<Lists> = Schema.Array(Schema.suspend(() => Lists))

  it.effect("a scalar for a list of lists is refused, and nothing ran", () =>
    Effect.gen(function* () {
      const lists = Tool.make("lists", {
        description: "",
        parameters: { x: Lists },
        execute: () => Effect.succeed("ran")
      })
      const { messages } = yield* Agent.run(make([lists]), "go")
      assert.include(texts(messages)[0], "expected array, got 5")
      assert.deepStrictEqual(texts(messages).slice(1), ["ran"])
    }).pipe(Effect.provide(TestChatModel.script([call("lists", { x: 5 }), call("lists", { x: "[[]]" }), "done"])))
  )

  it.effect("a foreign schema that never comes to an end leaves its arguments to the tool", () =>
    Effect.gen(function* () {
      const circles: ReadonlyArray<Json.JsonObject> = [
        { A: { anyOf: [{ $ref: "#/$defs/A" }, { type: "string" }] } },
        { A: { $ref: "#/$defs/B" }, B: { oneOf: [{ $ref: "#/$defs/A" }] } },
        { A: { allOf: [{ type: "array", items: { $ref: "#/$defs/A" } }, { $ref: "#/$defs/A" }] } }
      ]
      for (const $defs of circles) {
        const tool = Tool.dynamic("t", {
          description: "",
          parameters: { type: "object", properties: { x: { $ref: "#/$defs/A" } }, $defs },
          execute: (args) => Effect.succeed(canonical(args))
        })
        assert.strictEqual(ToolOutput.text(yield* Tool.run(tool, { x: null, y: [1] })), '{"x":null,"y":[1]}')
      }
      const tree = Tool.dynamic("t", {
        description: "",
        parameters: {
          type: "object",
          properties: { x: { $ref: "#/$defs/T" } },
          $defs: { T: { type: "object", properties: { kids: { type: "array", items: { $ref: "#/$defs/T" } } } } }
        },
        execute: () => Effect.succeed("ran")
      })
      const { message } = yield* Effect.flip(Tool.run(tree, { x: { kids: [{ kids: [7] }] } }))
      assert.include(message, "`x.kids[0].kids[0]`: expected")
    })
  )
})

describe("results of tools become JSON on arrival", () => {
  const circle: { self?: unknown } = {}
  circle.self = circle
  const odd: ReadonlyArray<unknown> = [
    Number.NaN,
    Number.POSITIVE_INFINITY,
    undefined,
    new Date(0),
    new Date(Number.NaN),
    1n,
    Symbol("s"),
    () => 1,
    circle,
    new Map([[1, 2]]),
    new Uint8Array(3),
    new Error("no"),
    [undefined, Number.NaN],
    { at: undefined, deep: { percent: 0 / 0 } },
    nested(100_000),
    {
      get broken(): string {
        throw new Error("getter")
      }
    },
    JSON.parse('{"__proto__":{"polluted":true}}'),
    "\ud83d"
  ]

  it.effect("emit, details and custom take anything, and the events are JSON", () =>
    Effect.gen(function* () {
      const says = Tool.make("says", {
        description: "",
        parameters: {},
        execute: Effect.fnUntraced(function* () {
          const context = yield* ToolContext.ToolContext
          for (const value of odd) {
            yield* context.emit(value as Json.Json)
            yield* context.run.custom("odd", value as Json.Json)
          }
          return ToolOutput.make("said", { details: odd as ReadonlyArray<Json.Json> })
        })
      })
      const { error, events } = yield* AgentTest.collect(make([says]), "go").pipe(
        Effect.provide(TestChatModel.script([call("says"), "done"]))
      )
      assert.isUndefined(error)
      assert.strictEqual(events.filter((event) => event._tag === "ToolProgress").length, odd.length)
      for (const event of events) {
        const wire: unknown = JSON.parse(JSON.stringify(AgentEvent.encode(event)))
        assert.strictEqual((yield* AgentEvent.decode(wire))._tag, event._tag)
      }
      assert.isUndefined(({} as { readonly polluted?: boolean }).polluted)
    })
  )

  it.effect("a tool's later changes of its value don't change the result", () =>
    Effect.gen(function* () {
      const counts = Tool.make("counts", {
        description: "",
        parameters: {},
        execute: Effect.fnUntraced(function* () {
          const { emit } = yield* ToolContext.ToolContext
          const progress = { done: [0], percent: 0 }
          for (const percent of [1, 2, Number.NaN]) {
            progress.percent = percent
            progress.done[0] = percent
            yield* emit(progress)
          }
          return "ok"
        })
      })
      const { events } = yield* AgentTest.collect(make([counts]), "go").pipe(
        Effect.provide(TestChatModel.script([call("counts"), "done"]))
      )
      assert.deepStrictEqual(
        events.flatMap((event) => (event._tag === "ToolProgress" ? [event.progress] : [])),
        [
          { done: [1], percent: 1 },
          { done: [2], percent: 2 },
          { done: [null], percent: null }
        ]
      )
    })
  )

  it.effect("work that a tool leaves behind reports nothing after the last event (invariant 3)", () =>
    Effect.gen(function* () {
      let emit: ToolContext.ToolContext["Service"]["emit"] = () => Effect.void
      const leaves = Tool.make("leaves", {
        description: "",
        parameters: {},
        execute: Effect.fnUntraced(function* () {
          emit = (yield* ToolContext.ToolContext).emit
          return "ok"
        })
      })
      const tags: Array<string> = []
      yield* Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* Agent.start(make([leaves]), "go")
          const slow = ({ _tag }: AgentEvent.AgentEvent) => Effect.map(Effect.yieldNow, () => tags.push(_tag))
          const reading = yield* Effect.forkChild(Stream.runForEach(handle.events, slow), { startImmediately: true })
          yield* handle.await
          for (let count = 0; count < 100; count++) yield* emit(count)
          yield* Fiber.join(reading)
        })
      )
      assert.deepStrictEqual(tags.slice(-2), ["RoundCompleted", "RunCompleted"])
    }).pipe(Effect.provide(TestChatModel.script([call("leaves"), "done"])))
  )

  it("JSON stays the same; other values become the result of JSON.stringify (property)", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        assert.deepStrictEqual<unknown>(Json.fromUnknown(value), value)
      })
    )
    fc.assert(
      fc.property(
        fc.anything({ withDate: true, withSparseArray: true, withNullPrototype: true, withObjectString: true }),
        (value) => {
          const json = Json.fromUnknown(value)
          assert.deepStrictEqual(Json.fromUnknown(json), json)
          const text = JSON.stringify(value) as string | undefined
          if (text !== undefined) assert.deepStrictEqual(JSON.parse(JSON.stringify(json)), JSON.parse(text))
        }
      )
    )
  })

  it("encodes an event that was made by hand, with any content", () => {
    const event = {
      _tag: "ToolProgress",
      seq: Number.NaN,
      runId: "r",
      path: ["a"],
      at: 0,
      callId: "c",
      toolName: "t",
      progress: { now: new Date(0) }
    }
    const encoded = AgentEvent.encode(event as unknown as AgentEvent.AgentEvent)
    assert.deepStrictEqual(encoded, { v: 1, ...event, seq: null, progress: { now: "1970-01-01T00:00:00.000Z" } })
  })
})

describe("a tool that breaks its type (invariant 10)", () => {
  const untyped = (execute: () => unknown) =>
    Tool.make("odd", { description: "", parameters: {}, execute: execute as () => Effect.Effect<string> })

  const given: ReadonlyArray<readonly [string, () => unknown]> = [
    ["a promise of nothing", () => Promise.resolve()],
    ["a promise of an Effect", () => Promise.resolve(Effect.succeed("x"))],
    ["undefined", () => undefined],
    ["a function", () => () => "text"],
    ["an Effect of undefined", () => Effect.void],
    ["an Effect of content as text", () => Effect.succeed({ content: "x", isError: true })],
    ["an Effect of an unknown block", () => Effect.succeed({ ...ToolOutput.make(""), content: [{ type: "video" }] })],
    ["an Effect of a text that is none", () => Effect.succeed({ ...ToolOutput.make(""), content: [{ type: "text" }] })],
    ["an Effect of state that is none", () => Effect.succeed({ ...ToolOutput.make("x"), state: [5] })]
  ]
  for (const [name, execute] of given) {
    it.effect(`${name}: a failed call, by run, stream and start`, () =>
      Effect.gen(function* () {
        const agent = make([untyped(execute)])
        const script = () => Effect.provide(TestChatModel.script([call("odd"), "done"]))
        const check = (messages: ReadonlyArray<Message.Message>) => {
          assert.deepStrictEqual(
            results(messages).map((message) => message.isError),
            [true]
          )
          assert.include(texts(messages)[0], 'The tool "odd" broke down')
        }
        check((yield* Agent.run(agent, "go").pipe(script())).messages)
        check(AgentEvent.transcript(yield* Stream.runCollect(Agent.stream(agent, "go")).pipe(script())))
        check(
          (yield* Effect.scoped(Effect.flatMap(Agent.start(agent, "go"), (handle) => handle.await)).pipe(script()))
            .messages
        )
      }).pipe(quiet)
    )
  }

  it.effect("tells its author the returned value, and the next step", () =>
    Effect.gen(function* () {
      const exit = yield* Effect.exit(
        Tool.run(
          untyped(() => Promise.resolve(Effect.succeed("x"))),
          {}
        )
      )
      assert.isTrue(Exit.isFailure(exit))
      if (Exit.isFailure(exit)) {
        const error = String(Cause.squash(exit.cause))
        assert.include(
          error,
          'execute of the tool "odd" gave an Effect, not a value; return the Effect itself, from a function without async'
        )
      }
    })
  )

  const unshown = new Error("no")
  const refuses = () => {
    throw unshown
  }
  const defects: Readonly<Record<string, object>> = {
    "a proxy": new Proxy({}, { get: refuses, has: refuses, getPrototypeOf: refuses, ownKeys: refuses }),
    "getters that throw": Object.defineProperties({}, { _tag: { get: refuses }, message: { get: refuses } })
  }
  for (const [name, defect] of Object.entries(defects)) {
    for (const [how, work] of [
      ["dies of", Effect.die(defect)],
      ["fails with", Effect.fail(defect)]
    ] as const) {
      it.effect(`a tool that ${how} ${name} is a failed call`, () =>
        Effect.gen(function* () {
          const { messages, text } = yield* Agent.run(make([untyped(() => work)]), "go")
          assert.include(texts(messages)[0], "broke down")
          assert.strictEqual(text, "done")
        }).pipe(Effect.provide(TestChatModel.script([call("odd"), "done"])))
      )
    }
  }

  it.effect("a state update that throws is a failed call as well", () =>
    Effect.gen(function* () {
      const slot = AgentState.slot("n", { schema: Schema.Finite, initial: 0 })
      const tool = Tool.make("t", {
        description: "",
        parameters: {},
        execute: () =>
          Effect.succeed(
            ToolOutput.make("x", {
              state: [
                AgentState.change(slot, () => {
                  throw new Error("update")
                })
              ]
            })
          )
      })
      const { messages } = yield* Agent.run(make([tool]), "go")
      assert.include(texts(messages)[0], "broke down")
    }).pipe(Effect.provide(TestChatModel.script([call("t"), "done"])), quiet)
  )
})

describe("a failed promise", () => {
  const failing = (reject: unknown) =>
    Tool.make("t", { description: "", parameters: {}, execute: () => Effect.tryPromise(() => Promise.reject(reject)) })

  it.effect("tells the model the reason of its rejection", () =>
    Effect.gen(function* () {
      class NotThere extends Error {
        readonly _tag = "NotThere"
      }
      const cases: ReadonlyArray<readonly [unknown, string]> = [
        [new Error("boom inside"), "boom inside"],
        ["just a text", "just a text"],
        [new NotThere("page 7"), "NotThere: page 7"],
        [ToolError.make("say it so"), "say it so"],
        [new Cause.UnknownError(new Error("twice wrapped")), "twice wrapped"],
        [5, "the tool failed"]
      ]
      for (const [reject, expected] of cases) {
        const error = yield* Effect.flip(Tool.run(failing(reject), {}))
        assert.strictEqual(error.message, expected)
      }
      const thrown = Tool.make("t", {
        description: "",
        parameters: {},
        execute: () =>
          Effect.try(() => {
            throw new Error("thrown")
          })
      })
      assert.strictEqual((yield* Effect.flip(Tool.run(thrown, {}))).message, "thrown")
    })
  )
})

describe("ids of calls", () => {
  it.effect("tell the calls of a conversation apart, when it goes on and when it is taken up", () =>
    Effect.gen(function* () {
      const agent = make([Tool.make("echo", { description: "", parameters: {}, execute: () => Effect.succeed("ok") })])
      const first = yield* Agent.run(agent, "go")
      const next = yield* Agent.run(agent, "more", { history: first.messages })
      const open = { ...next, messages: next.messages.slice(0, -2) }
      const resumed = yield* Agent.resume(agent, { checkpoint: open })
      for (const { messages } of [next, resumed]) {
        const ids = messages.flatMap((message) => (message.role === "ai" ? Message.callIds(message) : []))
        assert.strictEqual(ids[0], "call_0")
        assert.isAbove(ids.length, 1)
        assert.strictEqual(new Set(ids).size, ids.length)
        assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
      }
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          ...[1, 2].flatMap(() => [call("echo", {}, "call_0"), "done"]),
          call("echo", {}, "call_0"),
          "done"
        ])
      )
    )
  )

  it.effect("tell the calls of a run apart if a server counts anew each turn; its parts have the same ids", () =>
    Effect.gen(function* () {
      const echo = Tool.make("echo", {
        description: "",
        parameters: { text: Schema.String },
        execute: ({ text }) => Effect.succeed(text)
      })
      const { events } = yield* AgentTest.collect(make([echo]), "go")
      const called = events.flatMap((event) => (event._tag === "ToolCalled" ? [event.callId] : []))
      assert.strictEqual(called.length, 3)
      assert.strictEqual(new Set(called).size, 3)
      assert.strictEqual(called[0], "call_0")
      const deltas = new Set(events.flatMap((event) => (event._tag === "ToolCallDelta" ? [event.callId] : [])))
      assert.deepStrictEqual([...deltas], called)
      const transcript = AgentEvent.transcript(events)
      assert.deepStrictEqual(
        results(transcript).map((message) => message.toolCallId),
        called
      )
      assert.deepStrictEqual(AgentTest.pairingProblems(transcript), [])
    }).pipe(
      Effect.provide(TestChatModel.script([...["a", "b", "c"].map((text) => call("echo", { text }, "call_0")), "done"]))
    )
  )
})

describe("results and failures are bounded", () => {
  const million = "x".repeat(1_000_000)
  const large = (outputLimit?: number) => {
    const options = { description: "", parameters: {}, ...(outputLimit === undefined ? {} : { outputLimit }) }
    return [
      Tool.make("gives", { ...options, execute: () => Effect.succeed(million) }),
      Tool.make("errs", { ...options, execute: () => Effect.succeed(ToolOutput.make(million, { isError: true })) }),
      Tool.make("fails", { ...options, execute: () => Effect.fail(new Error(million)) }),
      Tool.make("dies", { ...options, execute: () => Effect.die(new Error(million)) })
    ]
  }
  const script = TestChatModel.script([
    TestChatModel.calls([
      ...["gives", "errs", "fails", "dies", million].map((name) => ({ name, arguments: {} })),
      { name: "gives", arguments: { [million]: million } }
    ]),
    "done"
  ])

  it.effect("by a number that a bare agent has too", () =>
    Effect.gen(function* () {
      const { messages } = yield* Agent.run(make(large()), "go")
      for (const text of texts(messages)) assert.isBelow(text.length, ToolOutput.defaultLimit + 100)
      assert.include(texts(messages)[0], "900000 of 1000000 characters left out")
      assert.include(texts(messages)[2], "900000 of 1000000 characters left out")
    }).pipe(Effect.provide(script), quiet)
  )

  it.effect("and by the tool's own limit, smaller or larger", () =>
    Effect.gen(function* () {
      const small = yield* Agent.run(make(large(10)), "go").pipe(Effect.provide(script))
      for (const text of texts(small.messages).slice(0, 3)) assert.isBelow(text.length, 100)
      const whole = yield* Agent.run(make(large(2_000_000)), "go").pipe(Effect.provide(script))
      assert.strictEqual(texts(whole.messages)[0], million)
      assert.strictEqual(texts(whole.messages)[2], million)
    }).pipe(quiet)
  )

  it.effect("but a direct answer is the answer", () =>
    Effect.gen(function* () {
      const direct = Tool.make("direct", {
        description: "",
        parameters: {},
        execute: () => Effect.succeed(ToolOutput.make(million, { returnDirect: true }))
      })
      const { text } = yield* Agent.run(make([direct]), "go")
      assert.strictEqual(text, million)
    }).pipe(Effect.provide(TestChatModel.script([call("direct")])))
  )

  it("no cut parts a character (property)", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom("a", "é", "😀", "\n", "\u{10ffff}"), maxLength: 60 }),
        fc.nat({ max: 40 }),
        (text, limit) => {
          const cut = ToolOutput.text(ToolOutput.truncate(ToolOutput.make(text), limit))
          assert.isTrue(cut.isWellFormed())
          if (text.length <= limit) assert.strictEqual(cut, text)
        }
      )
    )
    const faces = ToolOutput.make([Content.text("😀".repeat(10)), Content.text("😀".repeat(10))])
    assert.strictEqual(
      ToolOutput.text(ToolOutput.truncate(faces, 10)),
      "😀😀😀\n[… 32 of 40 characters left out …]\n😀"
    )
  })
})
