/** Writes large JSON piece by piece. `JSON.stringify` of tens of megabytes stops the event loop for over 0.1 seconds. */
import * as Effect from "effect/Effect"

/** Characters of a piece: well under a millisecond. */
const most = 256 * 1024

/** An open list or object of the output. */
interface OpenValue {
  readonly keys: ReadonlyArray<string> | undefined
  readonly items: ReadonlyArray<unknown> | { readonly [key: string]: unknown }
  at: number
  isEmpty: boolean
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code < 0xdc00

/** The parts of a long text, cut between characters. */
const slices = function* (text: string): Generator<string> {
  for (let start = 0; start < text.length;) {
    let end = Math.min(text.length, start + most)
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end--
    yield text.slice(start, end)
    start = end
  }
}

/** Writes the start of a value. A list or an object is opened; a long text is yielded in slices. */
const begin = function* (value: unknown, text: string, open: Array<OpenValue>): Generator<string, string> {
  if (typeof value === "string" && value.length > most) {
    let rest = `${text}"`
    for (const slice of slices(value)) {
      yield rest
      rest = JSON.stringify(slice).slice(1, -1)
    }
    return `${rest}"`
  }
  if (typeof value !== "object" || value === null) return text + (JSON.stringify(value) ?? "null")
  const isList = Array.isArray(value)
  const items = value as OpenValue["items"]
  open.push({ keys: isList ? undefined : Object.keys(value), items, at: 0, isEmpty: true })
  return text + (isList ? "[" : "{")
}

/** Moves to the next item of a list or an object; `undefined` at its end. */
const nextItem = (last: OpenValue): { readonly prefix: string; readonly value: unknown } | undefined => {
  const { items, keys } = last
  if (keys === undefined) {
    if (!Array.isArray(items) || last.at >= items.length) return undefined
    const index = last.at++
    return { prefix: index > 0 ? "," : "", value: items[index] }
  }
  while (last.at < keys.length) {
    const key = keys[last.at++] ?? ""
    const value = (items as { readonly [key: string]: unknown })[key]
    if (value === undefined) continue
    const comma = last.isEmpty ? "" : ","
    last.isEmpty = false
    return { prefix: `${comma}${JSON.stringify(key)}:`, value }
  }
  return undefined
}

/** Yields the pieces of a JSON value; together they equal `JSON.stringify`. */
export const pieces = function* (value: unknown): Generator<string> {
  const open: Array<OpenValue> = []
  let text = yield* begin(value, "", open)
  for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
    if (text.length > most) {
      yield text
      text = ""
    }
    const next = nextItem(last)
    if (next === undefined) {
      text += last.keys === undefined ? "]" : "}"
      open.pop()
    } else text = yield* begin(next.value, text + next.prefix, open)
  }
  yield text
}

const encoder = new TextEncoder()

const collect = <A>(value: unknown, convert: (piece: string) => A): Effect.Effect<ReadonlyArray<A>> =>
  Effect.suspend(() => {
    const iterator = pieces(value)
    const collected: Array<A> = []
    const step: Effect.Effect<ReadonlyArray<A>> = Effect.suspend(() => {
      const piece = iterator.next()
      if (piece.done === true) return Effect.succeed(collected)
      collected.push(convert(piece.value))
      return Effect.flatMap(Effect.yieldNow, () => step)
    })
    return step
  })

/** Writes a value as JSON. */
export const stringify = (value: unknown): Effect.Effect<string> =>
  Effect.map(
    collect(value, (piece) => piece),
    (parts) => parts.join("")
  )

/** Writes a value as the bytes of its JSON, piece by piece. */
export const encode = (value: unknown): Effect.Effect<ReadonlyArray<Uint8Array>> =>
  collect(value, (piece) => encoder.encode(piece))

/** Counts the bytes of a value as JSON. */
export const measure = (value: unknown): Effect.Effect<number> =>
  Effect.map(
    collect(value, (piece) => encoder.encode(piece).length),
    (sizes) => sizes.reduce((sum, size) => sum + size, 0)
  )
