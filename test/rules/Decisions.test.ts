import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Approval, Message, Tool } from "effect-deepagents"
import { ApprovalClassifier, HumanInTheLoop } from "effect-deepagents/middleware"
import * as DecisionModels from "effect-deepagents/models/DecisionModels"
import { Audit, Decisions, Inbox } from "effect-deepagents/rules"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"

/** Numbers from 0 to 1 by Lehmer's generator. */
const makeRandom = (seed: number) => {
  let state = seed
  return () => {
    state = (state * 16_807) % 2_147_483_647
    return state / 2_147_483_647
  }
}

const logistic = (x: number): number => 1 / (1 + Math.exp(-x))

interface Sample extends Decisions.LabelledDecision {
  readonly truth: number
}

/** Decisions of an over-confident model: it states more than the true probability. */
const sample = (count: number, random: () => number): ReadonlyArray<Sample> =>
  Array.from({ length: count }, () => {
    const x = (random() + random() + random() - 1.5) * 4 + 0.5
    const truth = logistic(x)
    return { truth, probability: logistic(2.2 * x + 0.6), isYes: random() < truth }
  })

const settings = [
  { wrongYes: 100, wrongNo: 20, person: 5 },
  { wrongYes: 50, wrongNo: 10, person: 4 },
  { wrongYes: 20, wrongNo: 20, person: 3 }
]

const costOf = (
  samples: ReadonlyArray<Sample>,
  { person, wrongNo, wrongYes }: Decisions.Costs,
  settle: (one: Sample) => "yes" | "no" | "person"
): number =>
  samples.reduce((sum, one) => {
    const settled = settle(one)
    if (settled === "person") return sum + person
    return sum + (settled === "yes" ? (one.isYes ? 0 : wrongYes) : one.isYes ? wrongNo : 0)
  }, 0) / samples.length

const errorOf = (samples: ReadonlyArray<Decisions.LabelledDecision>): number =>
  Decisions.calibrate(samples).error.stated

const settleTruth = (one: Sample, { no, yes }: { readonly yes: number; readonly no: number }) =>
  one.truth >= yes ? "yes" : one.truth <= no ? "no" : "person"

/** Trains on a half of the decisions, and measures the other half. */
const trial = (costs: Decisions.Costs, seed: number) => {
  const all = sample(5_000, makeRandom(seed))
  const learned = Decisions.calibrate(all.slice(0, 2_500))
  const rest = all.slice(2_500)
  const thresholds = learned.thresholds(costs)
  const settle = learned.settle(costs)
  const fixed = Math.min(
    costs.person,
    ...Array.from({ length: 101 }, (_, index) =>
      costOf(rest, costs, ({ probability }) => (probability >= index / 100 ? "yes" : "no"))
    ),
    costOf(rest, costs, () => "no")
  )
  return {
    fixed,
    learned,
    calibrated: costOf(rest, costs, ({ probability }) => settle(probability)),
    true: costOf(rest, costs, (one) => settleTruth(one, thresholds)),
    error: errorOf(rest.map((one) => ({ ...one, probability: learned.probability(one.probability) })))
  }
}

describe("Decisions.calibrate", () => {
  it("costs less than the best fixed rule, and at most a tenth more than the true probabilities", () => {
    for (const costs of settings) {
      for (let seed = 7; seed < 7 + scaled(40); seed++) {
        const { calibrated, error, fixed, learned, true: best } = trial(costs, seed)
        assert.isBelow(calibrated, fixed, `${JSON.stringify(costs)}, seed ${seed}`)
        assert.isAtMost(calibrated, best * 1.1, `${JSON.stringify(costs)}, seed ${seed}`)
        assert.isAtMost(error, 0.05)
        assert.isAbove(learned.error.stated, 0.05)
        assert.isAtMost(learned.error.calibrated, 0.05)
      }
    }
  })

  it("leaves everything to a person below 200 labels, and below ten of each outcome", () => {
    const labels = sample(1_000, makeRandom(3))
    const settled = (some: ReadonlyArray<Decisions.LabelledDecision>) => {
      const { isReady, settle } = Decisions.calibrate(some)
      const seen = settings.flatMap((costs) => labels.map(({ probability }) => settle(costs)(probability)))
      return [isReady, new Set(seen).size === 1 && seen[0] === "person"]
    }
    assert.deepStrictEqual(settled([]), [false, true])
    assert.deepStrictEqual(settled(labels.slice(0, 199)), [false, true])
    assert.deepStrictEqual(settled(labels.slice(0, 200)), [true, false])
    const yes = labels.filter(({ isYes }) => isYes).slice(0, 300)
    const no = labels.filter(({ isYes }) => !isYes)
    assert.deepStrictEqual(settled([...yes, ...no.slice(0, 9)]), [false, true])
    assert.deepStrictEqual(settled([...yes, ...no.slice(0, 10)])[0], true)
    // An invalid probability is no label.
    const broken = [Number.NaN, -1, 2, Infinity].map((probability) => ({ probability, isYes: true }))
    const { count, isReady } = Decisions.calibrate([...labels.slice(0, 199), ...broken])
    assert.deepStrictEqual([count, isReady], [199, false])
  })

  it("leaves invalid probabilities, values beyond the labels and invalid costs to a person", () => {
    const labels = sample(2_000, makeRandom(5)).filter(({ probability }) => probability > 0.3)
    const { settle } = Decisions.calibrate(labels)
    const eager = settle({ wrongYes: 1, wrongNo: 100, person: 50 })
    assert.strictEqual(eager(0.5), "yes")
    assert.strictEqual(eager(0.1), "person")
    for (const odd of [Number.NaN, -0.1, 1.1, Infinity]) assert.strictEqual(eager(odd), "person")
    for (const wrong of [Number.NaN, 0, -5, Infinity]) {
      assert.strictEqual(settle({ wrongYes: wrong, wrongNo: 20, person: 5 })(0.99), "person")
    }
  })

  it("is monotone for any labels in any order, and takes the cheapest answer", () =>
    fc.assert(
      fc.property(
        fc.array(fc.record({ probability: fc.double({ min: 0, max: 1, noNaN: true }), isYes: fc.boolean() })),
        fc.record({
          wrongYes: fc.double({ min: 0.1, max: 1_000, noNaN: true }),
          wrongNo: fc.double({ min: 0.1, max: 1_000, noNaN: true }),
          person: fc.double({ min: 0.1, max: 1_000, noNaN: true })
        }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (some, costs, truth) => {
          const { error, probability, thresholds } = Decisions.calibrate(some)
          const turned = Decisions.calibrate(some.toReversed())
          let before = 0
          for (let stated = 0; stated <= 1; stated += 1 / 64) {
            const value = probability(stated)
            assert.isTrue(value >= before && value <= 1)
            assert.strictEqual(turned.probability(stated), value)
            before = value
          }
          assert.isTrue(error.stated >= 0 && error.stated <= 1 && error.calibrated >= 0 && error.calibrated <= 1)
          const { no, yes } = thresholds(costs)
          const price = {
            yes: (1 - truth) * costs.wrongYes,
            no: truth * costs.wrongNo,
            person: costs.person
          }
          const chosen = truth >= yes ? "yes" : truth <= no ? "no" : "person"
          assert.isAtMost(price[chosen], Math.min(...Object.values(price)) + 1e-9)
        }
      ),
      { numRuns: scaled(2_000) }
    ))

  it("draws a diagram, whose title is no markup", () => {
    const svg = Decisions.calibrate(sample(500, makeRandom(2))).svg(`</text><script>"a" & 'b'\u202e\n${"x".repeat(99)}`)
    assert.include(svg, "&lt;/text&gt;&lt;script&gt;&quot;a&quot; &amp; &apos;b&apos;")
    assert.notInclude(svg, "<script")
    assert.notInclude(svg, "\u202e")
    assert.notInclude(svg, "x".repeat(61))
    assert.notInclude(svg, "NaN")
    assert.notInclude(Decisions.calibrate([]).svg(), "NaN")
    assert.isBelow(svg.length, 8_000)
  })
})

const pay = Tool.make("pay", {
  description: "Pays",
  parameters: { amount: Schema.Int },
  execute: ({ amount }) => Effect.succeed(`paid ${amount}`)
})
const clerk = Agent.make({
  name: "clerk",
  prompt: "",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})

/** The amount in the message is the amount of the payment. */
const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  if (last?.role !== "human") return "done"
  return TestChatModel.calls([{ name: "pay", arguments: { amount: Number(Message.text(last)) } }])
})

/** A server of decisions: the less is paid, the more probable is a yes. Payments of 13 it does not answer. */
const server = () => {
  const asked: Array<{ readonly state: string; readonly kind: string }> = []
  const fetch: typeof globalThis.fetch = (_, init) => {
    const { questions, state } = JSON.parse(typeof init?.body === "string" ? init.body : "")
    const { type } = questions.q1
    asked.push({ state, kind: type })
    const amount = Number(/"amount":(\d+)/.exec(state)?.[1])
    const share = Math.max(0, 1 - amount / 100)
    const answer =
      amount === 13
        ? null
        : type === "noul"
          ? { type, noul: share }
          : {
              type,
              choice: share > 0.6 ? "approve" : share < 0.4 ? "refuse" : "approve",
              probabilities: { approve: share, refuse: 1 - share, person: 0 }
            }
    return Promise.resolve(Response.json({ answers: { q1: answer } }))
  }
  return { asked, layer: DecisionModels.layerSystemOne({ model: "m", baseURL: "http://127.0.0.1:1/v1", fetch }) }
}

const rules = "Small payments may be made."
const request = (id: string, amount: number, more: Partial<Approval.Request> = {}): Approval.Request => ({
  id,
  runId: "r",
  callId: "c",
  path: ["clerk"],
  toolName: "pay",
  arguments: { amount },
  description: "Pays",
  allow: ["approve", "edit", "reject", "respond"],
  at: 0,
  toolDigest: "d",
  ...more
})

/** Decisions of people: payments up to 50 were approved, with a few exceptions. */
const makeHistory = (count: number) =>
  Array.from({ length: count }, (_, index) => {
    const asked = request(`p${index}`, index % 100, { at: index })
    const isYes = index % 100 <= 50 !== (index % 20 === 7)
    return { request: asked, decision: isYes ? Approval.approve(asked) : Approval.reject(asked) }
  })

const byText = (left = "", right = ""): number => left.localeCompare(right)

describe("Decisions.labelled", () => {
  it.effect("pairs people's decisions with the model's statements, and leaves out deciders that are no person", () => {
    const { asked, layer } = server()
    const one = (id: string, more: Partial<Approval.Request>, decision: (of: Approval.Request) => object) => {
      const made = request(id, 20, more)
      return { request: made, decision: { ...Approval.approve(made), ...decision(made) } }
    }
    const old = request("old", 10, { at: 1 })
    const records = [
      { request: old, decision: Approval.approve(old) },
      { request: old, decision: Approval.approve(old) },
      ...[
        Approval.edit(request("e", 20, { at: 9 }), { amount: 1 }),
        Approval.respond(request("r", 30, { at: 8 }), "no"),
        Approval.reject(request("n", 13, { at: 7 })),
        Approval.reject(request("x", 40, { at: 6 }))
      ].map((decision, index) => ({
        request: request(decision.id, [20, 30, 13, 40][index] ?? 0, { at: 9 - index }),
        decision
      })),
      { request: request("open", 20) },
      one("program", {}, () => ({ byProgram: true })),
      one("expired", {}, () => ({ by: { id: "inbox" }, rule: "expired" })),
      one("timer", { rule: "time" }, () => ({ rule: "time" })),
      one("question", { answer: {} }, () => ({})),
      one("person", { byPerson: true }, () => ({})),
      one("other", {}, () => ({})),
      one("long", { description: "x".repeat(9_000) }, () => ({}))
    ].map((record) => (record.request.id === "other" ? { ...record, isAsShown: false } : record))
    return Effect.gen(function* () {
      const labels = yield* Decisions.labelled(Stream.fromIterable(records), { rules })
      assert.deepStrictEqual(labels, [
        { probability: 0.8, isYes: false },
        { probability: 0.7, isYes: false },
        { probability: 0.6, isYes: false },
        { probability: 0.9, isYes: true }
      ])
      assert.lengthOf(asked, 5)
      assert.isTrue(asked.every(({ kind, state }) => kind === "noul" && state.includes("Tool: pay")))
      const two = yield* Decisions.labelled(Stream.fromIterable(records), { rules, limit: 2, concurrency: 1 })
      assert.deepStrictEqual(
        two.map(({ probability }) => probability),
        [0.8, 0.7]
      )
    }).pipe(Effect.provide(layer))
  })

  it.effect("lets a classifier of the inbox decide certain requests, by people's earlier decisions", () => {
    const { asked, layer } = server()
    return Effect.gen(function* () {
      const { list } = yield* Inbox.Inbox
      const costs = { wrongYes: 10, wrongNo: 10, person: 2 }
      const few = Decisions.calibrate(yield* Decisions.labelled(Stream.fromIterable(makeHistory(150)), { rules }))
      const many = Decisions.calibrate(yield* Decisions.labelled(Stream.fromIterable(makeHistory(900)), { rules }))
      assert.deepStrictEqual([few.isReady, many.isReady], [false, true])
      for (const amount of [10, 13, 50, 90]) yield* Agent.run(clerk, String(amount), { threadId: `t${amount}` })
      const waiting = Effect.map(list(), (items) => items.map(({ threadId }) => threadId).toSorted(byText))
      const { classify } = yield* Inbox.Inbox
      const sweep = (calibration: Decisions.Calibration, by: string) =>
        classify({ by: { id: by }, classify: ApprovalClassifier.byModel({ rules, settle: calibration.settle(costs) }) })
      yield* sweep(few, "early")
      assert.lengthOf(yield* waiting, 4)
      yield* Agent.run(clerk, "11", { threadId: "t11" })
      yield* Agent.run(clerk, "91", { threadId: "t91" })
      yield* sweep(many, "learned")
      assert.deepStrictEqual(yield* waiting, ["t10", "t13", "t50", "t90"])
      const audit = yield* Stream.runCollect(Audit.records())
      const decided = audit.flatMap(({ decision, threadId }) =>
        decision === undefined ? [] : [`${threadId} ${decision._tag} ${decision.by?.id}`]
      )
      assert.deepStrictEqual(decided.toSorted(byText), ["t11 Approve learned", "t91 Reject learned"])
      // Decisions of a program teach nothing.
      const before = asked.length
      assert.deepStrictEqual(yield* Decisions.labelled(Audit.records(), { rules }), [])
      assert.lengthOf(asked, before)
    }).pipe(
      Effect.provide(
        Inbox.layer({ deliver: Inbox.toAgents([clerk]) }).pipe(
          Layer.provideMerge(SessionStore.journal),
          Layer.provideMerge(Layer.mergeAll(MemorySessions.layer, model, layer))
        )
      )
    )
  })
})
