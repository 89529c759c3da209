/** Inner calls that begin together, and the reasons that keep a call at work. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Schema } from "effect"
import { Agent, Approval, Middleware, Question, Ruling, Tool, ToolContext } from "effect-deepagents"
import * as fc from "fast-check"
import { scaled } from "../../scale.ts"

/** The gate's ruling on a call. */
type Say = "allow" | "ask" | "refuse"

const say = (say: Say): Ruling.Ruling | undefined =>
  say === "allow"
    ? undefined
    : say === "ask"
      ? Ruling.ask("test", { description: "may it?" })
      : Ruling.refuse("test", "no")

const act = (log: Array<string>) =>
  Tool.make("act", {
    description: "",
    parameters: { on: Schema.String, say: Schema.Literals(["allow", "ask", "refuse"]) },
    execute: ({ on }) =>
      Effect.sync(() => {
        log.push(`ran ${on}`)
        return on
      })
  })

const subject = (call: Middleware.PreparedCall): string => {
  const on = call.arguments["on"]
  return typeof on === "string" ? on : ""
}

/** A gate that notes the calls that it is asked about at once. */
const noting = (log: Array<string>, work: Effect.Effect<void> = Effect.void) =>
  Middleware.make({
    asks: true,
    name: "noting",
    rulings: (_run, calls) =>
      Effect.andThen(
        work,
        Effect.sync(() => {
          log.push(`asked ${calls.map(subject).join(" ")}`)
          return calls.map((call) => say(call.arguments["say"] as Say))
        })
      )
  })

const calling = (on: string, say: Say = "allow") =>
  Effect.flatMap(ToolContext.ToolContext, ({ call }) => Effect.result(call("act", { on, say })))

const name = (at: number, index: number): string => `${at}.${index}`

describe("calls that begin together", () => {
  it("are ruled on together, and none of them runs before", async () => {
    const check = Effect.fnUntraced(function* (batches: ReadonlyArray<ReadonlyArray<Say>>) {
      const log: Array<string> = []
      const agent = Agent.program({
        name: "program",
        tools: [act(log)],
        middleware: [noting(log)],
        run: () =>
          Effect.as(
            Effect.forEach(
              batches,
              (batch, at) =>
                Effect.forEach(batch, (one, index) => calling(name(at, index), one), { concurrency: "unbounded" }),
              { discard: true }
            ),
            "done"
          )
      })
      let result = yield* Agent.run(agent, "go")
      const first = [...log]
      while (result.stopReason === "suspended") {
        const decisions = result.pending.map((one) => Approval.approve(one))
        result = yield* Agent.resume(agent, { checkpoint: result, decisions })
      }
      // The first run comes as far as the first batch that waits.
      const waits = batches.findIndex((batch) => batch.includes("ask"))
      const reached = waits === -1 ? batches : batches.slice(0, waits + 1)
      const expected = reached.flatMap((batch, at) => [
        `asked ${batch.map((_, index) => name(at, index)).join(" ")}`,
        ...batch.flatMap((one, index) => (one === "allow" ? [`ran ${name(at, index)}`] : []))
      ])
      assert.deepStrictEqual(first, expected)
      const ran = log.filter((line) => line.startsWith("ran"))
      const allowed = batches.flatMap((batch, at) =>
        batch.flatMap((one, index) => (one === "refuse" ? [] : [`ran ${name(at, index)}`]))
      )
      assert.deepStrictEqual(ran.toSorted(), allowed.toSorted())
    })
    const batch = fc.array(fc.constantFrom<Say>("allow", "allow", "allow", "ask", "refuse"), {
      minLength: 1,
      maxLength: 6
    })
    await fc.assert(
      fc.asyncProperty(fc.array(batch, { minLength: 1, maxLength: 5 }), (batches) => Effect.runPromise(check(batches))),
      { numRuns: scaled(400) }
    )
  }, 60_000)

  it.effect("go on when the call that began first is interrupted", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const asked = yield* Deferred.make<void>()
      const open = yield* Deferred.make<void>()
      let times = 0
      const work = Effect.suspend(() =>
        ++times === 1 ? Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(open)) : Effect.void
      )
      const agent = Agent.program({
        name: "program",
        tools: [act(log)],
        middleware: [noting(log, Effect.asVoid(work))],
        run: () =>
          Effect.as(
            Effect.all(
              [
                Effect.race(calling("first"), Effect.as(Deferred.await(asked), "left")),
                calling("second"),
                calling("third")
              ],
              { concurrency: "unbounded" }
            ),
            "done"
          )
      })
      assert.strictEqual((yield* Agent.run(agent, "go")).text, "done")
      assert.deepStrictEqual(log, ["asked second third", "ran second", "ran third"])
    })
  )

  it.effect("fail together when a gate fails, and the run with them", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const agent = Agent.program({
        name: "program",
        tools: [act(log)],
        middleware: [Middleware.make({ asks: true, name: "broken", rulings: () => Effect.fail("broken" as const) })],
        run: () => Effect.as(Effect.all([calling("a"), calling("b")], { concurrency: "unbounded" }), "done")
      })
      assert.strictEqual(yield* Effect.flip(Agent.run(agent, "go")), "broken")
      assert.deepStrictEqual(log, [])
    })
  )

  it.effect("do not wait for the person who is asked about one of them", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const both = yield* Deferred.make<void>()
      const agent = Agent.attended(
        Agent.program({
          name: "program",
          tools: [act(log)],
          middleware: [noting(log)],
          run: () =>
            Effect.as(
              Effect.all(
                [
                  calling("asked", "ask"),
                  Effect.andThen(Effect.all([calling("a"), calling("b")]), Deferred.succeed(both, undefined))
                ],
                { concurrency: "unbounded" }
              ),
              "done"
            )
        })
      )
      // The person decides after the others are done.
      const decide = (request: Approval.Request) => Effect.as(Deferred.await(both), Approval.approve(request))
      yield* Effect.provideService(Agent.run(agent, "go"), Approval.Approvals, { decide })
      assert.deepStrictEqual(log, ["asked asked a", "ran a", "asked b", "ran b", "ran asked"])
    })
  )
})

describe("a call that works outside of its doors", () => {
  /** Something outside that takes a while, such as a script that computes its next call. */
  const outside = Effect.repeat(Effect.yieldNow, { times: 10 })

  const twenty = (isWorking: boolean, log: Array<string>) =>
    Agent.program({
      name: "program",
      tools: [act(log)],
      middleware: [noting([])],
      run: Effect.fnUntraced(function* () {
        const { ask, working } = yield* ToolContext.ToolContext
        const step = (index: number) => Effect.andThen(calling(`${index}`), isWorking ? working(outside) : outside)
        const [answer] = yield* Effect.all(
          [
            ask(Question.make("which?", { answer: Schema.String })),
            Effect.forEach(
              Array.from({ length: 20 }, (_, index) => index),
              step,
              { discard: true }
            )
          ],
          { concurrency: "unbounded" }
        )
        return answer
      })
    })

  it.effect("stands still only when all of its work rests", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const agent = twenty(true, log)
      const first = yield* Agent.run(agent, "go")
      assert.strictEqual(first.stopReason, "suspended")
      assert.strictEqual(log.length, 20)
      const decisions = first.pending.map((one) => Approval.respond(one, "this"))
      assert.strictEqual((yield* Agent.resume(agent, { checkpoint: first, decisions })).text, "this")
      assert.strictEqual(log.length, 20)
    })
  )

  it.effect("stands still between two calls without `working`", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      assert.strictEqual((yield* Agent.run(twenty(false, log), "go")).stopReason, "suspended")
      assert.isBelow(log.length, 20)
    })
  )

  it.effect("begins nothing when it is over", () =>
    Effect.gen(function* () {
      let working: ToolContext.ToolContext["Service"]["working"] | undefined
      const agent = Agent.program({
        name: "program",
        run: () =>
          Effect.map(ToolContext.ToolContext, (context) => {
            working = context.working
            return "done"
          })
      })
      yield* Agent.run(agent, "go")
      const exit = yield* Effect.exit(working?.(Effect.succeed(1)) ?? Effect.void)
      assert.isTrue(exit._tag === "Failure")
    })
  )
})
