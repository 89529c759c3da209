import { assert, describe, it } from "@effect/vitest"
import { Data, Effect, Fiber, Latch, Layer, Schema, Stream } from "effect"
import { Agent, type AgentEvent, type ChatModel, Message, Middleware, Tool } from "effect-deepagents"
import { Budget, Summarization } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import {
  asked,
  codes,
  eventsOf,
  filler,
  isSummary,
  model,
  readCall,
  reader,
  recordOf,
  summaryIn,
  textOf,
  tokensOf,
  window
} from "./Summarization.fixtures.ts"

/** Holds requests for summaries back until this is done. */
const holding = <E, R>(until: Effect.Effect<unknown, E, R>) =>
  Middleware.make<E, R>({
    name: "holding",
    wrapModelCall: (request, next) =>
      isSummary(request) ? Stream.unwrap(Effect.as(until, next(request))) : next(request)
  })

/** A window in which several rounds fit between the trigger and the hard limit. */
const wide = 20_000

/** Reads text that no cheap step shortens; `onRead` gets the number of calls. */
const reading = (onRead: (n: number) => Effect.Effect<unknown> = () => Effect.void) => {
  let n = 0
  return Tool.make("read_file", {
    description: "Reads a file",
    parameters: { path: Schema.String },
    execute: ({ path }) => Effect.suspend(() => Effect.as(onRead(++n), filler(`contents of ${path}`, 350)))
  })
}

/** A model that reads until a summary is requested, and so many times more; and the message of the summary. */
const upTo = (more: number, overflowAt?: number) => {
  const seen = { turns: 0, begunAt: 0 }
  const layer = model(
    (n) => {
      seen.turns = n
      if (seen.begunAt > 0 && n === seen.begunAt + (overflowAt ?? Infinity)) {
        return TestChatModel.fail({ _tag: "ContextOverflow" })
      }
      return seen.begunAt === 0 || n <= seen.begunAt + more ? readCall(n) : "done"
    },
    { contextWindowTokens: wide }
  )
  const hold = <E, R>(until: Effect.Effect<unknown, E, R>) =>
    holding(
      Effect.suspend(() => {
        if (seen.begunAt === 0) seen.begunAt = seen.turns
        return until
      })
    )
  return { seen, layer, hold }
}

const agentOf = <E, R, E2, R2>(
  first: Middleware.Middleware<E, R>,
  summarization: Middleware.Middleware<E2, R2>,
  tool = reading()
) =>
  Agent.make({
    name: "agent",
    prompt: "You are tested.",
    tools: [tool],
    middleware: [first, summarization],
    maxRounds: 500
  })

const isPrefix = (before: ReadonlyArray<Message.Message>, after: ReadonlyArray<Message.Message>): boolean =>
  before.every((message, at) => message === after[at])

const breaksIn = (turns: ReadonlyArray<ChatModel.ModelRequest>): ReadonlyArray<number> =>
  turns.flatMap(({ messages }, index) => (isPrefix(turns[index - 1]?.messages ?? [], messages) ? [] : [index]))

/** Lets everything go on that can without time passing. */
const settled = Effect.repeat(Effect.yieldNow, { times: 2_000 })

const journal = SessionStore.journal.pipe(Layer.provide(MemorySessions.layer))

const stopReasonOf = (events: ReadonlyArray<AgentEvent.AgentEvent>) => eventsOf(events, "RunCompleted")[0]?.stopReason

describe("a summary in the background", () => {
  it.effect("the run works on while it is written, and sends the same beginning until it is there", () => {
    const { hold, layer, seen } = upTo(20)
    return Effect.gen(function* () {
      const written = yield* Latch.make()
      const tool = reading((n) =>
        seen.begunAt > 0 && n === seen.begunAt + 5 ? Effect.andThen(written.open, settled) : Effect.void
      )
      const events = yield* AgentTest.events(agentOf(hold(written.await), Summarization.make(), tool), "Read")
      assert.strictEqual(stopReasonOf(events), "completed")
      const { summaries, turns } = yield* asked
      assert.strictEqual(summaries.length, 1)
      assert.deepStrictEqual(codes(events), [])
      assert.strictEqual(eventsOf(events, "Compacted").length, 1)
      // One break, at the first request after the summary was there.
      assert.deepStrictEqual(breaksIn(turns), [seen.begunAt + 5])
      const [before, after] = turns.slice(seen.begunAt + 4).map(({ messages }) => messages)
      assert.include(textOf(summaryIn(turns[seen.begunAt + 5])), "Summary 1.")
      // Later messages stand under it unchanged.
      assert.isAbove(after?.length ?? 0, 12)
      assert.isTrue(isPrefix(after?.slice(-12, -2) ?? [], before?.slice(-10) ?? []))
      assert.deepStrictEqual(AgentTest.pairingProblems(after ?? []), [])
    }).pipe(Effect.provide(layer))
  })

  it.effect("the run waits for it at the hard limit", () =>
    Effect.gen(function* () {
      const agent = agentOf(holding(Effect.sleep("1 minute")), Summarization.make())
      const running = yield* Effect.forkChild(Agent.run(agent, "Read"))
      yield* settled
      const turnsBefore = (yield* asked).turns
      for (const { messages } of turnsBefore) assert.isAtMost(tokensOf(messages), 0.95 * window)
      assert.isAbove(tokensOf(turnsBefore.at(-1)?.messages ?? []), 0.7 * window)
      yield* settled
      assert.strictEqual((yield* asked).turns.length, turnsBefore.length)
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual((yield* Fiber.join(running)).text, "done")
      const { turns } = yield* asked
      assert.isDefined(summaryIn(turns[turnsBefore.length]))
      for (const { messages } of turns) assert.isAtMost(tokensOf(messages), window)
    }).pipe(Effect.provide(model(reader(40), { contextWindowTokens: window })))
  )

  it.effect("a run that ends before it is there does not wait, and leaves no trace of it", () => {
    const { hold, layer } = upTo(3)
    return Effect.gen(function* () {
      let interrupted = 0
      const never = Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted++))
      const result = yield* Agent.run(agentOf(hold(never), Summarization.make()), "Read")
      assert.strictEqual(result.text, "done")
      assert.strictEqual(interrupted, 1)
      const { compactions, fold } = yield* recordOf(result.state)
      assert.strictEqual(compactions, 0)
      assert.isUndefined(fold)
    }).pipe(Effect.provide(layer))
  })

  it.effect("a summary that is there when the run ends begins the next run", () => {
    const { hold, layer, seen } = upTo(3)
    return Effect.gen(function* () {
      const written = yield* Latch.make()
      // It is written while the last turn is.
      const late = Middleware.make({
        name: "late",
        wrapModelCall: (request, next) =>
          isSummary(request) || seen.begunAt === 0 || seen.turns < seen.begunAt + 3
            ? next(request)
            : Stream.unwrap(Effect.as(Effect.andThen(written.open, Effect.sleep("1 second")), next(request)))
      })
      const agent = Agent.make({
        name: "agent",
        prompt: "You are tested.",
        tools: [reading()],
        middleware: [hold(written.await), Summarization.make(), late],
        maxRounds: 500
      })
      const running = yield* Effect.forkChild(Agent.run(agent, "Read", { threadId: "t" }))
      yield* settled
      yield* TestClock.adjust("1 minute")
      const result = yield* Fiber.join(running)
      assert.strictEqual((yield* recordOf(result.state)).compactions, 1)
      const again = yield* Effect.forkChild(Agent.run(agent, "And now?", { threadId: "t" }))
      yield* settled
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(again)
      const { summaries, turns } = yield* asked
      assert.strictEqual(summaries.length, 1)
      assert.include(textOf(summaryIn(turns.at(-1))), "Summary 1.")
    }).pipe(Effect.provide([layer, journal]))
  })

  it.effect("makes up for a failed summary as if the run had waited for it", () =>
    Effect.gen(function* () {
      const events = yield* AgentTest.events(agentOf(holding(Effect.sleep(1)), Summarization.make()), "Read").pipe(
        Effect.forkChild,
        Effect.tap(() => TestClock.adjust("1 minute")),
        Effect.flatMap(Fiber.join)
      )
      assert.strictEqual(stopReasonOf(events), "completed")
      assert.include(codes(events), "summarization-failed")
      const { turns } = yield* asked
      for (const { messages } of turns) {
        assert.isAtMost(tokensOf(messages), window)
        assert.deepStrictEqual(AgentTest.pairingProblems(messages), [])
      }
    }).pipe(
      Effect.provide(
        model(reader(60), { contextWindowTokens: window, summary: () => TestChatModel.fail({ _tag: "Overloaded" }) })
      )
    )
  )

  it.effect("a run that is cut off meanwhile goes on from its thread, and begins with a summary of its own", () =>
    Effect.gen(function* () {
      const agent = agentOf(holding(Effect.sleep("1 minute")), Summarization.make())
      const running = yield* Effect.forkChild(Agent.run(agent, "Read", { threadId: "t" }))
      yield* settled
      const turnCount = (yield* asked).turns.length
      yield* Fiber.interrupt(running)
      const resumed = yield* Effect.forkChild(Agent.resume(agent, { threadId: "t" }))
      yield* TestClock.adjust("10 minutes")
      const result = yield* Fiber.join(resumed)
      assert.strictEqual(result.text, "done")
      assert.deepStrictEqual(AgentTest.pairingProblems(result.messages), [])
      const { summaries, turns } = yield* asked
      assert.isAtLeast(summaries.length, 1)
      assert.isDefined(summaryIn(turns[turnCount]))
      for (const { messages } of turns) assert.isAtMost(tokensOf(messages), window)
    }).pipe(Effect.provide([model(reader(40), { contextWindowTokens: window }), journal]))
  )

  it.effect("an overflow meanwhile waits for it, and is asked again with it", () => {
    const { hold, layer, seen } = upTo(6, 3)
    return Effect.gen(function* () {
      const running = yield* Effect.forkChild(
        AgentTest.events(agentOf(hold(Effect.sleep("1 minute")), Summarization.make()), "Read")
      )
      yield* settled
      yield* TestClock.adjust("1 minute")
      const events = yield* Fiber.join(running)
      assert.strictEqual(stopReasonOf(events), "completed")
      assert.deepStrictEqual(codes(events), ["summarization-overflow"])
      const { summaries, turns } = yield* asked
      assert.strictEqual(summaries.length, 1)
      assert.deepStrictEqual(breaksIn(turns), [seen.begunAt + 3])
      assert.include(textOf(summaryIn(turns[seen.begunAt + 3])), "Summary 1.")
    }).pipe(Effect.provide(layer))
  })

  it.effect("its usage is in the usage of the run, and counts for its budget", () =>
    Effect.gen(function* () {
      const budget = Budget.make({ tokens: 5_000, onExhausted: "finalAnswer" })
      const result = yield* Agent.run(agentOf(budget, Summarization.make()), "Read")
      assert.strictEqual(result.stopReason, "budget:tokens")
      assert.strictEqual(result.usage.inputTokens, 7_000)
    }).pipe(
      Effect.provide(
        model(reader(100), {
          contextWindowTokens: window,
          summary: () => TestChatModel.text("A summary.", { usage: { inputTokens: 7_000 } })
        })
      )
    )
  )

  class Forbidden extends Data.TaggedError("Forbidden")<{}> {}

  it.effect("a middleware that fails by it ends the run with that failure", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Agent.run(agentOf(holding(new Forbidden()), Summarization.make()), "Read"))
      assert.strictEqual(error._tag, "Forbidden")
    }).pipe(Effect.provide(model(reader(100), { contextWindowTokens: window })))
  )

  it.effect("shortens the history of a run before its first request", () =>
    Effect.gen(function* () {
      const history = Array.from({ length: 140 }, (_, n) =>
        n % 2 === 0 ? Message.human(filler(`question ${n}`, 200)) : Message.ai(filler(`answer ${n}`, 200))
      )
      yield* Agent.run(agentOf(holding(Effect.void), Summarization.make()), "And now?", { history })
      const { summaries, turns } = yield* asked
      assert.isAtLeast(summaries.length, 1)
      assert.isDefined(summaryIn(turns[0]))
    }).pipe(Effect.provide(model(() => "done", { contextWindowTokens: window })))
  )
})
