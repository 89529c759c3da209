/** The wishes of a person who looks at a server, and its slash commands. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import { cleanLine } from "../../../support/text/clean.ts"
import { didYouMean } from "../../../support/text/names.ts"
import { cut } from "../../../support/text/text.ts"
import type { Item } from "../chat/completion/menu.ts"
import * as External from "../chat/external.ts"
import type { Problem } from "../chat/options.ts"
import { choose, problem } from "../chat/room.ts"
import type { Intent } from "../chat/state.ts"
import * as Back from "./back.ts"
import { decide, type Look, type LookOptions, openLook, openThread, send, showFacts, type Wish } from "./look.ts"

/** A slash command of a look. */
interface RemoteCommand {
  readonly name: string
  readonly argument?: string
  readonly about: string
  readonly run: (look: Look, argument: string) => Effect.Effect<void, Problem>
}

const itemOf = (value: string, about = ""): Item => ({
  value,
  label: cut(cleanLine(value), 60),
  about: cut(cleanLine(about), 80),
  isWhole: true
})

/** Checks a typed name against the offers of the server. Without a name, the person chooses from a list. */
const chooseName = Effect.fnUntraced(function* (look: Look, what: string, items: ReadonlyArray<Item>, name: string) {
  if (items.length === 0) return yield* Effect.fail(problem(`The server offers no choice of ${what}.`))
  const choice = name === "" ? yield* choose(look, `the ${what}:`, items) : name
  if (choice === undefined || items.some(({ value }) => value === choice)) return choice
  const names = items.map(({ value }) => value)
  return yield* Effect.fail(
    problem(`The server has no ${what} ${JSON.stringify(cut(choice, 60))}.${didYouMean(choice, names)}`)
  )
})

const commands: ReadonlyArray<RemoteCommand> = [
  {
    name: "help",
    about: "commands, and what is not here",
    run: ({ ui }) =>
      Effect.sync(() =>
        ui.show(
          `## Commands\n\n${commands.map(({ about, argument = "", name }) => `- \`/${name}${argument === "" ? "" : ` ${argument}`}\` ${about}`).join("\n")}\n\nThe agent, its files, commands and settings are the server's. Files of this machine are not sent, \`!\` runs nothing, and a run goes on when you leave.`
        )
      )
  },
  {
    name: "threads",
    argument: "words",
    about: "go over to another thread",
    run: Effect.fnUntraced(function* (look, search) {
      const { threads } = yield* look.options.client.threads(search === "" ? {} : { search })
      const items = threads.map(({ id, state, title }) => ({
        ...itemOf(id, `${state ?? ""}${id === look.at.thread ? " · this one" : ""}`),
        label: cut(cleanLine(title ?? id), 60)
      }))
      if (items.length === 0) return look.ui.note("info", "The server has no such thread.")
      const thread = yield* choose(look, "go over to …", items)
      if (thread === undefined) return
      const title = items.find(({ value }) => value === thread)?.label ?? ""
      look.ui.note("info", `── ${title}`)
      yield* openThread(look, thread)
    })
  },
  {
    name: "new",
    about: "begin a new thread; this one goes on",
    run: Effect.fnUntraced(function* (look) {
      yield* openThread(look, undefined)
      look.ui.note("info", "── a new thread begins with your next message")
    })
  },
  {
    name: "cancel",
    about: "end the run at work, for all who watch it",
    run: Effect.fnUntraced(function* ({ at, options, ui }) {
      const isCancelled = at.thread !== undefined && (yield* options.client.cancel(at.thread))
      if (!isCancelled) ui.note("info", "No run is at work.")
    })
  },
  { name: "rewind", argument: "turn", about: "go back to before a message, for all who watch", run: Back.rewind },
  {
    name: "fork",
    argument: "turn",
    about: "go over to a copy of the thread, or of its turns before one",
    run: Back.fork
  },
  {
    name: "agent",
    argument: "name",
    about: "the agent of your next messages",
    run: Effect.fnUntraced(function* (look, name) {
      const items = look.options.offers.agents.map((one) => itemOf(one.name, one.description))
      look.at.agent = (yield* chooseName(look, "agent", items, name)) ?? look.at.agent
      showFacts(look)
    })
  },
  {
    name: "model",
    argument: "name",
    about: "the model of this thread, from your next message on",
    run: Effect.fnUntraced(function* (look, name) {
      const items = (look.options.offers.models ?? []).map((one) => itemOf(one))
      look.at.model = (yield* chooseName(look, "model", items, name)) ?? look.at.model
      showFacts(look)
    })
  },
  {
    name: "mode",
    argument: "name",
    about: "the mode of this thread, from your next message on",
    run: Effect.fnUntraced(function* (look, name) {
      const items = (look.options.offers.modes ?? []).map((one) => itemOf(one))
      look.at.mode = (yield* chooseName(look, "mode", items, name)) ?? look.at.mode
      showFacts(look)
    })
  },
  {
    name: "quit",
    about: "leave; the run goes on",
    run: ({ at }) =>
      Effect.sync(() => {
        at.isLeaving = true
      })
  }
]

/** The commands as a menu shows them. */
const commandItems: ReadonlyArray<Item> = commands.map(({ about, argument, name }) => ({
  value: `/${name}`,
  label: `/${name}`,
  about: `${argument === undefined ? "" : `${argument} · `}${about}`,
  isWhole: true
}))

const aliases = new Map([
  ["exit", "quit"],
  ["sessions", "threads"],
  ["clear", "new"]
])

const runCommand = (look: Look, line: string): Effect.Effect<void, Problem> => {
  const [, name = "", argument = ""] = /^\/([\w:-]+)\s*([^]*)$/.exec(line) ?? []
  const command = commands.find((one) => one.name === (aliases.get(name) ?? name))
  if (command !== undefined) return command.run(look, argument.trim())
  const names = commandItems.map(({ label }) => label)
  const hint = didYouMean(`/${name}`, names)
  return Effect.fail(
    problem(
      `There is no /${cut(name, 60)} here: files, settings and sessions are the server's, not this machine's.${hint} /help lists the commands.`
    )
  )
}

/** Says once that files stay on this machine. */
const warnOfFiles = ({ at, ui }: Look): void => {
  if (!at.hasWarned) ui.note("warning", "Files of this machine are not sent. Write paths as the server has them.")
  at.hasWarned = true
}

const handleLine = Effect.fnUntraced(function* (look: Look, { kind, text }: Extract<Intent, { _tag: "Say" }>) {
  const { at, ui, works } = look
  const line = text.trim()
  if (line === "") return
  if (at.picking !== undefined) yield* Deferred.succeed(at.picking, undefined)
  if (/^\/[\w:-]+(\s|$)/.test(line)) {
    return yield* works.begin(undefined, Effect.as(runCommand(look, line), undefined))
  }
  if (line.startsWith("!")) {
    return ui.note(
      "error",
      "! would run this on your machine, and the agent works on the server's. Ask the agent to run it."
    )
  }
  if (/(?:^|\s)@\S/.test(line)) warnOfFiles(look)
  yield* works.begin(undefined, Effect.as(send(look, line, kind), undefined))
})

const handleAction = Effect.fnUntraced(function* (look: Look, what: Extract<Intent, { _tag: "Do" }>["what"]) {
  const { at, lend, ui } = look
  switch (what) {
    case "leave":
      at.isLeaving = true
      return
    case "interrupt":
      return ui.note("info", "The run goes on at the server. /cancel ends it; Ctrl+C again leaves.")
    case "rewind":
      return yield* look.works.begin(undefined, Effect.as(Back.rewind(look, ""), undefined))
    case "output":
      yield* lend(External.page(ui.memory.lastOutput === "" ? "No tool has said anything yet." : ui.memory.lastOutput))
      return
    case "external": {
      const text = yield* lend(External.editText(ui.input.text()))
      if (text === undefined) return ui.note("warning", "No editor could be opened; set $EDITOR")
      return ui.input.set(text.trimEnd())
    }
    case "image":
      return warnOfFiles(look)
    case "suspend":
      return yield* lend(External.suspend)
    case "takeBack":
    case "dropQueue":
      return undefined
  }
})

const handleIntent = Effect.fnUntraced(function* (look: Look, intent: Wish) {
  const { at } = look
  switch (intent._tag) {
    case "Say":
      return yield* handleLine(look, intent)
    case "Do":
      return yield* handleAction(look, intent.what)
    case "Picked":
      if (at.picking !== undefined) yield* Deferred.succeed(at.picking, intent.value)
      return undefined
    case "Complete":
      return warnOfFiles(look)
    case "Decide":
      return yield* look.works.begin(undefined, Effect.as(decide(look, intent.decision), undefined))
    case "Over":
      return undefined
  }
})

/** Looks at a server until the person leaves. No run ends with it. */
export const lookAt = Effect.fnUntraced(function* (options: Omit<LookOptions, "commands">) {
  const { look, wishes } = yield* openLook({ ...options, commands: commandItems })
  const { at, ui, works } = look
  showFacts(look)
  ui.note("info", `── ${options.host}: its agent works there. /threads lists its threads, /help the rest.`)
  if (options.thread !== undefined) yield* openThread(look, options.thread)
  while (!at.isLeaving) yield* handleIntent(look, yield* Queue.take(wishes))
  if (at.picking !== undefined) yield* Deferred.succeed(at.picking, undefined)
  // The last message or decision still arrives.
  yield* Effect.repeat(Effect.sleep("20 millis"), { until: () => works.isIdle() }).pipe(
    Effect.timeoutOption("3 seconds")
  )
}, Effect.scoped)
