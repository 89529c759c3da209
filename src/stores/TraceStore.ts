/**
 * Traces: the events of runs, kept, to look at afterwards what an agent did, and to send them to a tracing backend.
 *
 * ```ts
 * import { Effect, Layer, Stream } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Storage, TraceStore } from "effect-deepagents/stores"
 *
 * const agent = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const program = Effect.gen(function* () {
 *   yield* Agent.stream(agent, "Hello").pipe(TraceStore.record(), Stream.runDrain)
 *   const traces = yield* TraceStore.TraceStore
 *   const [last] = (yield* traces.runs({ agent: "helper", limit: 1 })).items
 *   return last === undefined ? [] : yield* Stream.runCollect(traces.stream(last.runId, { tags: ["ToolFailed"] }))
 * }).pipe(Effect.provide(Layer.provide(TraceStore.layer, Storage.layerMemory)))
 * ```
 *
 * `Telemetry` (in `effect-deepagents/middleware`) sends spans while a run is going; a trace is kept of it.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as AgentEvent from "../core/AgentEvent.ts"
import { span } from "../support/effect/span.ts"
import { nameProblem } from "../support/text/names.ts"
import { limit, sizeOfText } from "../support/text/size.ts"
import { within as named } from "./internal/within.ts"
import { type Fault, type Row, Storage } from "./Storage.ts"
import type { Reason, StoreError } from "./StoreError.ts"

/** Schema of a {@link Run}. */
export const Run = Schema.Struct({
  runId: Schema.String,
  agent: Schema.String,
  model: Schema.String,
  at: Schema.Finite,
  threadId: Schema.optionalKey(Schema.String)
})

/** A run that was recorded from its beginning: `at` is when it began, in milliseconds since the epoch. */
export interface Run extends Schema.Schema.Type<typeof Run> {}

/** Runs of one agent or thread, that began at `since` or later, and before `until`, the latest first. */
export interface RunQuery {
  readonly agent?: string | undefined
  readonly threadId?: string | undefined
  readonly since?: number | undefined
  readonly until?: number | undefined
  readonly limit?: number | undefined
  readonly cursor?: string | undefined
}

/** Events of a run and its sub-agents: of some tags, of one agent, of a time. */
export interface EventQuery {
  readonly tags?: ReadonlyArray<AgentEvent.AgentEvent["_tag"]> | undefined
  readonly agent?: string | undefined
  readonly since?: number | undefined
  readonly until?: number | undefined
}

/** Part of what was asked for. `next` is the cursor of the next part; `undefined` at the end. */
export interface Page<out A, out Next> {
  readonly items: ReadonlyArray<A>
  readonly next: Next | undefined
}

/** See {@link TraceStore}. */
export interface Service {
  /**
   * Appends events to the trace of a run. An event of the same `seq` takes the place of the one that is there. One that
   * lies too deep to be written (an event that you made), or has more than 15 MiB, fails with `InvalidValue`, and none
   * is stored.
   */
  readonly append: (runId: string, events: ReadonlyArray<AgentEvent.AgentEvent>) => Effect.Effect<void, StoreError>
  /**
   * Events in the order of `seq`, those of `from` and behind it; looks at so many as `limit` says (100; at most 1,000),
   * and gives those of them that are asked for.
   */
  readonly events: (
    runId: string,
    query?: EventQuery & { readonly from?: number | undefined; readonly limit?: number | undefined }
  ) => Effect.Effect<Page<AgentEvent.AgentEvent, number>, StoreError>
  /** All events that are asked for, read as they are taken. */
  readonly stream: (runId: string, query?: EventQuery) => Stream.Stream<AgentEvent.AgentEvent, StoreError>
  /** Runs that are recorded, the latest first. `limit` is 50 by default, and at most 1,000. */
  readonly runs: (query?: RunQuery) => Effect.Effect<Page<Run, string>, StoreError>
  /** Removes the trace of a run for good. */
  readonly remove: (runId: string) => Effect.Effect<void, StoreError>
}

/**
 * The store of traces. What was said is in them, as it is in the events: they are as confidential as the conversations.
 */
export class TraceStore extends Context.Service<TraceStore, Service>()("effect-deepagents/TraceStore") {}

const decodeRun = Schema.decodeUnknownResult(Schema.fromJsonString(Run))

const bounded = (limit: number | undefined, usual: number): number =>
  limit === undefined || Number.isNaN(limit) ? usual : Math.max(1, Math.min(Math.trunc(limit), 1000))

const digits = 16
const seqKey = (seq: number): string => `${seq}`.padStart(digits, "0")
const runKey = ({ at, runId }: Run): string => `${seqKey(Math.max(0, Math.trunc(at)))} ${runId}`

/** The lists that a run is in: of all, with those of its agent, with those of its thread. */
const listsOf = (run: Run | undefined): ReadonlyArray<Row & { readonly list: string }> => {
  if (run === undefined) return []
  const { agent, threadId } = run
  const lists = ["all", `agent ${agent}`, ...(threadId === undefined ? [] : [`thread ${threadId}`])]
  return lists.map((list) => ({ list, key: runKey(run), value: JSON.stringify(run) }))
}

const runOf = (event: AgentEvent.AgentEvent | undefined): Run | undefined =>
  event?._tag === "RunStarted" && event.path.length === 1
    ? {
        runId: event.runId,
        agent: event.agent,
        model: event.model ?? "",
        at: event.at,
        ...(event.threadId === undefined ? {} : { threadId: event.threadId })
      }
    : undefined

const isAskedFor = (event: AgentEvent.AgentEvent, { agent, since, tags, until }: EventQuery): boolean =>
  (tags === undefined || tags.includes(event._tag)) &&
  (agent === undefined || event.path.at(-1) === agent) &&
  (since === undefined || event.at >= since) &&
  (until === undefined || event.at < until)

const corrupt = (problem: string): Fault => ({ reason: "Corrupt", problem })

const readEvent = (value: string): Effect.Effect<AgentEvent.AgentEvent, Fault> =>
  Effect.mapError(
    Effect.flatMap(
      Effect.try({ try: (): unknown => JSON.parse(value), catch: () => corrupt("an event is no JSON") }),
      AgentEvent.decode
    ),
    (error) => ("_tag" in error ? corrupt(error.message) : error)
  )

const invalid = (event: AgentEvent.AgentEvent, problem: string): Reason => ({
  _tag: "InvalidValue",
  problem: `the event ${event.seq} (${event._tag}) ${problem}`
})

const toRow = (event: AgentEvent.AgentEvent): Effect.Effect<Row, Reason> =>
  Effect.flatMap(
    Effect.try({
      try: () => JSON.stringify(AgentEvent.encode(event)),
      catch: (error) => invalid(event, `can't be written as JSON: ${String(error).slice(0, 200)}`)
    }),
    (value) => {
      const bytes = sizeOfText(value)
      return bytes <= limit
        ? Effect.succeed({ key: seqKey(event.seq), value })
        : Effect.fail(invalid(event, `has ${bytes} bytes, and ${limit} are the limit`))
    }
  )

/** The store, on the storage that you provide. */
export const layer: Layer.Layer<TraceStore, never, Storage> = Layer.effect(
  TraceStore,
  Effect.gen(function* () {
    const storage = yield* Storage
    const traces = storage.table("traces")
    const lists = storage.table("runs")

    const within =
      (operation: string, name: string) =>
      <A>(effect: Effect.Effect<A, Reason | Fault>): Effect.Effect<A, StoreError> =>
        span(`TraceStore.${operation}`)(named(512)(operation, name)(effect))

    const append = Effect.fnUntraced(function* (
      runId: string,
      events: ReadonlyArray<AgentEvent.AgentEvent>
    ): Effect.fn.Return<void, Reason | Fault> {
      if (events.length === 0) return
      const listed = listsOf(runOf(events.find((event) => event.runId === runId && runOf(event) !== undefined)))
      const problem =
        nameProblem(runId, 128) ?? listed.map(({ list }) => nameProblem(list, 520)).find(Predicate.isString)
      if (problem !== undefined) return yield* Effect.fail<Reason>({ _tag: "InvalidName", problem })
      const rows = yield* Effect.forEach(events, toRow)
      // Lists come first: what is there is listed, even if this is the last that the process does.
      for (const { key, list, value } of listed) yield* lists.put(list, [{ key, value }])
      yield* traces.put(runId, rows)
    })

    const page = Effect.fnUntraced(function* (
      runId: string,
      query: EventQuery & { readonly from?: number | undefined; readonly limit?: number | undefined }
    ): Effect.fn.Return<Page<AgentEvent.AgentEvent, number>, Fault> {
      const most = bounded(query.limit, 100)
      const after = query.from === undefined || query.from <= 0 ? undefined : seqKey(Math.ceil(query.from) - 1)
      const rows = yield* traces.scan(runId, { limit: most, after })
      const events = yield* Effect.forEach(rows, ({ value }) => readEvent(value))
      const last = events.at(-1)
      return {
        items: events.filter((event) => isAskedFor(event, query)),
        next: rows.length < most || last === undefined ? undefined : last.seq + 1
      }
    })

    const runs = Effect.fnUntraced(function* (query: RunQuery): Effect.fn.Return<Page<Run, string>, Fault> {
      const { agent, cursor, since, threadId, until } = query
      const most = bounded(query.limit, 50)
      const list = threadId !== undefined ? `thread ${threadId}` : agent !== undefined ? `agent ${agent}` : "all"
      const first = until === undefined ? undefined : seqKey(Math.max(0, Math.ceil(until)))
      const after = cursor ?? first
      const rows = yield* lists.scan(list, { limit: most, reverse: true, after })
      const items = yield* Effect.forEach(rows, ({ value }) =>
        Effect.mapError(Effect.fromResult(decodeRun(value)), () => corrupt("a run is not of this version"))
      )
      const isLast = rows.length < most || items.some(({ at }) => since !== undefined && at < since)
      return {
        items: items.filter(
          (run) => (agent === undefined || run.agent === agent) && (since === undefined || run.at >= since)
        ),
        next: isLast ? undefined : rows.at(-1)?.key
      }
    })

    const remove = Effect.fnUntraced(function* (runId: string) {
      const rows = yield* traces.scan(runId, { limit: 1 })
      const [row] = rows
      const listed = row === undefined ? [] : listsOf(runOf(yield* readEvent(row.value)))
      yield* traces.clear(runId)
      for (const { key, list, value } of listed) yield* lists.swap(list, key, value, undefined)
    })

    const events: Service["events"] = (runId, query) => within("events", runId)(page(runId, query ?? {}))

    return {
      append: (runId, added) => within("append", runId)(append(runId, added)),
      events,
      stream: (runId, query) =>
        Stream.paginate(0, (from) =>
          Effect.map(
            events(runId, { ...query, from, limit: 500 }),
            ({ items, next }) => [items, Option.fromUndefinedOr(next)] as const
          )
        ),
      runs: (query) => within("runs", query?.threadId ?? query?.agent ?? "all")(runs(query ?? {})),
      remove: (runId) => within("remove", runId)(remove(runId))
    }
  })
)

const deltas: ReadonlySet<string> = new Set(["TextDelta", "ReasoningDelta", "ToolCallDelta"])

/**
 * Records what goes through a stream of events, as the trace of the run of its first event: an event is stored before
 * it is passed on. The pieces of answers and calls (`TextDelta`, `ReasoningDelta`, `ToolCallDelta`) are left out, since
 * they come again as a whole, unless `deltas` is set. When the store fails, so does the stream, with `StoreError`.
 */
export const record =
  (options?: { readonly deltas?: boolean | undefined }) =>
  <E, R>(
    events: Stream.Stream<AgentEvent.AgentEvent, E, R>
  ): Stream.Stream<AgentEvent.AgentEvent, E | StoreError, R | TraceStore> =>
    Stream.unwrap(
      Effect.map(TraceStore, (store) => {
        let runId: string | undefined
        return Stream.mapArrayEffect(events, (some) => {
          runId ??= some[0].runId
          const kept = options?.deltas === true ? some : some.filter((event) => !deltas.has(event._tag))
          return Effect.as(store.append(runId, kept), some)
        })
      })
    )
