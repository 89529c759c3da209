/**
 * Stores the events of runs as traces: to inspect an agent later, and to export them to a tracing backend.
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
 * `Telemetry` (in `effect-deepagents/middleware`) sends spans during a run; a trace stays.
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
import { makeEffectCheck } from "../support/options/check.ts"
import { nameProblem } from "../support/text/names.ts"
import { limit, sizeOfText } from "../support/text/size.ts"
import { boundLimit, corrupt, onName, type Reason } from "./internal/failure.ts"
import * as shapes from "./internal/shapes.ts"
import type { Fault, Row } from "./internal/table.ts"
import { Storage } from "./Storage.ts"
import type { StoreError } from "./StoreError.ts"

export type { Span } from "./internal/spans.ts"

const Run = Schema.Struct({
  runId: Schema.String,
  agent: Schema.String,
  model: Schema.String,
  at: Schema.Finite,
  threadId: Schema.optionalKey(Schema.String)
})

/** A recorded run. It began at `at`, in milliseconds since the epoch. */
interface Run extends Schema.Schema.Type<typeof Run> {}

interface RunQuery {
  /** Only runs of this agent. */
  readonly agent?: string | undefined
  /** Only runs of this thread. */
  readonly threadId?: string | undefined
  /** Only runs that began at this time or later. */
  readonly since?: number | undefined
  /** Only runs that began before this time. */
  readonly until?: number | undefined
  /** The most runs of a page: 50 by default, at most 1,000. */
  readonly limit?: number | undefined
  /** The `next` of the page before. */
  readonly cursor?: string | undefined
}

interface EventQuery {
  /** Only events of these kinds. */
  readonly tags?: ReadonlyArray<AgentEvent.AgentEvent["_tag"]> | undefined
  /** Only events of this agent. */
  readonly agent?: string | undefined
  /** Only events at this time or later. */
  readonly since?: number | undefined
  /** Only events before this time. */
  readonly until?: number | undefined
}

interface EventPageQuery extends EventQuery {
  /** The `seq` of the first event; by default the first of the trace. */
  readonly from?: number | undefined
  /** The events to look at: 100 by default, at most 1,000. */
  readonly limit?: number | undefined
}

interface Page<out A, out Next> {
  readonly items: ReadonlyArray<A>
  /** The cursor of the next page; `undefined` on the last one. */
  readonly next: Next | undefined
}

interface Service {
  /**
   * Appends events to the trace of a run. An event replaces an earlier event with its `seq`. Stores none and fails with
   * `InvalidValue` if an event nests too deep for JSON, or has more than 15 MiB.
   */
  readonly append: (runId: string, events: ReadonlyArray<AgentEvent.AgentEvent>) => Effect.Effect<void, StoreError>
  /** Reads a page of the events of a run and its sub-agents, in the order of `seq`. */
  readonly events: (
    runId: string,
    query?: EventPageQuery
  ) => Effect.Effect<Page<AgentEvent.AgentEvent, number>, StoreError>
  /** Streams all events that match. */
  readonly stream: (runId: string, query?: EventQuery) => Stream.Stream<AgentEvent.AgentEvent, StoreError>
  /** Lists recorded runs, the latest first. */
  readonly runs: (query?: RunQuery) => Effect.Effect<Page<Run, string>, StoreError>
  /** Erases the trace of a run. */
  readonly remove: (runId: string) => Effect.Effect<void, StoreError>
}

/** The store of traces. Traces contain conversations, and are as confidential. */
export class TraceStore extends Context.Service<TraceStore, Service>()("effect-deepagents/TraceStore") {}

const decodeRun = Schema.decodeUnknownResult(Schema.fromJsonString(Run))

const digits = 16
const seqKey = (seq: number): string => `${seq}`.padStart(digits, "0")
const runKey = ({ at, runId }: Run): string => `${seqKey(Math.max(0, Math.trunc(at)))} ${runId}`

/** The lists of a run: of all runs, of its agent, and of its thread. */
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

const isWanted = (event: AgentEvent.AgentEvent, { agent, since, tags, until }: EventQuery): boolean =>
  (tags === undefined || tags.includes(event._tag)) &&
  (agent === undefined || event.path.at(-1) === agent) &&
  (since === undefined || event.at >= since) &&
  (until === undefined || event.at < until)

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

/** The store, over a storage. */
export const layer: Layer.Layer<TraceStore, never, Storage> = Layer.effect(
  TraceStore,
  Effect.gen(function* () {
    const storage = yield* Storage
    const traces = storage.table("traces")
    const lists = storage.table("runs")

    const onTrace =
      (operation: string, name: string) =>
      <A>(effect: Effect.Effect<A, Reason | Fault>): Effect.Effect<A, StoreError> =>
        span(`TraceStore.${operation}`)(onName(512)(operation, name)(effect))

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
      // Lists come first: every stored event belongs to a listed run, also after a crash.
      for (const { key, list, value } of listed) yield* lists.put(list, [{ key, value }])
      yield* traces.put(runId, rows)
    })

    const page = Effect.fnUntraced(function* (
      runId: string,
      query: EventPageQuery
    ): Effect.fn.Return<Page<AgentEvent.AgentEvent, number>, Fault> {
      const most = boundLimit(query.limit, 100, 1000)
      const after = query.from === undefined || query.from <= 0 ? undefined : seqKey(Math.ceil(query.from) - 1)
      const rows = yield* traces.scan(runId, { limit: most, after })
      const events = yield* Effect.forEach(rows, ({ value }) => readEvent(value))
      const last = events.at(-1)
      return {
        items: events.filter((event) => isWanted(event, query)),
        next: rows.length < most || last === undefined ? undefined : last.seq + 1
      }
    })

    const runs = Effect.fnUntraced(function* (query: RunQuery): Effect.fn.Return<Page<Run, string>, Fault> {
      const { agent, cursor, since, threadId, until } = query
      const most = boundLimit(query.limit, 50, 1000)
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

    const events: Service["events"] = (runId, query) => onTrace("events", runId)(page(runId, query ?? {}))

    return {
      append: (runId, added) => onTrace("append", runId)(append(runId, added)),
      events,
      stream: (runId, query) =>
        Stream.paginate(0, (from) =>
          Effect.map(
            events(runId, { ...query, from, limit: 500 }),
            ({ items, next }) => [items, Option.fromUndefinedOr(next)] as const
          )
        ),
      runs: (query) => onTrace("runs", query?.threadId ?? query?.agent ?? "all")(runs(query ?? {})),
      remove: (runId) => onTrace("remove", runId)(remove(runId))
    }
  })
)

const deltas: ReadonlySet<string> = new Set(["TextDelta", "ReasoningDelta", "ToolCallDelta"])

const refuseRecord = makeEffectCheck("TraceStore.record", shapes.traceStoreRecord)

/**
 * Records a stream of events as the trace of its first event's run, and stores each event before it passes on. When the
 * store fails, the stream fails with `StoreError`.
 */
export const record =
  (options?: {
    /**
     * Records the pieces of answers and calls as well (`TextDelta`, `ReasoningDelta`, `ToolCallDelta`). By default they
     * are left out, because whole messages follow them.
     */
    readonly deltas?: boolean | undefined
  }) =>
  <E, R>(
    events: Stream.Stream<AgentEvent.AgentEvent, E, R>
  ): Stream.Stream<AgentEvent.AgentEvent, E | StoreError, R | TraceStore> =>
    Stream.unwrap(
      refuseRecord(options) ??
        Effect.map(TraceStore, (store) => {
          let runId: string | undefined
          return Stream.mapArrayEffect(events, (some) => {
            runId ??= some[0].runId
            const selection = options?.deltas === true ? some : some.filter((event) => !deltas.has(event._tag))
            return Effect.as(store.append(runId, selection), some)
          })
        })
    )
