/** Programs that keep their records: another input on the thread finds the work of earlier ones. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Schema, Stream } from "effect"
import {
  Agent,
  Approval,
  type Journal,
  Message,
  Middleware,
  Question,
  Tool,
  ToolContext,
  ToolOutput
} from "effect-deepagents"
import { Tamper } from "effect-deepagents/rules"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../../scale.ts"
import * as journal from "../journal.ts"

type Part = { readonly kind: "agent" | "call" | "step"; readonly on: string }

/** The effects outside: turns of models, and effects of tools and steps. */
interface World {
  readonly turns: Array<string>
  readonly acts: Array<string>
}

const worldOf = (): World => ({ turns: [], acts: [] })

/** A tool of which it is known whether it took effect. */
const act = ({ acts }: World) =>
  Tool.make("act", {
    description: "",
    parameters: { on: Schema.String },
    reconcile: ({ on }) => Effect.sync(() => (acts.includes(on) ? Tool.completed(`did ${on}`) : Tool.neverBegan)),
    execute: ({ on }) =>
      Effect.sync(() => {
        acts.push(on)
        return `did ${on}`
      })
  })

const rounds = 3

/** A worker acts in each of its turns but the last. */
const modelOf = ({ turns }: World) =>
  TestChatModel.reactive((request) => {
    const asked = request.messages[0]
    const task = asked === undefined ? "" : Message.text(asked)
    const turn = request.messages.filter(({ role }) => role === "ai").length
    turns.push(`${task}#${turn}`)
    return turn < rounds - 1
      ? TestChatModel.calls([{ name: "act", arguments: { on: `${task}-${turn}` } }])
      : `said ${task}`
  })

const perform = Effect.fnUntraced(function* ({ acts }: World, worker: ReturnType<typeof workerOf>, { kind, on }: Part) {
  if (kind === "agent") return yield* Agent.answer(worker, on)
  if (kind === "call") {
    const { call } = yield* ToolContext.ToolContext
    return ToolOutput.text(yield* call("act", { on }))
  }
  const work = Effect.sync(() => {
    acts.push(on)
    return `did ${on}`
  })
  return yield* Agent.step(on, work, Schema.String)
})

const workerOf = (world: World) => Agent.make({ name: "worker", prompt: "", tools: [act(world)] })

const Parts = Schema.Array(Schema.Struct({ kind: Schema.Literals(["agent", "call", "step"]), on: Schema.String }))

const programOf = (world: World, concurrency = 4) => {
  const worker = workerOf(world)
  return Agent.program({
    name: "program",
    keeps: true,
    input: Parts,
    output: Schema.Array(Schema.String),
    tools: [act(world)],
    middleware: [Middleware.suspendable],
    run: (parts) => Effect.forEach(parts, (part) => perform(world, worker, part), { concurrency })
  })
}

const expected = (parts: ReadonlyArray<Part>) =>
  parts.map(({ kind, on }) => (kind === "agent" ? `said ${on}` : `did ${on}`))

const twice = (all: ReadonlyArray<string>) => all.filter((one, index) => all.indexOf(one) !== index)

const agent = (on: string): Part => ({ kind: "agent", on })

const inThread = { threadId: "t" }

const recordsIn = ({ entries }: journal.Stored) =>
  Object.keys(journal.checkpointOf(entries)?.state ?? {}).filter((slot) => slot.startsWith("inside/"))

/** Runs inputs one after the other on a thread. */
const runAll = (world: World, stored: journal.Stored, ...inputs: ReadonlyArray<ReadonlyArray<Part>>) => {
  const program = programOf(world)
  return Effect.forEach(inputs, (parts) =>
    Effect.tap(Agent.run(program, program.input(parts), inThread), ({ output }) =>
      Effect.sync(() => assert.deepStrictEqual(output, expected(parts)))
    )
  ).pipe(Effect.provide([modelOf(world), journal.layer({ t: stored })]))
}

describe("a program that keeps its records", () => {
  it.effect("does the new work of a later input, and no finished work of an earlier one", () =>
    Effect.gen(function* () {
      const world = worldOf()
      const stored = journal.stored()
      const parts: ReadonlyArray<Part> = [agent("a"), { kind: "call", on: "b" }, { kind: "step", on: "c" }]
      yield* runAll(world, stored, parts, [agent("d"), ...parts.toReversed()], parts)
      assert.deepStrictEqual(twice(world.turns), [])
      assert.deepStrictEqual(twice(world.acts), [])
      assert.strictEqual(world.turns.length, 2 * rounds)
    })
  )

  it.effect("keeps two conversations of one agent apart, and the records of two threads", () =>
    Effect.gen(function* () {
      const world = worldOf()
      yield* runAll(world, journal.stored(), [agent("a")], [agent("a"), agent("a")])
      assert.strictEqual(world.turns.length, 2 * rounds)
      yield* runAll(world, journal.stored(), [agent("a")])
      assert.strictEqual(world.turns.length, 3 * rounds)
    })
  )

  it.effect("drops records that an answered input did not use, and says so", () =>
    Effect.gen(function* () {
      const world = worldOf()
      const stored = journal.stored()
      yield* runAll(world, stored, [agent("a"), { kind: "call", on: "b" }])
      const before = recordsIn(stored).length
      const program = programOf(world)
      const events = yield* Agent.stream(program, program.input([agent("a")]), inThread).pipe(
        Stream.runCollect,
        Effect.provide([modelOf(world), journal.layer({ t: stored })])
      )
      const warnings = events.flatMap((event) => (event._tag === "Warning" ? [event] : []))
      assert.deepStrictEqual(
        warnings.map(({ code, message }) => [code, message]),
        [["records-unused", "A result of an earlier input was not asked for by this input, and dropped."]]
      )
      assert.strictEqual(recordsIn(stored).length, before - 1)
      assert.isTrue(recordsIn(stored).every((slot) => !slot.includes("call:")))
    })
  )

  it.effect("finds the work of a failed input", () =>
    Effect.gen(function* () {
      const world = worldOf()
      const stored = journal.stored()
      const worker = workerOf(world)
      const program = Agent.program({
        name: "program",
        keeps: true,
        run: Effect.fnUntraced(function* (text) {
          yield* Agent.answer(worker, "a")
          return text === "wrong" ? yield* Effect.fail("wrong" as const) : yield* Agent.answer(worker, text)
        })
      })
      const layer = Layer.merge(modelOf(world), journal.layer({ t: stored }))
      assert.strictEqual(yield* Effect.flip(Effect.provide(Agent.run(program, "wrong", inThread), layer)), "wrong")
      assert.strictEqual((yield* Effect.provide(Agent.run(program, "b", inThread), layer)).text, "said b")
      assert.deepStrictEqual(world.turns, ["a#0", "a#1", "a#2", "b#0", "b#1", "b#2"])
    })
  )

  it.effect("asks a pending request again, and takes the answer for the input of the answer", () =>
    Effect.gen(function* () {
      const world = worldOf()
      const stored = journal.stored()
      const worker = workerOf(world)
      const program = Agent.program({
        name: "program",
        keeps: true,
        middleware: [Middleware.suspendable],
        run: Effect.fnUntraced(function* (text) {
          const { ask } = yield* ToolContext.ToolContext
          const [one, two] = yield* Effect.all(
            [ask(Question.make("which?", { answer: Schema.String })), Agent.answer(worker, text)],
            { concurrency: 2 }
          )
          return `${one}, ${two}`
        })
      })
      const layer = Layer.merge(modelOf(world), journal.layer({ t: stored }))
      const first = yield* Effect.provide(Agent.run(program, "a", inThread), layer)
      assert.strictEqual(first.stopReason, "suspended")
      const second = yield* Effect.provide(Agent.run(program, "b", inThread), layer)
      assert.strictEqual(second.pending.length, 1)
      const decisions = second.pending.map((one) => Approval.respond(one, "this"))
      const whole = yield* Effect.provide(Agent.resume(program, { ...inThread, decisions }), layer)
      assert.strictEqual(whole.text, "this, said b")
      assert.deepStrictEqual(twice(world.turns), [])
      // A question that has its answer is not asked again.
      const last = yield* Effect.provide(Agent.run(program, "a", inThread), layer)
      assert.strictEqual(last.text, "this, said a")
    })
  )

  it.effect("believes no records of a thread whose signature does not hold", () =>
    Effect.gen(function* () {
      const world = worldOf()
      const stored = journal.stored()
      const parts: ReadonlyArray<Part> = [{ kind: "call", on: "b" }]
      yield* runAll(world, stored, parts, parts)
      assert.deepStrictEqual(world.acts, ["b"])
      const forged = JSON.parse(JSON.stringify(stored.entries).replaceAll("did b", "did everything"))
      assert.notDeepEqual(forged, stored.entries)
      yield* runAll(world, journal.stored(forged), parts)
      assert.deepStrictEqual(world.acts, ["b", "b"])
    }).pipe(Effect.provide(Tamper.layer(Redacted.make("a secret of some length"))))
  )

  it("does nothing twice, wherever it is cut off and however its inputs are edited", async () => {
    const part = fc.record({
      kind: fc.constantFrom<Part["kind"]>("agent", "agent", "call", "step"),
      on: fc.constantFrom("a", "b", "c", "d", "e", "f", "g", "h")
    })
    const parts = fc.uniqueArray(part, { minLength: 1, maxLength: 7, selector: ({ kind, on }) => `${kind} ${on}` })
    const input = fc.record({ parts, cut: fc.nat(1_000) })
    const check = Effect.fnUntraced(function* (inputs: ReadonlyArray<{ parts: ReadonlyArray<Part>; cut: number }>) {
      let world = worldOf()
      let entries: ReadonlyArray<Journal.Entry> = []
      const nameParts = (all: ReadonlyArray<Part>) => all.map(({ kind, on }) => ({ kind, on: `${kind} ${on}` }))
      for (const { cut, parts } of inputs) {
        const stored = journal.stored(entries)
        const cuts: Array<{ readonly entries: ReadonlyArray<Journal.Entry>; readonly world: World }> = []
        const running: World = { turns: [...world.turns], acts: [...world.acts] }
        stored.onAppend = Effect.sync(() => {
          const now = { turns: [...running.turns], acts: [...running.acts] }
          if (stored.entries.length > entries.length) cuts.push({ entries: [...stored.entries], world: now })
        })
        yield* runAll(running, stored, nameParts(parts))
        // The process died there, before the answer was stored: an answer drops the records that its input did not use.
        const at = cuts[cut % (cuts.length + 1)]
        if (at === undefined) continue
        entries = at.entries
        world = at.world
      }
      const all = nameParts(inputs.flatMap(({ parts }) => parts)).filter(
        (one, index, others) => others.findIndex(({ on }) => on === one.on) === index
      )
      const last: World = { turns: [...world.turns], acts: [...world.acts] }
      yield* runAll(last, journal.stored(entries), all)
      // Tools are never done twice. Of steps and turns, those may be that were in flight at a kill.
      const kills = inputs.length
      const isStep = (on: string) => on.startsWith("step")
      assert.deepStrictEqual(twice(last.acts.filter((on) => !isStep(on))), [])
      assert.isAtMost(twice(last.turns).length + twice(last.acts.filter(isStep)).length, 4 * kills)
    })
    await fc.assert(
      fc.asyncProperty(fc.array(input, { minLength: 1, maxLength: 4 }), (inputs) => Effect.runPromise(check(inputs))),
      { numRuns: scaled(120) }
    )
  }, 60_000)
})
