/** The chat at a terminal: its parts, and the queue of what a person wants. */
import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as LogLevel from "effect/LogLevel"
import * as Predicate from "effect/Predicate"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { Backend } from "../../../core/Backend.ts"
import * as Checkpoint from "../../../core/Checkpoint.ts"
import { SessionStore } from "../../../core/SessionStore.ts"
import { makeJournal } from "../../../sessions/journal.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import { makeDesk } from "../approvals/desk.ts"
import { makePermits } from "../approvals/permits.ts"
import { previewOf } from "../approvals/preview.ts"
import { bindings } from "../input/bindings.ts"
import { styleOf } from "../render/style.ts"
import { lendTerminal, openScreen } from "../screen/opening.ts"
import { processTerminal, type Terminal } from "../screen/terminal.ts"
import * as Processes from "../slash/processes.ts"
import * as Slash from "../slash/table.ts"
import { resumeCutOff } from "../slash/workflows.ts"
import { makeFileIndex } from "./completion/fileIndex.ts"
import * as External from "./external.ts"
import { mendFiles, settleFiles } from "./files/keeping.ts"
import { handleIntent, type Over } from "./intents.ts"
import { keep } from "./kept.ts"
import type { ChatEnd, Options } from "./options.ts"
import { addUsageTo, replay, type Room, threadOf } from "./room.ts"
import type { Intent } from "./state.ts"
import { keepStatusLine } from "./statusLine.ts"
import { beginTurns, runTurn, say, showFacts, type Talk } from "./turns.ts"
import { makeUi, type Ui } from "./ui.ts"
import { makeWorks } from "./works.ts"

/** The most parts of a stored conversation that are shown when a chat resumes it. */
const shownOnResume = 30

/**
 * Chats with a person at a terminal until they leave, and returns the last thread. The terminal is restored however the
 * chat ends. Runs use the `Approvals` of the chat, and store parts of turns too.
 */
export const interactive = Effect.fnUntraced(function* <E, R>(
  options: Options<E, R> & { readonly terminal?: Terminal | undefined; readonly colours: boolean }
) {
  const store = yield* SessionStore
  const backend = yield* Backend
  const clock = yield* Clock.Clock
  const terminal = options.terminal ?? processTerminal()
  const intents = yield* Queue.unbounded<Intent | Over>()
  const intend = (intent: Intent): void => {
    Queue.offerUnsafe(intents, intent)
  }
  const desk = makeDesk({
    mode: options.mode ?? "ask",
    principal: options.principal,
    isAllowed: options.isAllowed,
    onWait: options.onWait,
    permits: options.permits ?? makePermits(options.folder ?? process.cwd(), []),
    look: (request) => Effect.orElseSucceed(previewOf(backend, request), () => undefined),
    onLearned: options.onLearned ?? (() => {}),
    onChange: () => ui.refresh()
  })
  const at: Room<E, R>["at"] = {
    threadId: options.threadId,
    setup: options.setup,
    picking: undefined,
    theme: options.theme ?? "auto"
  }
  const ui = makeUi({
    terminal,
    style: styleOf(options.colours, () => at.theme),
    prices: () => at.setup.prices,
    desk: () => desk,
    commands: () => Slash.itemsOf(options),
    bindings: options.bindings ?? bindings,
    now: () => clock.currentTimeMillisUnsafe(),
    intend
  })
  const room: Room<E, R> = {
    ui,
    desk,
    checkpoints: options.checkpoints,
    store,
    backend,
    options,
    at,
    copy: (text) => terminal.write(`\u001b]52;c;${Buffer.from(text).toString("base64")}\u0007`),
    page: (text) => lend(External.page(text))
  }
  const lend = lendTerminal(terminal, ui)
  const talk: Talk<E, R> = {
    room,
    works: makeWorks({ ui, onOver: (next) => Queue.offerUnsafe(intents, { _tag: "Over", next }) }),
    kept: yield* keep(options, ui),
    index: yield* makeFileIndex(options.folder ?? "."),
    journal: makeJournal(store, { parts: true }),
    lend,
    handle: undefined,
    isTurning: false,
    isSettling: false,
    isLeaving: false,
    isHeld: false,
    outputs: [],
    putOff: ""
  }
  options.onMode?.(() => desk.mode())
  options.remembering?.setPlan(() => desk.mode() === "plan")
  yield* Effect.provideService(runChat(talk, terminal, intents), Logger.CurrentLoggers, makeLoggers(ui))
  return { threadId: at.threadId } satisfies ChatEnd
}, Effect.scoped)

/** Shows log messages as notes: lines of a log would break the screen. */
const makeLoggers = (ui: Ui): ReadonlySet<Logger.Logger<unknown, void>> =>
  new Set([
    Logger.make(({ logLevel, message }) => {
      if (LogLevel.isGreaterThanOrEqualTo(logLevel, "Warn")) {
        ui.note("warning", cleanLine(Arr.ensure(message).filter(Predicate.isString).join(" ")))
      }
    })
  ])

/** Runs a chat until the person leaves. */
const runChat = Effect.fnUntraced(function* <E, R>(
  talk: Talk<E, R>,
  terminal: Terminal,
  intents: Queue.Queue<Intent | Over>
) {
  const { room } = talk
  const { at, options, ui } = room
  showFacts(talk)
  yield* openScreen(terminal, ui, {
    isVim: options.vim === true,
    lastLine: () => options.resumeCommand?.(at.threadId)
  })
  if (options.header !== undefined) ui.note("info", options.header)
  yield* Effect.forkScoped(
    Stream.runForEach(options.notes ?? Stream.empty, (text) => Effect.sync(() => ui.note("warning", text)))
  )
  if (options.statusLine !== undefined) yield* Effect.forkScoped(keepStatusLine(room, options.statusLine))
  yield* Processes.watch(room)
  yield* mendFiles(room)
  if (options.resumes === true) yield* resumeThread(talk)
  if (options.first !== undefined) yield* say(talk, options.first)
  // Who leaves still sees the end of the turn.
  while (!talk.isLeaving || talk.isTurning) yield* handleIntent(talk, yield* Queue.take(intents))
  yield* Effect.timeoutOption(talk.works.interrupt, "3 seconds")
})

/** Shows the stored conversation, and goes on with its run if that did not end. */
const resumeThread = Effect.fnUntraced(function* <E, R>(talk: Talk<E, R>) {
  const { room } = talk
  const { ended, messages } = yield* replay(room, shownOnResume)
  const leaf = (yield* threadOf(room))?.leaf.id ?? null
  yield* Effect.forkScoped(Effect.ignore(addUsageTo(room, leaf)))
  if (ended !== undefined) yield* settleFiles(room)
  yield* Processes.tellLost(room)
  yield* resumeCutOff(room)
  if (ended === undefined && messages.length > 0) {
    yield* beginTurns(talk, runTurn(talk, Checkpoint.resume(undefined), { draft: "", title: "", goesOn: true }))
  }
})
