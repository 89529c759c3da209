/** The response to an input: its events, from its message to the end of its work, over decisions and restarts. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import type { SessionError } from "../../../core/SessionError.ts"
import type { Page } from "../../../core/SessionStore.ts"
import { type Frame, type Position, start, write } from "../position.ts"
import type { Runs, RunsError } from "../service.ts"
import { placeBefore } from "../taking.ts"
import { namedBy, type Tenant, type ThreadRef } from "../tenant.ts"
import { isOfRoot } from "./part.ts"

const prefix = "input:"

/** The input that an event appends, by its id. */
const inputOf = (event: AgentEvent): string | undefined =>
  isOfRoot(event) &&
  event._tag === "MessageAppended" &&
  event.message.role === "human" &&
  event.message.id.startsWith(prefix)
    ? event.message.id.slice(prefix.length)
    : undefined

type Events = Stream.Stream<AgentEvent, RunsError | SessionError>

/**
 * The events of frames. Where a reader fell out of the log, the turn that it was told in part begins again; where the
 * thread was rewound, the events end.
 */
const toEvents = (frames: Stream.Stream<Frame, RunsError | SessionError>): Events =>
  Stream.mapAccumArray(
    Stream.takeWhile(frames, (frame) => frame._tag === "Event" || frame.to === "checkpoint"),
    (): { last: AgentEvent | undefined } => ({ last: undefined }),
    (state, some) => {
      const events: Array<AgentEvent> = []
      for (const frame of some) {
        if (frame._tag === "Event") {
          events.push(frame.event)
          if (isOfRoot(frame.event)) state.last = frame.event
        } else if (state.last !== undefined) {
          const { at, path, runId, seq } = state.last
          events.push({ _tag: "TurnRestarted", seq, runId, path, at, reason: "The reader was too slow" })
        }
      }
      return [state, events]
    }
  )

interface Own {
  /** The events of a run whose input is not known yet. */
  held: Array<AgentEvent>
  stage: "before" | "own" | "other" | "over"
}

/** Keeps the events of one input: runs of others before it are left out, and the first one behind it is the end. */
const ofInput =
  (id: string) =>
  (events: Events): Events =>
    Stream.takeUntil(
      Stream.mapAccumArray(
        events,
        (): Own => ({ held: [], stage: "before" }),
        (own, some) => {
          const out: Array<AgentEvent | undefined> = []
          for (const event of some) {
            if (own.stage === "over") break
            const input = inputOf(event)
            if (own.stage === "own") {
              if (input === undefined || input === id) out.push(event)
              else {
                own.stage = "over"
                out.push(undefined)
              }
              continue
            }
            if (event._tag === "RunStarted" && isOfRoot(event)) Object.assign(own, { stage: "before", held: [] })
            if (own.stage === "other") continue
            own.held.push(event)
            // A run that could not begin has no message.
            const isFailed = event._tag === "RunFailed" && isOfRoot(event)
            if (input === id || isFailed) {
              out.push(...own.held)
              own.stage = "own"
              own.held = []
            } else if (input !== undefined) own.stage = "other"
          }
          return [own, out]
        }
      ),
      (event) => event === undefined
    ).pipe(Stream.filter((event) => event !== undefined))

/** Streams the events of an input that begins behind a position, until the thread is idle or works on another one. */
export const observeInput = (runs: Runs["Service"], thread: ThreadRef, id: string, after: Position): Events =>
  ofInput(id)(toEvents(runs.observe(thread, { after })))

/** Streams the events behind a decision, until the thread is idle or works on another input. */
export const observeDecision = (runs: Runs["Service"], thread: ThreadRef, after: Position): Events =>
  Stream.takeWhile(toEvents(runs.observe(thread, { after })), (event) => inputOf(event) === undefined)

/** Finds the last input of a thread, and the position before its run. */
export const findInput = Effect.fnUntraced(function* (
  { store }: Tenant,
  runs: Runs["Service"],
  thread: ThreadRef
): Effect.fn.Return<{ readonly id: string; readonly position: Position } | undefined, RunsError | SessionError> {
  const { input } = yield* runs.status(thread)
  if (input !== undefined) return input
  const named = namedBy(thread)
  for (let from: string | undefined; named !== undefined;) {
    const page: Page = yield* store.load(thread.id, from === undefined ? {} : { from })
    for (const { entry } of page.entries.toReversed()) {
      if (entry._tag !== "Message" || entry.message.role !== "human" || !entry.message.id.startsWith(prefix)) continue
      const position = write((yield* placeBefore(named, thread.id, entry.message.id)) ?? start)
      return { id: entry.message.id.slice(prefix.length), position }
    }
    if (page.next === null) break
    from = page.next
  }
  return undefined
})

/** Finds the position before the run of an input that is in the thread. */
export const findPlace = Effect.fnUntraced(function* (thread: ThreadRef, id: string) {
  const named = namedBy(thread)
  const place = named === undefined ? undefined : yield* placeBefore(named, thread.id, prefix + id)
  return place === undefined ? undefined : write(place)
})
