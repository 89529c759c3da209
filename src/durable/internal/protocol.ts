/** Messages between a client and the entity of a thread. */
import type {
  AlreadyProcessingMessage,
  EntityNotAssignedToRunner,
  MailboxFull,
  PersistenceError
} from "effect/cluster/ClusterError"
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as DeliverAt from "effect/cluster/DeliverAt"
import * as Entity from "effect/cluster/Entity"
import * as DateTime from "effect/DateTime"
import * as PrimaryKey from "effect/PrimaryKey"
import * as Rpc from "effect/rpc/Rpc"
import * as Schema from "effect/Schema"
import { Decision } from "../../core/Approval.ts"
import { HumanMessage, Message } from "../../core/Message.ts"
import { SessionError } from "../../core/SessionError.ts"
import { Conflict } from "../Conflict.ts"
import { NotRunning } from "../NotRunning.ts"
import { ThreadEvent } from "../ThreadEvent.ts"
import type { Codecs } from "./codecs.ts"

/** The cluster rejected a message, or its storage is unavailable. */
export type ClusterFailure = MailboxFull | AlreadyProcessingMessage | PersistenceError | EntityNotAssignedToRunner

/** The time of delivery (default: now). */
const due = (at: number | undefined): DateTime.DateTime => DateTime.makeUnsafe(at ?? 0)

/** Escapes an id. The cluster joins ids with `/`, so an id with `/` could imitate another key. */
const escapeId = (id: string): string => id.replaceAll("%", "%25").replaceAll("/", "%2F")

/** An input. Another `digest` of its content with the same id is a `Conflict`. `at` is in milliseconds since the epoch. */
export class Send extends Schema.Class<Send>("effect-deepagents/durable/Send")({
  inputId: Schema.String,
  digest: Schema.String,
  message: HumanMessage,
  at: Schema.optionalKey(Schema.Finite)
}) {
  [PrimaryKey.symbol](): string {
    return `${escapeId(this.inputId)}:${this.digest}`
  }
  [DeliverAt.symbol](): DateTime.DateTime {
    return due(this.at)
  }
}

/** Decisions. Repeating them with the same id has no effect. */
export class Decide extends Schema.Class<Decide>("effect-deepagents/durable/Decide")({
  id: Schema.String,
  decisions: Schema.Array(Decision),
  at: Schema.optionalKey(Schema.Finite)
}) {
  [PrimaryKey.symbol](): string {
    return escapeId(this.id)
  }
  [DeliverAt.symbol](): DateTime.DateTime {
    return due(this.at)
  }
}

/** A page of a conversation, oldest message first. `next` is the end of the page before. */
const Page = Schema.Struct({ messages: Schema.Array(Message), next: Schema.NullOr(Schema.String) })

/** The messages of a thread. Inputs and decisions are stored until they are processed, also without their sender. */
const protocol = <O, E>(codecs: Codecs<O, E>) => {
  const { outcome } = codecs
  const error = Schema.Union([codecs.failure, Conflict])
  return [
    Rpc.make("Send", { payload: Send, success: outcome, error })
      .annotate(ClusterSchema.Persisted, true)
      .annotate(ClusterSchema.Uninterruptible, "client"),
    Rpc.make("Decide", { payload: Decide, success: outcome, error })
      .annotate(ClusterSchema.Persisted, true)
      .annotate(ClusterSchema.Uninterruptible, "client"),
    Rpc.make("Steer", { payload: { message: HumanMessage }, error: NotRunning }),
    Rpc.make("Interrupt", { success: Schema.Boolean }),
    Rpc.make("History", {
      payload: { from: Schema.NullOr(Schema.String), limit: Schema.Finite },
      success: Page,
      error: SessionError
    }),
    Rpc.make("Events", { payload: { after: Schema.Finite }, success: ThreadEvent, error: SessionError, stream: true })
  ] as const
}

/** The entity of all threads of an agent. */
export const makeEntity = <O, E>(name: string, codecs: Codecs<O, E>) =>
  Entity.make(`Agent/${escapeId(name)}`, protocol(codecs))
export type ThreadEntity<O, E> = ReturnType<typeof makeEntity<O, E>>
