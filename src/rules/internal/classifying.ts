/**
 * A classifier that decides on what waits in threads. What it left to people, its refusals and its failures are in the
 * book, so that they hold in every process.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Approval from "../../core/Approval.ts"
import * as ApprovalClassifier from "../../middleware/ApprovalClassifier.ts"
import type { Book, Judged } from "./book.ts"
import type { ClassifyOptions, InboxError, Item, Service } from "./inboxModel.ts"

const rest = 60_000

/** The book is written as a whole: of so many threads the refusals are known, those of the last ones. */
const mostThreads = 1_000

/** The work that a sweep needs of an inbox. */
interface Desk {
  readonly list: Effect.Effect<ReadonlyArray<Item>, InboxError>
  readonly decide: Service["decide"]
  readonly read: Effect.Effect<Book, InboxError>
  readonly change: (f: (judged: Judged) => Judged) => Effect.Effect<void, InboxError>
}

const threadOf = ({ id, threadId }: Item): string => threadId ?? id

const valueIn = <A>(record: { readonly [name: string]: A }, name: string): A | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined

/** Counts a refusal. The thread is the last of the record then. */
const refused =
  (thread: string) =>
  (judged: Judged): Judged => {
    const others = Object.entries(judged.refusals).filter(([name]) => name !== thread)
    const kept = others.slice(Math.max(0, others.length + 1 - mostThreads))
    return { ...judged, refusals: Object.fromEntries([...kept, [thread, (valueIn(judged.refusals, thread) ?? 0) + 1]]) }
  }

/** Has the classifier decide once on all that it may. */
export const classifyBy =
  ({ change, decide, list, read }: Desk) =>
  <E, R>(options: ClassifyOptions<E, R>) =>
    Effect.gen(function* () {
      const { by } = options
      const { judged } = yield* read
      const now = yield* Clock.currentTimeMillis
      if (judged.failures >= ApprovalClassifier.most.failures && now < judged.failedAt + rest) return
      const all = yield* list
      const items = all.filter(
        (item) =>
          item.claim === undefined &&
          !item.isLive &&
          !item.isExpired &&
          !judged.left.includes(item.id) &&
          (valueIn(judged.refusals, threadOf(item)) ?? 0) < ApprovalClassifier.most.refusals
      )
      if (items.length === 0) return
      const failed = Effect.andThen(Clock.currentTimeMillis, (failedAt) =>
        change((last) => ({ ...last, failures: last.failures + 1, failedAt }))
      )
      const decisions = yield* Effect.onError(
        ApprovalClassifier.decisionsOn(
          items.map(({ request }) => request),
          options
        ),
        () => Effect.ignore(failed)
      )
      const decided = new Set(decisions.map(({ id }) => id))
      const waiting = new Set(all.map(({ id }) => id))
      // The items that it left are a person's from now on.
      const left = items.flatMap(({ id }) => (decided.has(id) ? [] : [id]))
      yield* change((last) => ({
        ...last,
        failures: 0,
        left: [...last.left.filter((id) => waiting.has(id) && !left.includes(id)), ...left]
      }))
      const one = Effect.fnUntraced(function* (decision: Approval.Decision) {
        yield* decide([decision], { by })
        const item = items.find(({ id }) => id === decision.id)
        if (item !== undefined && decision._tag === "Reject") yield* change(refused(threadOf(item)))
      })
      // Somebody may have been faster.
      yield* Effect.forEach(
        decisions,
        (decision) => Effect.catch(one(decision), (error) => Effect.logWarning(error.message)),
        { discard: true }
      )
    })
