import { assert, describe, expectTypeOf, it } from "@effect/vitest"
import { Template } from "effect-deepagents"
import * as fc from "fast-check"

describe("Template", () => {
  const greeting = Template.make('Hello {user.name} ({user.age}): {count} {{new}} in {"a": 1}, {count}')

  it("fills its holes, and leaves other braces alone", () => {
    assert.deepStrictEqual(greeting.holes, ["user.name", "user.age", "count"])
    assert.strictEqual(
      Template.render(greeting, { user: { name: "Ada", age: 36 }, count: 3 }),
      'Hello Ada (36): 3 {new} in {"a": 1}, 3'
    )
  })

  it("has the values that it needs in its type", () => {
    expectTypeOf<Parameters<typeof Template.render<(typeof greeting.holes)[number]>>[1]>().toEqualTypeOf<{
      readonly user: { readonly name: Template.Value; readonly age: Template.Value }
      readonly count: Template.Value
    }>()
    // @ts-expect-error a hole without a value
    Template.render(greeting, { user: { name: "Ada", age: 36 } })
    // @ts-expect-error a hole within another
    Template.render(greeting, { user: { name: "Ada" }, count: 3 })
  })

  it("fills some holes first; braces in values never become holes", () => {
    const some = Template.fill(greeting, { user: { name: "{count} }}" } })
    assert.deepStrictEqual(some.holes, ["user.age", "count"])
    const text = Template.render(some, { user: { age: 36 }, count: 3 })
    assert.strictEqual(text, 'Hello {count} }} (36): 3 {new} in {"a": 1}, 3')
    fc.assert(
      fc.property(fc.string(), fc.string(), (one, two) => {
        const both = Template.make("<{one}|{two}>")
        const whole = `<${one}|${two}>`
        assert.strictEqual(Template.render(both, { one, two }), whole)
        assert.strictEqual(Template.render(Template.fill(both, { one }), { two }), whole)
      })
    )
  })

  it("of any text leaves holes without own values as they are", () => {
    const read: string = "{constructor} {a.length} {b} {c}"
    const values = Object.assign(Object.create({ c: "inherited" }), { a: "xy", b: 1 })
    assert.strictEqual(Template.render(Template.make(read), values), "{constructor} {a.length} 1 {c}")
  })
})
