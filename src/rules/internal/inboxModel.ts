/** The types of an inbox; public by `Inbox`. */
import type * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Approval from "../../core/Approval.ts"
import type { Verdict } from "../../middleware/ApprovalClassifier.ts"
import { Kind, type Notify, Severity } from "../Notify.ts"
import { Claim } from "./book.ts"

/**
 * Something that waits. `id` is that of the request. It is of a thread of the store, of a task in the background of this
 * process (`task`), or of a run of this process that waits meanwhile (`isLive`). `isExpired`: a decision counts no more,
 * and the call is asked about again when its thread is resumed.
 */
export const Item = Schema.Struct({
  id: Schema.String,
  kind: Kind,
  severity: Severity,
  request: Approval.Request,
  threadId: Schema.optionalKey(Schema.String),
  task: Schema.optionalKey(Schema.String),
  isLive: Schema.Boolean,
  isExpired: Schema.Boolean,
  claim: Schema.optionalKey(Claim)
})
export interface Item extends Schema.Schema.Type<typeof Item> {}

/**
 * - `NotFound`: nothing with this id waits, any more
 * - `Claimed`: somebody else has taken it, until a time (milliseconds since the epoch)
 * - `Refused`: this decision does not count on it
 * - `Undeliverable`: the thread it is of could not go on; the request waits as before
 * - `Unavailable`: the store failed
 */
export const Reason = Schema.Union([
  Schema.TaggedStruct("NotFound", {}),
  Schema.TaggedStruct("Claimed", { by: Schema.String, until: Schema.Finite }),
  Schema.TaggedStruct("Refused", { problem: Schema.String }),
  Schema.TaggedStruct("Undeliverable", { problem: Schema.String }),
  Schema.TaggedStruct("Unavailable", { problem: Schema.String })
])
export type Reason = typeof Reason.Type

const explain = (reason: Reason): string => {
  switch (reason._tag) {
    case "NotFound":
      return "nothing with this id waits; it was decided on, or something else was said in its thread. List again"
    case "Claimed":
      return `"${reason.by}" has taken it; wait until ${new Date(reason.until).toISOString()}, or have it released`
    case "Refused":
    case "Undeliverable":
    case "Unavailable":
      return reason.problem
  }
}

/** Something could not be done with what waits. `id` is the request's, and empty if it is about all of them. */
export class InboxError extends Schema.TaggedError<InboxError>()("InboxError", { id: Schema.String, reason: Reason }) {
  override get message(): string {
    return `The inbox${this.id === "" ? "" : ` (request "${this.id}")`}: ${explain(this.reason)}`
  }
}

/** A part of the list. `claimedBy` are those that this principal has taken, `isFree` those that nobody has. */
export interface Query {
  readonly threadId?: string | undefined
  readonly kinds?: ReadonlyArray<Kind> | undefined
  readonly severities?: ReadonlyArray<Severity> | undefined
  readonly claimedBy?: string | undefined
  readonly isFree?: boolean | undefined
}

/** A classifier, and whose name its decisions have. */
export interface ClassifyOptions<out E, out R> {
  readonly classify: (
    requests: ReadonlyArray<Approval.Request>
  ) => Effect.Effect<ReadonlyArray<Verdict | undefined>, E, R>
  readonly by: Approval.Principal
}

/** See {@link Inbox}. */
export interface Service {
  /** Lists what waits, the oldest first. */
  readonly list: (query?: Query) => Effect.Effect<ReadonlyArray<Item>, InboxError>
  /** Takes a request for a time (15 minutes): others can't take it or decide on it meanwhile. Again prolongs it. */
  readonly claim: (
    id: string,
    options: { readonly by: Approval.Principal; readonly for?: Duration.Input | undefined }
  ) => Effect.Effect<Item, InboxError>
  /** Gives a request back that this principal has taken. */
  readonly release: (id: string, options: { readonly by: Approval.Principal }) => Effect.Effect<void, InboxError>
  /**
   * Decides, and has the threads go on: those of one thread at once. A decision is of its principal, on the request as
   * it is now; only those decide who may (`deciders`), and nobody on what somebody else has taken. It returns when the
   * threads have come to their next end, or wait again.
   */
  readonly decide: (
    decisions: ReadonlyArray<Approval.Decision>,
    options: { readonly by: Approval.Principal; readonly rule?: string | undefined }
  ) => Effect.Effect<void, InboxError>
  /** Rejects what has waited longer than a time and nobody has taken, in the name of `inbox`; gives what it rejected. */
  readonly expire: (options: {
    readonly after: Duration.Input
    readonly reason?: string | undefined
  }) => Effect.Effect<ReadonlyArray<Item>, InboxError>
  /** Sends a notification for each request that nobody was told of yet, once over all processes; gives those. */
  readonly notify: Effect.Effect<ReadonlyArray<Item>, InboxError, Notify>
  /**
   * Has a classifier decide, once, on what it may. What it left to people, three refusals in a thread, and two failures
   * in a row within a minute hold for every process. Fails as the classifier does.
   */
  readonly classify: <E, R>(
    options: ClassifyOptions<E, R>
  ) => Effect.Effect<void, InboxError | E | Cause.TimeoutError, R>
  /** Waits for a decision on a request of a run that is at work here: what `approvals` does. */
  readonly wait: (request: Approval.Request) => Effect.Effect<Approval.Decision>
}

/** Has a thread go on with decisions: by resuming its agent, or by telling the entity that has it. */
export type Deliver<out E, out R> = (
  threadId: string,
  decisions: ReadonlyArray<Approval.Decision>,
  agent: string
) => Effect.Effect<unknown, E, R>

/**
 * Options of an inbox. `severity` says how severe a request is; by default questions are `low`, and all else is
 * `normal`.
 */
export interface Options<out E, out R> {
  readonly deliver: Deliver<E, R>
  readonly severity?: ((request: Approval.Request) => Severity) | undefined
}
