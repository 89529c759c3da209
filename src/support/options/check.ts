/**
 * Checks the options of constructors at run time, for programs without types: unknown names, missing options, values of
 * a wrong kind.
 *
 * `npm run options` writes the shapes from the types. A shape is a text: `name:s;tools?:a;mode:'ask''suspend'`. A kind
 * is one or several alternatives: `s` string, `n` number, `b` boolean, `f` function, `a` array, `o` object, `d`
 * duration, `t` set, `m` map, `z` null, `*` anything, `'x'` a literal, `~effect/Layer~` a value with this key,
 * `~Tool:prepare~` the same with its name, `{…}` fields, `[…]` an array of a kind, `<…>` a record of a kind.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { TaggedError } from "../effect/taggedError.ts"
import { valueAt } from "../json/valueAt.ts"
import { didYouMean } from "../text/names.ts"
import { suggestion } from "../text/near.ts"

/** A problem at a path below the value that was checked. */
interface Problem {
  readonly path: string
  readonly say: (path: string) => string
}

type Find = (value: unknown) => Problem | undefined

/** A key by which a value is known, and the name of such values. */
interface Brand {
  readonly key: string
  readonly name: string
}

/** The alternatives of a value. */
interface Kind {
  readonly letters: string
  readonly literals: ReadonlyArray<string>
  readonly brands: ReadonlyArray<Brand>
  readonly items?: Find | undefined
  readonly values?: Find | undefined
  readonly fields?: Find | undefined
}

const words: { readonly [letter: string]: string } = {
  s: "a string",
  n: "a number",
  b: "a boolean",
  f: "a function",
  a: "an array",
  o: "an object",
  d: "a duration",
  t: "a Set",
  m: "a Map",
  z: "null"
}

const brandOf = (text: string): Brand => {
  const [named = "", mark] = text.split(":")
  const key = mark ?? `~${named}`
  const name = key === "~standard" ? "Standard Schema" : named.slice(named.lastIndexOf("/") + 1)
  return { key, name: `${/^[AEIOU]/.test(name) ? "an" : "a"} ${name}` }
}

const wantedBy = ({ brands, fields, items, letters, literals, values }: Kind): string => {
  const nested = [...(items === undefined ? [] : ["a"]), ...((values ?? fields) ? ["o"] : [])]
  const all = [
    ...literals.map((literal) => JSON.stringify(literal)),
    ...[...letters, ...nested].flatMap((letter) => valueAt(words, letter) ?? []),
    ...brands.map(({ name }) => name)
  ]
  return all.length < 2 ? all.join("") : `${all.slice(0, -1).join(", ")} or ${all.at(-1)}`
}

/** Describes a value. Only texts that can't be secrets are shown. */
const describeValue = (value: unknown, isShown: boolean): string => {
  if (typeof value === "string" && isShown) return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value)
  if (value === null || value === undefined) return String(value)
  if (Array.isArray(value)) return "an array"
  if (typeof value === "number" || typeof value === "boolean") return String(value)
  return `${typeof value === "object" ? "an" : "a"} ${typeof value}`
}

const mismatch = (kind: Kind, value: unknown): Problem => {
  const isShown = kind.literals.length > 0 || kind.letters.includes("d")
  const near = typeof value === "string" && kind.literals.length > 0 ? didYouMean(value, kind.literals) : ""
  const hint = kind.brands.some(({ key }) => key === "~effect/Redacted") ? " Make one with Redacted.make." : ""
  const says = `${wantedBy(kind)}, and`
  return {
    path: "",
    say: (path) =>
      path === ""
        ? `The options must be ${says} are ${describeValue(value, isShown)}.`
        : `The option "${path.replace(/^\./, "")}" must be ${says} is ${describeValue(value, isShown)}.${near}${hint}`
  }
}

const below = (segment: string, { path, say }: Problem): Problem => ({ path: `${segment}${path}`, say })

const units: ReadonlySet<string> = new Set([
  "weeks",
  "days",
  "hours",
  "minutes",
  "seconds",
  "milliseconds",
  "microseconds",
  "nanoseconds"
])

/** False for objects without units, such as misspelt ones: Effect reads them as no time at all. */
const hasUnits = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null || Array.isArray(value) || Duration.isDuration(value)) return true
  const keys = Object.keys(value)
  return keys.length > 0 && keys.every((key) => units.has(key))
}

const isDuration = (value: unknown): boolean =>
  typeof value === "number" ||
  typeof value === "bigint" ||
  (hasUnits(value) && Option.isSome(Duration.fromInput(value as Duration.Input)))

const hasBrand = (brands: ReadonlyArray<Brand>, value: object): boolean => {
  for (const { key } of brands) if (key in value) return true
  return false
}

const findOf = (kind: Kind): Find => {
  const { brands, fields, items, letters, literals, values } = kind
  if (letters.includes("*")) return () => undefined
  const has = (letter: string) => letters.includes(letter)
  const [isString, isNumber, isBoolean, isFunction] = [has("s"), has("n"), has("b"), has("f")]
  const [isArray, isObject, isTime, isSet, isMap] = [has("a"), has("o"), has("d"), has("t"), has("m")]
  const isNull = has("z")
  const fitsObject = (value: object): boolean =>
    isObject ||
    hasBrand(brands, value) ||
    (isSet && "has" in value && !("get" in value)) ||
    (isMap && "get" in value && "has" in value) ||
    (isTime && isDuration(value))
  // oxlint-disable-next-line eslint/complexity -- one branch for each type of JavaScript
  return (value) => {
    // oxlint-disable-next-line typescript/switch-exhaustiveness-check -- symbols fit no kind
    switch (typeof value) {
      case "string":
        if (isString || literals.includes(value) || (isTime && isDuration(value))) return undefined
        break
      case "number":
        if (isNumber || isTime) return undefined
        break
      case "bigint":
        if (isTime) return undefined
        break
      case "boolean":
        if (isBoolean) return undefined
        break
      case "function":
        // Classes of services and schemas are functions.
        if (isFunction || isObject || hasBrand(brands, value)) return undefined
        break
      case "object":
        if (value === null) {
          if (isNull) return undefined
        } else if (Array.isArray(value)) {
          if (isArray || (isTime && isDuration(value))) return undefined
          if (items !== undefined) return items(value)
        } else {
          if (fitsObject(value)) return undefined
          const nested = fields ?? values
          if (nested !== undefined) return nested(value)
        }
    }
    return mismatch(kind, value)
  }
}

const findInArray =
  (find: Find): Find =>
  (value) => {
    if (!Array.isArray(value)) return undefined
    for (let index = 0; index < value.length; index++) {
      const problem = find(value[index])
      if (problem !== undefined) return below(`[${index}]`, problem)
    }
    return undefined
  }

type Properties = { readonly [key: string]: unknown }

const findInRecord =
  (find: Find): Find =>
  (value) => {
    const record = value as Properties
    for (const key in record) {
      const one = record[key]
      const problem = one === undefined ? undefined : find(one)
      if (problem !== undefined) return below(`.${key}`, problem)
    }
    return undefined
  }

const unknownOption = (name: string, names: Iterable<string>): Problem => ({
  path: `.${name}`,
  say: (path) => `There is no option "${path.slice(1)}". ${suggestion(name, [...names])}`
})

const missingOption = (name: string): Problem => ({
  path: `.${name}`,
  say: (path) => `The option "${path.slice(1)}" is missing.`
})

const findInFields =
  (byName: ReadonlyMap<string, Find>, required: ReadonlyArray<string>): Find =>
  (value) => {
    const options = value as Properties
    for (const name in options) {
      const one = options[name]
      if (one === undefined) continue
      const find = byName.get(name)
      if (find === undefined) {
        // A value that a constructor made has keys of its own.
        if (name.startsWith("~")) continue
        return unknownOption(name, byName.keys())
      }
      const problem = find(one)
      if (problem !== undefined) return below(`.${name}`, problem)
    }
    for (const name of required) if (options[name] === undefined) return missingOption(name)
    return undefined
  }

/** Reads the fields of a shape. */
const parse = (shape: string): Find => {
  let at = 0
  const until = (end: string): string => {
    const to = shape.indexOf(end, at)
    const text = shape.slice(at, to)
    at = to + end.length
    return text
  }
  const kindOf = (): Find => {
    let letters = ""
    const literals: Array<string> = []
    const brands: Array<Brand> = []
    let nested: Pick<Kind, "items" | "values" | "fields"> = {}
    while (at < shape.length && !";}]>".includes(shape[at] ?? "")) {
      const letter = shape[at++] ?? ""
      if (letter === "'") literals.push(until("'"))
      else if (letter === "~") brands.push(brandOf(until("~")))
      else if (letter === "{") nested = { ...nested, fields: fieldsOf() }
      else if (letter === "[") nested = { ...nested, items: findInArray(kindOf()) }
      else if (letter === "<") nested = { ...nested, values: findInRecord(kindOf()) }
      else letters += letter
      if ("{[<".includes(letter)) at++
    }
    return findOf({ letters, literals, brands, ...nested })
  }
  const fieldsOf = (): Find => {
    const byName = new Map<string, Find>()
    const required: Array<string> = []
    while (at < shape.length && shape[at] !== "}") {
      const name = until(":")
      const isOptional = name.endsWith("?")
      if (!isOptional) required.push(name)
      byName.set(isOptional ? name.slice(0, -1) : name, kindOf())
      if (shape[at] === ";") at++
    }
    return findInFields(byName, required)
  }
  return findOf({ letters: "", literals: [], brands: [], fields: fieldsOf() })
}

/** Finds the problem of options; else `undefined`. */
export type Check = (options: unknown) => string | undefined

const noOptions = {}

/** Makes the check of a constructor's options. The shape is read when the check is first needed. */
export const check = (shape: string): Check => {
  let find: Find | undefined
  return (options) => {
    find ??= parse(shape)
    const problem = find(options === undefined ? noOptions : options)
    return problem?.say(problem.path)
  }
}

/** Options that their type refuses, in a constructor whose effect or layer can't fail: it dies with this. */
class InvalidOptions extends TaggedError<InvalidOptions>()("InvalidOptions", {
  where: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `${this.where}: ${this.problem}`
  }
}

type Fail<E> = (where: string, problem: string, options: unknown) => Effect.Effect<never, E>

const dieOf: Fail<never> = (where, problem) => Effect.die(new InvalidOptions({ where, problem }))

/** Makes the check of an effect's options: wrong ones give an effect that fails, or dies without a failure of its own. */
export const makeEffectCheck = <E = never>(
  where: string,
  shape: string,
  fail: Fail<E> = dieOf
): ((options: unknown) => Effect.Effect<never, E> | undefined) => {
  const find = check(shape)
  return (options) => {
    const problem = find(options)
    return problem === undefined ? undefined : fail(where, problem, options)
  }
}

/** Makes the check of a layer's options, like {@link makeEffectCheck}. */
export const makeLayerCheck = <E = never>(
  where: string,
  shape: string,
  fail?: Fail<E>
): ((options: unknown) => Layer.Layer<unknown, E> | undefined) => {
  const refuse = makeEffectCheck(where, shape, fail)
  return (options) => {
    const refused = refuse(options)
    return refused === undefined ? undefined : Layer.effectContext(refused)
  }
}
