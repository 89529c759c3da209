/** The turns of a chat: a person's message, until the agent has answered it. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import * as Agent from "../../../core/Agent.ts"
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import { Journal } from "../../../core/Journal.ts"
import * as Message from "../../../core/Message.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import { cut } from "../../../support/text/text.ts"
import { withFiles } from "./attach.ts"
import type { FileIndex } from "./completion/fileIndex.ts"
import { recorded } from "./files/recorded.ts"
import type { SessionHistory } from "./kept.ts"
import type { Problem } from "./options.ts"
import { offerMemory } from "./remember.ts"
import { type Room, threadOf } from "./room.ts"
import { messageOf, type Works } from "./works.ts"

/** A chat at work: its parts, and the state that changes from turn to turn. */
export interface Talk<E, R> {
  readonly room: Room<E, R>
  readonly works: Works
  readonly index: FileIndex
  readonly kept: SessionHistory
  readonly journal: Journal["Service"]
  /** Gives the terminal to another program until the effect ends. */
  readonly lend: <A>(other: Effect.Effect<A>) => Effect.Effect<A>
  handle: Agent.Handle<unknown, unknown> | undefined
  /** A turn runs on the conversation, or is about to. */
  isTurning: boolean
  /** The turn was answered, and its files are being recorded. */
  isSettling: boolean
  isLeaving: boolean
  /** The person interrupted: queued messages wait for them. */
  isHeld: boolean
  /** Output of the person's own commands, and notices. The agent reads them with the next message. */
  outputs: ReadonlyArray<Message.HumanMessage>
  /** The changes of the memory that the person put off. */
  putOff: string
}

/** Shows who talks: the agent and its model. */
export const showFacts = <E, R>({ room: { at, ui } }: Talk<E, R>): void =>
  ui.setFacts([at.setup.name, at.setup.model].map(cleanLine))

/** Puts a message that never arrived back into the draft. */
const restoreDraft = <E, R>({ room: { ui } }: Talk<E, R>, text: string): void => {
  if (!ui.memory.hasSaid && text !== "" && ui.input.text() === "") ui.input.set(text)
}

/** Runs one turn to its end; `true` if it succeeded. `title` names it, and `goesOn` continues a turn that a crash cut off. */
export const runTurn = <E, R>(
  talk: Talk<E, R>,
  input: Agent.Input,
  { draft, goesOn, title }: { readonly draft: string; readonly title: string; readonly goesOn: boolean }
) => {
  const { at, checkpoints, desk, options, store, ui } = talk.room
  const warn = (text: string): void => ui.note("warning", text)
  let isFailureShown = false
  const show = (event: AgentEvent): void => {
    if (event._tag === "RunFailed" && event.path.length === 1) isFailureShown = true
    ui.event(event)
  }
  const run = Effect.gen(function* () {
    const handle = yield* Agent.start(at.setup.agent, input, { threadId: at.threadId })
    talk.handle = handle
    yield* Stream.runForEach(handle.events, (event) => Effect.sync(() => show(event)))
    const exit = yield* Effect.exit(handle.await)
    talk.handle = undefined
    talk.isSettling = true
    return exit
  })
  return Effect.scoped(
    Effect.gen(function* () {
      ui.memory.hasSaid = false
      yield* Effect.tapError(options.hold?.(at.threadId) ?? Effect.void, () =>
        Effect.sync(() => restoreDraft(talk, draft))
      )
      const exit = yield* recorded({ checkpoints, store, threadId: at.threadId, title, goesOn, warn })(run)
      if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause) && !ui.memory.hasSaid && !isFailureShown) {
        ui.note("error", messageOf(exit.cause))
      }
      restoreDraft(talk, draft)
      return Exit.isSuccess(exit)
    })
  ).pipe(Effect.provide(desk.layer), Effect.provideService(Journal, talk.journal))
}

/** Begins work on the conversation in the background. One such work runs at a time. */
export const beginTurns = <E, R, R2>(
  talk: Talk<E, R>,
  turns: Effect.Effect<unknown, { readonly message: string }, R2>
) => {
  talk.isTurning = true
  return talk.works.begin(
    undefined,
    turns.pipe(
      Effect.mapBoth({ onFailure: ({ message }): Problem => ({ message }), onSuccess: () => undefined }),
      Effect.ensuring(
        Effect.sync(() => {
          talk.isTurning = false
          talk.isSettling = false
        })
      )
    )
  )
}

/** Waits for a turn that was answered. Returns whether a turn is at work then. */
export const settleTurn = <E, R>(talk: Talk<E, R>): Effect.Effect<boolean> =>
  Effect.suspend(() =>
    talk.isSettling ? Effect.andThen(Effect.sleep("10 millis"), settleTurn(talk)) : Effect.succeed(talk.isTurning)
  )

/** Tells whether the last answer has steps. Other answers in the mode `plan` are no plans. */
const hasPlan = <E, R>({ room: { ui } }: Talk<E, R>): boolean =>
  ui.view().todos.length > 0 || (ui.memory.answer.match(/^\s*(?:\d+[.)]|[-*])\s/gm) ?? []).length >= 2

/** Offers to carry out the plan of a turn in the mode `plan`. */
const offerPlan = <E, R>({ room: { ui } }: Talk<E, R>): void =>
  ui.setMenu({
    kind: "pick",
    title: "carry out this plan?",
    at: 0,
    items: [
      { value: "", label: "not yet", about: "say what to change", isWhole: true },
      { value: "plan:ask", label: "yes, ask about each change", about: "", isWhole: true },
      { value: "plan:auto-edit", label: "yes, and change files without asking", about: "", isWhole: true }
    ]
  })

/** Makes a message with the files that its text names, and says which were too large. */
const attach = Effect.fnUntraced(function* <E, R>({ options, ui }: Room<E, R>, text: string) {
  const { message, problems } = yield* withFiles(text, Message.makeId(), options.folder)
  for (const problem of problems) ui.note("warning", problem)
  return message
})

/** Sends a message in a turn of its own. The first message of a thread creates it. */
export const say = Effect.fnUntraced(function* <E, R>(talk: Talk<E, R>, input: string | Message.HumanMessage) {
  const { room } = talk
  const { at, desk, options, store } = room
  const text = typeof input === "string" ? input : Message.text(input)
  talk.isHeld = false
  // The screen has them already.
  const ran = talk.outputs
  talk.outputs = []
  const message = typeof input === "string" ? yield* attach(room, text) : input
  yield* beginTurns(
    talk,
    Effect.gen(function* () {
      const thread = yield* threadOf(room)
      const title = cut(cleanLine(text), 80)
      if (thread === undefined) {
        const metadata = { title, agent: at.setup.name, folder: options.folder ?? "" }
        yield* store.create({ threadId: at.threadId, metadata })
      } else if ((thread.metadata["title"] ?? "") === "") {
        yield* store.describe(at.threadId, { ...thread.metadata, title })
      }
      const isDone = yield* runTurn(talk, [...ran, message], { draft: text, title, goesOn: false })
      if (isDone) yield* offerMemory(talk)
      if (isDone && desk.mode() === "plan" && hasPlan(talk)) offerPlan(talk)
    })
  )
})

/** Sends all queued messages as one. */
export const sendQueue = <E, R>(talk: Talk<E, R>) =>
  Effect.suspend(() => {
    const { ui } = talk.room
    const texts = ui.queue().map(({ text }) => text)
    ui.setQueue([])
    return say(talk, texts.join("\n\n"))
  })

/** Gives a message to the turn that runs: at once (`steer`), or when it is done (`followUp`). */
export const queueMessage = Effect.fnUntraced(function* <E, R>(
  talk: Talk<E, R>,
  text: string,
  kind: "steer" | "followUp"
) {
  const { ui } = talk.room
  const message = yield* attach(talk.room, text)
  ui.setQueue([...ui.queue(), { id: message.id, kind, text }])
  // A run that ended meanwhile leaves the message in the queue, which is sent next.
  const { handle } = talk
  if (handle !== undefined) yield* Effect.ignore(kind === "steer" ? handle.steer(message) : handle.followUp(message))
})

/** Interrupts the turn, or the commands if no turn runs. */
export const interrupt = <E, R>(talk: Talk<E, R>): Effect.Effect<void> =>
  Effect.suspend(() => {
    talk.isHeld = true
    return Effect.asVoid(talk.handle?.interrupt ?? talk.works.interrupt)
  })

/** Interrupts everything, and ends the chat. */
export const leave = <E, R>(talk: Talk<E, R>): Effect.Effect<void> =>
  Effect.suspend(() => {
    talk.isLeaving = true
    return interrupt(talk)
  })
