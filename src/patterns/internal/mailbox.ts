/**
 * Mailboxes in the tables of a storage. A message is one row under its number: who sets the row first has the number, so
 * senders in any process get numbers in a row. Nothing but a row that is set or missing decides anything.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Json } from "../../core/Json.ts"
import type { Storage, Table } from "../../stores/Storage.ts"
import { defined } from "../../support/json/defined.ts"
import { ChannelError, type Envelope, Wake } from "./envelope.ts"

/** A stored message. */
const Stored = Schema.fromJsonString(
  Schema.Struct({
    from: Schema.String,
    body: Json,
    at: Schema.Finite,
    key: Schema.optionalKey(Schema.String),
    wake: Schema.optionalKey(Wake)
  })
)
const encodeStored = Schema.encodeSync(Stored)
const decodeStored = Schema.decodeUnknownEffect(Stored)

interface Letter {
  readonly from: string
  readonly body: Json
  readonly at: number
  readonly key: string | undefined
  readonly wake: Wake | undefined
}

/** The attendant of a mailbox, and the end of its time, in milliseconds since the epoch. */
const Holder = Schema.fromJsonString(Schema.Struct({ by: Schema.String, until: Schema.Finite }))
const encodeHolder = Schema.encodeSync(Holder)
const decodeHolder = Schema.decodeUnknownResult(Holder)

/** The time for which an attendant has a mailbox, in milliseconds. */
const holdMillis = 10_000

/** Numbers as keys, in whose order they sort. */
const keyOf = (number: number): string => String(number).padStart(16, "0")

const numberIn = (key: string): number => Number(key)

/** The rows that are read at once. */
const page = 200

/**
 * Takes or keeps a mailbox for an attendant, unless another one has it. With `millis` 0 it is given back. Clocks decide
 * nothing but the pause after a kill: what two attendants write to one thread, the thread itself keeps apart.
 */
const holdIn = (table: Table) =>
  Effect.fnUntraced(function* (to: string, by: string, millis: number) {
    const now = yield* Clock.currentTimeMillis
    const row = yield* table.get(to, "holder")
    const holder = row === undefined ? undefined : Result.getOrUndefined(decodeHolder(row))
    if (holder !== undefined && holder.by !== by && holder.until > now) return false
    return yield* table.swap(to, "holder", row, encodeHolder({ by, until: now + millis }))
  })

export const makeMailbox = (storage: Storage["Service"]) => {
  const messages = storage.table("channel-messages")
  const acknowledged = storage.table("channel-acknowledged")
  /** The number of each message with a key. */
  const keys = storage.table("channel-keys")
  /** The number up to which everything is acknowledged: a hint, which may lag. */
  const lows = storage.table("channel-lows")
  const hold = holdIn(storage.table("channel-holders"))

  const failing =
    (operation: string, to: string) =>
    <A>(work: Effect.Effect<A, { readonly reason: "Corrupt" | "Unavailable"; readonly problem: string }>) =>
      Effect.mapError(
        work,
        ({ problem, reason }) => new ChannelError({ operation, to, reason: { _tag: reason, problem } })
      )

  const decodeLetter = (to: string, number: number, value: string) =>
    Effect.mapBoth(decodeStored(value), {
      onFailure: ({ message }) => ({ reason: "Corrupt" as const, problem: message }),
      onSuccess: ({ key, ...letter }) => ({ key, envelope: envelopeOf(to, number, letter) })
    })

  const nextNumber = (to: string) =>
    Effect.map(messages.scan(to, { limit: 1, reverse: true }), ([last]) =>
      last === undefined ? 1 : numberIn(last.key) + 1
    )

  const write = (letter: Letter): string => encodeStored(defined({ ...letter }))

  const envelopeOf = (
    to: string,
    number: number,
    { at, body, from, wake }: Pick<Letter, "at" | "body" | "from"> & { readonly wake?: Wake | undefined }
  ): Envelope => defined({ id: String(number), from, to, body, at, wake })

  const sendNew = Effect.fnUntraced(function* (to: string, letter: Letter) {
    const value = write(letter)
    for (let number = yield* nextNumber(to); ; number++) {
      if (yield* messages.swap(to, keyOf(number), undefined, value)) return envelopeOf(to, number, letter)
    }
  })

  const keyRow = (from: string, key: string): string => JSON.stringify([from, key])

  /**
   * Sends a message with a key. The row of the key names a number. The message is sent if it has that number, so of all
   * attempts one sends it. A number that another message has got is given up for a later one.
   */
  const sendOnce = Effect.fnUntraced(function* (to: string, letter: Letter, key: string) {
    const row = keyRow(letter.from, key)
    const value = write(letter)
    while (true) {
      const numberText = yield* keys.get(to, row)
      if (numberText === undefined) {
        yield* keys.swap(to, row, undefined, String(yield* nextNumber(to)))
        continue
      }
      const number = Number(numberText)
      if (yield* messages.swap(to, keyOf(number), undefined, value)) return envelopeOf(to, number, letter)
      const storedValue = yield* messages.get(to, keyOf(number))
      const other = storedValue === undefined ? undefined : yield* decodeLetter(to, number, storedValue)
      if (other?.key === key && other.envelope.from === letter.from) return other.envelope
      yield* keys.swap(to, row, numberText, String(Math.max(number + 1, yield* nextNumber(to))))
    }
  })

  const lowOf = (to: string) => Effect.map(lows.get(to, "low"), (value) => Number(value ?? 0))

  /** A page of messages behind a number, each with the news if it is acknowledged. */
  const pageAfter = Effect.fnUntraced(function* (to: string, after: number) {
    const rows = yield* messages.scan(to, { after: keyOf(after), limit: page })
    const acknowledgedKeys = new Set(
      (yield* acknowledged.scan(to, { after: keyOf(after), limit: page })).map(({ key }) => key)
    )
    return rows.map(({ key, value }) => ({ number: numberIn(key), value, isDone: acknowledgedKeys.has(key) }))
  })

  const receive = Effect.fnUntraced(function* (to: string, most: number) {
    const envelopes: Array<Envelope> = []
    let after = yield* lowOf(to)
    while (envelopes.length < most) {
      const rows = yield* pageAfter(to, after)
      for (const { isDone, number, value } of rows) {
        after = number
        if (!isDone && envelopes.length < most) envelopes.push((yield* decodeLetter(to, number, value)).envelope)
      }
      if (rows.length < page) break
    }
    return envelopes
  })

  const acknowledge = Effect.fnUntraced(function* (to: string, ids: ReadonlyArray<string>) {
    const numbers = ids.map(Number).filter((number) => Number.isSafeInteger(number) && number > 0)
    const rows = yield* Effect.filter(
      [...new Set(numbers)].map((number) => ({ key: keyOf(number), value: "1" })),
      ({ key }) => Effect.map(messages.get(to, key), (message) => message !== undefined)
    )
    if (rows.length > 0) yield* acknowledged.put(to, rows)
    let low = yield* lowOf(to)
    const from = low
    while (true) {
      const all = yield* pageAfter(to, low)
      const open = all.findIndex(({ isDone }) => !isDone)
      const prefix = open === -1 ? all : all.slice(0, open)
      low = prefix.at(-1)?.number ?? low
      if (open !== -1 || all.length < page) break
    }
    if (low > from) yield* lows.put(to, [{ key: "low", value: String(low) }])
  })

  return {
    hold: (to: string, by: string) => failing("hold", to)(hold(to, by, holdMillis)),
    release: (to: string, by: string) => failing("release", to)(Effect.asVoid(hold(to, by, 0))),
    send: (to: string, letter: Letter) =>
      failing("send", to)(letter.key === undefined ? sendNew(to, letter) : sendOnce(to, letter, letter.key)),
    /** The message that a key was sent by, if its sending has ended. */
    findSent: (to: string, from: string, key: string) =>
      Effect.gen(function* () {
        const number = Number(yield* keys.get(to, keyRow(from, key)))
        const value = Number.isNaN(number) ? undefined : yield* messages.get(to, keyOf(number))
        if (value === undefined) return undefined
        const letter = yield* decodeLetter(to, number, value)
        return letter.key === key && letter.envelope.from === from ? letter.envelope : undefined
      }).pipe(failing("send", to)),
    receive: (to: string, most: number) => failing("receive", to)(receive(to, most)),
    acknowledge: (to: string, ids: ReadonlyArray<string>) => failing("acknowledge", to)(acknowledge(to, ids)),
    pending: (to: string) =>
      failing(
        "pending",
        to
      )(Effect.zipWith(messages.count(to), acknowledged.count(to), (all, doneCount) => Math.max(0, all - doneCount))),
    history: (to: string): Stream.Stream<Envelope, ChannelError> =>
      Stream.paginate(0, (after: number) =>
        Effect.gen(function* () {
          const rows = yield* messages.scan(to, { after: keyOf(after), limit: page })
          const all = yield* Effect.forEach(rows, ({ key, value }) => decodeLetter(to, numberIn(key), value))
          const last = rows.at(-1)
          const next =
            last === undefined || rows.length < page ? Option.none<number>() : Option.some(numberIn(last.key))
          return [all.map(({ envelope }) => envelope), next] as const
        }).pipe(failing("history", to))
      )
  }
}
