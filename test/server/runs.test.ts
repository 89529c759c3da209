/** Runs that no reader owns: the view of readers after any cut, their rights, and the state after the server's end. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Schedule, Schema, Scope, Stream } from "effect"
import { Agent, Approval, Message, Tool, AgentEvent } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions, type SessionStore } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"
import { foldFrames, showState } from "./reader.ts"

const add = Tool.make("add", {
  description: "Adds",
  parameters: { n: Schema.Finite },
  annotations: { idempotent: true },
  execute: ({ n }) => Effect.succeed(`sum ${n}`)
})
const kid = Agent.make({ name: "kid", prompt: "You are a kid.", tools: [add] })
const ask = Tool.make("ask", {
  description: "Delegates",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.map(Agent.delegate(kid, `kid ${n}`), ({ text }) => text).pipe(Effect.orDie)
})
const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { n: Schema.Finite },
  execute: ({ n }) => Effect.succeed(`paid ${n}`)
})
const helper = Agent.make({
  name: "helper",
  prompt: "You help.",
  tools: [add, ask, pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})

/** The calls of each round, by name. */
type Script = ReadonlyArray<ReadonlyArray<"add" | "ask" | "pay">>

const words = { chunkSize: 4 }

const modelOf = (script: Script) =>
  TestChatModel.reactive(({ messages }) => {
    const since = messages.slice(messages.findLastIndex(({ role }) => role === "human"))
    const [first] = since
    if (first !== undefined && Message.text(first).startsWith("kid")) {
      return since.some(({ role }) => role === "tool")
        ? TestChatModel.text("kid done", words)
        : TestChatModel.calls([{ name: "add", arguments: { n: 900 } }], words)
    }
    const round = since.filter(({ role }) => role === "ai").length
    const text = `This is round ${round}.`
    const calls = script[round]
    return calls === undefined
      ? TestChatModel.text(text, words)
      : TestChatModel.calls(
          calls.map((name, index) => ({ name, arguments: { n: round * 10 + index } })),
          { text, ...words }
        )
  })

const ada: Server.Principal = { tenant: "acme", id: "ada", roles: [] }

const inScope = <A, E, R>(layer: Layer.Layer<A, E, R>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const context = yield* Layer.buildWithScope(layer, scope)
    return { context, close: Scope.close(scope, Exit.void) }
  })

/** Runs on the store and the mailbox of the test, with a log of their own. */
const newServer = (script: Script, options: Server.Options = {}) =>
  inScope(Layer.fresh(Server.layer({ helper }, options)).pipe(Layer.provide(Layer.fresh(modelOf(script)))))

const threadOf = (principal: Server.Principal, id: string) =>
  Effect.flatMap(Server.tenant(principal), (tenant) => tenant.thread(id))

/** Approves all that waits, until nothing does; gives all frames. */
const finish = Effect.fnUntraced(function* (runs: Server.Runs["Service"], thread: Server.ThreadRef) {
  const frames: Array<Server.Frame> = []
  let after: Server.Position | undefined
  for (;;) {
    for (const frame of yield* Stream.runCollect(runs.observe(thread, { after }))) {
      frames.push(frame)
      after = frame.position
    }
    const { pending, state } = yield* runs.status(thread)
    if (state !== "waiting") return frames
    yield* runs.decide(
      thread,
      pending.map((request) => Approval.approve(request))
    )
  }
})

const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)

const script: fc.Arbitrary<Script> = fc.array(
  fc.array(fc.constantFrom("add" as const, "ask" as const, "pay" as const), { minLength: 1, maxLength: 3 }),
  { maxLength: 3 }
)

const hold = (
  name: string,
  property: (script: Script) => Effect.Effect<void, unknown, SessionStore.SessionStore | Storage.Storage>
) =>
  it.live(
    name,
    () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(script, (one) =>
            Effect.runPromise(Effect.provide(Effect.asVoid(property(one)), Layer.fresh(services)))
          ),
          { numRuns: scaled(40), examples: [[[["add", "ask", "add"], ["pay"]]], [[["pay", "pay"], ["ask"]]]] }
        )
      ),
    60_000
  )

describe("a reader that is cut", () => {
  hold("at every event goes on exactly, and has the same in the end where the log is gone", (script) =>
    Effect.gen(function* () {
      const thread = yield* threadOf(ada, "t")
      const one = yield* newServer(script)
      const { runs, frames } = yield* Effect.gen(function* () {
        const runs = yield* Server.Runs
        yield* runs.start(thread, { agent: "helper", input: "go", id: "1" })
        return { runs, frames: yield* finish(runs, thread) }
      }).pipe(Effect.provideContext(one.context))
      const whole = showState(foldFrames(frames))
      assert.match(whole.end, /^RunCompleted completed/)
      assert.strictEqual(new Set(frames.map(({ position }) => position)).size, frames.length)
      for (let index = 0; index < frames.length; index++) {
        const after = frames[index]?.position
        const rest = yield* Stream.runCollect(runs.observe(thread, { after }))
        assert.deepStrictEqual(rest, frames.slice(index + 1))
      }
      yield* one.close
      const two = yield* newServer(script)
      yield* Effect.gen(function* () {
        const runs = yield* Server.Runs
        for (let index = 0; index < frames.length; index++) {
          const after = frames[index]?.position
          const rest = yield* Stream.runCollect(runs.observe(thread, { after }))
          assert.deepStrictEqual(
            showState(foldFrames(rest, foldFrames(frames.slice(0, index + 1)))),
            whole,
            `cut behind ${index}`
          )
          // … and cut again, in the store's part.
          const middle = rest[Math.floor(rest.length / 2)]
          if (middle === undefined) continue
          const until = rest.slice(0, Math.floor(rest.length / 2) + 1)
          const last = yield* Stream.runCollect(runs.observe(thread, { after: middle.position }))
          const state = foldFrames(last, foldFrames(until, foldFrames(frames.slice(0, index + 1))))
          assert.deepStrictEqual(showState(state), whole, `cut behind ${index}, and again`)
        }
        assert.deepStrictEqual(showState(foldFrames(yield* Stream.runCollect(runs.observe(thread)))), whole)
        const end = frames.at(-1)?.position
        assert.deepStrictEqual(yield* Stream.runCollect(runs.observe(thread, { after: end })), [], "nothing is new")
      }).pipe(Effect.provideContext(two.context))
      yield* two.close
    })
  )

  hold("or that comes late, at any event, has the same in the end", (script) =>
    Effect.gen(function* () {
      const thread = yield* threadOf(ada, "t")
      const { close, context } = yield* newServer(script)
      yield* Effect.gen(function* () {
        const runs = yield* Server.Runs
        yield* runs.start(thread, { agent: "helper", input: "go", id: "1" })
        const late: Array<Fiber.Fiber<ReadonlyArray<Server.Frame>, unknown>> = []
        yield* Stream.runForEach(runs.observe(thread), () =>
          Effect.map(Effect.forkChild(Stream.runCollect(runs.observe(thread))), (fiber) => void late.push(fiber))
        )
        const first = showState(foldFrames(yield* Stream.runCollect(runs.observe(thread))))
        for (const fiber of late) {
          const frames = yield* Fiber.join(fiber)
          assert.deepStrictEqual(showState(foldFrames(frames)), first)
          const keys = keysOf(frames)
          assert.deepStrictEqual(keys, [...new Set(keys)], "nothing is told twice")
        }
      }).pipe(Effect.provideContext(context))
      yield* close
    })
  )
})

/** The messages, runs and ends that frames tell of the root run. */
const keysOf = (frames: ReadonlyArray<Server.Frame>): ReadonlyArray<string> =>
  frames.flatMap((frame) => {
    if (frame._tag === "Reset" || frame.event.path.length > 1) return []
    const { event } = frame
    if (event._tag === "MessageAppended") return [event.message.id]
    return event._tag === "RunStarted" || AgentEvent.isTerminal(event) ? [`${event._tag} ${event.runId}`] : []
  })

const quiet = { agent: "helper", input: "go" } as const

describe("runs", () => {
  it.live("belong to nobody who watches: they end without a reader, and an id counts once", () =>
    Effect.gen(function* () {
      const thread = yield* threadOf(ada, "t")
      const { close, context } = yield* newServer([["add"], ["ask"]])
      yield* Effect.gen(function* () {
        const runs = yield* Server.Runs
        const taken = yield* Effect.all(
          Array.from({ length: 8 }, () => runs.start(thread, { ...quiet, id: "1" })),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(taken.filter(({ isNew }) => isNew).length, 1)
        yield* Stream.runDrain(runs.observe(thread))
        const again = yield* runs.start(thread, { ...quiet, id: "1" })
        assert.isFalse(again.isNew)
        // A repetition is followed from the beginning of its run.
        const seen = showState(foldFrames(yield* Stream.runCollect(runs.observe(thread, { after: again.position }))))
        assert.strictEqual(seen.messages[0]?.[0], "human")
        assert.strictEqual(seen.end, "RunCompleted completed")
        const other = yield* Effect.flip(runs.start(thread, { ...quiet, input: "stop", id: "1" }))
        assert.isTrue(other._tag === "RunsError" && other.reason === "Conflict")
        const tenant = yield* Server.tenant(ada)
        const humans = yield* tenant.store.load("t")
        assert.strictEqual(
          humans.entries.filter(({ entry }) => entry._tag === "Message" && entry.message.role === "human").length,
          1
        )
        const busy = yield* Effect.flip(
          Effect.andThen(
            runs.start(thread, { ...quiet, id: "2" }),
            runs.start(thread, { ...quiet, id: "3", busy: "refuse" })
          )
        )
        assert.isTrue(busy._tag === "RunsError" && busy.reason === "Busy")
        yield* Stream.runDrain(runs.observe(thread))
        const nobody = yield* Effect.flip(runs.start(thread, { ...quiet, agent: "toString" }))
        assert.isTrue(nobody._tag === "RunsError" && nobody.reason === "InvalidInput")
      }).pipe(Effect.provideContext(context))
      yield* close
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("that are cut off by the end of the server go on with the next one", () =>
    Effect.gen(function* () {
      const thread = yield* threadOf(ada, "t")
      const one = yield* inScope(
        Layer.fresh(Server.layer({ helper })).pipe(
          Layer.provide(
            TestChatModel.script([
              TestChatModel.calls([{ name: "add", arguments: { n: 1 } }]),
              TestChatModel.hangAfter("hal")
            ])
          )
        )
      )
      const seen: Array<Server.Frame> = []
      yield* Effect.gen(function* () {
        const runs = yield* Server.Runs
        yield* runs.start(thread, { ...quiet, id: "1" })
        yield* runs.start(thread, { ...quiet, input: "and then?", id: "2" })
        yield* Stream.runForEach(
          Stream.takeUntil(runs.observe(thread), (frame) => frame._tag === "Event" && frame.event._tag === "TextDelta"),
          (frame) => Effect.sync(() => void seen.push(frame))
        )
      }).pipe(Effect.provideContext(one.context))
      yield* one.close
      const two = yield* newServer([["add"]])
      yield* Effect.gen(function* () {
        const runs = yield* Server.Runs
        const rest = yield* Stream.runCollect(runs.observe(thread, { after: seen.at(-1)?.position }))
        const state = foldFrames(rest, foldFrames(seen))
        const whole = showState(foldFrames(yield* Stream.runCollect(runs.observe(thread))))
        assert.deepStrictEqual(showState(state), whole)
        assert.isAbove(state.resets, 0)
        assert.deepStrictEqual(
          whole.messages.flatMap(([role, id]) => (role === "human" ? [id] : [])),
          ["input:1", "input:2"]
        )
        assert.strictEqual(whole.end, "RunCompleted completed")
        assert.deepStrictEqual((yield* runs.status(thread)).state, "idle")
      }).pipe(Effect.provideContext(two.context))
      yield* two.close
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("are steered and cancelled while they are at work, and only then", () =>
    Effect.gen(function* () {
      const thread = yield* threadOf(ada, "t")
      const { close, context } = yield* inScope(
        Layer.fresh(Server.layer({ helper })).pipe(
          Layer.provide(TestChatModel.script([TestChatModel.hangAfter("hal"), "done"]))
        )
      )
      yield* Effect.gen(function* () {
        const runs = yield* Server.Runs
        const idle = yield* Effect.flip(runs.steer(thread, "left"))
        assert.strictEqual(idle.reason, "NotRunning")
        assert.isFalse(yield* runs.cancel(thread))
        yield* runs.start(thread, { ...quiet, id: "1" })
        const frames = yield* Stream.runCollect(
          Stream.tap(runs.observe(thread), (frame) =>
            frame._tag === "Event" && frame.event._tag === "TextDelta"
              ? Effect.andThen(runs.steer(thread, "left"), runs.cancel(thread))
              : Effect.void
          )
        )
        assert.strictEqual(showState(foldFrames(frames)).end, "RunInterrupted ")
        const { state } = yield* runs.status(thread)
        assert.strictEqual(state, "idle")
        yield* runs.start(thread, { ...quiet, id: "2" })
        assert.strictEqual(
          showState(foldFrames(yield* Stream.runCollect(runs.observe(thread)))).end,
          "RunCompleted completed"
        )
      }).pipe(Effect.provideContext(context))
      yield* close
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("that can't begin are told, also behind the stored end of another run", () =>
    Effect.gen(function* () {
      const thread = yield* threadOf(ada, "t")
      const broken = Agent.provide(
        Agent.make({ name: "helper", prompt: "" }),
        Layer.effectDiscard(Effect.fail("no key"))
      )
      const ends = (agent: Agent.Agent<unknown, unknown, never>, id: string) =>
        Effect.gen(function* () {
          const runs = yield* Server.Runs
          const { position } = yield* runs.start(thread, { ...quiet, id })
          return showState(foldFrames(yield* Stream.runCollect(runs.observe(thread, { after: position })))).end
        }).pipe(Effect.provide(Layer.fresh(Server.layer({ helper: agent })).pipe(Layer.provide(modelOf([])))))
      const working = Agent.provide(Agent.make({ name: "helper", prompt: "" }), modelOf([]))
      const failing = Agent.provide(broken, modelOf([]))
      assert.match(yield* ends(failing, "1"), /^RunFailed/)
      assert.match(yield* ends(working, "2"), /^RunCompleted/)
      assert.match(yield* ends(failing, "3"), /^RunFailed/)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.live("of a tenant are limited, at once too, and leave room for others and for their repetition", () =>
    Effect.gen(function* () {
      const { close, context } = yield* newServer([["add"]], { tenantLimit: 2, limit: 3 })
      yield* Effect.gen(function* () {
        const runs = yield* Server.Runs
        const start = (principal: Server.Principal, id: string) =>
          Effect.flatMap(threadOf(principal, id), (thread) => Effect.result(runs.start(thread, { ...quiet, id })))
        const ids = ["a", "b", "c", "d"]
        const begun = yield* Effect.forEach(ids, (id) => start(ada, id), { concurrency: "unbounded" })
        const refused = begun.flatMap((one) => (one._tag === "Failure" ? [one.failure] : []))
        assert.deepStrictEqual(
          refused.map((error) => error._tag === "RunsError" && error.reason),
          ["TooMany", "TooMany"]
        )
        assert.strictEqual((yield* start({ tenant: "other", id: "eve", roles: [] }, "e"))._tag, "Success")
        // Which of them come first is open.
        const idsOf = (tag: "Failure" | "Success") => ids.filter((_, index) => begun[index]?._tag === tag)
        for (const id of idsOf("Success")) yield* Stream.runDrain(runs.observe(yield* threadOf(ada, id)))
        // The end of a run is told a moment before its place is free.
        const free = start(ada, idsOf("Failure")[0] ?? "").pipe(
          Effect.flatMap(Effect.fromResult),
          Effect.retry(Schedule.spaced("10 millis"))
        )
        assert.isTrue((yield* free).isNew)
      }).pipe(Effect.provideContext(context))
      yield* close
    }).pipe(Effect.provide(Layer.fresh(services)))
  )

  it.live("of one tenant are nothing to another, and a name that was made up opens nothing", () =>
    Effect.gen(function* () {
      const { close, context } = yield* newServer([["pay"]])
      yield* Effect.gen(function* () {
        const runs = yield* Server.Runs
        const mine = yield* threadOf(ada, "t")
        const theirs = yield* threadOf({ tenant: "acm", id: "ada", roles: [] }, "t")
        yield* runs.start(mine, { ...quiet, input: "secret", id: "1" })
        yield* Stream.runDrain(runs.observe(mine))
        const { pending } = yield* runs.status(mine)
        assert.strictEqual(pending.length, 1)
        const decisions = pending.map((request) => Approval.approve(request))
        // A literal of the same form, as programs without types write it.
        const forged: Server.ThreadRef = { ...mine }
        for (const thread of [theirs, forged]) {
          for (const work of [
            runs.status(thread),
            runs.decide(thread, decisions),
            Stream.runDrain(runs.observe(thread))
          ] as ReadonlyArray<Effect.Effect<unknown, unknown>>) {
            const error = yield* Effect.flip(work)
            assert.match(JSON.stringify(error), /NotFound/)
          }
          assert.isFalse(yield* Effect.orElseSucceed(runs.cancel(thread), () => false))
        }
        const taken = yield* runs.decide(mine, decisions)
        assert.isTrue(taken.isNew)
        assert.isFalse((yield* runs.decide(mine, decisions)).isNew)
        const whole = foldFrames(yield* Stream.runCollect(runs.observe(mine)))
        assert.strictEqual(showState(whole).end, "RunCompleted completed")
        assert.deepStrictEqual(
          showState(whole).requests.map(([, decision]) => decision),
          ["approve"]
        )
        const unknown = yield* Effect.flip(runs.decide(mine, [Approval.approve({ id: "nothing" })]))
        assert.isTrue(unknown._tag === "RunsError" && unknown.reason === "NotFound")
      }).pipe(Effect.provideContext(context))
      yield* close
    }).pipe(Effect.provide(Layer.fresh(services)))
  )
})
