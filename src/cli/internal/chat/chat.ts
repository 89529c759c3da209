/** The chat: turns of an agent on a thread, what a person says meanwhile, and commands. */
import { setFlagsFromString } from "node:v8"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import * as Agent from "../../../core/Agent.ts"
import { Backend } from "../../../core/Backend.ts"
import * as Checkpoint from "../../../core/Checkpoint.ts"
import { Journal } from "../../../core/Journal.ts"
import * as Message from "../../../core/Message.ts"
import { SessionStore } from "../../../core/SessionStore.ts"
import { makeJournal } from "../../../sessions/SessionStore.ts"
import { clean, cleanLine } from "../../../support/text/clean.ts"
import { cut } from "../../../support/text/text.ts"
import { makeDesk } from "../approvals/desk.ts"
import { bindings } from "../input/bindings.ts"
import { load } from "../markdown/highlight.ts"
import { styleOf } from "../render/style.ts"
import { processTerminal, type Terminal } from "../screen/terminal.ts"
import * as Slash from "../slash/table.ts"
import { withImages } from "./attach.ts"
import * as External from "./external.ts"
import { keep } from "./kept.ts"
import type { Left, Options, Problem, Said } from "./options.ts"
import { replay, type Room, threadOf } from "./room.ts"
import { shell } from "./shell.ts"
import { type Intent, makeUi } from "./ui.ts"
import { makeRecorder } from "./undo.ts"
import { makeWorks, messageOf } from "./works.ts"

/** Something that went on in the background and is over. */
type Over = { readonly _tag: "Over"; readonly next: Said | undefined }

/** Parts of a conversation that are shown when it is opened again. */
const shownOnResume = 30

const accepted = "I accept the plan. Carry it out."

/**
 * Talks with a person until they leave; gives the thread that the chat was in last. The terminal is given back however
 * it ends. Runs ask the `Approvals` that the chat provides, and write to the store's journal, parts of turns included.
 */
export const interactive = Effect.fnUntraced(function* <E, R>(
  options: Options<E, R> & { readonly terminal?: Terminal | undefined; readonly colours: boolean }
) {
  yield* Effect.sync(keepSmall)
  const store = yield* SessionStore
  const backend = yield* Backend
  const clock = yield* Clock.Clock
  const terminal = options.terminal ?? processTerminal()
  const intents = yield* Queue.unbounded<Intent | Over>()
  const intend = (intent: Intent): void => {
    Queue.offerUnsafe(intents, intent)
  }
  const recorder = makeRecorder()
  const journal = makeJournal(store, { parts: true })
  const desk = makeDesk({
    mode: options.mode ?? "ask",
    principal: options.principal,
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
    recorder,
    store,
    backend,
    options,
    at,
    copy: (text) => terminal.write(`\u001b]52;c;${Buffer.from(text).toString("base64")}\u0007`),
    page: (text) => lend(External.page(text))
  }
  /** Gives the terminal to another program for a while. */
  const lend = <A>(other: Effect.Effect<A>): Effect.Effect<A> =>
    Effect.acquireUseRelease(
      Effect.sync(() => ui.setAway(true)),
      () => terminal.lend(other),
      () => Effect.sync(() => ui.setAway(false))
    )
  const kept = yield* keep(options, ui)
  let handle: Agent.Handle<unknown, unknown> | undefined
  /** A turn is at work on the conversation, or about to be. */
  let isTurning = false
  let leaving = false
  /** The person interrupted: what is queued waits for them. */
  let isHeld = false
  /** Output of commands of the person's own, told to the agent with what is said next. */
  let ran: ReadonlyArray<string> = []

  const facts = (): void => ui.setFacts([at.setup.name, at.setup.model].map(cleanLine))

  /** Brings back what was said and never arrived. */
  const giveBack = (text: string): void => {
    if (!ui.memory.hasSaid && text !== "" && ui.input.text() === "") ui.input.set(text)
  }

  /** A turn: from what was said to its end, however it ends. */
  const turn = (input: Agent.Input, saidText: string, begun: () => void) =>
    Effect.scoped(
      Effect.gen(function* () {
        ui.memory.hasSaid = false
        yield* Effect.tapError(options.hold?.(at.threadId) ?? Effect.void, () => Effect.sync(() => giveBack(saidText)))
        begun()
        const started = yield* Agent.start(at.setup.agent, input, { threadId: at.threadId })
        handle = started
        yield* Stream.runForEach(started.events, (event) => Effect.sync(() => ui.event(event)))
        const exit = yield* Effect.exit(started.await)
        handle = undefined
        if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause) && !ui.memory.hasSaid) {
          ui.note("error", messageOf(exit.cause))
        }
        giveBack(saidText)
        return Exit.isSuccess(exit)
      })
    ).pipe(
      Effect.provide(desk.layer),
      Effect.provideService(Journal, journal),
      Effect.provideService(Backend, recorder.wrap(backend))
    )

  const works = makeWorks({ ui, onOver: (next) => Queue.offerUnsafe(intents, { _tag: "Over", next }) })

  /** Begins a turn: there is one at a time. */
  const talk = <R2>(turns: Effect.Effect<unknown, { readonly message: string }, R2>) => {
    isTurning = true
    return works.begin(
      undefined,
      turns.pipe(
        Effect.mapBoth({ onFailure: ({ message }): Problem => ({ message }), onSuccess: () => undefined }),
        Effect.ensuring(
          Effect.sync(() => {
            isTurning = false
          })
        )
      )
    )
  }

  const say = Effect.fnUntraced(function* (input: string | Message.HumanMessage) {
    const text = typeof input === "string" ? input : Message.text(input)
    isHeld = false
    const told = [...ran, text].join("\n\n")
    ran = []
    const message = typeof input === "string" ? yield* withImages(told, Message.makeId()) : input
    yield* talk(
      Effect.gen(function* () {
        const thread = yield* threadOf(room)
        const title = cut(cleanLine(text), 80)
        if (thread === undefined) {
          const metadata = { title, agent: at.setup.name, folder: options.folder ?? "" }
          yield* store.create({ threadId: at.threadId, metadata })
        } else if ((thread.metadata["title"] ?? "") === "") {
          yield* store.describe(at.threadId, { ...thread.metadata, title })
        }
        const { threadId } = at
        const isDone = yield* turn(message, text, () => recorder.begin(threadId, thread?.leaf.id ?? null, title))
        if (isDone && desk.mode() === "plan") yield* offerPlan
      })
    )
  })

  const offerPlan = Effect.sync(() => {
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
  })

  const command = Effect.fnUntraced(function* (line: string) {
    const [, name = "", argument = ""] = /^\/([\w:-]+)\s*([^]*)$/.exec(line) ?? []
    const own = options.commands?.().find((one) => one.name === name)
    if (own !== undefined) {
      return yield* works.begin(
        `/${name}`,
        // Unwrapped, as a listing is: it may be an address.
        own.run(argument, (text) =>
          ui.parts([{ kind: "code", language: "", text: clean(text), isFirst: true, more: false }])
        )
      )
    }
    if (name === "quit" || name === "exit") return yield* leave
    const known = Slash.find(name)
    if (known === undefined) return ui.note("error", Slash.unknown(options, name))
    if (known.isAlone === true && isTurning) {
      return ui.note(
        "error",
        `/${known.name} changes the conversation that the agent is at work on; Esc interrupts it.`
      )
    }
    if (known.name === "clear") {
      at.threadId = globalThis.crypto.randomUUID()
      ui.forget()
      return ui.note("info", `── a new conversation, ${at.threadId}`)
    }
    yield* works.begin(known.work, Effect.as(Effect.map(Slash.run(room, known.name, argument), facts), undefined))
  })

  const interrupt = Effect.suspend((): Effect.Effect<unknown> => {
    isHeld = true
    return handle?.interrupt ?? works.interrupt
  })

  const leave = Effect.suspend(() => {
    leaving = true
    return Effect.asVoid(interrupt)
  })

  const told = Effect.fnUntraced(function* (text: string, kind: "steer" | "followUp") {
    const message = yield* withImages(text, Message.makeId())
    ui.setQueue([...ui.queue(), { id: message.id, kind, text }])
    // A run that ended meanwhile leaves it in the queue, and it is said next.
    if (handle !== undefined) yield* Effect.ignore(kind === "steer" ? handle.steer(message) : handle.followUp(message))
  })

  const onSay = Effect.fnUntraced(function* ({ kind, text }: Extract<Intent, { readonly _tag: "Say" }>) {
    const line = text.trim()
    if (line === "") {
      if (works.isIdle() && ui.queue().length > 0) yield* sendQueue
      return
    }
    kept.said(line)
    if (at.picking !== undefined) yield* Deferred.succeed(at.picking, undefined)
    else if (!isTurning && !works.isIdle()) yield* interrupt
    if (line.startsWith("/") && /^\/[\w:-]+(\s|$)/.test(line)) return yield* command(line)
    if (line.startsWith("!")) {
      return yield* works.begin(
        line,
        Effect.map(shell(ui, line.slice(1).trim()), (output) => {
          ran = [...ran, output]
          return undefined
        })
      )
    }
    if (isTurning) return yield* told(line, kind === "send" ? "followUp" : kind)
    yield* say(line)
  })

  const sendQueue = Effect.suspend(() => {
    const texts = ui.queue().map(({ text }) => text)
    ui.setQueue([])
    return say(texts.join("\n\n"))
  })

  const onDo = Effect.fnUntraced(function* (what: Extract<Intent, { readonly _tag: "Do" }>["what"]) {
    switch (what) {
      case "interrupt":
        return yield* interrupt
      case "leave":
        return yield* leave
      case "rewind":
        return yield* command("/rewind")
      case "takeBack": {
        const last = ui.queue().at(-1)
        if (last === undefined || handle !== undefined) return
        ui.setQueue(ui.queue().slice(0, -1))
        return ui.input.set(last.text)
      }
      case "dropQueue":
        return ui.setQueue([])
      case "output":
        yield* room.page(ui.memory.lastOutput === "" ? "No tool has said anything yet." : ui.memory.lastOutput)
        return
      case "external": {
        const text = yield* lend(External.editText(ui.input.text()))
        if (text === undefined) return ui.note("warning", "No editor could be opened; set $EDITOR")
        return ui.input.set(text.trimEnd())
      }
      case "image": {
        const file = yield* External.clipboardImage
        if (file === undefined)
          return ui.note(
            "warning",
            "There is no image in the clipboard, or nothing to read it with (wl-paste, xclip, pngpaste)"
          )
        return ui.input.insert(`${file} `)
      }
      case "suspend":
        return yield* lend(External.suspend)
    }
  })

  const onPicked = Effect.fnUntraced(function* (value: string | undefined) {
    if (at.picking !== undefined) yield* Deferred.succeed(at.picking, value)
    else if (value === "plan:ask" || value === "plan:auto-edit") {
      desk.setMode(value === "plan:ask" ? "ask" : "auto-edit")
      yield* say(accepted)
    }
  })

  const onOver = Effect.fnUntraced(function* ({ next }: Over) {
    facts()
    if (next?._tag === "Show") ui.show(next.markdown)
    if (next?._tag === "Send") yield* say(next.input)
    // Words that came when the run was over already.
    else if (!isHeld && works.isIdle() && ui.queue().length > 0) yield* sendQueue
  })

  const complete = Effect.fnUntraced(function* (text: string) {
    const found = yield* backend.glob({ pattern: text.includes("/") ? `${text}*` : `*${text}*`, limit: 50 }).pipe(
      Effect.timeout("1 second"),
      Effect.map(({ entries }) => entries.map(({ path }) => cleanLine(path))),
      Effect.orElseSucceed((): ReadonlyArray<string> => [])
    )
    ui.offer(
      text,
      found.map((path) => ({ value: path, label: path, about: "", isWhole: true }))
    )
  })

  const on = Effect.fnUntraced(function* (intent: Intent | Over) {
    switch (intent._tag) {
      case "Say":
        return yield* onSay(intent)
      case "Do":
        return yield* onDo(intent.what)
      case "Picked":
        return yield* onPicked(intent.value)
      case "Complete":
        return yield* complete(intent.text)
      case "Over":
        return yield* onOver(intent)
    }
  })

  yield* Effect.acquireRelease(
    terminal.listen({ onKey: ui.key, onPaste: ui.paste, onResize: resizing(ui.resized), onFocus: ui.focus }),
    () =>
      Effect.sync(() => {
        ui.close()
        const again = options.resumeCommand?.(at.threadId)
        if (again !== undefined) terminal.write(`${again}\n`)
      })
  )
  facts()
  ui.setAway(false)
  yield* Effect.forkScoped(Effect.map(Effect.promise(load), ui.setHighlight))
  if (options.resumes === true) {
    const { ended, messages } = yield* replay(room, shownOnResume)
    // A run that did not end is resumed where it was.
    if (ended === undefined && messages.length > 0) {
      yield* talk(turn(Checkpoint.resume(undefined), "", () => {}))
    }
  }
  if (options.first !== undefined) yield* say(options.first)
  // The end of a turn that is left is shown, too.
  while (!leaving || isTurning) yield* on(yield* Queue.take(intents))
  yield* Effect.timeoutOption(works.interrupt, "3 seconds")
  return { threadId: at.threadId } satisfies Left
}, Effect.scoped)

/**
 * Has V8 collect what was thrown away sooner: a long chat holds little and throws away much. Without it, the room for
 * young objects doubles up to 64 MB, and 30 MB more stay behind 2,000 calls.
 */
const keepSmall = (): void => {
  setFlagsFromString("--semi-space-growth-factor=1")
  setFlagsFromString("--optimize-for-size")
}

/** A window that is dragged says so many times. */
const resizing = (resized: () => void): (() => void) => {
  let timer: NodeJS.Timeout | undefined
  return () => {
    clearTimeout(timer)
    timer = setTimeout(resized, 50)
  }
}
