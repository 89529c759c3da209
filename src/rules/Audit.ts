/**
 * Export who decided what, when, by which rule, and on what: the requests and decisions that threads keep.
 *
 * ```ts
 * import { Console, Stream } from "effect"
 * import { Audit } from "effect-deepagents/rules"
 *
 * const program = Stream.runForEach(Audit.lines({ since: Date.UTC(2026, 0, 1) }), Console.log)
 * ```
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Approval from "../core/Approval.ts"
import type { SessionError } from "../core/SessionError.ts"
import { SessionStore, type Thread } from "../core/SessionStore.ts"
import { defined } from "../support/json/defined.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { cut } from "../support/text/text.ts"
import { bookId } from "./internal/book.ts"
import * as shapes from "./internal/shapes.ts"

/** A request of a thread, and the decision on it. Rewinding the thread does not remove them. */
export const Record = Schema.Struct({
  threadId: Schema.String,
  /** The time of the request, in milliseconds since the epoch. */
  at: Schema.Finite,
  request: Approval.Request,
  decision: Schema.optionalKey(Approval.Decision),
  /** `false` for a decision whose digest is not the request's. */
  isAsShown: Schema.optionalKey(Schema.Boolean)
})
export interface Record extends Schema.Schema.Type<typeof Record> {}

const Line = Schema.fromJsonString(
  Schema.Struct({
    entry: Schema.Union([
      Schema.TaggedStruct("Request", { request: Approval.Request }),
      Schema.TaggedStruct("Decision", { decision: Approval.Decision })
    ])
  })
)
const decodeLine = Schema.decodeUnknownResult(Line)
/** The kind of a line. It decodes for broken requests and decisions, too. */
const decodeTag = Schema.decodeUnknownResult(
  Schema.fromJsonString(Schema.Struct({ entry: Schema.Struct({ _tag: Schema.Literals(["Request", "Decision"]) }) }))
)
const encode = Schema.encodeSync(Schema.fromJsonString(Record))

const recordOf = (threadId: string, request: Approval.Request, decision: Approval.Decision | undefined): Record => ({
  threadId,
  at: request.at,
  request,
  ...defined({
    decision,
    isAsShown: decision?.digest === undefined ? undefined : decision.digest === Approval.digest(request)
  })
})

const readThread = (threadId: string): Stream.Stream<Record, SessionError, SessionStore> =>
  Stream.unwrap(
    SessionStore.useSync((store) => {
      const requests = new Map<string, Approval.Request>()
      const decisions = new Map<string, Approval.Decision>()
      const readLine = (line: string): Effect.Effect<void> => {
        // Most lines are messages, and long.
        if (!line.includes('"_tag":"Request"') && !line.includes('"_tag":"Decision"')) return Effect.void
        const decoded = decodeLine(line)
        if (Result.isFailure(decoded)) {
          return Result.isFailure(decodeTag(line))
            ? Effect.void
            : Effect.logWarning(
                `The audit leaves out a request or a decision of the thread ${JSON.stringify(threadId)}, which can't be read: ${cut(decoded.failure.message, 500)}`
              )
        }
        const { entry } = decoded.success
        return Effect.sync(() => {
          if (entry._tag === "Request") requests.set(entry.request.id, entry.request)
          else decisions.set(entry.decision.id, entry.decision)
        })
      }
      return Stream.concat(
        Stream.drain(Stream.mapEffect(store.export(threadId), readLine)),
        Stream.suspend(() =>
          Stream.fromIterable(
            [...requests.values()].map((request) => recordOf(threadId, request, decisions.get(request.id)))
          )
        )
      )
    })
  )

const threads = (archived: boolean): Stream.Stream<Thread, SessionError, SessionStore> =>
  Stream.unwrap(
    SessionStore.useSync((store) =>
      Stream.paginate(undefined as string | undefined, (cursor) =>
        Effect.map(
          store.list({ archived, limit: 200, ...defined({ cursor }) }),
          ({ items, next }) => [items, Option.map(Option.fromNullOr(next), (to): string | undefined => to)] as const
        )
      )
    )
  )

/** The part of the records to export. */
export interface Options {
  /** Exports one thread. Default: all threads, archived ones too. */
  readonly threadId?: string | undefined
  /** The earliest time, in milliseconds since the epoch. Default: no limit. */
  readonly since?: number | undefined
}

const refuse = makeEffectCheck("Audit", shapes.auditRecords)

/**
 * Reads requests and decisions, thread by thread. It logs unreadable ones as warnings. A fork repeats the requests of the
 * original thread, with the same `id`.
 */
export const records = (options: Options = {}): Stream.Stream<Record, SessionError, SessionStore> => {
  const refused = refuse(options)
  if (refused !== undefined) return Stream.fromEffect(refused)
  const { since = 0, threadId } = options
  const every = Stream.suspend(() => {
    // A thread that is archived meanwhile is in both lists. A deleted thread is in neither.
    const seen = new Set([bookId])
    const isNew = (id: string): boolean => !seen.has(id) && seen.add(id).has(id)
    return Stream.concat(threads(false), threads(true)).pipe(
      Stream.filter((thread) => thread.updatedAt >= since && isNew(thread.threadId)),
      Stream.flatMap((thread) =>
        Stream.catchIf(
          readThread(thread.threadId),
          ({ reason }) => reason._tag === "NotFound",
          () => Stream.empty
        )
      )
    )
  })
  const all = threadId === undefined ? every : readThread(threadId)
  return Stream.filter(all, ({ at, decision }) => Math.max(at, decision?.at ?? 0) >= since)
}

/** Writes {@link records} as lines of JSON. */
export const lines = (options?: Options): Stream.Stream<string, SessionError, SessionStore> =>
  Stream.map(records(options), (record) => encode(record))
