/** Random programs, cut off anywhere: every resume reaches the same end, and no recorded work is done twice. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import {
  Agent,
  type AgentResult,
  Approval,
  type Journal,
  Message,
  Middleware,
  Ruling,
  Question,
  Tool,
  ToolContext,
  ToolOutput
} from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../../scale.ts"
import * as journal from "../journal.ts"

type Tree =
  | { readonly _tag: "Step" | "Call" | "Pay" | "Agent" | "Program" | "Ask" }
  | { readonly _tag: "All" | "Each"; readonly parts: ReadonlyArray<Tree> }

const { tree } = fc.letrec<{ readonly tree: Tree }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.record({ _tag: fc.constantFrom("Step", "Call", "Pay", "Agent", "Program", "Ask") }),
    fc.record({ _tag: fc.constantFrom("All", "Each"), parts: fc.array(tie("tree"), { minLength: 1, maxLength: 4 }) })
  )
}))

/** A tool of which it is known whether it took effect: it must never do so twice. */
const act = (ran: Array<string>, name: string) =>
  Tool.make(name, {
    description: "",
    parameters: { on: Schema.String },
    reconcile: ({ on }) =>
      Effect.sync(() => (ran.includes(`${name} ${on}`) ? Tool.completed(`${name} did ${on}`) : Tool.neverBegan)),
    execute: ({ on }) =>
      Effect.sync(() => {
        ran.push(`${name} ${on}`)
        return `${name} did ${on}`
      })
  })

const calling = (name: string, on: string) =>
  Effect.flatMap(ToolContext.ToolContext, ({ call }) => Effect.map(call(name, { on }), ToolOutput.text))

/** The sub-agent's tools go by the first word of its task; it repeats their results. */
const model = TestChatModel.reactive((request) => {
  const last = request.messages.at(-1)
  const text = last === undefined ? "" : Message.text(last)
  if (last?.role === "tool") return `agent: ${text}`
  return TestChatModel.calls([{ name: text.split(" ")[0] ?? "", arguments: { on: text } }])
})

const makeProgram = (whole: Tree, ran: Array<string>) => {
  const tools = [act(ran, "act"), act(ran, "pay")]
  const child = Agent.make({ name: "child", prompt: "", tools })
  const inner = Agent.program({
    name: "inner",
    tools,
    run: Effect.fnUntraced(function* (at) {
      const did = yield* calling("act", `inner ${at}`)
      return `inner: ${did}; ${yield* step(ran, `inner ${at}`)}; ${yield* Agent.answer(child, `pay inner ${at}`)}`
    })
  })
  const perform = (
    one: Tree,
    at: string
  ): Effect.Effect<string, Effect.Error<ReturnType<typeof work>>, Effect.Services<ReturnType<typeof work>>> =>
    one._tag === "All" || one._tag === "Each"
      ? Effect.map(
          Effect.all(
            one.parts.map((part, index) => perform(part, `${at}.${index}`)),
            { concurrency: one._tag === "All" ? "unbounded" : 1 }
          ),
          (all) => `[${all.join("; ")}]`
        )
      : work(one._tag, at)
  const work = Effect.fnUntraced(function* (tag: Exclude<Tree["_tag"], "All" | "Each">, at: string) {
    if (tag === "Step") return yield* step(ran, at)
    if (tag === "Call") return yield* calling("act", at)
    if (tag === "Pay") return yield* calling("pay", at)
    if (tag === "Agent") return yield* Agent.answer(child, `${at.length % 2 === 0 ? "act" : "pay"} ${at}`)
    if (tag === "Program") return yield* Agent.answer(inner, at)
    const { ask } = yield* ToolContext.ToolContext
    return yield* ask(Question.make(`which ${at}?`, { answer: Schema.String }))
  })
  return Agent.program({
    name: "program",
    tools,
    middleware: [
      Middleware.make({
        asks: true,
        name: "asking",
        inherit: true,
        rulings: (_run, calls) =>
          Effect.succeed(
            calls.map(({ name }) => (name === "pay" ? Ruling.ask("test", { description: "pay?" }) : undefined))
          )
      })
    ],
    run: () => perform(whole, "0")
  })
}

const step = (ran: Array<string>, at: string) =>
  Agent.step(
    `step ${at}`,
    Effect.sync(() => {
      ran.push(`step ${at}`)
      return `step ${at}`
    }),
    Schema.String
  )

type Result = AgentResult.AgentResult<string | undefined>

/** Resumes with a person's decisions, until there is an answer. */
const driven = Effect.fnUntraced(function* (agent: ReturnType<typeof makeProgram>, first: Result) {
  let result = first
  while (result.stopReason === "suspended") {
    const decisions = result.pending.map((request) =>
      request.answer === undefined
        ? Approval.approve(request)
        : Approval.respond(request, `answer to ${request.description}`)
    )
    // One at a time, or all at once.
    const given = decisions.slice(0, result.pending.length % 2 === 0 ? 1 : undefined)
    result = yield* Agent.resume(agent, { threadId: "t", decisions: given })
  }
  return result
})

/** The steps that a thread has. */
const recorded = (entries: ReadonlyArray<Journal.Entry>): ReadonlySet<string> =>
  new Set(
    entries.flatMap((entry) =>
      entry._tag === "State" && entry.value !== undefined
        ? [...entry.slot.matchAll(/step:(step [^#]*)#1$/g)].map(([, name]) => name ?? "")
        : []
    )
  )

const check = Effect.fnUntraced(function* (whole: Tree) {
  const ran: Array<string> = []
  const cuts: Array<{ readonly entries: ReadonlyArray<Journal.Entry>; readonly ran: ReadonlyArray<string> }> = []
  const stored = journal.stored()
  stored.onAppend = Effect.sync(() => {
    cuts.push({ entries: [...stored.entries], ran: [...ran] })
  })
  const agent = makeProgram(whole, ran)
  const expected = yield* Effect.flatMap(Agent.run(agent, "go", { threadId: "t" }), (first) =>
    driven(agent, first)
  ).pipe(Effect.provide(journal.layer({ t: stored })))
  const once = ran.toSorted()
  assert.strictEqual(new Set(once).size, once.length)
  for (const [at, cut] of cuts.entries()) {
    if (cut.entries.length === 0) continue
    const did = [...cut.ran]
    const threads: Record<string, journal.Stored> = { t: journal.stored(cut.entries) }
    const again = makeProgram(whole, did)
    const result = yield* Effect.flatMap(Agent.resume(again, { threadId: "t" }), (first) => driven(again, first)).pipe(
      Effect.provide(journal.layer(threads))
    )
    const where = `cut ${at} of ${cuts.length}`
    assert.strictEqual(result.text, expected.text, where)
    const kept = recorded(cut.entries)
    const twice = did.filter((one, index) => did.indexOf(one) !== index)
    assert.deepStrictEqual(
      twice.filter((one) => !one.startsWith("step") || kept.has(one)),
      [],
      where
    )
    assert.deepStrictEqual([...new Set(did)].toSorted(), once, where)
    assert.deepStrictEqual(
      Object.keys(journal.checkpointOf(threads["t"]?.entries ?? [])?.state ?? {}).filter((slot) =>
        slot.startsWith("inside/")
      ),
      [],
      where
    )
  }
  return cuts.length
})

describe("random programs", () => {
  it.effect("of everything there is", () =>
    Effect.gen(function* () {
      const leaves = ["Step", "Call", "Pay", "Agent", "Program", "Ask"] as const
      const parts = leaves.map((_tag) => ({ _tag }))
      const cuts = yield* check({ _tag: "All", parts: [...parts, { _tag: "Each", parts }] })
      assert.isAbove(cuts, 30)
    }).pipe(Effect.provide(model))
  )

  it("come to the same end wherever they are cut off", async () => {
    await fc.assert(
      fc.asyncProperty(tree, (whole) => Effect.runPromise(Effect.asVoid(Effect.provide(check(whole), model)))),
      { numRuns: scaled(48) }
    )
  }, 120_000)
})
