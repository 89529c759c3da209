/**
 * Budgets over suspensions, crashes and resumes in other processes: random trees of agents, programs, scripts and tasks
 * in the background, killed at random appends.
 */
import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Layer, Logger, Schema } from "effect"
import { Agent, Approval, Message, Middleware, SessionError, Tool, ToolContext } from "effect-deepagents"
import { BackgroundSubagents, BackgroundTasks, Budget, HumanInTheLoop, Subagents } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import * as journal from "../core/journal.ts"
import { isFull } from "../scale.ts"

interface World {
  /** True once the process is killed: nothing happens any more. */
  dead: boolean
  readonly calls: Set<string>
  turns: number
  rounds: number
  readonly paid: Array<string>
}

/** Does something to the world, if the process still lives. */
const act = (world: World, work: () => void): Effect.Effect<void> =>
  Effect.suspend(() => (world.dead ? Effect.never : Effect.sync(work)))

const toolsOf = (world: World) => {
  const counted = Effect.flatMap(ToolContext.ToolContext, ({ callId, path }) =>
    act(world, () => world.calls.add(`${path.join("/")}:${callId}`))
  )
  const pay = Tool.make("pay", {
    description: "",
    parameters: { id: Schema.String },
    execute: Effect.fnUntraced(function* ({ id }) {
      yield* counted
      yield* act(world, () => world.paid.push(id))
      return "paid"
    })
  })
  const look = Tool.make("look", {
    description: "",
    parameters: { id: Schema.String },
    annotations: { readOnly: true },
    execute: () => Effect.as(counted, "seen")
  })
  const script = Tool.make("script", {
    description: "",
    parameters: { id: Schema.String },
    annotations: { resumable: true },
    execute: Effect.fnUntraced(function* ({ id }) {
      yield* counted
      const { call } = yield* ToolContext.ToolContext
      yield* Effect.ignore(call("look", { id: `${id}-look` }))
      yield* Effect.ignore(call("pay", { id: `${id}-pay` }))
      return "scripted"
    })
  })
  return [pay, look, script]
}

type Kind = "pay" | "look" | "script" | "task" | "start_task"

interface Plan {
  readonly limits: { readonly toolCalls?: number; readonly rounds?: number; readonly cost?: number }
  readonly fails: boolean
  readonly isProgram: boolean
  readonly asks: boolean
  readonly kinds: ReadonlyArray<Kind>
  readonly widths: ReadonlyArray<number>
  /** The appends of each process at which it is killed; a process beyond the list lives. */
  readonly kills: ReadonlyArray<number>
}

const plans: fc.Arbitrary<Plan> = fc.record({
  limits: fc.oneof(
    fc.record({ toolCalls: fc.integer({ min: 1, max: 6 }) }),
    fc.record({ rounds: fc.integer({ min: 1, max: 6 }) }),
    fc.record({ cost: fc.integer({ min: 1, max: 6 }) }),
    fc.record({ toolCalls: fc.integer({ min: 1, max: 6 }), rounds: fc.integer({ min: 1, max: 8 }) })
  ),
  fails: fc.boolean(),
  isProgram: fc.boolean(),
  asks: fc.boolean(),
  kinds: fc.array(fc.constantFrom<Kind>("pay", "look", "script", "task", "start_task"), { minLength: 1, maxLength: 5 }),
  widths: fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 3 }),
  kills: fc.array(fc.integer({ min: 1, max: 8 }), { maxLength: 4 })
})

/** Requests calls for eight turns, for any results. */
const modelOf = (world: World, { kinds, widths }: Plan) =>
  TestChatModel.reactive(({ messages, systemPrompt, tools }) => {
    if (world.dead) return "gone"
    world.turns++
    // A forced final answer has no tools, and is no round.
    if (tools.length > 0) world.rounds++
    const turns = messages.filter(({ role }) => role === "ai").length
    if (tools.length === 0 || turns >= 8) return TestChatModel.text("done", { usage: { cost: 1 } })
    const names = kinds.filter((kind) => tools.some(({ name }) => name === kind))
    const [first] = messages
    const own = `${systemPrompt}.${first === undefined ? "" : Message.text(first)}.${turns}`
    const calls = Array.from({ length: widths[turns % widths.length] ?? 1 }, (_, index) => {
      const name = names[(turns + index) % Math.max(1, names.length)] ?? "look"
      const id = `${own}.${index}`
      return { name, arguments: name.includes("task") ? { description: id, subagent_type: "worker" } : { id } }
    })
    return TestChatModel.calls(calls, { usage: { cost: 1 } })
  })

const leadOf = (world: World, plan: Plan) => {
  const tools = toolsOf(world)
  const agents = [Agent.make({ name: "worker", description: "works", prompt: "worker", tools })]
  const asking = plan.asks ? [HumanInTheLoop.make({ tools: { pay: true } })] : []
  const budget = Budget.make({ ...plan.limits, onExhausted: plan.fails ? "fail" : "finalAnswer" })
  const spawning = [Subagents.make({ agents }), BackgroundSubagents.make({ agents })]
  const lead = Agent.make({ name: "lead", prompt: "lead", tools, middleware: [...asking, ...spawning] })
  return plan.isProgram
    ? Agent.program({
        name: "program",
        middleware: [Middleware.suspendable, ...asking, budget],
        run: () =>
          Effect.gen(function* () {
            for (let nth = 0; nth < 3; nth++) yield* Agent.delegate(lead, `go ${nth}`)
            return "over"
          })
      })
    : Agent.around(lead, budget)
}

/** Runs a plan through all its processes. Returns the effects, and the number of turns in flight at each kill. */
const live = Effect.fnUntraced(function* (plan: Plan) {
  const world: World = { dead: false, calls: new Set(), turns: 0, rounds: 0, paid: [] }
  let entries: journal.Stored["entries"] = []
  let pending: ReadonlyArray<Approval.Request> = []
  let processes = 0
  let end = ""
  while (processes < 40 && end === "") {
    const isFirst = entries.length === 0
    const stored = journal.stored(entries)
    const isKilled = yield* Deferred.make<void>()
    let appends = 0
    const at = plan.kills[processes] ?? Infinity
    world.dead = false
    stored.onAppend = Effect.suspend(() => {
      if (!world.dead && ++appends < at) return Effect.void
      world.dead = true
      const gone = SessionError.make("append", "t", { _tag: "Unavailable", problem: "the process is gone" })
      return Effect.andThen(Deferred.succeed(isKilled, undefined), Effect.fail(gone))
    })
    const agent: Agent.Agent<unknown, unknown, unknown> = leadOf(world, plan)
    const decisions = pending.map((request) => Approval.approve(request))
    const run = isFirst ? Agent.run(agent, "go", { threadId: "t" }) : Agent.resume(agent, { threadId: "t", decisions })
    const services = Layer.mergeAll(
      Logger.layer([]),
      modelOf(world, plan),
      BackgroundTasks.layer(),
      journal.layer({ t: stored })
    )
    const work = Effect.provide(Effect.exit(run), services) as Effect.Effect<Effect.Success<ReturnType<typeof exitOf>>>
    const outcome = yield* Effect.raceFirst(work, Effect.as(Deferred.await(isKilled), undefined))
    entries = [...stored.entries]
    processes++
    if (outcome === undefined) {
      // The thread does not know the decisions yet.
      continue
    }
    if (outcome._tag === "Failure") {
      end = String(Cause.squash(outcome.cause))
    } else if (outcome.value.stopReason === "suspended") pending = outcome.value.pending
    else end = outcome.value.stopReason
  }
  return { ...world, calls: world.calls.size, processes, end }
})

const exitOf = () => Effect.exit(Agent.run(Agent.make({ name: "any", prompt: "" }), ""))

describe("Budget", () => {
  it.live(
    "holds over suspensions, crashes and resumes in other processes: no call over the cap, and the turns in flight",
    () => {
      const property = fc.asyncProperty(plans, async (plan) => {
        const { calls, end, paid, processes, rounds: used, turns } = await Effect.runPromise(live(plan))
        const said = JSON.stringify({ end, calls, turns, processes })
        assert.notStrictEqual(end, "", said)
        assert.strictEqual(new Set(paid).size, paid.length, said)
        const { cost, rounds, toolCalls } = plan.limits
        // Open agents may answer once more, and a killed process takes the turns of its agents with it.
        const inFlight = 4 * processes
        // Work of a task in the background after its run was suspended is not in the thread: see the page.
        const late = plan.asks && plan.kinds.includes("start_task") ? inFlight : 0
        if (toolCalls !== undefined) assert.isAtMost(calls, toolCalls + late, said)
        if (rounds !== undefined) assert.isAtMost(used, rounds + late, said)
        if (cost !== undefined) assert.isAtMost(turns, cost + inFlight, said)
      })
      return Effect.promise(() => fc.assert(property, { numRuns: isFull ? 2_000 : 100 }))
    },
    900_000
  )

  const pay = (paid: Array<number>) =>
    Tool.make("pay", {
      description: "",
      parameters: { n: Schema.Int },
      execute: ({ n }) => Effect.as(TestClock.adjust("300 millis"), `paid ${paid.push(n)}`)
    })
  const paying = TestChatModel.reactive(({ messages, tools }) =>
    tools.length === 0
      ? TestChatModel.text("done", { usage: { inputTokens: 100 } })
      : TestChatModel.calls([{ name: "pay", arguments: { n: messages.length } }], { usage: { inputTokens: 100 } })
  )

  for (const [limits, most] of [
    [{ toolCalls: 5 }, 5],
    [{ rounds: 5 }, 5],
    [{ tokens: 500 }, 5],
    [{ time: "1 second" }, 4]
  ] as const) {
    it.effect(`is not given back by an approval: ${JSON.stringify(limits)}`, () =>
      Effect.gen(function* () {
        const paid: Array<number> = []
        const agent = Agent.make({
          name: "a",
          prompt: "",
          tools: [pay(paid)],
          middleware: [
            HumanInTheLoop.make({ tools: { pay: true } }),
            Budget.make({ ...limits, onExhausted: "finalAnswer" })
          ]
        })
        const threads: Record<string, journal.Stored> = {}
        const inThread = Effect.provide(journal.layer(threads))
        let result = yield* Agent.run(agent, "go", { threadId: "t" }).pipe(inThread)
        for (let nth = 0; nth < 30 && result.stopReason === "suspended"; nth++) {
          // People take their time: it is nobody's working time.
          yield* TestClock.adjust("1 hour")
          const decisions = result.pending.map((request) => Approval.approve(request))
          result = yield* Agent.resume(agent, { threadId: "t", decisions }).pipe(inThread)
        }
        assert.match(result.stopReason, /^budget:/)
        assert.strictEqual(paid.length, most)
        // A new input begins with nothing used.
        const next = yield* Agent.run(agent, "again", { threadId: "t" }).pipe(inThread)
        assert.strictEqual(next.stopReason, "suspended")
      }).pipe(Effect.provide(paying))
    )
  }

  it.effect("of a program holds for all agents that it runs", () =>
    Effect.gen(function* () {
      let turns = 0
      const model = TestChatModel.reactive(({ tools }) => {
        turns++
        return tools.length === 0 ? "done" : TestChatModel.calls([{ name: "look", arguments: { turn: turns } }])
      })
      const look = Tool.make("look", { description: "", parameters: {}, execute: () => Effect.succeed("seen") })
      const worker = Agent.make({ name: "worker", prompt: "", tools: [look] })
      const program = Agent.program({
        name: "program",
        middleware: [Budget.make({ rounds: 7, onExhausted: "fail" })],
        run: () =>
          Effect.as(
            Effect.forEach(["a", "b", "c"], (task) => Agent.delegate(worker, task)),
            "over"
          )
      })
      const error = yield* Effect.flip(Agent.run(program, "go").pipe(Effect.provide(model)))
      assert.strictEqual(error._tag, "BudgetExceeded")
      assert.strictEqual(turns, 7)
    })
  )
})
