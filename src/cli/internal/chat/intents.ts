/** Handles each key, line and choice of a person. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { Approvals } from "../../../core/Approval.ts"
import * as Message from "../../../core/Message.ts"
import { clean, cleanLine } from "../../../support/text/clean.ts"
import * as Slash from "../slash/table.ts"
import * as External from "./external.ts"
import type { CommandOutcome } from "./options.ts"
import { makeRunCommand } from "./runCommand.ts"
import { shell } from "./shell.ts"
import type { Intent } from "./state.ts"
import { interrupt, leave, queueMessage, say, sendQueue, settleTurn, showFacts, type Talk } from "./turns.ts"

/** Background work ended; `next` follows it. */
export interface Over {
  readonly _tag: "Over"
  readonly next: CommandOutcome | undefined
}

const accepted = "I accept the plan. Carry it out."

/** Runs a slash command: one of the program's own, or one of the chat's. */
const runCommand = Effect.fnUntraced(function* <E, R>(talk: Talk<E, R>, line: string) {
  const { room, works } = talk
  const { options, ui } = room
  const [, name = "", argument = ""] = /^\/([\w:-]+)\s*([^]*)$/.exec(line) ?? []
  const own = options.commands?.().find((one) => one.name === name)
  if (own !== undefined) {
    return yield* works.begin(
      `/${name}`,
      // Unwrapped, as a listing is: it may be an address.
      own.run(
        argument,
        (text) => ui.parts([{ kind: "code", language: "", text: clean(text), isFirst: true, more: false }]),
        makeRunCommand((request) =>
          Effect.provide(
            Approvals.use(({ decide }) => decide(request)),
            room.desk.layer
          )
        )
      )
    )
  }
  const command = Slash.find(name)
  if (command === undefined) return ui.note("error", Slash.unknown(options, name))
  if (command.isAlone !== undefined && (yield* settleTurn(talk))) {
    return ui.note(
      "error",
      `/${command.name} changes the conversation that the agent is at work on; Esc interrupts it.`
    )
  }
  yield* works.begin(
    command.work,
    Effect.scoped(
      Effect.gen(function* () {
        // The turn of another process could not go on behind the change.
        if (command.isAlone === "changes") yield* options.hold?.(room.at.threadId) ?? Effect.void
        yield* command.run(room, argument, talk)
        showFacts(talk)
        return undefined
      })
    )
  )
})

const handleLine = Effect.fnUntraced(function* <E, R>(
  talk: Talk<E, R>,
  { kind, text }: Extract<Intent, { readonly _tag: "Say" }>
) {
  const { kept, room, works } = talk
  const { at, ui } = room
  const line = text.trim()
  if (line === "") {
    if (works.isIdle() && ui.queue().length > 0) yield* sendQueue(talk)
    return
  }
  kept.said(line)
  if (at.picking !== undefined) yield* Deferred.succeed(at.picking, undefined)
  else if (!talk.isTurning && !works.isIdle()) yield* interrupt(talk)
  if (line.startsWith("/") && /^\/[\w:-]+(\s|$)/.test(line)) return yield* runCommand(talk, line)
  if (line.startsWith("!")) {
    return yield* works.begin(
      line,
      Effect.map(shell(ui, line.slice(1).trim()), (output) => {
        talk.outputs = [...talk.outputs, Message.human(output, { source: "shell" })]
        return undefined
      })
    )
  }
  if (talk.isTurning) return yield* queueMessage(talk, line, kind === "send" ? "followUp" : kind)
  yield* say(talk, line)
})

const handleAction = Effect.fnUntraced(function* <E, R>(
  talk: Talk<E, R>,
  what: Extract<Intent, { readonly _tag: "Do" }>["what"]
) {
  const { page, ui } = talk.room
  switch (what) {
    case "interrupt":
      return yield* interrupt(talk)
    case "leave":
      return yield* leave(talk)
    case "rewind":
      return yield* runCommand(talk, "/rewind")
    case "takeBack": {
      const last = ui.queue().at(-1)
      if (last === undefined || talk.handle !== undefined) return
      ui.setQueue(ui.queue().slice(0, -1))
      return ui.input.set(last.text)
    }
    case "dropQueue":
      return ui.setQueue([])
    case "output":
      yield* page(ui.memory.lastOutput === "" ? "No tool has said anything yet." : ui.memory.lastOutput)
      return
    case "external": {
      const text = yield* talk.lend(External.editText(ui.input.text()))
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
      return yield* talk.lend(External.suspend)
  }
})

const handlePick = Effect.fnUntraced(function* <E, R>(talk: Talk<E, R>, value: string | undefined) {
  const { at, desk } = talk.room
  if (at.picking !== undefined) yield* Deferred.succeed(at.picking, value)
  else if (value === "plan:ask" || value === "plan:auto-edit") {
    desk.setMode(value === "plan:ask" ? "ask" : "auto-edit")
    yield* say(talk, accepted)
  }
})

const handleOver = Effect.fnUntraced(function* <E, R>(talk: Talk<E, R>, { next }: Over) {
  const { ui } = talk.room
  showFacts(talk)
  if (next?._tag === "Show") ui.show(next.markdown)
  if (next?._tag === "Send") yield* say(talk, next.input)
  // Messages that came after the end of the run.
  else if (!talk.isHeld && talk.works.isIdle() && ui.queue().length > 0) yield* sendQueue(talk)
})

/** The most files of a menu. */
const mostFiles = 50

/** Offers files for the text behind an `@`. */
const completeFile = Effect.fnUntraced(function* <E, R>({ index, room: { ui } }: Talk<E, R>, text: string) {
  const offer = Effect.map(index.find(text, mostFiles), (paths) => {
    const items = paths.map(cleanLine).map((path) => ({
      value: /\s/.test(path) ? `"${path}"` : path,
      label: path,
      about: "",
      isWhole: true
    }))
    ui.offer(text, items)
    return items.length
  })
  // A new file may be missing yet.
  if ((yield* offer) === 0) yield* Effect.forkScoped(Effect.andThen(index.refresh, offer))
})

/** Handles an intent. Work that takes time goes on in the background. */
export const handleIntent = Effect.fnUntraced(function* <E, R>(talk: Talk<E, R>, intent: Intent | Over) {
  switch (intent._tag) {
    case "Say":
      return yield* handleLine(talk, intent)
    case "Do":
      return yield* handleAction(talk, intent.what)
    case "Picked":
      return yield* handlePick(talk, intent.value)
    case "Complete":
      return yield* completeFile(talk, intent.text)
    case "Over":
      return yield* handleOver(talk, intent)
  }
})
