import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, type AgentState, Content, Message } from "effect-deepagents"
import { Summarization } from "effect-deepagents/middleware"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import fc from "fast-check"
import { scaled } from "../scale.ts"
import { asked, eventsOf, isSummary, textOf } from "./Summarization.fixtures.ts"

/** Texts from nothing to some hundred tokens, in several scripts, with marks that a summary could stumble over. */
const text: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: fc.nat(0xffff).map((code) => String.fromCharCode(code)), maxLength: 40 }) },
  {
    weight: 3,
    arbitrary: fc
      .tuple(
        fc.constantFrom("lorem ipsum ", "Zeile\n", "会話の要約", "слово ", '{"a":1},', "</user>", "😀"),
        fc.nat(200)
      )
      .map(([part, times]) => part.repeat(times))
  }
)

const picture = Content.image({ base64: "AAAA", mimeType: "image/png" })

const content = (value: fc.Arbitrary<string>): fc.Arbitrary<ReadonlyArray<Content.Block>> =>
  fc.tuple(value, fc.nat(9)).map(([said, n]) => (n === 0 ? [Content.text(said), picture] : Content.fromInput(said)))

const call = fc.record({
  name: fc.constantFrom("read_file", "write_file", "search"),
  arguments: fc.oneof(
    fc.record({ path: fc.string({ maxLength: 10 }), content: text }),
    fc.dictionary(fc.string({ maxLength: 5 }), fc.oneof(text, fc.integer()), { maxKeys: 3, noNullPrototype: true })
  ),
  result: content(text),
  isError: fc.boolean(),
  isMalformed: fc.nat(9).map((n) => n === 0)
})

/** One turn of the model with the answers to its calls. */
const round = fc.tuple(content(text), fc.array(call, { maxLength: 4 }))

/** A user's message, and its rounds. */
const exchange = fc.tuple(content(text), fc.array(round, { maxLength: 8 }))

interface History {
  readonly messages: ReadonlyArray<Message.Message>
  readonly input: string
}

/** A history that the loop could have made: every call answered once, in call order. */
const history: fc.Arbitrary<History> = fc
  .record({
    leading: fc.array(text, { maxLength: 2 }),
    exchanges: fc.array(exchange, { minLength: 1, maxLength: 8 }),
    input: fc.oneof(
      fc.constant("And now?"),
      text.filter((value) => value.trim() !== "")
    )
  })
  .map(({ exchanges, input, leading }) => {
    const messages: Array<Message.Message> = leading.map((value) => Message.system(value))
    let id = 0
    for (const [said, rounds] of exchanges) {
      messages.push(Message.human(said))
      for (const [answer, calls] of rounds) {
        const asked = calls.map((one) => ({ ...one, id: `call-${++id}` }))
        const good = asked.filter((one) => !one.isMalformed)
        const bad = asked.filter((one) => one.isMalformed)
        messages.push(
          Message.ai(answer, {
            toolCalls: good.map((one) => ({ id: one.id, name: one.name, arguments: one.arguments })),
            malformedToolCalls: bad.map((one) => ({ id: one.id, raw: "{", problem: "not JSON" }))
          })
        )
        for (const { id: toolCallId, isError, name, result } of [...good, ...bad]) {
          messages.push(Message.tool(result, { toolCallId, toolName: name, isError }))
        }
      }
    }
    return { messages, input }
  })

const summaries: fc.Arbitrary<TestChatModel.Turn> = fc.oneof(
  fc.constant("What mattered."),
  fc.constant(""),
  fc.constant("blah ".repeat(5_000)),
  fc.constant(TestChatModel.fail({ _tag: "Overloaded" })),
  fc.constant(TestChatModel.fail({ _tag: "ContextOverflow" }))
)

const amount: fc.Arbitrary<NonNullable<Summarization.Options["tail"]>> = fc.oneof(
  fc.integer({ min: 1, max: 90 }).map((percent) => ({ fraction: percent / 100 })),
  fc.integer({ min: 50, max: 3_000 }).map((tokens) => ({ tokens })),
  fc.integer({ min: 1, max: 40 }).map((messages) => ({ messages }))
)

const setting = fc.record({
  history,
  window: fc.integer({ min: 300, max: 6_000 }),
  summary: summaries,
  overflows: fc.boolean(),
  trigger: fc.option(fc.oneof(amount, fc.array(amount, { minLength: 1, maxLength: 2 })), { nil: undefined }),
  tail: fc.option(amount, { nil: undefined })
})

type Setting = typeof setting extends fc.Arbitrary<infer A> ? A : never

const agentOf = ({ tail, trigger }: Setting) =>
  Agent.make({
    name: "agent",
    prompt: "You are tested.",
    middleware: [
      Summarization.make({ ...(trigger === undefined ? {} : { trigger }), ...(tail === undefined ? {} : { tail }) })
    ]
  })

/** A model that answers at once; the first turn overflows if the setting says so. */
const modelOf = ({ overflows, summary, window }: Setting) => {
  let turns = 0
  return TestChatModel.reactive(
    (request) => {
      if (isSummary(request)) return summary
      turns++
      return overflows && turns === 1 ? TestChatModel.fail({ _tag: "ContextOverflow" }) : "done"
    },
    { contextWindowTokens: window }
  )
}

/** The outcome of one turn: the whole conversation, its shown part, and the state after it. */
const turnOf = (one: Setting) =>
  Effect.gen(function* () {
    const { input, messages } = one.history
    const agent = agentOf(one)
    const collected = yield* AgentTest.collect(agent, input, { history: messages })
    const { turns } = yield* asked
    const appended = eventsOf(collected.events, "MessageAppended").map((event) => event.message)
    const whole = [...messages, ...appended.filter((message) => message.role === "human")]
    const state = Object.fromEntries(eventsOf(collected.events, "StateChanged").map(({ slot, value }) => [slot, value]))
    return { ...collected, turns, whole, state, shown: turns.at(-1)?.messages ?? [] }
  }).pipe(Effect.provide(modelOf(one)))

const check = (
  property: (one: Setting, turn: Effect.Success<ReturnType<typeof turnOf>>) => Effect.Effect<void>,
  numRuns = scaled(60)
) =>
  Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(setting, (one) => Effect.runPromise(Effect.flatMap(turnOf(one), (turn) => property(one, turn)))),
      { numRuns }
    )
  )

describe("compaction of arbitrary histories", { timeout: 60_000 }, () => {
  it.effect("never parts a call from its result, nor changes the order of what stays (property)", () =>
    check((_, { shown, turns, whole }) =>
      Effect.sync(() => {
        for (const { messages } of turns) assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
        const ids = shown.filter((message) => message.source !== "summarization").map((message) => message.id)
        assert.deepStrictEqual(
          ids,
          whole.map((message) => message.id).filter((id) => ids.includes(id))
        )
        assert.strictEqual(new Set(ids).size, ids.length)
      })
    )
  )

  it.effect("keeps the goal, the newest words of the user, the instructions, and the tail (property)", () =>
    check((_, { shown, whole }) =>
      Effect.sync(() => {
        const by = new Map(shown.map((message) => [message.id, message]))
        const said = whole.filter((message) => message.role === "human")
        for (const message of [said[0], said.at(-1)]) {
          assert.isTrue(by.has(message?.id ?? ""))
          assert.isTrue(textOf(by.get(message?.id ?? "")).startsWith(textOf(message).slice(0, 20)))
        }
        const first = whole.findIndex((message) => message.role !== "system")
        assert.deepStrictEqual(shown.slice(0, first), whole.slice(0, first))
        assert.strictEqual(shown.at(-1)?.id, whole.at(-1)?.id)
        const summary = shown.findIndex((message) => message.source === "summarization")
        // Behind the summary nothing is missing.
        if (summary !== -1) {
          const tail = shown.slice(summary + 1).map((message) => message.id)
          assert.deepStrictEqual(
            tail,
            whole.slice(-tail.length).map((message) => message.id)
          )
        }
      })
    )
  )

  it.effect("is only ever shorter, and says so (property)", () =>
    check((one, { error, events, shown, turns, whole }) =>
      Effect.sync(() => {
        const compacted = eventsOf(events, "Compacted")
        for (const { tokensAfter, tokensBefore } of compacted) assert.isBelow(tokensAfter, tokensBefore)
        assert.strictEqual(
          compacted.length > 0,
          shown.length !== whole.length || shown.some((message, index) => message !== whole[index])
        )
        // Either there was less to ask with, or the overflow is the failure.
        assert.strictEqual(turns.length, one.overflows && error === undefined ? 2 : 1)
        if (!one.overflows) assert.isUndefined(error)
      })
    )
  )

  it.effect("leaves the transcript as it was (property)", () =>
    check((one) =>
      Effect.gen(function* () {
        const copy = JSON.stringify(one.history.messages)
        const result = yield* Effect.result(
          Agent.run(agentOf(one), one.history.input, { history: one.history.messages })
        )
        assert.strictEqual(JSON.stringify(one.history.messages), copy)
        if (result._tag === "Failure") return
        assert.strictEqual(JSON.stringify(result.success.messages.slice(0, one.history.messages.length)), copy)
        assert.strictEqual(result.success.messages.length, one.history.messages.length + 2)
      }).pipe(Effect.provide(modelOf(one)))
    )
  )

  it.effect("is the same after a resume, and idempotent while nothing new came (property)", () =>
    check((one, { error, shown, state, whole }) =>
      Effect.gen(function* () {
        if (error !== undefined) return
        const stored = JSON.parse(JSON.stringify(state)) as AgentState.Snapshot
        const messages = yield* Effect.forEach(whole, (message) =>
          Message.decode(JSON.parse(JSON.stringify(Message.encode(message))))
        )
        const events = yield* AgentTest.events(agentOf(one), [], { history: messages, state: stored })
        const { turns } = yield* asked
        // The window that an overflow taught is only the run's: the next one may take more.
        if (!one.overflows) assert.deepStrictEqual(eventsOf(events, "Compacted"), [])
        if (eventsOf(events, "Compacted").length === 0) {
          assert.strictEqual(JSON.stringify(turns.at(-1)?.messages), JSON.stringify(shown))
        }
        assert.deepStrictEqual(AgentTest.pairingProblems(turns.at(-1)?.messages ?? []), [])
      }).pipe(Effect.provide(modelOf({ ...one, overflows: false })), Effect.orDie)
    )
  )
})
