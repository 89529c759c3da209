/**
 * Texts with holes: the values that a template needs are in its type.
 *
 * ```ts
 * import { Template } from "effect-deepagents"
 *
 * const greeting = Template.make("Hello {user.name}, you have {count} {{new}} messages.")
 *
 * const text = Template.render(greeting, { user: { name: "Ada" }, count: 3 })
 * // Hello Ada, you have 3 {new} messages.
 * ```
 *
 * A hole is a name, or names with dots, in braces. `{{` and `}}` are braces. Other braces are text, such as those of JSON.
 */

/** The value of a hole. */
export type Value = string | number | boolean

/** A text with holes that are named by `Holes`. */
export interface Template<out Holes extends string = string> {
  readonly text: string
  /** The names of the holes, each once, in their order. */
  readonly holes: ReadonlyArray<Holes>
}

type NameCharacter =
  | "a"
  | "b"
  | "c"
  | "d"
  | "e"
  | "f"
  | "g"
  | "h"
  | "i"
  | "j"
  | "k"
  | "l"
  | "m"
  | "n"
  | "o"
  | "p"
  | "q"
  | "r"
  | "s"
  | "t"
  | "u"
  | "v"
  | "w"
  | "x"
  | "y"
  | "z"
  | "0"
  | "1"
  | "2"
  | "3"
  | "4"
  | "5"
  | "6"
  | "7"
  | "8"
  | "9"
  | "_"
  | "."

/** True for a text of letters, digits, underscores and dots. */
type IsName<S extends string> = S extends ""
  ? true
  : S extends `${infer First}${infer Rest}`
    ? Lowercase<First> extends NameCharacter
      ? IsName<Rest>
      : false
    : false

/** The names of the holes of a text. */
export type HolesIn<S extends string, Found extends string = never> = string extends S
  ? string
  : S extends `${infer _Before}{${infer After}`
    ? After extends `{${infer Rest}`
      ? HolesIn<Rest, Found>
      : After extends `${infer Name}}${infer Rest}`
        ? Name extends ""
          ? HolesIn<Rest, Found>
          : IsName<Name> extends true
            ? HolesIn<Rest, Found | Name>
            : HolesIn<After, Found>
        : Found
    : Found

type Head<Path extends string> = Path extends `${infer First}.${string}` ? First : Path
type Tail<Path extends string, First extends string> = Path extends `${First}.${infer Rest}` ? Rest : never

/** The values that holes need: of `{user.name}`, `{ user: { name } }`. */
export type Values<Holes extends string> = string extends Holes
  ? { readonly [name: string]: unknown }
  : {
      readonly [First in Head<Holes>]: [Tail<Holes, First>] extends [never] ? Value : Values<Tail<Holes, First>>
    }

type Some<V> = { readonly [Key in keyof V]?: V[Key] extends Value ? V[Key] : Some<V[Key]> }

/** Braces that are text, a hole, in this order. */
const marks = /\{\{|\}\}|\{([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)\}/g

/** Makes a template of a text. Its holes are inferred from a literal; of a text from a file, any values are taken. */
export const make = <const S extends string>(text: S): Template<HolesIn<S>> => {
  const names = Array.from(text.matchAll(marks), ([, name]) => name).filter((name) => name !== undefined)
  // The pattern and the type read the same names.
  return { text, holes: [...new Set<unknown>(names)] as ReadonlyArray<HolesIn<S>> }
}

const valueAt = (values: unknown, path: string): Value | undefined => {
  let value: unknown = values
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined
    value = Reflect.get(value, name)
  }
  return typeof value === "string" || typeof value === "number" || typeof value === "boolean" ? value : undefined
}

const escape = (text: string): string => text.replaceAll("{", "{{").replaceAll("}", "}}")

/**
 * Fills all holes. Braces in values are text: nothing in a value is a hole. A hole of a text from a file that has no value
 * stays as it is written.
 */
export const render = <Holes extends string>({ text }: Template<Holes>, values: Values<Holes>): string =>
  text.replaceAll(marks, (mark: string, name: string | undefined) => {
    if (name === undefined) return mark.slice(1)
    return String(valueAt(values, name) ?? mark)
  })

/** Fills some holes, and gives the template of the others. */
export const fill = <Holes extends string, const V extends Some<Values<Holes>>>(
  { text }: Template<Holes>,
  values: V
): Template<Exclude<Holes, PathsOf<V>>> => {
  const filled: string = text.replaceAll(marks, (mark: string, name: string | undefined) => {
    const value = name === undefined ? undefined : valueAt(values, name)
    return value === undefined ? mark : escape(String(value))
  })
  // The holes that have values are gone.
  return make(filled) as Template<Exclude<Holes, PathsOf<V>>>
}

/** The paths of the values of a record. */
type PathsOf<V> = {
  [Key in keyof V & string]: V[Key] extends Value ? Key : `${Key}.${PathsOf<V[Key]>}`
}[keyof V & string]
