/**
 * A conversation with an agent on a stored thread, one turn at a time.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Chat, MemorySessions } from "effect-deepagents/sessions"
 *
 * const agent = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const program = Effect.gen(function* () {
 *   const chat = yield* Chat.make(agent, "ada", { metadata: { title: "Ada's questions" } })
 *   yield* chat.send("My name is Ada")
 *   const { text } = yield* chat.send("What is my name?")
 *   return text
 * }).pipe(Effect.provide(MemorySessions.layer))
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Agent from "../core/Agent.ts"
import type { AgentError } from "../core/AgentError.ts"
import type { AgentEvent } from "../core/AgentEvent.ts"
import type { AgentResult } from "../core/AgentResult.ts"
import * as Checkpoint from "../core/Checkpoint.ts"
import { Journal, type Status, statusOf } from "../core/Journal.ts"
import type { JsonObject } from "../core/Json.ts"
import { type Message, text as textOf } from "../core/Message.ts"
import type { InvalidEncoding } from "../core/schema/encoding.ts"
import type { SessionError } from "../core/SessionError.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { Held } from "../core/thread/parts.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { defined } from "../support/json/defined.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { leave, type NoSummary } from "./Branch.ts"
import { load } from "./internal/checkpoint.ts"
import * as shapes from "./internal/shapes.ts"
import { take } from "./internal/turns.ts"
import { type JournalOptions, makeJournal } from "./journal.ts"

/** Another turn works on the thread. Send again after it, or make the chat with `busy: "queue"`. */
export class ChatBusy extends TaggedError<ChatBusy>()("ChatBusy", { threadId: Schema.String }) {
  override get message(): string {
    return `The chat ${JSON.stringify(this.threadId)} is at another turn; send again when that is done`
  }
}

/** A chat. Its inputs are those of a run, also `Checkpoint.resume` for a stream that resumes a turn. */
export interface Chat<out Output, out E, out R> {
  readonly threadId: string
  /** Runs a turn to its end. */
  readonly send: (
    input: Agent.Input
  ) => Effect.Effect<AgentResult<Output>, E | AgentError | ChatBusy, Exclude<R, Journal>>
  /** Resumes the turn that was suspended, interrupted or cut off by a crash, and runs it to its end. */
  readonly resume: (
    options?: Checkpoint.DecidedRun
  ) => Effect.Effect<AgentResult<Output>, E | AgentError | ChatBusy, Exclude<R, Journal>>
  /** Streams the events of a turn. The turn ends when the stream ends or is left. */
  readonly stream: (input: Agent.Input) => Stream.Stream<AgentEvent, E | AgentError | ChatBusy, Exclude<R, Journal>>
  /** Begins anew: the next turn knows nothing of earlier turns. They stay in the thread as a branch. */
  readonly reset: Effect.Effect<void, SessionError | ChatBusy>
  /**
   * Replaces the conversation by a summary, and gives it: `undefined` for an empty conversation. The
   * summarizer is `Branch.summarizer`, or an agent of yours. The turns stay in the thread as a branch.
   */
  readonly compact: <E2, R2>(
    summarizer: Agent.Agent<unknown, E2, R2>
  ) => Effect.Effect<string | undefined, SessionError | AgentError | NoSummary | ChatBusy | E2, R2>
  /** Reads the stored conversation. */
  readonly history: Effect.Effect<ReadonlyArray<Message>, SessionError>
  /** Tells whether the last turn is done, waits for decisions (`pending`), or must be resumed. */
  readonly status: Effect.Effect<Status, SessionError | InvalidEncoding>
}

/** The options of this module. */
export interface Options extends JournalOptions {
  /** The metadata of a thread that the chat creates. An existing thread keeps its own. */
  readonly metadata?: JsonObject | undefined
}

const refuse = makeEffectCheck("Chat.make", shapes.chatMake)

/**
 * Opens a chat on a thread, and creates a missing thread. `busy` counts for all chats and runs of this process on a thread;
 * of two processes, one gets a `Conflict`. A turn inside of a turn of the same thread is refused, since it would wait for
 * ever.
 */
export const make = Effect.fnUntraced(function* <O, E, R>(
  agent: Agent.Agent<O, E, R>,
  threadId: string,
  options?: Options
): Effect.fn.Return<Chat<O, E, R>, SessionError, SessionStore> {
  yield* refuse(options) ?? Effect.void
  const store = yield* SessionStore
  const created = Effect.asVoid(store.create(defined({ threadId, metadata: options?.metadata })))
  yield* Effect.catchIf(
    created,
    (error) => error.reason._tag === "AlreadyExists",
    () => Effect.void
  )
  const { open } = makeJournal(store, options)
  /** Takes the turn until the scope is closed. */
  const begin = Effect.mapError(take(store, threadId, options?.busy ?? "queue"), () => new ChatBusy({ threadId }))
  /** The context of the turn. */
  const inTurn = Effect.map(Effect.zip(Held, begin), ([outer, holder]) =>
    Context.make(Journal, { open }).pipe(Context.add(Held, [...outer, holder]))
  )

  const send = (input: Agent.Input) =>
    Effect.scoped(
      Effect.flatMap(inTurn, (context) => Effect.provideContext(Agent.run(agent, input, { threadId }), context))
    )

  /** Works on the thread between two turns. */
  const holdTurn = <A, E2, R2>(work: Effect.Effect<A, E2, R2>): Effect.Effect<A, E2 | ChatBusy, R2> =>
    Effect.scoped(Effect.flatMap(inTurn, (context) => Effect.provideContext(work, context)))

  return {
    threadId,
    reset: holdTurn(Effect.asVoid(store.rewind(threadId, null))),
    compact: (summarizer) =>
      Effect.map(
        Effect.provideService(holdTurn(leave(threadId, { to: null, summarizer })), SessionStore, store),
        ({ summary }) => (summary === undefined ? undefined : textOf(summary))
      ),
    send,
    resume: (decided) => send(Checkpoint.resume(undefined, decided)),
    stream: (input) =>
      Stream.unwrap(
        Effect.map(inTurn, (context) => Stream.provideContext(Agent.stream(agent, input, { threadId }), context))
      ),
    history: Effect.map(load(store, threadId), ({ checkpoint }) => checkpoint?.messages ?? []),
    status: Effect.flatMap(load(store, threadId), statusOf)
  }
})
