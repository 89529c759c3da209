/**
 * A conversation with an agent that resumes where it was: one turn at a time, on a thread that is kept.
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
import { Journal } from "../core/Journal.ts"
import type { JsonObject } from "../core/Json.ts"
import type { Message } from "../core/Message.ts"
import type { SessionError } from "../core/SessionError.ts"
import { SessionStore } from "../core/SessionStore.ts"
import { Held } from "../core/thread/parts.ts"
import { load } from "./internal/checkpoint.ts"
import { take } from "./internal/turns.ts"
import { type JournalOptions, makeJournal } from "./SessionStore.ts"

/**
 * The thread is at another turn, of this chat or another one. Send again when that is done, or make the chat with
 * `busy: "queue"`.
 */
export class ChatBusy extends Schema.TaggedError<ChatBusy>()("ChatBusy", { threadId: Schema.String }) {
  override get message(): string {
    return `The chat ${JSON.stringify(this.threadId)} is at another turn; send again when that is done`
  }
}

/**
 * A chat. `send` runs a turn to its end, `stream` gives its events; both take what a run takes, `Checkpoint.resume`
 * too, to resume a turn that was suspended or cut off. A stream keeps its turn until it ends or is left. `history` is
 * the conversation as it is stored.
 */
export interface Chat<out Output, out E, out R> {
  readonly threadId: string
  readonly send: (
    input: Agent.Input
  ) => Effect.Effect<AgentResult<Output>, E | AgentError | ChatBusy, Exclude<R, Journal>>
  readonly stream: (input: Agent.Input) => Stream.Stream<AgentEvent, E | AgentError | ChatBusy, Exclude<R, Journal>>
  readonly history: Effect.Effect<ReadonlyArray<Message>, SessionError>
}

/**
 * `busy` decides about a turn while another one is running: it waits (`queue`, the default), or fails with
 * {@link ChatBusy} (`refuse`). It counts for all chats and runs of this process on one thread of a store; two processes
 * on one thread get a `Conflict`. A turn inside of a turn of the same thread is refused: it would wait for ever.
 * `parts` are as of {@link JournalOptions}. `metadata` are given to the thread if it is not there yet, and left alone if it is.
 */
export interface Options extends JournalOptions {
  readonly metadata?: JsonObject | undefined
}

/** Opens a chat on a thread, which is made if it is not there. */
export const make = Effect.fnUntraced(function* <O, E, R>(
  agent: Agent.Agent<O, E, R>,
  threadId: string,
  options?: Options
): Effect.fn.Return<Chat<O, E, R>, SessionError, SessionStore> {
  const store = yield* SessionStore
  const created = Effect.asVoid(
    store.create({ threadId, ...(options?.metadata === undefined ? {} : { metadata: options.metadata }) })
  )
  yield* Effect.catchIf(
    created,
    (error) => error.reason._tag === "AlreadyExists",
    () => Effect.void
  )
  const { open } = makeJournal(store, options)
  /** Takes the turn until the scope is closed. */
  const begin = Effect.mapError(take(store, threadId, options?.busy ?? "queue"), () => new ChatBusy({ threadId }))
  /** The context of the turn that was taken. */
  const inTurn = Effect.map(Effect.zip(Held, begin), ([outer, held]) =>
    Context.make(Journal, { open }).pipe(Context.add(Held, [...outer, held]))
  )

  return {
    threadId,
    send: (input) =>
      Effect.scoped(
        Effect.flatMap(inTurn, (context) => Effect.provideContext(Agent.run(agent, input, { threadId }), context))
      ),
    stream: (input) =>
      Stream.unwrap(
        Effect.map(inTurn, (context) => Stream.provideContext(Agent.stream(agent, input, { threadId }), context))
      ),
    history: Effect.map(load(store, threadId), ({ checkpoint }) => checkpoint?.messages ?? [])
  }
})
