/** A classifier that decides on requests of threads. The book keeps its counts, so that they hold in every process. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Approval from "../../core/Approval.ts"
import * as ApprovalClassifier from "../../middleware/ApprovalClassifier.ts"
import type { Book, ThreadBook } from "./book.ts"
import type { ClassifyOptions, InboxError, Item, Service } from "./inboxModel.ts"

const rest = 60_000

/** The number of threads with known refusals: each change writes the whole book. */
const mostThreads = 1_000

/** The parts of an inbox that a sweep needs. */
interface Desk {
  readonly list: Effect.Effect<ReadonlyArray<Item>, InboxError>
  readonly decide: Service["decide"]
  readonly read: Effect.Effect<Book, InboxError>
  readonly change: (f: (judged: ThreadBook) => ThreadBook) => Effect.Effect<void, InboxError>
}

const threadOf = ({ id, threadId }: Item): string => threadId ?? id

const valueIn = <A>(record: { readonly [name: string]: A }, name: string): A | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined

/** Counts a refusal, and moves the thread to the end of the record. */
const countRefusal =
  (thread: string) =>
  (judged: ThreadBook): ThreadBook => {
    const others = Object.entries(judged.refusals).filter(([name]) => name !== thread)
    const recentThreads = others.slice(Math.max(0, others.length + 1 - mostThreads))
    return {
      ...judged,
      refusals: Object.fromEntries([...recentThreads, [thread, (valueIn(judged.refusals, thread) ?? 0) + 1]])
    }
  }

/** Lets the classifier decide once on all requests that it may decide on. */
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
      // From now on a person decides on the other items.
      const otherIds = items.flatMap(({ id }) => (decided.has(id) ? [] : [id]))
      yield* change((last) => ({
        ...last,
        failures: 0,
        left: [...last.left.filter((id) => waiting.has(id) && !otherIds.includes(id)), ...otherIds]
      }))
      const one = Effect.fnUntraced(function* (decision: Approval.Decision) {
        yield* decide([decision], { by })
        const item = items.find(({ id }) => id === decision.id)
        if (item !== undefined && decision._tag === "Reject") yield* change(countRefusal(threadOf(item)))
      })
      // A person may have been faster.
      yield* Effect.forEach(
        decisions,
        (decision) => Effect.catch(one(decision), (error) => Effect.logWarning(error.message)),
        { discard: true }
      )
    })
