/**
 * The book of an inbox: claims, sent notifications, and the counts of a classifier. It is a thread of the same store, so
 * it works with every store. Each change is an append that checks the leaf.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Principal } from "../../core/Approval.ts"
import { makeId } from "../../core/Message.ts"
import type { SessionError } from "../../core/SessionError.ts"
import type { Service } from "../../core/SessionStore.ts"

/** The thread of the book. */
export const bookId = "deepagents/inbox"

/** The claim of a request, until a time. */
export const Claim = Schema.Struct({ by: Principal, until: Schema.Finite })
export interface Claim extends Schema.Schema.Type<typeof Claim> {}

/** The counts of a classifier: refusals by thread, requests left to people, and failures in a row. */
const Judged = Schema.Struct({
  refusals: Schema.Record(Schema.String, Schema.Finite),
  left: Schema.Array(Schema.String),
  failures: Schema.Finite,
  failedAt: Schema.Finite
})
export interface ThreadBook extends Schema.Schema.Type<typeof Judged> {}

const unjudged: ThreadBook = { refusals: {}, left: [], failures: 0, failedAt: 0 }

const Book = Schema.Struct({
  claims: Schema.Record(Schema.String, Claim),
  told: Schema.Record(Schema.String, Schema.Finite),
  // The notifications that are being sent, with the end of the reservation. Old books have none.
  telling: Schema.Record(Schema.String, Schema.Finite).pipe(Schema.withDecodingDefaultKey(Effect.succeed({}))),
  judged: Judged.pipe(Schema.withDecodingDefaultKey(Effect.succeed(unjudged)))
})
export interface Book extends Schema.Schema.Type<typeof Book> {}

const empty: Book = { claims: {}, told: {}, telling: {}, judged: unjudged }

const decode = Schema.decodeUnknownResult(Book)

const attempts = 50

/** Reads and changes the book. Of two changes at once, one is tried again. */
export const make = (store: Service) => {
  const created = Effect.catchIf(
    Effect.asVoid(store.create({ threadId: bookId, metadata: { kind: "inbox" } })),
    (error) => error.reason._tag === "AlreadyExists",
    () => Effect.void
  )
  const page = Effect.catchIf(
    store.load(bookId, { limit: 1 }),
    (error) => error.reason._tag === "NotFound",
    () => Effect.andThen(created, store.load(bookId, { limit: 1 }))
  )
  const current = Effect.map(page, ({ entries }) => {
    const [last] = entries
    const value = last?.entry._tag === "State" ? last.entry.value : undefined
    return { leaf: last?.id ?? null, book: Result.getOrElse(decode(value), () => empty) }
  })

  /** Changes the book. Without a new book, nothing is written. */
  const change = <A>(
    f: (book: Book) => { readonly value: A; readonly book: Book | undefined }
  ): Effect.Effect<A, SessionError> =>
    Effect.gen(function* () {
      for (let attempt = 1; ; attempt++) {
        const { book, leaf } = yield* current
        const next = f(book)
        if (next.book === undefined) return next.value
        const entry = { _tag: "State" as const, slot: "inbox", value: Schema.encodeSync(Book)(next.book) }
        const isWritten = yield* store.append(bookId, { leaf, behind: null, entries: [{ id: makeId(), entry }] }).pipe(
          Effect.as(true),
          Effect.catchIf(
            (error) => error.reason._tag === "Conflict" && attempt < attempts,
            () => Effect.succeed(false)
          )
        )
        if (isWritten) return next.value
      }
    })

  return { read: Effect.map(current, ({ book }) => book), change }
}
