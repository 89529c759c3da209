/** Routes of threads: lists, messages, branches, and what waits for a person. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Request } from "../../../core/Approval.ts"
import * as Message from "../../../core/Message.ts"
import type { SessionError } from "../../../core/SessionError.ts"
import { SessionStore, type Listing, type Thread } from "../../../core/SessionStore.ts"
import { totalTokens } from "../../../core/Usage.ts"
import * as Replay from "../../../evals/Replay.ts"
import { makeJournal } from "../../../sessions/journal.ts"
import { defined } from "../../../support/json/defined.ts"
import { choicesIn } from "../choices.ts"
import { RunsError } from "../service.ts"
import { readMessages } from "./messages.ts"
import type { Failure } from "./problem.ts"
import { json, nothing, type Route, route, type TenantCall } from "./route.ts"

const agents = route({
  method: "GET",
  path: "/agents",
  summary:
    "Lists the agents of the server, the models, the modes and the levels of thinking to choose from, and tells whether it shows files of threads.",
  handle: ({ door }) =>
    Effect.succeed(
      json({
        agents: door.runs.agents,
        ...(door.runs.models.length > 0 ? { models: door.runs.models } : {}),
        ...(door.runs.modes.length > 0 ? { modes: door.runs.modes } : {}),
        ...(door.runs.thinking.length > 0 ? { thinking: door.runs.thinking } : {}),
        ...(door.hasFiles ? { files: true } : {}),
        ...(door.hasApps ? { apps: true } : {})
      })
    )
})

/** Reads the parameter `limit`. */
const limitOf = (call: TenantCall, fallback: number, most: number): number => {
  const limit = Number(call.query("limit") ?? fallback)
  return Number.isInteger(limit) && limit > 0 ? Math.min(limit, most) : fallback
}

const describe = Effect.fnUntraced(function* ({ door, tenant }: TenantCall, thread: Thread) {
  const { archived, createdAt, metadata, origin, threadId, updatedAt } = thread
  const title = typeof metadata["title"] === "string" && metadata["title"] !== "" ? metadata["title"] : undefined
  const state = yield* door.runs.state(yield* tenant.thread(threadId))
  return {
    id: threadId,
    ...defined({ title }),
    createdAt,
    updatedAt,
    state,
    archived,
    ...defined({ forkOf: origin?.threadId }),
    ...choicesIn(metadata)
  }
})

const isGone = ({ reason }: SessionError): boolean => reason._tag === "NotFound"

/** The threads of the messages that were found, each once. */
const searchThreads = Effect.fnUntraced(function* (
  { tenant }: TenantCall,
  text: string,
  query: { limit: number; cursor?: string }
) {
  const hits = yield* tenant.store.search(text, query)
  const threads: Array<Thread> = []
  for (const id of new Set(hits.items.map(({ threadId }) => threadId))) {
    const thread = yield* Effect.catchIf(tenant.store.info(id), isGone, () => Effect.undefined)
    if (thread !== undefined) threads.push(thread)
  }
  return { items: threads, next: hits.next }
})

const threads = route({
  method: "GET",
  path: "/threads",
  summary: "Lists threads, the last changed first, or those with messages that have all words of a text.",
  query: {
    limit: "The most items of a page, up to 200",
    cursor: "The `next` of the page before",
    search: "Words of messages",
    archived: "`true`: lists archived threads"
  },
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const page = { limit: limitOf(call, 50, 200), ...defined({ cursor: call.query("cursor") }) }
    const text = call.query("search") ?? ""
    const listing: Listing<Thread> =
      text === ""
        ? yield* call.tenant.store.list({ ...page, archived: call.query("archived") === "true" })
        : yield* searchThreads(call, text, page)
    const listed = yield* Effect.forEach(listing.items, (one) => describe(call, one))
    return json({ threads: listed, ...defined({ next: listing.next ?? undefined }) })
  })
})

const thread = route({
  method: "GET",
  path: "/threads/:id",
  summary: "Describes a thread.",
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const { id } = yield* call.thread
    return json(yield* describe(call, yield* call.tenant.store.info(id)))
  })
})

const history = route({
  method: "GET",
  path: "/threads/:id/history",
  summary: "Gives stored messages, the oldest first: the last ones, or those up to an entry.",
  query: { before: "The `next` of the page before", limit: "The most messages of a page, up to 1,000" },
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const { id } = yield* call.thread
    const { entries, next } = yield* readMessages(call.tenant.store, id, {
      before: call.query("before"),
      limit: limitOf(call, 100, 1_000)
    })
    const messages = entries.flatMap(({ at, entry, id: entryId }) =>
      entry._tag === "Message" ? [{ entry: entryId, at, message: Message.encode(entry.message) }] : []
    )
    return json({ messages, ...defined({ next }) })
  })
})

/** Changes a thread while no run is at work on it. */
const changeAlone = Effect.fnUntraced(function* <A>(
  call: TenantCall,
  change: (id: string) => Effect.Effect<A, SessionError>
): Effect.fn.Return<A, Failure> {
  const ref = yield* call.thread
  const busy = new RunsError({
    reason: "Busy",
    threadId: ref.id,
    problem: "a run is at work on the thread; cancel it, or wait for its end"
  })
  yield* call.tenant.store.info(ref.id)
  if ((yield* call.door.runs.state(ref)) === "working") return yield* busy
  const { hold } = makeJournal(call.tenant.store, { busy: "refuse" })
  return yield* Effect.scoped(
    Effect.andThen(
      Effect.mapError(hold?.(ref.id) ?? Effect.void, () => busy),
      change(ref.id)
    )
  )
})

const fork = route({
  method: "POST",
  path: "/threads/:id/fork",
  summary: "Makes a new thread from the entries up to the end of a turn, or all.",
  body: Schema.Struct({ entry: Schema.optionalKey(Schema.String) }),
  status: 201,
  handle: Effect.fnUntraced(function* (call) {
    const { id } = yield* call.thread
    const fork = yield* call.tenant.store.fork(id, defined({ at: call.body.entry }))
    return json(yield* describe(call, fork), 201)
  })
})

/** The most messages of a side. */
const mostCompared = 500

const describeSide = ({ messages, usage, ...side }: Replay.Side) => ({
  ...side,
  tokens: totalTokens(usage),
  ...defined({ cost: usage.cost }),
  messages: messages.slice(0, mostCompared).map(Message.encode),
  ...(messages.length > mostCompared ? { isCut: true } : {})
})

const compare = route({
  method: "GET",
  path: "/threads/:id/compare",
  summary:
    "Compares a thread with another one, such as its fork: the messages behind those of both, and the use of each.",
  query: { with: "The other thread" },
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const [one, other] = [yield* call.thread, yield* call.tenant.thread(call.query("with") ?? "")]
    const { left, right, shared } = yield* Effect.provideService(
      Replay.compare(one.id, other.id),
      SessionStore,
      call.tenant.store
    )
    return json({ shared: shared.length, left: describeSide(left), right: describeSide(right) })
  })
})

const rewind = route({
  method: "POST",
  path: "/threads/:id/rewind",
  summary: "Goes back to the end of a turn; `null` is the beginning. Later entries stay as a branch.",
  body: Schema.Struct({ entry: Schema.NullOr(Schema.String) }),
  handle: Effect.fnUntraced(function* (call) {
    const { step } = yield* changeAlone(call, (id) => call.tenant.store.rewind(id, call.body.entry))
    return json({ step })
  })
})

const archive = route({
  method: "POST",
  path: "/threads/:id/archive",
  summary: "Takes a thread out of lists, or with `archived: false` back into them.",
  body: Schema.Struct({ archived: Schema.optionalKey(Schema.Boolean) }),
  status: 204,
  handle: Effect.fnUntraced(function* (call) {
    const { archive, unarchive } = call.tenant.store
    yield* changeAlone(call, call.body.archived === false ? unarchive : archive)
    return nothing
  })
})

const remove = route({
  method: "DELETE",
  path: "/threads/:id",
  summary: "Deletes a thread for good.",
  status: 204,
  handle: (call) => Effect.as(changeAlone(call, call.tenant.store.delete), nothing)
})

const encodeRequest = Schema.encodeSync(Request)

const inbox = route({
  method: "GET",
  path: "/inbox",
  summary: "Lists the requests that wait for a person, the oldest first.",
  query: { limit: "The most items of a page, up to 200", cursor: "The `next` of the page before" },
  handle: Effect.fnUntraced(function* (call: TenantCall) {
    const { items, next } = yield* call.tenant.store.waiting({
      limit: limitOf(call, 50, 200),
      ...defined({ cursor: call.query("cursor") })
    })
    const waiting = items.map(({ request, threadId }) => ({ threadId, request: encodeRequest(request) }))
    return json({ items: waiting, ...defined({ next: next ?? undefined }) })
  })
})

/** The routes of threads. */
export const threadRoutes: ReadonlyArray<Route> = [
  agents,
  threads,
  thread,
  history,
  fork,
  compare,
  rewind,
  archive,
  remove,
  inbox
]
