/** The methods that list, close, delete, archive and name sessions. */
import { isAbsolute } from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Service as Store, Thread } from "../../core/SessionStore.ts"
import { defined } from "../../support/json/defined.ts"
import { cleanLine } from "../../support/text/clean.ts"
import { cut } from "../../support/text/text.ts"
import type { Connection, Draft, Request } from "./connection.ts"
import { decodeAnswer, optional, textUpTo } from "./decode.ts"
import { fail, ofStore } from "./failures.ts"

/** The most sessions of a page of a list. */
const mostListed = 100

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

const infoOf = ({ archived, metadata, threadId, updatedAt }: Thread) => ({
  sessionId: threadId,
  cwd: textOf(metadata["folder"]),
  title: textOf(metadata["title"]),
  updatedAt: new Date(updatedAt).toISOString(),
  ...(archived ? { archived } : {})
})

const ListRequest = Schema.Struct({
  cwd: optional(Schema.String),
  cursor: optional(Schema.String),
  archived: optional(Schema.Literals(["exclude", "include", "only"]))
})

/** Marks the cursor of a list that has come to the archived sessions. */
const archivedMark = "archived:"

/** Lists a page of sessions. With `include`, archived sessions follow the others. */
const list = Effect.fnUntraced(function* (
  threads: Store,
  { archived = "exclude", cursor: given, cwd }: typeof ListRequest.Type
) {
  const isPast = archived === "include" && given?.startsWith(archivedMark) === true
  const isArchived = archived === "only" || isPast
  const own = isPast ? given?.slice(archivedMark.length) : given
  const where = typeof cwd === "string" ? { folder: cwd } : undefined
  const cursor = own === "" ? undefined : (own ?? undefined)
  const { items, next } = yield* threads.list(defined({ limit: mostListed, where, cursor, archived: isArchived }))
  const sessions = items.map(infoOf).filter((one) => isAbsolute(one.cwd))
  const rest = archived !== "include" ? next : isPast ? next && `${archivedMark}${next}` : (next ?? archivedMark)
  return { sessions, ...(rest === null ? {} : { nextCursor: rest }) }
})

const SessionRequest = Schema.Struct({ sessionId: Schema.String })

const TitleRequest = Schema.Struct({ sessionId: Schema.String, title: textUpTo(10_000) })

/** The longest title of a session, in characters. */
const longestTitle = 200

/** The methods that list, close, delete, archive and name sessions. */
export const makeLists = ({ registry }: Connection) => {
  /** Closes the session if it is open here, and fails for an unknown id. */
  const leave = Effect.fnUntraced(function* (method: string, sessionId: string) {
    const live = registry.get(sessionId)
    if (live !== undefined) yield* registry.close(live)
    yield* registry.check(method, sessionId)
    return yield* registry.store
  })
  return {
    "session/list": Effect.fnUntraced(function* ({ params }: Draft) {
      const request = yield* decodeAnswer("session/list", ListRequest)(params)
      return yield* Effect.mapError(list(yield* registry.store, request), ofStore("session/list"))
    }),
    "session/close": ({ params }: Request<"session/close">) =>
      Effect.as(Effect.flatMap(registry.find("session/close", params.sessionId), registry.close), {}),
    "session/delete": Effect.fnUntraced(function* ({ params }: Request<"session/delete">) {
      const threads = yield* leave("session/delete", params.sessionId)
      yield* Effect.mapError(threads.delete(params.sessionId), ofStore("session/delete"))
      return {}
    }),
    "session/archive": Effect.fnUntraced(function* ({ params }: Draft) {
      const { sessionId } = yield* decodeAnswer("session/archive", SessionRequest)(params)
      const threads = yield* leave("session/archive", sessionId)
      yield* Effect.mapError(threads.archive(sessionId), ofStore("session/archive"))
      return {}
    }),
    "session/unarchive": Effect.fnUntraced(function* ({ params }: Draft) {
      const { sessionId } = yield* decodeAnswer("session/unarchive", SessionRequest)(params)
      yield* registry.check("session/unarchive", sessionId)
      const threads = yield* registry.store
      yield* Effect.mapError(threads.unarchive(sessionId), ofStore("session/unarchive"))
      return {}
    }),
    "session/set_title": Effect.fnUntraced(function* ({ params }: Draft) {
      const method = "session/set_title"
      const { sessionId, title: rawTitle } = yield* decodeAnswer(method, TitleRequest)(params)
      const title = cut(cleanLine(rawTitle).trim(), longestTitle)
      if (title === "") return yield* fail("Invalid", method, "the title is empty")
      yield* registry.check(method, sessionId)
      const threads = yield* registry.store
      yield* Effect.mapError(
        Effect.flatMap(threads.info(sessionId), ({ metadata }) => threads.describe(sessionId, { ...metadata, title })),
        ofStore(method)
      )
      return { title }
    })
  }
}
