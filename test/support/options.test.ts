import { globSync } from "node:fs"
/** The check of options by their shapes: valid options pass, and a misspelt name is named at any depth. The shapes are those of all constructors. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Redacted } from "effect"
import * as fc from "fast-check"
import { check } from "../../src/support/options/check.ts"

const modules: ReadonlyArray<{ readonly [name: string]: string }> = await Promise.all(
  globSync("src/**/shapes.ts").map((file) => import(/* @vite-ignore */ new URL(`../../${file}`, import.meta.url).href))
)
const shapes = modules.flatMap((module) => Object.entries(module))

/** Objects of fields that were generated, with the names of their fields. */
const structs = new WeakMap<object, ReadonlyArray<string>>()

/** Generates valid options for a shape, by a reader of its own. */
const fitting = (shape: string): fc.Arbitrary<object> => {
  let at = 0
  const until = (end: string) => {
    const from = at
    at = shape.indexOf(end, at) + 1
    return shape.slice(from, at - 1)
  }
  const letters: { readonly [letter: string]: () => fc.Arbitrary<unknown> } = {
    s: () => fc.string(),
    n: () => fc.double(),
    b: () => fc.boolean(),
    f: () => fc.constant(() => 1),
    a: () => fc.array(fc.anything(), { maxLength: 2 }),
    o: () => fc.dictionary(fc.string(), fc.anything(), { maxKeys: 2 }),
    d: () => fc.constantFrom<unknown>(5, 5n, "5 seconds", [1, 2], { minutes: 1 }, "Infinity"),
    t: () => fc.constant(new Set()),
    m: () => fc.constant(new Map()),
    z: () => fc.constant(null),
    "*": () => fc.anything().filter((value) => value !== undefined),
    "'": () => fc.constant(until("'")),
    "~": () => {
      const [name = "", mark = `~${name}`] = until("~").split(":")
      return fc.constant({ [mark]: name })
    },
    "{": () => fields("}"),
    "[": () => fc.array(kind("]"), { maxLength: 2 }),
    "<": () => fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), kind(">"), { maxKeys: 2 })
  }
  const kind = (end: string): fc.Arbitrary<unknown> => {
    const found: Array<fc.Arbitrary<unknown>> = []
    while (at < shape.length && !";}]>".includes(shape[at] ?? "")) {
      const made = letters[shape[at++] ?? ""]
      assert(made !== undefined, `${shape} has an unknown letter at ${at}`)
      found.push(made())
    }
    if (end !== "") at++
    return found.length === 0 ? fc.constant(undefined) : fc.oneof(...found)
  }
  const fields = (end: string): fc.Arbitrary<object> => {
    const model: { [name: string]: fc.Arbitrary<unknown> } = {}
    const required: Array<string> = []
    while (at < shape.length && shape[at] !== end) {
      const name = until(":")
      if (!name.endsWith("?")) required.push(name)
      model[name.replace("?", "")] = kind("")
      if (shape[at] === ";") at++
    }
    if (end !== "") at++
    return fc.record(model, { requiredKeys: required, noNullPrototype: true }).map((value) => {
      structs.set(value, Object.keys(model))
      return value
    })
  }
  return fields("")
}

interface Found {
  readonly path: string
  readonly value: object
  readonly names: ReadonlyArray<string>
}

/** The objects of fields in a value, with their paths. */
const structsIn = (value: unknown, path = ""): ReadonlyArray<Found> => {
  if (typeof value !== "object" || value === null || value instanceof Set || value instanceof Map) return []
  const names = structs.get(value)
  const below = Object.entries(value).flatMap(([key, one]) =>
    structsIn(one, Array.isArray(value) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`)
  )
  return names === undefined ? below : [{ path, value, names }, ...below]
}

describe("options", () => {
  it("there are shapes of many constructors", () => {
    assert(shapes.length > 9)
  })

  for (const [name, shape] of shapes) {
    it(`${name}: valid options pass, and a misspelt name is named at any depth`, () => {
      const checked = check(shape)
      fc.assert(
        fc.property(fitting(shape), fc.nat(), fc.nat(), (options, which, place) => {
          assert.isUndefined(checked(options))
          const all = structsIn(options)
          const found = all[which % all.length]
          assert(found !== undefined)
          const meant = found.names[place % found.names.length] ?? ""
          const misspelt = `${meant}x`
          if (found.names.includes(misspelt)) return
          Object.assign(found.value, { [misspelt]: 1 })
          const whole = found.path === "" ? misspelt : `${found.path}.${misspelt}`
          assert.include(checked(options), `There is no option "${whole}".`)
        }),
        { numRuns: 30 }
      )
    })
  }

  const example = check(
    "name:s;mode?:'ask''suspend';rules?:<bf{when?:f;allow?:[s]}>;time?:d;key?:~effect/Redacted~;reaches?:t;work?:s~effect/Effect~;tools?:[~Tool:prepare~]"
  )
  const said: ReadonlyArray<readonly [unknown, string | undefined]> = [
    [{ name: "a" }, undefined],
    [{ name: "a", mode: undefined, other: undefined }, undefined],
    [{ name: "a", "~effect-deepagents/Middleware": 1 }, undefined],
    [Object.create({ name: "a" }), undefined],
    [Object.assign(Object.create(null), { name: "a" }), undefined],
    [{ name: "a", time: "5 seconds", work: Effect.void, key: Redacted.make("k"), reaches: new Set() }, undefined],
    [undefined, 'The option "name" is missing.'],
    [null, "The options must be an object, and are null."],
    [[], "The options must be an object, and are an array."],
    [Layer.empty, 'There is no option "build". There is: name, mode, rules, time, key, reaches, work, tools.'],
    [{ name: 1 }, 'The option "name" must be a string, and is 1.'],
    [{ nam: "a" }, 'There is no option "nam". Did you mean "name"?'],
    [
      { name: "a", mode: "suspended" },
      'The option "mode" must be "ask" or "suspend", and is "suspended". Did you mean "suspend"?'
    ],
    [{ name: "a", rules: { t: { alow: [] } } }, 'There is no option "rules.t.alow". Did you mean "allow"?'],
    [{ name: "a", rules: { t: { allow: [1] } } }, 'The option "rules.t.allow[0]" must be a string, and is 1.'],
    [{ name: "a", rules: { t: 1 } }, 'The option "rules.t" must be a boolean, a function or an object, and is 1.'],
    [{ name: "a", time: "5 mins" }, 'The option "time" must be a duration, and is "5 mins".'],
    // A secret is never shown.
    [
      { name: "a", key: "sk-secret" },
      'The option "key" must be a Redacted, and is a string. Make one with Redacted.make.'
    ],
    [{ name: "a", reaches: ["x"] }, 'The option "reaches" must be a Set, and is an array.'],
    [{ name: "a", work: Layer.empty }, 'The option "work" must be a string or an Effect, and is an object.'],
    [{ name: "a", tools: { a: 1 } }, 'The option "tools" must be an array, and is an object.'],
    [{ name: "a", tools: [{ prepare: 1 }, {}] }, 'The option "tools[1]" must be a Tool, and is an object.']
  ]
  for (const [options, problem] of said) {
    it(`says ${problem ?? "nothing of valid options"}`, () => {
      assert.strictEqual(example(options), problem)
    })
  }

  const timed = check("time?:d;count?:n;list?:[s]")

  it("takes only texts with units for a duration", () => {
    const units = fc.constantFrom("weeks", "days", "hours", "minutes", "seconds", "milliseconds")
    fc.assert(
      fc.property(fc.dictionary(units, fc.nat(), { minKeys: 1 }), fc.stringMatching(/^[a-z]{1,9}$/), (time, other) => {
        assert.isUndefined(timed({ time }))
        if (/^(?:weeks|days|hours|minutes|(?:milli|micro|nano)?seconds)$/.test(other)) return
        for (const wrong of [{ [other]: 5 }, { ...time, [other]: 5 }]) {
          assert.strictEqual(timed({ time: wrong }), 'The option "time" must be a duration, and is an object.')
        }
      })
    )
    for (const time of [{ secnds: 5 }, {}, new Date(), new Map(), "5 secnds", true]) assert.isDefined(timed({ time }))
    for (const time of [5, 5n, "5 seconds", [1, 2], Duration.seconds(5)]) assert.isUndefined(timed({ time }))
  })

  it("takes a bigint for a duration, and for no number", () => {
    fc.assert(
      fc.property(fc.bigInt(), (count) => {
        assert.isUndefined(timed({ time: count }))
        assert.strictEqual(timed({ count }), 'The option "count" must be a number, and is a bigint.')
      })
    )
  })

  it("says null and undefined by their names", () => {
    assert.strictEqual(timed({ count: null }), 'The option "count" must be a number, and is null.')
    assert.strictEqual(timed({ list: [undefined] }), 'The option "list[0]" must be a string, and is undefined.')
  })

  it("refuses any other value without throwing", () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withMap: true, withSet: true, withBigInt: true }), (value) => {
        for (const [, shape] of shapes) check(shape)(value)
      })
    )
  })
})
