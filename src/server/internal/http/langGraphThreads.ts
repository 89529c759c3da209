/** Routes of LangGraph's API for threads, their states and their histories. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Request } from "../../../core/Approval.ts"
import { type Json, JsonObject } from "../../../core/Json.ts"
import { makeId } from "../../../core/Message.ts"
import type { SessionError } from "../../../core/SessionError.ts"
import type { Listing, StoredEntry, Thread } from "../../../core/SessionStore.ts"
import { defined } from "../../../support/json/defined.ts"
import { decoder } from "../packets/input.ts"
import { interruptOf, messageOf } from "../packets/langChain.ts"
import type { Status } from "../service.ts"
import { readMessages, readTranscript } from "./messages.ts"
import type { Failure } from "./problem.ts"
import { json, type Route, route, type TenantCall } from "./route.ts"

const most = 1_000

const count = Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: most })))
const orNull = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const readCreate = decoder(
  Schema.Struct({
    thread_id: Schema.optionalKey(Schema.String),
    metadata: orNull(JsonObject),
    if_exists: orNull(Schema.String)
  })
)
const readSearch = decoder(
  Schema.Struct({
    metadata: orNull(JsonObject),
    ids: orNull(Schema.Array(Schema.String)),
    status: orNull(Schema.String),
    limit: count,
    offset: count
  })
)
const readHistory = decoder(
  Schema.Struct({
    limit: count,
    before: orNull(Schema.Struct({ configurable: Schema.Struct({ checkpoint_id: Schema.String }) }))
  })
)

const timeOf = (at: number): string => new Date(at).toISOString()

/** Reports whether the last run of a thread failed. */
const isFailed = Effect.fnUntraced(function* ({ tenant }: TenantCall, threadId: string) {
  const { entries } = yield* tenant.store.load(threadId, { limit: 20 })
  const last = entries.findLast(({ entry }) => entry._tag === "RunSettled" || entry._tag === "RunStarted")?.entry
  return last?._tag === "RunSettled" && last.error !== undefined
})

const states = { working: "busy", waiting: "interrupted", idle: "idle" } as const

const statusOf = Effect.fnUntraced(function* (call: TenantCall, threadId: string, state: Status["state"]) {
  return state === "idle" && (yield* isFailed(call, threadId)) ? "error" : states[state]
})

const describe = Effect.fnUntraced(function* (
  call: TenantCall,
  { createdAt, metadata, threadId, updatedAt }: Thread,
  shown?: { readonly values: Json; readonly pending: ReadonlyArray<Request> }
): Effect.fn.Return<JsonObject, Failure> {
  const state = yield* call.door.runs.state(yield* call.tenant.thread(threadId))
  return {
    thread_id: threadId,
    created_at: timeOf(createdAt),
    updated_at: timeOf(updatedAt),
    state_updated_at: timeOf(updatedAt),
    metadata,
    status: yield* statusOf(call, threadId, state),
    config: {},
    values: shown?.values ?? null,
    interrupts: Object.fromEntries((shown?.pending ?? []).map((request) => [request.id, [interruptOf(request)]]))
  }
})

const describeWhole = Effect.fnUntraced(function* (call: TenantCall, thread: Thread) {
  const { pending } = yield* call.door.runs.status(yield* call.tenant.thread(thread.threadId))
  const messages = yield* readTranscript(call.tenant.store, thread.threadId)
  return yield* describe(call, thread, { values: { messages: messages.flatMap(messageOf) }, pending })
})

const isThere = ({ reason }: SessionError): boolean => reason._tag === "AlreadyExists"

const create = route({
  method: "POST",
  path: "/langgraph/threads",
  summary: "Makes a thread.",
  body: Schema.Unknown,
  handle: Effect.fnUntraced(function* (call) {
    const { if_exists: ifExists, metadata, thread_id: id } = yield* readCreate(call.body)
    const { store } = call.tenant
    const threadId = id ?? makeId()
    yield* call.tenant.thread(threadId)
    const creation = store.create({ threadId, metadata: metadata ?? {} })
    const thread = yield* ifExists === "do_nothing"
      ? Effect.catchIf(creation, isThere, () => store.info(threadId))
      : creation
    return json(yield* describeWhole(call, thread))
  })
})

const get = route({
  method: "GET",
  path: "/langgraph/threads/:id",
  summary: "Gives a thread with its messages and the interrupts that wait.",
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const { id } = yield* call.thread
    return json(yield* describeWhole(call, yield* call.tenant.store.info(id)))
  })
})

const update = route({
  method: "PATCH",
  path: "/langgraph/threads/:id",
  summary: "Adds to the metadata of a thread.",
  body: Schema.Unknown,
  handle: Effect.fnUntraced(function* (call) {
    const { id } = yield* call.thread
    const { store } = call.tenant
    const { metadata } = yield* readCreate(call.body)
    const thread = yield* store.info(id)
    return json(yield* describe(call, yield* store.describe(id, { ...thread.metadata, ...metadata })))
  })
})

const search = route({
  method: "POST",
  path: "/langgraph/threads/search",
  summary: "Lists threads, the last changed first. Their values are left out.",
  body: Schema.Unknown,
  handle: Effect.fnUntraced(function* (call) {
    const { ids, limit = 10, metadata, offset = 0, status } = yield* readSearch(call.body)
    const threads: Array<JsonObject> = []
    const end = Math.min(offset + limit, most)
    for (let cursor: string | undefined; threads.length < end;) {
      const page: Listing<Thread> = yield* call.tenant.store.list({ where: metadata ?? {}, ...defined({ cursor }) })
      for (const thread of page.items) {
        if (!(ids ?? [thread.threadId]).includes(thread.threadId)) continue
        const one = yield* describe(call, thread)
        if ((status ?? one["status"]) === one["status"]) threads.push(one)
        if (threads.length === end) break
      }
      if (page.next === null) break
      cursor = page.next
    }
    return json(threads.slice(offset))
  })
})

/** The state behind the last of some messages. */
const stateAt = (
  threadId: string,
  messages: ReadonlyArray<StoredEntry>,
  { pending, state }: Pick<Status, "pending" | "state">
): JsonObject => {
  const last = messages.at(-1)
  const checkpoint = (id: string | null) => ({
    thread_id: threadId,
    checkpoint_ns: "",
    checkpoint_id: id,
    checkpoint_map: null
  })
  const task = {
    id: "agent",
    name: "agent",
    error: null,
    interrupts: pending.map((request) => interruptOf(request)),
    checkpoint: null,
    state: null
  }
  return {
    values: { messages: messages.flatMap(({ entry }) => (entry._tag === "Message" ? messageOf(entry.message) : [])) },
    next: state === "idle" ? [] : ["agent"],
    checkpoint: checkpoint(last?.id ?? null),
    parent_checkpoint: messages.length > 1 ? checkpoint(messages.at(-2)?.id ?? null) : null,
    metadata: { step: messages.length },
    created_at: last === undefined ? null : timeOf(last.at),
    tasks: pending.length === 0 ? [] : [task]
  }
}

const getState = route({
  method: "GET",
  path: "/langgraph/threads/:id/state",
  summary: "Gives the last state of a thread.",
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const thread = yield* call.thread
    const status = yield* call.door.runs.status(thread)
    yield* call.tenant.store.info(thread.id)
    const { entries } = yield* readMessages(call.tenant.store, thread.id, { limit: most })
    return json(stateAt(thread.id, entries, status))
  })
})

const history = route({
  method: "POST",
  path: "/langgraph/threads/:id/history",
  summary: "Gives the states behind each message, the last one first.",
  body: Schema.Unknown,
  handle: Effect.fnUntraced(function* (call) {
    const { before, limit = 10 } = yield* readHistory(call.body)
    const thread = yield* call.thread
    const status = yield* call.door.runs.status(thread)
    const { entries } = yield* readMessages(call.tenant.store, thread.id, { limit: most })
    const end = entries.findIndex(({ id }) => id === before?.configurable.checkpoint_id)
    const visibleEntries = end < 0 ? entries : entries.slice(0, end)
    const over = { state: "idle", pending: [] } as const
    const all = Array.from({ length: Math.min(limit, 100, visibleEntries.length) }, (_, index) =>
      stateAt(thread.id, visibleEntries.slice(0, visibleEntries.length - index), index === 0 && end < 0 ? status : over)
    )
    return json(all)
  })
})

/** The routes of threads. */
export const langGraphThreads: ReadonlyArray<Route> = [create, search, get, update, getState, history]
