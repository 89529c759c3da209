/** The types of an inbox; public by `Inbox`. */
import type * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Approval from "../../core/Approval.ts"
import type { Verdict } from "../../middleware/ApprovalClassifier.ts"
import { TaggedError } from "../../support/effect/taggedError.ts"
import type { Notify } from "../Notify.ts"
import { Claim } from "./book.ts"
import { Kind, Severity } from "./notice.ts"

/** A pending request: of a thread, of a background task, or of a waiting run. */
export const Item = Schema.Struct({
  /** The request's own id. */
  id: Schema.String,
  kind: Kind,
  severity: Severity,
  request: Approval.Request,
  threadId: Schema.optionalKey(Schema.String),
  /** The key of the background task of this process. */
  task: Schema.optionalKey(Schema.String),
  /** True if a run of this process waits for the decision. */
  isLive: Schema.Boolean,
  /** True if decisions no longer count. The resumed thread asks again. */
  isExpired: Schema.Boolean,
  claim: Schema.optionalKey(Claim)
})
export interface Item extends Schema.Schema.Type<typeof Item> {}

/**
 * - `NotFound`: no request with this id is pending
 * - `Claimed`: somebody else has the claim, until a time in milliseconds since the epoch
 * - `Refused`: this decision does not count on the request
 * - `Undeliverable`: its thread failed to go on; the request stays pending
 * - `Unavailable`: the store failed
 */
const Reason = Schema.Union([
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

/** An operation on a request failed. `id` is the request's; it is empty for a failure of the whole inbox. */
export class InboxError extends TaggedError<InboxError>()("InboxError", { id: Schema.String, reason: Reason }) {
  override get message(): string {
    return `The inbox${this.id === "" ? "" : ` (request "${this.id}")`}: ${explain(this.reason)}`
  }
}

/** Filters of the list. Default: all requests. */
export interface Query {
  readonly threadId?: string | undefined
  readonly kinds?: ReadonlyArray<Kind> | undefined
  readonly severities?: ReadonlyArray<Severity> | undefined
  /** The id of the principal with the claim. */
  readonly claimedBy?: string | undefined
  /** True for requests without a claim. */
  readonly isFree?: boolean | undefined
}

/** A classifier, and the principal of its decisions. */
export interface ClassifyOptions<out E, out R> {
  /** Decides requests, in their order; `undefined` leaves one to a person. */
  readonly classify: (
    requests: ReadonlyArray<Approval.Request>
  ) => Effect.Effect<ReadonlyArray<Verdict | undefined>, E, R>
  /** The principal of the decisions. */
  readonly by: Approval.Principal
}

/** The service `Inbox`. */
export interface Service {
  /** Lists pending requests, the oldest first. */
  readonly list: (query?: Query) => Effect.Effect<ReadonlyArray<Item>, InboxError>
  /** Claims a request for 15 minutes, or `for` a time: nobody else can claim it or decide on it. A new claim prolongs it. */
  readonly claim: (
    id: string,
    options: { readonly by: Approval.Principal; readonly for?: Duration.Input | undefined }
  ) => Effect.Effect<Item, InboxError>
  /** Gives up a claim. */
  readonly release: (id: string, options: { readonly by: Approval.Principal }) => Effect.Effect<void, InboxError>
  /**
   * Decides in the name of `by`, and resumes the threads. Only `deciders` may decide, and nobody may decide on a request
   * that somebody else has claimed. It returns when the threads have ended or wait again.
   */
  readonly decide: (
    decisions: ReadonlyArray<Approval.Decision>,
    options: { readonly by: Approval.Principal; readonly rule?: string | undefined }
  ) => Effect.Effect<void, InboxError>
  /** Rejects unclaimed requests older than `after`, in the name of `inbox`. Returns the rejected requests. */
  readonly expire: (options: {
    readonly after: Duration.Input
    readonly reason?: string | undefined
  }) => Effect.Effect<ReadonlyArray<Item>, InboxError>
  /** Sends a notification for each new request, once over all processes. Returns the requests with a notification. */
  readonly notify: Effect.Effect<ReadonlyArray<Item>, InboxError, Notify>
  /** Lets a classifier decide once. See `Inbox.classify`, which logs its failures. */
  readonly classify: <E, R>(
    options: ClassifyOptions<E, R>
  ) => Effect.Effect<void, InboxError | E | Cause.TimeoutError, R>
  /** Waits for a decision on a request of a run in this process, as `Inbox.approvals` does. */
  readonly wait: (request: Approval.Request) => Effect.Effect<Approval.Decision>
}

/** Resumes a thread with decisions: its agent in this process, or its entity in a cluster. */
export type Deliver<out E, out R> = (
  threadId: string,
  decisions: ReadonlyArray<Approval.Decision>,
  agent: string
) => Effect.Effect<unknown, E, R>

/** How decisions reach threads, and how severe requests are. */
export interface Options<out E, out R> {
  /** Delivers decisions to the run that waits for them. */
  readonly deliver: Deliver<E, R>
  /** The severity of a request. Default: questions are `low`, approvals `normal`. */
  readonly severity?: ((request: Approval.Request) => Severity) | undefined
}
