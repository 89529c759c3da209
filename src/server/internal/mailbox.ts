/** The mailbox: inputs and decisions that were taken and are not settled, in a table that outlives the process. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Decision } from "../../core/Approval.ts"
import { HumanMessage } from "../../core/Message.ts"
import type { Table } from "../../stores/Storage.ts"
import { sha256 } from "../../support/store/hash.ts"
import { AppCall } from "./apps/calls.ts"
import { Position } from "./position.ts"
import { RunsError } from "./service.ts"
import { Principal } from "./tenant.ts"

/** Mail for a thread. `seq` orders what came in one process and its successors. */
export const Mail = Schema.Struct({
  v: Schema.Literal(1),
  seq: Schema.Finite,
  threadId: Schema.String,
  id: Schema.String,
  agent: Schema.String,
  principal: Principal,
  position: Position,
  /** The mode of an input, if it has another one than the default. */
  mode: Schema.optionalKey(Schema.String),
  /** The call of an interface that the input stands for. */
  call: Schema.optionalKey(AppCall),
  push: Schema.Union([
    Schema.TaggedStruct("Input", { message: HumanMessage }),
    Schema.TaggedStruct("Decisions", { decisions: Schema.Array(Decision) })
  ])
})
export type Mail = typeof Mail.Type

const text = Schema.fromJsonString(Mail)
const encode = Schema.encodeEffect(text)
const decode = Schema.decodeUnknownEffect(text)

const space = "mail"

/** See {@link make}. */
export interface Mailbox {
  readonly get: (threadId: string, id: string) => Effect.Effect<Mail | undefined, RunsError>
  /** Stores mail. `false`: there is mail of this id. */
  readonly put: (mail: Mail) => Effect.Effect<boolean, RunsError>
  readonly drop: (mail: Mail) => Effect.Effect<void, RunsError>
  /** All mail, in the order in which it came. */
  readonly all: Effect.Effect<ReadonlyArray<Mail>, RunsError>
  /** The mail of a thread, in the order in which it came. */
  readonly of: (threadId: string) => Effect.Effect<ReadonlyArray<Mail>, RunsError>
}

const unavailable = (threadId: string): RunsError =>
  new RunsError({ reason: "Unavailable", threadId, problem: "the mailbox can't be read or written; try again later" })

const pageSize = 500

/** Makes the mailbox on a table. */
export const make = (table: Table): Mailbox => {
  // The mail of a thread is together, so that it is found without a look at the others.
  const prefixOf = (threadId: string) => Effect.map(sha256(threadId), (hash) => hash.slice(0, 32))
  const keyOf = (threadId: string, id: string) =>
    Effect.zipWith(prefixOf(threadId), sha256(id), (prefix, hash) => prefix + hash.slice(0, 32))
  const guard = <A, E>(threadId: string, effect: Effect.Effect<A, E>): Effect.Effect<A, RunsError> =>
    Effect.mapError(
      Effect.tapError(effect, (error) => Effect.logError("The mailbox failed", error)),
      () => unavailable(threadId)
    )

  const readMail = Effect.fnUntraced(function* (prefix: string) {
    const mails: Array<Mail> = []
    let after = prefix === "" ? undefined : prefix
    for (;;) {
      const rows = yield* table.scan(space, { after, limit: pageSize })
      const own = rows.filter(({ key }) => key.startsWith(prefix))
      for (const { key, value } of own) {
        const mail = yield* Effect.option(decode(value))
        if (mail._tag === "Some") mails.push(mail.value)
        else yield* Effect.logError(`The row ${key} of the mailbox can't be read: it is left as it is`)
      }
      after = own.at(-1)?.key
      if (own.length < pageSize) return mails.toSorted((left, right) => left.seq - right.seq)
    }
  })

  return {
    get: (threadId, id) =>
      guard(
        threadId,
        Effect.gen(function* () {
          const value = yield* table.get(space, yield* keyOf(threadId, id))
          return value === undefined ? undefined : yield* decode(value)
        })
      ),
    put: (mail) =>
      guard(
        mail.threadId,
        Effect.gen(function* () {
          return yield* table.swap(space, yield* keyOf(mail.threadId, mail.id), undefined, yield* encode(mail))
        })
      ),
    drop: (mail) =>
      guard(
        mail.threadId,
        Effect.gen(function* () {
          yield* table.swap(space, yield* keyOf(mail.threadId, mail.id), yield* encode(mail), undefined)
        })
      ),
    all: guard("", readMail("")),
    of: (threadId) => guard(threadId, Effect.flatMap(prefixOf(threadId), readMail))
  }
}
