/** Reads `export const meta = { … }` at the head of a script, without running the script. */
import * as Result from "effect/Result"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { didYouMean } from "../../../support/text/names.ts"
import { cut } from "../../../support/text/text.ts"

/** Each part is bounded, or begins where no other one can: the search takes time in proportion to the script. */
const head = /^[^\S\n]*export\s+(?:const|let|var)\s+meta\s*(?::[^={;]{0,500})?=\s*/m

/** The deepest that literals may be nested. */
const maxDepth = 20

const constants: ReadonlyMap<string, Json> = new Map<string, Json>([
  ["true", true],
  ["false", false],
  ["null", null],
  ["undefined", null]
])

const escapes: { readonly [letter: string]: string } = {
  n: "\n",
  t: "\t",
  r: "\r",
  b: "\b",
  f: "\f",
  v: "\v",
  "0": "\0"
}

/** Reads one literal of objects, lists, texts and numbers. Fails by `undefined`. */
const makeReader = (source: string, from: number) => {
  let at = from

  const skip = (): void => {
    const space = /(?:\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y
    space.lastIndex = at
    at += space.exec(source)?.[0].length ?? 0
  }

  const takeMatch = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    const match = pattern.exec(source)?.[0]
    if (match !== undefined) at += match.length
    return match
  }

  const takeChar = (char: string): boolean => {
    skip()
    if (source[at] !== char) return false
    at++
    return true
  }

  const readText = (quote: string): string | undefined => {
    let text = ""
    while (at < source.length) {
      const char = source[at++] ?? ""
      if (char === quote) return text
      if (char === "\n" && quote !== "`") return undefined
      if (quote === "`" && char === "$" && source[at] === "{") return undefined
      if (char !== "\\") {
        text += char
        continue
      }
      const letter = source[at++] ?? ""
      const code =
        letter === "u" ? takeMatch(/[0-9a-fA-F]{4}/y) : letter === "x" ? takeMatch(/[0-9a-fA-F]{2}/y) : undefined
      if ((letter === "u" || letter === "x") && code === undefined) return undefined
      text +=
        code === undefined
          ? letter === "\n"
            ? ""
            : (valueAt(escapes, letter) ?? letter)
          : String.fromCharCode(parseInt(code, 16))
    }
    return undefined
  }

  const readKey = (): string | undefined => {
    skip()
    const quote = source[at]
    if (quote === '"' || quote === "'") {
      at++
      return readText(quote)
    }
    return takeMatch(/[\p{ID_Start}$_][\p{ID_Continue}$]*|\d+/uy)
  }

  const readItems = (end: string, readItem: () => boolean): boolean => {
    while (!takeChar(end)) {
      if (!readItem()) return false
      if (takeChar(",")) continue
      return takeChar(end)
    }
    return true
  }

  const readObject = (depth: number): Json | undefined => {
    const entries: Array<readonly [string, Json]> = []
    const isRead = readItems("}", () => {
      const key = readKey()
      if (key === undefined || !takeChar(":")) return false
      const value = readValue(depth)
      if (value === undefined) return false
      entries.push([key, value])
      return true
    })
    return isRead ? Object.fromEntries(entries) : undefined
  }

  const readList = (depth: number): Json | undefined => {
    const items: Array<Json> = []
    const isRead = readItems("]", () => {
      const value = readValue(depth)
      if (value === undefined) return false
      items.push(value)
      return true
    })
    return isRead ? items : undefined
  }

  const readValue = (depth: number): Json | undefined => {
    skip()
    const char = source[at] ?? ""
    if (depth > maxDepth) return undefined
    if (char === '"' || char === "'" || char === "`") {
      at++
      return readText(char)
    }
    if (char === "{" || char === "[") {
      at++
      return char === "{" ? readObject(depth + 1) : readList(depth + 1)
    }
    const number = takeMatch(/-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/y)
    if (number !== undefined) return Number.isFinite(Number(number)) ? Number(number) : undefined
    const word = takeMatch(/[a-z]+/y)
    return word === undefined ? undefined : constants.get(word)
  }

  return { readHead: () => readValue(0) }
}

/** What a script says of itself. */
export interface Meta {
  readonly name: string | undefined
  readonly description: string
  readonly phases: ReadonlyArray<string>
}

const none: Meta = { name: undefined, description: "", phases: [] }

const textAt = (value: Json | undefined, key: string): string | undefined => {
  const field = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined
  return typeof field === "string" ? field : undefined
}

const titleOf = (phase: Json): string => (typeof phase === "string" ? phase : (textAt(phase, "title") ?? ""))

/** The beginning of a head that may have a misspelt name. */
const anyHead = /^[^\S\n]*export\s+(?:const|let|var)\s+([\w$]{1,40})/m

/** Finds a misspelt head. Other lines with `export` may stand in texts of the script. */
const findMisspelt = (source: string): string | undefined => {
  const name = anyHead.exec(source)?.[1] ?? ""
  const hint = name === "meta" ? "" : didYouMean(name, ["meta"])
  return hint === "" ? undefined : `it exports ${JSON.stringify(name)}.${hint}`
}

const fields = ["name", "description", "phases"] as const

/** Finds a field of a head that is misspelt, or of another kind. Fields of other programs are ignored. */
const findWrongField = (meta: JsonObject): string | undefined => {
  const open = fields.filter((field) => !Object.hasOwn(meta, field))
  for (const [field, value] of Object.entries(meta)) {
    const hint = fields.some((one) => one === field) ? "" : didYouMean(field, open)
    if (hint !== "") return `its \`meta\` has ${JSON.stringify(cut(field, 40))}.${hint}`
    if (field === "phases" && !Array.isArray(value)) return "its `phases` must be a list"
    if ((field === "name" || field === "description") && typeof value !== "string")
      return `its \`${field}\` must be a text`
  }
  return undefined
}

/** Reads the head of a script. A script without a head has no name. */
export const readMeta = (source: string): Result.Result<Meta, string> => {
  const match = head.exec(source)
  if (match === null) {
    const problem = findMisspelt(source)
    return problem === undefined ? Result.succeed(none) : Result.fail(problem)
  }
  const value = makeReader(source, match.index + match[0].length).readHead()
  if (!isObject(value)) {
    return Result.fail("its `meta` is no plain object: write texts, numbers, lists and objects, without expressions")
  }
  const problem = findWrongField(value)
  if (problem !== undefined) return Result.fail(problem)
  const phases = Object.hasOwn(value, "phases") ? value["phases"] : undefined
  return Result.succeed({
    name: textAt(value, "name"),
    description: textAt(value, "description") ?? "",
    phases: Array.isArray(phases) ? phases.map(titleOf).filter((title) => title !== "") : []
  })
}

/** The body of a script: the head stays, as a constant. */
export const bodyOf = (source: string): string =>
  source.replace(head, (text) => text.replace(/export(\s+)/, (_, space: string) => `      ${space}`))
