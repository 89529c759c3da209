import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Logger, Ref, Schema, Stream } from "effect"
import {
  Agent,
  AgentEvent,
  Message,
  Middleware,
  Ruling,
  Tool,
  ToolContext,
  ToolError,
  ToolOutput
} from "effect-deepagents"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import * as TestJournal from "../journal.ts"

const echo = Tool.make("echo", {
  description: "Says it again",
  parameters: { text: Schema.String },
  execute: ({ text }) => Effect.succeed(text)
})

const toolMessages = (messages: ReadonlyArray<Message.Message>) => messages.filter((message) => message.role === "tool")

const answers = (messages: ReadonlyArray<Message.Message>) =>
  toolMessages(messages).map((message) => [message.toolCallId, message.isError, Message.text(message)] as const)

describe("invariant 1: pairing", () => {
  const fine = echo
  const failing = Tool.make("failing", {
    description: "Fails",
    parameters: {},
    execute: () => Effect.fail(ToolError.make("out of paper"))
  })
  const typed = Tool.make("typed", {
    description: "Fails with an error of its own",
    parameters: {},
    execute: () => Effect.fail({ _tag: "NoInk", message: "no ink left" })
  })
  const dying = Tool.make("dying", { description: "Dies", parameters: {}, execute: () => Effect.die("boom") })
  const throwing = Tool.make("throwing", {
    description: "Throws",
    parameters: {},
    execute: () => {
      throw new Error("thrown in execute")
    }
  })
  const agent = Agent.make({ name: "a", prompt: "", tools: [fine, failing, typed, dying, throwing] })

  it.effect("a failure in a gate or after the model leaves no call unanswered, nor does a schema that throws", () =>
    Effect.gen(function* () {
      const gate = Middleware.make({ name: "gate", rulings: () => Effect.fail("gate" as const) })
      const after = Middleware.make({ name: "after", afterModel: () => Effect.fail("after" as const) })
      for (const middleware of [gate, after]) {
        const failing = Agent.make({ name: "a", prompt: "", tools: [echo], middleware: [middleware] })
        const { error, events } = yield* AgentTest.collect(failing, "go")
        assert.strictEqual(String(error), middleware.name)
        assert.deepStrictEqual(AgentTest.pairingProblems(AgentEvent.transcript(events)), [])
        assert.strictEqual(AgentEvent.transcript(events).length, 3)
      }
      const broken = Tool.make("echo", {
        description: "",
        parameters: {
          text: Schema.String.check(
            Schema.makeFilter(() => {
              throw new Error("filter bug")
            })
          )
        },
        execute: () => Effect.succeed("ok")
      })
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [broken] }), "go")
      assert.include(answers(result.messages)[0]?.[2], "broke down")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          ...[1, 2, 3].map(() => TestChatModel.calls([{ name: "echo", arguments: { text: "x" } }])),
          "done"
        ])
      )
    )
  )

  it.effect("answers every call once, in call order, for any outcome", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      assert.deepStrictEqual(
        answers(result.messages).map(([id, isError]) => [id, isError]),
        [
          ["1", false],
          ["2", true],
          ["3", true],
          ["4", true],
          ["5", true],
          ["6", true],
          ["7", true]
        ]
      )
      const text = new Map(answers(result.messages).map(([id, , text]) => [id, text]))
      assert.strictEqual(text.get("2"), "out of paper")
      assert.strictEqual(text.get("3"), "NoInk: no ink left")
      assert.include(text.get("4"), "broke down")
      assert.notInclude(text.get("4"), "boom")
      assert.include(text.get("6"), 'no tool "ghost" now. There are: echo, failing, typed, dying, throwing')
      assert.include(text.get("7"), "`text`: expected string, got {")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([
            { id: "1", name: "echo", arguments: { text: "hi" } },
            { id: "2", name: "failing", arguments: {} },
            { id: "3", name: "typed", arguments: {} },
            { id: "4", name: "dying", arguments: {} },
            { id: "5", name: "throwing", arguments: {} },
            { id: "6", name: "ghost", arguments: {} },
            { id: "7", name: "echo", arguments: { text: { nested: true } } }
          ]),
          "done"
        ])
      )
    )
  )

  it.effect("a history with unanswered, orphaned, late and doubled results is mended before the model sees it", () =>
    Effect.gen(function* () {
      const call = (id: string) => ({ id, name: "echo", arguments: { text: id } })
      const history = [
        Message.tool("orphan", { toolCallId: "none", toolName: "echo" }),
        Message.human("one"),
        Message.ai("", { toolCalls: [call("a"), call("b")] }),
        Message.tool("B", { toolCallId: "b", toolName: "echo" }),
        Message.tool("B again", { toolCallId: "b", toolName: "echo" }),
        Message.human("two"),
        Message.tool("late", { toolCallId: "a", toolName: "echo" }),
        Message.ai("", { toolCalls: [call("c")] })
      ]
      const result = yield* Agent.run(agent, "three", { history })
      const [request] = yield* TestChatModel.requests
      assert.deepStrictEqual(AgentTest.pairingProblems(request?.messages ?? []), [])
      assert.deepStrictEqual(
        answers(request?.messages ?? []).map(([id, isError]) => [id, isError]),
        [
          ["a", false],
          ["b", false],
          ["c", true]
        ]
      )
      assert.strictEqual(Message.text(request?.messages[2] ?? Message.human("")), "late")
      // A missing result at the end is new, and reported.
      assert.deepStrictEqual(
        result.newMessages.map((message) => message.role),
        ["tool", "human", "ai"]
      )
    }).pipe(Effect.provide(TestChatModel.script(["done"])))
  )

  it.effect("holds for any set of calls over several rounds (property)", () =>
    Effect.gen(function* () {
      const name = fc.constantFrom("echo", "Echo", "failing", "dying", "ghost", "typed")
      const rounds = fc.array(fc.array(fc.tuple(name, fc.string()), { minLength: 1, maxLength: 6 }), { maxLength: 5 })
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(rounds, (script) =>
            Effect.runPromise(
              Effect.gen(function* () {
                const result = yield* Agent.run(agent, "go")
                assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
              }).pipe(
                Effect.provide(
                  TestChatModel.script(
                    [
                      ...script.map((calls) =>
                        TestChatModel.calls(calls.map(([name, text]) => ({ name, arguments: { text } })))
                      ),
                      "done"
                    ],
                    { exhaustive: false }
                  )
                ),
                Effect.provide(Logger.layer([]))
              )
            )
          ),
          { numRuns: 60 }
        )
      )
    })
  )
})

describe("invariant 4: parallel tools", () => {
  const gated = (gates: ReadonlyArray<Deferred.Deferred<void>>, active: Ref.Ref<number>, peak: Ref.Ref<number>) =>
    Tool.make("work", {
      description: "Waits",
      parameters: { n: Schema.Int },
      execute: Effect.fnUntraced(function* ({ n }) {
        const now = yield* Ref.updateAndGet(active, (count) => count + 1)
        yield* Ref.update(peak, (most) => Math.max(most, now))
        const gate = gates[n]
        if (gate !== undefined) yield* Deferred.await(gate)
        yield* Ref.update(active, (count) => count - 1)
        return `result ${n}`
      })
    })

  it.effect("appends results in call order, for any order of ends", () =>
    Effect.gen(function* () {
      const order = [3, 0, 2, 1]
      const gates = yield* Effect.all([0, 1, 2, 3].map(() => Deferred.make<void>()))
      const tool = gated(gates, yield* Ref.make(0), yield* Ref.make(0))
      const agent = Agent.make({ name: "a", prompt: "", tools: [tool] })
      const running = yield* Effect.forkChild(Agent.run(agent, "go"))
      for (const n of order) {
        yield* Effect.yieldNow
        yield* Deferred.succeed(gates[n]!, undefined)
      }
      const result = yield* Fiber.join(running)
      assert.deepStrictEqual(
        answers(result.messages).map(([, , text]) => text),
        ["result 0", "result 1", "result 2", "result 3"]
      )
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([0, 1, 2, 3].map((n) => ({ name: "work", arguments: { n } }))),
          "done"
        ])
      )
    )
  )

  it.effect("no more than toolConcurrency run at once", () =>
    Effect.gen(function* () {
      const peak = yield* Ref.make(0)
      const active = yield* Ref.make(0)
      const tool = Tool.make("work", {
        description: "Waits",
        parameters: { n: Schema.Int },
        execute: Effect.fnUntraced(function* () {
          const now = yield* Ref.updateAndGet(active, (count) => count + 1)
          yield* Ref.update(peak, (most) => Math.max(most, now))
          yield* Effect.sleep("10 millis")
          yield* Ref.update(active, (count) => count - 1)
          return "ok"
        })
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [tool], toolConcurrency: 3 })
      const running = yield* Effect.forkChild(Agent.run(agent, "go"))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(running)
      assert.strictEqual(yield* Ref.get(peak), 3)
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls(Array.from({ length: 10 }, (_, n) => ({ name: "work", arguments: { n } }))),
          "done"
        ])
      )
    )
  )
})

describe("invariant 5: batch preflight", () => {
  it.effect("every call is resolved, decoded and gated before the first one runs", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const tool = Tool.make("act", {
        description: "Acts",
        parameters: { n: Schema.Int },
        execute: ({ n }) =>
          Effect.sync(() => {
            log.push(`run ${n}`)
            return "ok"
          })
      })
      const gate = Middleware.make({
        name: "gate",
        rulings: (_run, calls) =>
          Effect.sync(() => {
            log.push(`gate ${calls.map((call) => JSON.stringify(call.arguments)).join(" ")}`)
            return calls.map((call) => (call.arguments["n"] === 2 ? Ruling.refuse("test", "not that one") : undefined))
          })
      })
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [tool], middleware: [gate] }), "go")
      assert.deepStrictEqual(log, ['gate {"n":1} {"n":2} {"n":3}', "run 1", "run 3"])
      assert.deepStrictEqual(
        answers(result.messages).map(([, isError]) => isError),
        [false, true, true, false]
      )
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([
            { name: "act", arguments: { n: 1 } },
            { name: "act", arguments: { n: "two" } },
            { name: "act", arguments: { n: 2 } },
            { name: "act", arguments: { n: "3" } }
          ]),
          "done"
        ])
      )
    )
  )

  it("every source is asked once, about the calls that none before it refused, with rewritten arguments", () => {
    const word = fc.array(fc.constantFrom("allow", "refuse", "rewrite"), { minLength: 3, maxLength: 3 })
    const judged = (words: ReadonlyArray<ReadonlyArray<string>>) =>
      Effect.gen(function* () {
        const asked: Array<string> = []
        const saidOn = (word: ReadonlyArray<string>, { id }: { readonly id: string }) => word[Number(id.slice(1))]
        const gates = words.map((word, at) =>
          Middleware.make({
            name: `gate${at}`,
            rewriteArguments: (_run, calls) =>
              Effect.succeed(
                calls.map((call) => {
                  const { text } = call.arguments
                  return saidOn(word, call) === "rewrite"
                    ? { text: `${typeof text === "string" ? text : ""}${at}` }
                    : undefined
                })
              ),
            rulings: (_run, calls) =>
              Effect.sync(() => {
                asked.push(`${at}: ${calls.map((call) => `${call.id}=${JSON.stringify(call.arguments)}`).join(" ")}`)
                return calls.map((call) => (saidOn(word, call) === "refuse" ? Ruling.refuse("gate", "no") : undefined))
              })
          })
        )
        const ids = ["c0", "c1", "c2"]
        const texts = new Map(
          ids.map((id) => [
            id,
            `t${words.flatMap((word, at) => (saidOn(word, { id }) === "rewrite" ? [at] : [])).join("")}`
          ])
        )
        const expected: Array<string> = []
        for (const [at, word] of words.entries()) {
          if (texts.size === 0) break
          expected.push(`${at}: ${[...texts].map(([id, text]) => `${id}=${JSON.stringify({ text })}`).join(" ")}`)
          for (const id of texts.keys()) if (saidOn(word, { id }) === "refuse") texts.delete(id)
        }
        const calls = ids.map((id) => ({ id, name: "echo", arguments: { text: "t" } }))
        const agent = Agent.make({ name: "a", prompt: "", tools: [echo], middleware: gates })
        const result = yield* Agent.run(agent, "go").pipe(
          Effect.provide(TestChatModel.script([TestChatModel.calls(calls), "done"]))
        )
        assert.deepStrictEqual(asked, expected)
        assert.deepStrictEqual(
          answers(result.messages).map(([id, , text]) => [id, text]),
          calls.map(({ id }) => [id, texts.get(id) ?? "no"])
        )
      })
    return fc.assert(fc.asyncProperty(fc.array(word, { maxLength: 4 }), (words) => Effect.runPromise(judged(words))))
  })

  it.effect("a middleware may rewrite arguments, which are decoded again", () =>
    Effect.gen(function* () {
      const edit = Middleware.make({
        name: "edit",
        rewriteArguments: (_run, calls) =>
          Effect.succeed(
            calls.map((call, index) =>
              index === 0 ? { text: `${JSON.stringify(call.arguments["text"])}!` } : { text: [] }
            )
          )
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [echo], middleware: [edit] })
      const result = yield* Agent.run(agent, "go")
      const [first, second] = answers(result.messages)
      assert.strictEqual(first?.[2], '"hi"!')
      assert.include(second?.[2], "`text`: expected string, got []")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([
            { name: "echo", arguments: { text: "hi" } },
            { name: "echo", arguments: { text: "ho" } }
          ]),
          "done"
        ])
      )
    )
  )

  it.effect("a gate that forgets a call has not allowed it", () =>
    Effect.gen(function* () {
      const forgetful = Middleware.make({ name: "forgetful", rulings: () => Effect.succeed([]) })
      const agent = Agent.make({ name: "a", prompt: "", tools: [echo], middleware: [forgetful] })
      const result = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(answers(result.messages), [["call-1", true, "This call was not allowed."]])
    }).pipe(
      Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "echo", arguments: { text: "x" } }]), "done"]))
    )
  )

  it.effect("a suspending gate ends the run with its requests before any call of the batch runs", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const act = Tool.make("act", {
        description: "Acts",
        parameters: { n: Schema.Int },
        execute: ({ n }) => Effect.sync(() => (ran.push(String(n)), "ok"))
      })
      const approval = Middleware.make({
        asks: true,
        name: "approval",
        rulings: (_run, calls) =>
          Effect.succeed(
            calls.map((call) => (call.arguments["n"] === 2 ? Ruling.ask("test", { description: "may I?" }) : undefined))
          )
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [act], middleware: [approval] })
      const result = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(ran, [])
      assert.strictEqual(result.stopReason, "suspended")
      assert.strictEqual(result.output, undefined)
      assert.deepInclude(result.pending[0], {
        callId: "call-2",
        path: ["a"],
        toolName: "act",
        arguments: { n: 2 },
        description: "may I?"
      })
      assert.strictEqual(result.pending.length, 1)
      // A middleware without a declared suspension can't suspend, even if a program without types tries: the agent's
      // type would be wrong.
      const quiet = Agent.make({
        name: "b",
        prompt: "",
        tools: [act],
        // @ts-expect-error the gate of a plain middleware may not ask
        middleware: [Middleware.make({ name: "quiet", rulings: approval.rulings })]
      })
      const other = yield* Agent.run(quiet, "go")
      assert.strictEqual(other.stopReason, "completed")
      assert.deepStrictEqual(ran, ["1"])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([
            { name: "act", arguments: { n: 1 } },
            { name: "act", arguments: { n: 2 } }
          ]),
          TestChatModel.calls([
            { name: "act", arguments: { n: 1 } },
            { name: "act", arguments: { n: 2 } }
          ]),
          "done"
        ])
      )
    )
  )
})

describe("two suspending gates", () => {
  it.effect("become one question", () =>
    Effect.gen(function* () {
      const approval = (name: string) =>
        Middleware.make({
          asks: true,
          name,
          rulings: (_run, calls) => Effect.succeed(calls.map(() => Ruling.ask("test", { description: name })))
        })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [echo],
        middleware: [approval("first"), approval("second")]
      })
      const result = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(
        result.pending.map((call) => call.description),
        ["first\nsecond"]
      )
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "echo", arguments: { text: "x" } }])])))
  )
})

describe("invariant 6: finish gate", () => {
  for (const stopReason of ["length", "contentFilter", "refusal", "interrupted"] as const) {
    it.effect(`a turn that ended by ${stopReason} executes nothing`, () =>
      Effect.gen(function* () {
        const ran: Array<string> = []
        const act = Tool.make("act", {
          description: "Acts",
          parameters: {},
          execute: () => Effect.sync(() => (ran.push("ran"), "ok"))
        })
        const result = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [act] }), "go")
        assert.deepStrictEqual(ran, [])
        assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
        assert.strictEqual(
          result.stopReason,
          stopReason === "refusal" || stopReason === "contentFilter" ? "refused" : "completed"
        )
      }).pipe(
        Effect.provide(
          TestChatModel.script([TestChatModel.calls([{ name: "act", arguments: {} }], { stopReason }), "done"], {
            exhaustive: false
          })
        )
      )
    )
  }
})

describe("invariant 10: errors are values", () => {
  it.effect("a failure of a middleware ends the run with that failure, typed, and the transcript stays valid", () =>
    Effect.gen(function* () {
      const slow = Tool.make("slow", { description: "", parameters: {}, execute: () => Effect.never })
      const strict = Middleware.make({
        name: "strict",
        wrapToolCall: (call, next) => (call.name === "echo" ? Effect.fail({ _tag: "Forbidden" as const }) : next(call))
      })
      // An outer middleware that retries failures does not see it.
      const outer = Middleware.make({
        name: "outer",
        wrapToolCall: (call, next) => Effect.catch(next(call), () => Effect.succeed(ToolOutput.make("swallowed")))
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [echo, slow], middleware: [outer, strict] })
      const { error, events } = yield* AgentTest.collect(agent, "go")
      assert.deepStrictEqual(error, { _tag: "Forbidden" })
      const transcript = events.flatMap((event) => (event._tag === "MessageAppended" ? [event.message] : []))
      assert.deepStrictEqual(AgentTest.pairingProblems(transcript), [])
      const last = events.at(-1)
      assert.isTrue(last?._tag === "RunFailed" && last.error.tag === "Forbidden")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([
            { name: "slow", arguments: {} },
            { name: "echo", arguments: { text: "x" } }
          ])
        ])
      )
    )
  )

  it.effect("a defect outside of a tool fails the run as a defect", () =>
    Effect.gen(function* () {
      const broken = Middleware.make({ name: "broken", beforeModel: () => Effect.die("bug") })
      const exit = yield* Effect.exit(Agent.run(Agent.make({ name: "a", prompt: "", middleware: [broken] }), "go"))
      assert.isTrue(exit._tag === "Failure" && exit.cause.reasons.some((reason) => reason._tag === "Die"))
    }).pipe(Effect.provide(TestChatModel.script([])))
  )

  it.effect("state updates of an output are applied when the tool succeeded", () =>
    Effect.gen(function* () {
      const text = yield* Tool.run(echo, { text: "x" })
      assert.strictEqual(ToolOutput.text(text), "x")
      const failure = yield* Effect.flip(Tool.run(echo, {}))
      assert.strictEqual(failure.reason, "InvalidArguments")
      assert.include(failure.message, "`text` is missing")
    })
  )
})

describe("invariant 13: malformed tool calls", () => {
  it.effect("are kept raw, given an id, and answered so that the model can repair them", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", tools: [echo] })
      const result = yield* Agent.run(agent, "go")
      const first = result.messages.find((message) => message.role === "ai")
      assert.strictEqual(first?.malformedToolCalls[0]?.raw, 'echo({"text": ')
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      assert.include(answers(result.messages)[0]?.[2], "could not be read")
      assert.strictEqual(result.text, "done")
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.malformed('echo({"text": ', { name: "echo", problem: "the JSON ends early" }),
          TestChatModel.calls([{ name: "echo", arguments: { text: "x" } }]),
          "done"
        ])
      )
    )
  )

  it.effect("calls of one turn that share an id, or have none, get ids that tell them apart", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", prompt: "", tools: [echo] })
      const result = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      assert.deepStrictEqual(
        answers(result.messages).map(([, , text]) => text),
        ["1", "2", "3"]
      )
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([
            { id: "x", name: "echo", arguments: { text: "1" } },
            { id: "x", name: "echo", arguments: { text: "2" } },
            { id: "", name: "echo", arguments: { text: "3" } }
          ]),
          "done"
        ])
      )
    )
  )
})

describe("invariant 14: gates can't be walked around", () => {
  it.effect("a name is made canonical before any gate, so another spelling does not pass it", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const gate = Middleware.make({
        name: "gate",
        rulings: (_run, calls) =>
          Effect.sync(() => {
            seen.push(...calls.map((call) => call.name))
            return calls.map(() => undefined)
          })
      })
      const remove = Tool.make("delete_file", { description: "", parameters: {}, execute: () => Effect.succeed("ok") })
      const { events } = yield* AgentTest.collect(
        Agent.make({ name: "a", prompt: "", tools: [remove], middleware: [gate] }),
        "go"
      )
      assert.deepStrictEqual(seen, ["delete_file"])
      const called = events.filter((event) => event._tag === "ToolCalled")
      assert.deepStrictEqual(
        called.map((event) => event.toolName),
        ["delete_file"]
      )
    }).pipe(
      Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "Delete-File", arguments: {} }]), "done"]))
    )
  )

  it.effect("a name that two tools could mean is unknown", () =>
    Effect.gen(function* () {
      const one = Tool.make("get_it", { description: "", parameters: {}, execute: () => Effect.succeed("one") })
      const two = Tool.make("getit", { description: "", parameters: {}, execute: () => Effect.succeed("two") })
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [one, two] }), "go")
      assert.deepStrictEqual(
        answers(result.messages).map(([, isError]) => isError),
        [true, false]
      )
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([
            { name: "GetIt", arguments: {} },
            { name: "getit", arguments: {} }
          ]),
          "done"
        ])
      )
    )
  )

  it.effect("a tool that a middleware removes from a request can't be dispatched, by any spelling", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const secret = Tool.make("secret", {
        description: "",
        parameters: {},
        execute: () => Effect.sync(() => (ran.push("secret"), "ok"))
      })
      const hide = Middleware.make({
        name: "hide",
        wrapModelCall: (request, next) =>
          next({ ...request, tools: request.tools.filter((tool) => tool.name !== "secret") })
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [secret, echo], middleware: [hide] })
      const result = yield* Agent.run(agent, "go")
      assert.deepStrictEqual(ran, [])
      assert.include(answers(result.messages)[0]?.[2], 'no tool "secret" now. There are: echo')
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([
            { name: "secret", arguments: {} },
            { name: "SECRET", arguments: { x: 1 } }
          ]),
          "done"
        ])
      )
    )
  )

  it.effect("sub-agents run under the parent's inherited middleware, nested ones too", () =>
    Effect.gen(function* () {
      const ran: Array<string> = []
      const danger = Tool.make("danger", {
        description: "",
        parameters: {},
        execute: () => Effect.sync(() => (ran.push("danger"), "ok"))
      })
      const forbid = Middleware.make({
        name: "forbid",
        inherit: true,
        rulings: (_run, calls) =>
          Effect.succeed(calls.map((call) => (call.name === "danger" ? Ruling.refuse("test", "forbidden") : undefined)))
      })
      const grandchild = Agent.make({ name: "grandchild", description: "g", prompt: "", tools: [danger] })
      const child = Agent.make({ name: "child", description: "c", prompt: "", tools: [Agent.asTool(grandchild)] })
      const parent = Agent.make({
        name: "parent",
        prompt: "",
        tools: [Agent.asTool(child)],
        middleware: [forbid]
      })
      const { events } = yield* AgentTest.collect(parent, "go")
      assert.deepStrictEqual(ran, [])
      const failed = events.find((event) => event._tag === "ToolFailed")
      assert.deepStrictEqual(failed?.path, ["parent", "child", "grandchild"])
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          TestChatModel.calls([{ name: "child", arguments: { task: "do it" } }]),
          TestChatModel.calls([{ name: "grandchild", arguments: { task: "do it" } }]),
          TestChatModel.calls([{ name: "danger", arguments: {} }]),
          "grandchild done",
          "child done",
          "parent done"
        ])
      )
    )
  )
})

describe("arguments", () => {
  const shaped = Tool.make("shaped", {
    description: "",
    parameters: {
      count: Schema.Int,
      flag: Schema.Boolean,
      names: Schema.Array(Schema.String),
      items: Schema.Array(Schema.Struct({ id: Schema.Finite })),
      nested: Schema.Struct({ at: Schema.String }),
      note: Schema.optionalKey(Schema.String),
      either: Schema.Union([Schema.String, Schema.Finite])
    },
    execute: (args) => Effect.succeed(JSON.stringify(args))
  })

  it.effect("coerces formal mistakes of small models if the schema leaves no doubt", () =>
    Effect.gen(function* () {
      const output = yield* Tool.run(shaped, {
        count: "3",
        flag: "True",
        names: "solo",
        items: { id: "7" },
        nested: '{"at": 5}',
        note: null,
        either: "5"
      })
      assert.deepStrictEqual(JSON.parse(ToolOutput.text(output)), {
        count: 3,
        flag: true,
        names: ["solo"],
        items: [{ id: 7 }],
        nested: { at: "5" },
        either: "5"
      })
    })
  )

  it.effect("refuses doubtful values, with path, value and expected type", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        Tool.run(shaped, { count: "3.5x", flag: "maybe", names: [1, {}], items: [], nested: "x", either: true })
      )
      for (const part of [
        '`count`: expected number, got "3.5x"',
        '`flag`: expected boolean, got "maybe"',
        "`names[1]`: expected string, got {}",
        '`nested`: expected object, got "x"'
      ]) {
        assert.include(error.message, part)
      }
    })
  )

  it.effect("a dynamic tool is checked against its JSON Schema, and coerced by it", () =>
    Effect.gen(function* () {
      const tool = Tool.dynamic("dynamic", {
        description: "",
        parameters: {
          type: "object",
          properties: { n: { $ref: "#/$defs/n" }, tags: { type: "array", items: { type: "string" } } },
          required: ["n"],
          $defs: { n: { type: "integer", minimum: 2 } }
        },
        execute: (args) => Effect.succeed(JSON.stringify(args))
      })
      assert.deepStrictEqual(JSON.parse(ToolOutput.text(yield* Tool.run(tool, { n: "4", tags: "x" }))), {
        n: 4,
        tags: ["x"]
      })
      assert.include((yield* Effect.flip(Tool.run(tool, { n: 1 }))).message, "`n`")
      // A schema that can't be interpreted does not make the tool unusable.
      const odd = Tool.dynamic("odd", {
        description: "",
        parameters: { type: "object", dependentRequired: { a: ["b"] } },
        execute: (args) => Effect.succeed(JSON.stringify(args))
      })
      assert.strictEqual(ToolOutput.text(yield* Tool.run(odd, { a: 1 })), '{"a":1}')
      // The values of a list, where those of its items are meant.
      const listed = Tool.dynamic("listed", {
        description: "",
        parameters: {
          type: "object",
          properties: { enum: { type: "array", items: { type: "string" }, enum: ["a", "b"] } }
        },
        execute: (args) => JSON.stringify(args)
      })
      assert.strictEqual(ToolOutput.text(yield* Tool.run(listed, { enum: ["a"] })), '{"enum":["a"]}')
      assert.include((yield* Effect.flip(Tool.run(listed, { enum: [{}] }))).message, "expected string")
    })
  )

  it.effect("long output is cut to the tool's limit, head and tail kept, and it is said", () =>
    Effect.gen(function* () {
      const long = Tool.make("long", {
        description: "",
        parameters: {},
        outputLimit: 30,
        execute: () => Effect.succeed("a".repeat(100) + "z".repeat(100))
      })
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [long] }), "go")
      const text = answers(result.messages)[0]?.[2] ?? ""
      assert.isTrue(text.startsWith("a".repeat(20)) && text.endsWith("z".repeat(10)))
      assert.include(text, "170 of 200 characters left out")
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "long", arguments: {} }]), "done"])))
  )
})

describe("returnDirect", () => {
  it.effect("ends the run with the tool's content as the answer", () =>
    Effect.gen(function* () {
      const direct = Tool.make("direct", {
        description: "",
        parameters: {},
        execute: () => Effect.succeed(ToolOutput.make("the answer", { returnDirect: true }))
      })
      const result = yield* Agent.run(Agent.make({ name: "a", prompt: "", tools: [direct] }), "go")
      assert.deepStrictEqual([result.text, result.output, result.stopReason], ["the answer", "the answer", "completed"])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "direct", arguments: {} }])])))
  )
})

describe("tool context", () => {
  it.effect("a tool sees its run and its progress becomes events", () =>
    Effect.gen(function* () {
      const look = Tool.make("look", {
        description: "",
        parameters: {},
        execute: Effect.fnUntraced(function* () {
          const context = yield* ToolContext.ToolContext
          yield* context.emit({ percent: 50 })
          const messages = yield* context.messages
          return `${context.agent} ${context.callId} ${context.threadId ?? ""} ${messages.length}`
        })
      })
      const events = yield* Stream.runCollect(
        Agent.stream(Agent.make({ name: "a", prompt: "", tools: [look] }), "go", { threadId: "t1" })
      )
      const completed = events.find((event) => event._tag === "ToolCompleted")
      assert.strictEqual(completed?.text, "a c9 t1 2")
      const tags = events.map((event) => event._tag)
      assert.isBelow(tags.indexOf("ToolCalled"), tags.indexOf("ToolProgress"))
      assert.isBelow(tags.indexOf("ToolProgress"), tags.indexOf("ToolCompleted"))
      const progress = events.find((event) => event._tag === "ToolProgress")
      assert.deepStrictEqual(
        [progress?.callId, progress?.toolName, progress?.progress],
        ["c9", "look", { percent: 50 }]
      )
    }).pipe(
      Effect.provide([
        TestChatModel.script([TestChatModel.calls([{ id: "c9", name: "look", arguments: {} }]), "done"]),
        TestJournal.layer({})
      ])
    )
  )
})
