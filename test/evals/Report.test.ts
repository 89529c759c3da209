import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Message, Usage } from "effect-deepagents"
import { Cases, Eval, Report, Trajectory } from "effect-deepagents/evals"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { DOMParser, parseHTML } from "linkedom"

const trial = (passed: boolean, text = "an answer"): Report.TrialReport => ({
  passed,
  text,
  scores: [{ name: "contains", kind: "correctness", passed, evidence: text }],
  usage: Usage.zero,
  rounds: 1,
  time: 1_000
})

const report = (
  cases: ReadonlyArray<readonly [name: string, passed: number, of: number, group?: string]>
): Report.Report => ({
  agent: "clerk",
  k: 1,
  cases: cases.map(([name, passed, of, group]) => ({
    name,
    ...(group === undefined ? {} : { group }),
    expected: of,
    trials: Array.from({ length: of }, (_, index) => trial(index < passed))
  }))
})

/** The subsets of `k` of so many trials, of which the first ones passed. */
const subsets = (passed: number, of: number, k: number) => {
  const all: Array<ReadonlyArray<number>> = [[]]
  for (let index = 0; index < of; index++) all.push(...all.map((set) => [...set, index]))
  return all.filter((set) => set.length === k).map((set) => set.map((index) => index < passed))
}

describe("the numbers of a report", () => {
  it("are the shares over all sets of k trials", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.nat(8), fc.integer({ min: 1, max: 8 }), (of, hits, k) => {
        fc.pre(hits <= of && k <= of)
        const sets = subsets(hits, of, k)
        const { passAll, passAny } = Report.summarize({ ...report([["one", hits, of]]), k })
        assert.closeTo(passAll, sets.filter((set) => set.every(Boolean)).length / sets.length, 1e-9)
        assert.closeTo(passAny, sets.filter((set) => set.some(Boolean)).length / sets.length, 1e-9)
      })
    )
  })

  it("have an interval that has the true share in about 95 of 100 reports", () => {
    const of = 60
    const coverage = (share: number) => {
      // The probability of so many hits.
      let chance = (1 - share) ** of
      let inside = 0
      for (let hits = 0; hits <= of; hits++) {
        const [low, high] = Report.summarize(report([["one", hits, of]])).interval
        if (low <= share && share <= high) inside += chance
        chance *= ((of - hits) / (hits + 1)) * (share / (1 - share))
      }
      return inside
    }
    const shares = Array.from({ length: 19 }, (_, index) => (index + 1) / 20)
    assert.closeTo(shares.reduce((sum, share) => sum + coverage(share), 0) / shares.length, 0.95, 0.01)
  })

  it("count a trial that did not run as not passed", () => {
    const whole = report([["one", 2, 2]])
    assert.isTrue(Report.summarize(whole).isPassed)
    const short = { ...whole, cases: whole.cases.map((one) => ({ ...one, expected: 3 })) }
    assert.isFalse(Report.summarize(short).isPassed)
  })
})

describe("a comparison", () => {
  it("has the p-value of all sign changes", () => {
    const difference = fc.integer({ min: -3, max: 3 })
    fc.assert(
      fc.property(fc.array(difference, { minLength: 1, maxLength: 8 }), (differences) => {
        const before = report(differences.map((one, index) => [`case ${index}`, one < 0 ? -one : 0, 3]))
        const after = report(differences.map((one, index) => [`case ${index}`, one > 0 ? one : 0, 3]))
        const observed = Math.abs(differences.reduce((sum, one) => sum + one, 0))
        let extreme = 0
        for (let signs = 0; signs < 2 ** differences.length; signs++) {
          const sum = differences.reduce((total, one, index) => total + ((signs >> index) & 1 ? one : -one), 0)
          if (Math.abs(sum) >= observed) extreme++
        }
        assert.closeTo(Report.compare(before, after).pValue, extreme / 2 ** differences.length, 1e-9)
      })
    )
  })

  it("counts each case the same, however many trials it had", () => {
    const before = report([
      ["many", 0, 100],
      ["one", 1, 1],
      ["two", 0, 1]
    ])
    const after = report([
      ["many", 100, 100],
      ["one", 0, 1],
      ["two", 1, 3]
    ])
    const { difference, pValue } = Report.compare(before, after)
    assert.closeTo(difference, 1 / 9, 1e-12)
    // Of the sums of ± 1, ± 1 and ± 1/3, all are as far from 0 as 1/3.
    assert.closeTo(pValue, 1, 1e-12)
    const few = report([
      ["many", 50, 100],
      ["one", 1, 1],
      ["two", 1, 3]
    ])
    // ± 1/2, 0 and ± 1/3: two of four sums are as far from 0 as 5/6.
    assert.closeTo(Report.compare(before, few).pValue, 0.5, 1e-12)
  })

  it("finds a change that is no chance, and none where all is equal", () => {
    const names = Array.from({ length: 30 }, (_, index) => `case ${index}`)
    const before = report(names.map((name) => [name, 0, 1]))
    const after = report(names.map((name, index) => [name, index < 10 ? 1 : 0, 1]))
    const { difference, missing, pValue } = Report.compare(before, after)
    assert.closeTo(difference, 1 / 3, 1e-12)
    assert.closeTo(pValue, 2 / 2 ** 10, 1e-12)
    assert.deepStrictEqual(missing, [])
    assert.strictEqual(Report.compare(before, before).pValue, 1)
    assert.deepStrictEqual(Report.compare(before, report([["new", 1, 1]])).missing.length, 31)
  })

  it("of very large reports is the normal approximation", () => {
    const names = Array.from({ length: 60_000 }, (_, index) => `case ${index}`)
    const before = report(names.map((name, index) => [name, index % 2, 1]))
    const after = report(names.map((name, index) => [name, index % 2 === 0 ? 1 : index % 5 === 0 ? 1 : 0, 1]))
    const { pValue } = Report.compare(before, after)
    assert.isAtLeast(pValue, 0)
    assert.isBelow(pValue, 1e-6)
  })
})

const hostile = `"><script>alert(1)</script> | ]]> & \`x\` **b** [a](javascript:1) ${String.fromCodePoint(0x1b, 0xffff)}[31m`

describe("a report as text", () => {
  const written: Report.Report = {
    ...report([
      ["one", 1, 2, hostile],
      ["two", 2, 2]
    ]),
    agent: hostile,
    stopped: hostile,
    cases: [
      { name: hostile, group: hostile, expected: 2, trials: [trial(false, hostile)] },
      { name: "two", expected: 1, trials: [trial(true)] },
      { name: "three", expected: 1, trials: [] }
    ]
  }

  it("has no markup of models in Markdown, HTML and JUnit", () => {
    const { document } = parseHTML(Report.toHtml(written))
    assert.strictEqual(document.querySelectorAll("script, a, img, iframe").length, 0)
    assert.include(document.body.textContent ?? "", "<script>alert(1)</script>")
    const markdown = Report.toMarkdown(written)
    assert.notMatch(markdown, /(?<!\\)<script/)
    assert.notMatch(markdown, /(?<!\\)\]\(/)
    const xml = Report.toJUnit(written)
    for (const code of [0x1b, 0xffff]) assert.notInclude(xml, String.fromCodePoint(code))
    const parsed = new DOMParser().parseFromString(xml, "text/xml")
    assert.deepStrictEqual(
      [...parsed.querySelectorAll("testcase")].map((one) => [
        one.querySelectorAll("failure").length,
        one.querySelectorAll("skipped").length
      ]),
      [
        [1, 0],
        [0, 0],
        [0, 1]
      ]
    )
    assert.strictEqual(parsed.querySelectorAll("script").length, 0)
  })

  it("survives its codec", () => {
    const codec = Schema.fromJsonString(Report.Report)
    assert.deepStrictEqual(Schema.decodeSync(codec)(Schema.encodeSync(codec)(written)), written)
  })
})

describe("cases", () => {
  it.effect("are read from JSON lines, with the names of other benchmarks", () =>
    Effect.gen(function* () {
      const cases = yield* Cases.fromJsonl(
        [
          '{"name": "danube", "input": "Which river?", "contains": ["Danube"], "group": "rivers"}',
          "",
          '{"input": "2 + 2?", "expected_tools": ["add"], "expected_contains": ["4"], "expected_not_contains": ["5"], "max_iterations": 3, "max_tokens": 900}'
        ].join("\r\n")
      )
      assert.deepStrictEqual(cases, [
        { name: "danube", input: "Which river?", contains: ["Danube"], group: "rivers" },
        { name: "case 2", input: "2 + 2?", tools: ["add"], contains: ["4"], excludes: ["5"], rounds: 3, tokens: 900 }
      ])
    })
  )

  it.effect("are refused with the line and the field", () =>
    Effect.gen(function* () {
      const problem = (text: string) => Effect.map(Effect.flip(Cases.fromJsonl(text)), ({ message }) => message)
      assert.include(yield* problem('{"input": "a"}\n{'), "line 2: it is not JSON")
      assert.include(
        yield* problem('{"input": "a", "contain": []}'),
        'line 1: "contain" is no field of a case. Did you mean "contains"?'
      )
      assert.include(yield* problem('{"name": "a"}'), "input")
      assert.include(yield* problem('{"input": "a", "rounds": -1}'), "rounds")
      assert.include(yield* problem("[1]"), "a case is an object")
      const inTable = (text: string) => Effect.map(Effect.flip(Cases.fromCsv(text)), ({ message }) => message)
      assert.include(yield* inTable("name,input\na,b,c"), "line 2: it has 3 cells")
      // Lines of quoted cells and empty lines count, as an editor counts them.
      assert.include(yield* inTable('\ufeffname,input\r\na,"b\n\nb"\r\n\r\nc,"d\r\n"\r\na,b,c'), "line 8: it has 3")
      assert.include(yield* inTable("name,input,rounds\n\na,b,many"), "line 3")
    })
  )

  it.effect("are read behind a byte order mark", () =>
    Effect.gen(function* () {
      const [first] = yield* Cases.fromJsonl('\ufeff{"input": "a"}\n{"input": "b"}')
      assert.strictEqual(first?.input, "a")
      assert.strictEqual(Trajectory.fromPi('\ufeff{"type": "session", "version": 3}').kept[0]?.slice(0, 1), "{")
    })
  )

  it.effect("are read from CSV with quotes, lists and empty cells", () =>
    Effect.gen(function* () {
      const text = '\ufeffname,input,contains,rounds\r\n"a, b","say ""hi""\nthere",Danube; Ulm,3\r\n\r\nlast,q,,'
      assert.deepStrictEqual(yield* Cases.fromCsv(text), [
        { name: "a, b", input: 'say "hi"\nthere', contains: ["Danube", "Ulm"], rounds: 3 },
        { name: "last", input: "q" }
      ])
    })
  )

  it.effect("of any table are the rows that were written", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(
            fc.string({ minLength: 1 }).filter((text) => text.trim() !== ""),
            { minLength: 1 }
          ),
          async (inputs) => {
            const rows = inputs.map((input, index) => `n${index},"${input.replaceAll('"', '""')}"`)
            const cases = await Effect.runPromise(Cases.fromCsv(["name,input", ...rows].join("\n")))
            assert.deepStrictEqual(
              cases.map(({ input }) => input),
              inputs
            )
          }
        )
      )
    )
  )

  it.effect("of a stored thread are its questions with the messages before, and run with another agent", () =>
    Effect.gen(function* () {
      const first = Agent.make({ name: "first", prompt: "One." })
      yield* Agent.run(first, "Hello", { threadId: "t" })
      yield* Agent.run(first, "And now?", { threadId: "t" })
      const cases = yield* Cases.fromThread("t")
      assert.deepStrictEqual(
        cases.map(({ history = [], input }) => [
          typeof input === "string" ? input : Message.text(input),
          history.length
        ]),
        [
          ["Hello", 0],
          ["And now?", 2]
        ]
      )
      const other = Agent.make({ name: "other", prompt: "Two." })
      const told = yield* Eval.suite({ agent: other, cases, scorers: [] })
      assert.deepStrictEqual(
        told.cases.map(({ trials }) => trials.map(({ text }) => text)),
        [["1 messages"], ["3 messages"]]
      )
      const { messages } = (yield* SessionStore.checkpoint("t")) ?? { messages: [] }
      assert.strictEqual(messages.length, 4)
    }).pipe(
      Effect.provide(TestChatModel.reactive((request) => `${request.messages.length} messages`)),
      Effect.provide(SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer)))
    )
  )
})
