/** Results that a model knows by name: the visible form of them, and the texts for the names. */
import * as Schema from "effect/Schema"
import * as AgentState from "../../../core/AgentState.ts"
import { isObject, Json, type JsonObject } from "../../../core/Json.ts"

/**
 * A hidden result. `callId` is its call. The texts of the fields in `typed` are shown. `isServers`: the result is from
 * a server's tool, which also chose the names of the fields. `isAnswer`: it is an answer of the reader, which the text
 * may control.
 */
const Hidden = Schema.Struct({
  callId: Schema.String,
  value: Json,
  typed: Schema.Array(Schema.String),
  isServers: Schema.Boolean,
  isAnswer: Schema.Boolean
})
export type HiddenText = typeof Hidden.Type

const prefix = "hidden."

/** The hidden results, each in a slot of its own, shared by the whole tree of agents. */
const slotOf = AgentState.family(prefix, {
  schema: Schema.NullOr(Hidden),
  initial: null,
  shared: { merge: (current, incoming) => current ?? incoming }
})

/** The number of the last result, and the calls that handed hidden text to the tool which made them. */
const Count = Schema.Struct({ last: Schema.Finite, outer: Schema.Array(Schema.String) })

export const count: AgentState.Slot<typeof Count.Type> = AgentState.slot("hidden", {
  schema: Count,
  initial: { last: 0, outer: [] },
  shared: {
    merge: (current, incoming) =>
      incoming.last <= current.last && incoming.outer.every((one) => current.outer.includes(one))
        ? current
        : {
            last: Math.max(current.last, incoming.last),
            outer: [...new Set([...current.outer, ...incoming.outer])]
          }
  }
})

export const at = (id: string): AgentState.Slot<HiddenText | null> => slotOf(id)

export const slotPrefix = prefix

const nameRule = /\{\{\s*r(\d+)((?:\.[\w-]+)*)\s*\}\}/g

/** A name in a text: the number of a result, and the path of the part that is meant. */
export interface Name {
  readonly id: string
  readonly path: ReadonlyArray<string>
}

const nameOf = ([, id = "", path = ""]: RegExpMatchArray): Name => ({
  id: `r${id}`,
  path: path.split(".").slice(1)
})

/** The names in a text. */
export const namesIn = (text: string): ReadonlyArray<Name> => [...text.matchAll(nameRule)].map(nameOf)

/** The name that a text is and nothing else. */
export const wholeName = (text: string): Name | undefined => {
  const matches = [...text.matchAll(nameRule)]
  return matches.length === 1 && matches[0]?.[0] === text.trim() && matches[0] !== undefined
    ? nameOf(matches[0])
    : undefined
}

const wordRule = /^[A-Za-z_][\w-]{0,31}$/

/** The fields of an object, each with the name that it has for the model. A key that may be prose is numbered. */
const fieldsOf = (value: JsonObject, { isServers, typed }: HiddenText) =>
  Object.entries(value).map(([key, one], index) => ({
    key,
    one,
    name: wordRule.test(key) && (!isServers || typed.includes(key)) ? key : `field${index}`
  }))

/** Parts that are not prose, whatever field they are in. */
const dateRule = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$/

/** The longest text of a typed field. */
const longest = 100

const isTyped = (text: string, field: string, typed: ReadonlyArray<string>): boolean =>
  text === "" ||
  dateRule.test(text) ||
  ((typed.includes(field) || typed.includes("*")) && text.length <= longest && !/[\p{Cc}\u2028\u2029]/u.test(text))

type Visit = (leaf: Json, name: Name, isTyped: boolean) => Json

/** Makes a value with each of its leaves replaced. */
const replace = (hidden: HiddenText, value: Json, name: Name, field: string, visit: Visit): Json => {
  const step = (one: Json, path: string, field: string): Json =>
    replace(hidden, one, { ...name, path: [...name.path, path] }, field, visit)
  if (Array.isArray(value)) return value.map((one, index) => step(one, String(index), field))
  if (isObject(value)) {
    return Object.fromEntries(
      fieldsOf(value, hidden).map((one) => [
        isTyped(one.key, "*", hidden.typed) ? one.key : one.name,
        step(one.one, one.name, one.key)
      ])
    )
  }
  return visit(value, name, typeof value !== "string" || isTyped(value, field, hidden.typed))
}

const textOfName = ({ id, path }: Name): string => `{{${[id, ...path].join(".")}}}`

/** A result as the model is shown it: names in place of texts. */
export const textOfHidden = (id: string, hidden: HiddenText): string => {
  const value = replace(hidden, hidden.value, { id, path: [] }, "", (leaf, name, isTyped) =>
    isTyped ? leaf : textOfName(name)
  )
  return typeof value === "string" ? value : JSON.stringify(value)
}

/** The leaves of a result whose whole values stand for themselves. */
export const typedLeaves = (hidden: HiddenText): ReadonlyArray<string | number> => {
  // The reader's answer may look like a typed value, but the text may control it.
  if (hidden.isAnswer) return []
  const leaves: Array<string | number> = []
  replace(hidden, hidden.value, { id: "", path: [] }, "", (leaf, _name, isTyped) => {
    if (isTyped && (typeof leaf === "string" || typeof leaf === "number")) leaves.push(leaf)
    return leaf
  })
  return leaves
}

/** The part of a result that a name is for, and whether it is a whole value of a typed field. */
export const partAt = (
  hidden: HiddenText,
  { path }: Name
): { readonly value: Json; readonly isTyped: boolean } | undefined => {
  let value: Json = hidden.value
  let field = ""
  for (const step of path) {
    const fields: ReturnType<typeof fieldsOf> = isObject(value) ? fieldsOf(value, hidden) : []
    const match = fields.find(({ name }) => name === step)
    const next: Json | undefined = Array.isArray(value) ? value[Number(step)] : match?.one
    if (next === undefined) return undefined
    field = match?.key ?? field
    value = next
  }
  const isLeaf = typeof value === "number" || (typeof value === "string" && isTyped(value, field, hidden.typed))
  return { value, isTyped: isLeaf && !hidden.isAnswer }
}

const textOf = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value))

/** Fills in the names of a text in one pass: inserted texts are not searched again. */
export const fill = (text: string, find: (name: Name) => Json | undefined): string =>
  text.replaceAll(nameRule, (whole, id: string, path: string) => {
    const value = find({ id: `r${id}`, path: path.split(".").slice(1) })
    return value === undefined ? whole : textOf(value)
  })

/** A value with the names in all its texts filled in. */
export const fillAll = (value: Json, find: (name: Name) => Json | undefined): Json =>
  typeof value === "string"
    ? fill(value, find)
    : Array.isArray(value)
      ? value.map((one) => fillAll(one, find))
      : isObject(value)
        ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fillAll(one, find)]))
        : value

/** The texts and numbers in a value. */
export const leavesOf = (value: Json): ReadonlyArray<string | number> =>
  typeof value === "string" || typeof value === "number"
    ? [value]
    : Array.isArray(value)
      ? value.flatMap(leavesOf)
      : isObject(value)
        ? Object.values(value).flatMap(leavesOf)
        : []
