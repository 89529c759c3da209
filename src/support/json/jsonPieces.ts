/** Writes large JSON piece by piece. `JSON.stringify` of tens of megabytes stops the event loop for over 0.1 seconds. */
import * as Effect from "effect/Effect"

/** Characters of a piece: well under a millisecond. */
const most = 256 * 1024

/** An open list or object of the output. */
interface Open {
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

/** Yields the pieces of a JSON value; together they equal `JSON.stringify`. */
export const pieces = function* (value: unknown): Generator<string> {
  const open: Array<Open> = []
  let text = ""
  let next: { readonly value: unknown } | undefined = { value }
  for (;;) {
    if (next !== undefined) {
      const one: unknown = next.value
      next = undefined
      if (typeof one === "string" && one.length > most) {
        text += '"'
        for (const slice of slices(one)) {
          yield text
          text = JSON.stringify(slice).slice(1, -1)
        }
        text += '"'
      } else if (Array.isArray(one)) {
        text += "["
        open.push({ keys: undefined, items: one, at: 0, isEmpty: true })
      } else if (typeof one === "object" && one !== null) {
        text += "{"
        open.push({ keys: Object.keys(one), items: one as { [key: string]: unknown }, at: 0, isEmpty: true })
      } else text += JSON.stringify(one) ?? "null"
    }
    if (text.length > most) {
      yield text
      text = ""
    }
    const last = open.at(-1)
    if (last === undefined) break
    const { items, keys } = last
    const index = last.at++
    if (keys === undefined && Array.isArray(items) && index < items.length) {
      if (index > 0) text += ","
      next = { value: items[index] }
    } else if (keys !== undefined && index < keys.length) {
      const key = keys[index] ?? ""
      const item = (items as { readonly [key: string]: unknown })[key]
      if (item === undefined) continue
      text += `${last.isEmpty ? "" : ","}${JSON.stringify(key)}:`
      last.isEmpty = false
      next = { value: item }
    } else {
      text += keys === undefined ? "]" : "}"
      open.pop()
    }
  }
  yield text
}

const encoder = new TextEncoder()

const collect = <A>(value: unknown, convert: (piece: string) => A): Effect.Effect<ReadonlyArray<A>> =>
  Effect.suspend(() => {
    const left = pieces(value)
    const collected: Array<A> = []
    const step: Effect.Effect<ReadonlyArray<A>> = Effect.suspend(() => {
      const piece = left.next()
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
