import { assert, describe, it } from "@effect/vitest"
import { Ruling } from "effect-deepagents"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"

const deciders = fc.option(fc.subarray(["ada", "bob", "role:finance"], { minLength: 1 }), { nil: undefined })
const choices = fc.option(fc.subarray(["approve", "edit", "reject", "respond"] as const, { minLength: 1 }), {
  nil: undefined
})

const by = fc.constantFrom("a", "b", "c", "d")

const ask = fc
  .tuple(
    by,
    fc.record({
      deciders,
      choices,
      expiresIn: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
      byPerson: fc.option(fc.boolean(), { nil: undefined })
    })
  )
  .map(([name, terms]) => Ruling.ask(name, terms))

const ruling: fc.Arbitrary<Ruling.Ruling | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.tuple(by, fc.boolean()).map(([name, settles]) => Ruling.allow(name, { settles })),
  { weight: 3, arbitrary: ask },
  { weight: 1, arbitrary: by.map((name) => Ruling.refuse(name, "no")) }
)

const strictness = { Allow: 0, Ask: 1, Refuse: 2 } as const

const isWithin = <A>(part: ReadonlyArray<A> | undefined, whole: ReadonlyArray<A> | undefined): boolean =>
  whole === undefined || (part !== undefined && part.every((one) => whole.includes(one)))

describe("Ruling.compose", () => {
  it("never loosens any of its rulings", () => {
    fc.assert(
      fc.property(fc.array(ruling, { maxLength: 5 }), fc.option(ask, { nil: undefined }), (rulings, own) => {
        const verdict = Ruling.compose(rulings, own)
        const composed = verdict.ruling
        for (const one of verdict.rulings) {
          assert.isAtLeast(strictness[composed._tag], strictness[one._tag])
          if (one._tag !== "Ask" || composed._tag !== "Ask") continue
          assert(isWithin(composed.terms.deciders, one.terms.deciders))
          assert(isWithin(composed.terms.choices, one.terms.choices))
          assert.isAtMost(composed.terms.expiresIn ?? Infinity, one.terms.expiresIn ?? Infinity)
          if (one.terms.byPerson === true) assert.isTrue(composed.terms.byPerson)
        }
      }),
      { numRuns: scaled(20_000) }
    )
  })

  it("gives the same kind of ruling in any order", () => {
    fc.assert(
      fc.property(fc.array(ruling, { maxLength: 5 }), (rulings) => {
        const tag = Ruling.compose(rulings).ruling._tag
        assert.strictEqual(Ruling.compose(rulings.toReversed()).ruling._tag, tag)
        assert.strictEqual(Ruling.compose([...rulings.slice(1), ...rulings.slice(0, 1)]).ruling._tag, tag)
      }),
      { numRuns: scaled(20_000) }
    )
  })

  it("refuses where two questions have no decider in common", () => {
    const { ruling: composed } = Ruling.compose([
      Ruling.ask("a", { deciders: ["ada"] }),
      Ruling.ask("b", { deciders: ["bob"] })
    ])
    assert.strictEqual(composed._tag, "Refuse")
    assert.strictEqual(composed.by, "a, b")
  })

  it("joins likenesses, so that an approval for good covers calls that are like this one to both rules", () => {
    const like = (by: string, likeness?: string) => Ruling.ask(by, { likeness, settles: true })
    const joinAsks = (...asks: ReadonlyArray<Ruling.Ask>) => {
      const { ruling } = Ruling.compose(asks)
      return ruling._tag === "Ask" ? ruling.terms : undefined
    }
    const both = joinAsks(like("a", "1"), like("b", "2"))
    assert.isTrue(both?.settles)
    assert.isDefined(both?.likeness)
    assert.notStrictEqual(both?.likeness, joinAsks(like("a", "1"), like("b", "3"))?.likeness)
    assert.isUndefined(joinAsks(like("a", "1"), like("b"))?.likeness)
    assert.isFalse(joinAsks(like("a", "1"), Ruling.ask("b"))?.settles)
  })

  it("drops a tool's own question only if a source settles it", () => {
    const own = Ruling.ask("needsApproval")
    assert.strictEqual(Ruling.compose([Ruling.allow("a")], own).ruling._tag, "Ask")
    assert.strictEqual(Ruling.compose([Ruling.allow("a", { settles: true })], own).ruling._tag, "Allow")
    assert.strictEqual(Ruling.compose([], own).ruling, own)
  })

  it("is explained in one sentence", () => {
    const verdict = Ruling.compose([Ruling.allow("user"), Ruling.refuse("organisation", "no payments")])
    assert.strictEqual(Ruling.explain(verdict), "Refused by organisation (no payments); composed from user: allow.")
  })
})
