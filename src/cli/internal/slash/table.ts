/** The slash commands of the chat, by the names that people know. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import * as Agent from "../../../core/Agent.ts"
import * as Message from "../../../core/Message.ts"
import { totalTokens } from "../../../core/Usage.ts"
import { defaultFraction } from "../../../middleware/Summarization.ts"
import { valueAt } from "../../../support/json/valueAt.ts"
import { clean, cleanLine } from "../../../support/text/clean.ts"
import { didYouMean } from "../../../support/text/names.ts"
import { cut } from "../../../support/text/text.ts"
import type { Item } from "../chat/completion/menu.ts"
import type { Choice, Mode, Problem } from "../chat/options.ts"
import { choose, historyOf, problem, type Room, toProblem } from "../chat/room.ts"
import { leave, type Talk } from "../chat/turns.ts"
import { bindings, others } from "../input/bindings.ts"
import { contextOf } from "../render/live.ts"
import { themeNames } from "../render/themes.ts"
import { about, count, duration, money } from "../render/words.ts"
import * as Back from "./back.ts"
import * as Files from "./files.ts"
import { changePermissions } from "./permissions.ts"
import * as Processes from "./processes.ts"
import { showSources } from "./sources.ts"
import * as Threads from "./threads.ts"
import { workflow } from "./workflows.ts"

/** Names that people know from other programs. */
const aliases: { readonly [name: string]: string } = { new: "clear", exit: "quit" }

export const find = (name: string): Builtin | undefined =>
  builtins.find((one) => one.name === (valueAt(aliases, name) ?? name))

/** Says that there is no such command, and what may have been meant. */
export const unknown = <E, R>(options: Room<E, R>["options"], name: string): string => {
  const hint = didYouMean(
    `/${name}`,
    itemsOf(options).map(({ label }) => label)
  )
  return `There is no command /${cut(name, 60)}.${hint === "" ? "" : ` ${hint.trim()}`} /help lists them.`
}

/** The commands of a chat as a menu shows them. */
export const itemsOf = <E, R>({ commands }: Room<E, R>["options"]): ReadonlyArray<Item> => {
  const own = (commands?.() ?? []).map(({ argument, description, name }) => ({ name, argument, about: description }))
  const names = new Set(own.map(({ name }) => name))
  return [...own, ...builtins.filter(({ name }) => !names.has(name))].map(({ about, argument, name }) => ({
    value: `/${name}`,
    label: `/${name}`,
    about: `${argument === undefined ? "" : `${argument} · `}${cleanLine(about)}`,
    isWhole: argument?.startsWith("<") !== true
  }))
}

const list = (lines: ReadonlyArray<string>): string => lines.map((line) => `- ${line}`).join("\n")

const keys = <E, R>({ options }: Room<E, R>): string =>
  list([
    ...others.map(([key, does]) => `\`${key}\`: ${does}`),
    ...(options.bindings ?? bindings).map(({ does, keys: bound }) => `\`${bound.join(", ")}\`: ${does}`)
  ])

const help = <E, R>(room: Room<E, R>): string =>
  `## Commands\n\n${list(itemsOf(room.options).map(({ about, label }) => `\`${label}\` ${about}`))}\n\n## Keys\n\n${keys(room)}\n\n\`!command\` runs a command and shows the agent its output; \`@\` completes names of files.`

const itemsOfChoices = (choices: ReadonlyArray<Choice>): ReadonlyArray<Item> =>
  choices.map(({ description, name }) => ({ value: name, label: name, about: description ?? "", isWhole: true }))

const modelsOf = <E, R>({ options }: Room<E, R>): Effect.Effect<ReadonlyArray<Choice>> =>
  options.models ?? Effect.succeed([])

/** Makes a model a favourite, the present one by default. */
const changeFavourite = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, argument: string) {
  const { onFavourite } = room.options
  if (onFavourite === undefined) return yield* Effect.fail(problem("This chat keeps no favourites."))
  const name = argument.trim() === "" ? room.at.setup.model : argument.trim()
  const isOne = yield* onFavourite(name)
  room.ui.note("info", isOne ? `★ ${name} comes first in /model` : `${name} is no longer a favourite`)
})

const changeModel = <E, R>(room: Room<E, R>, argument: string) => {
  const favourite = /^\s*star(?:\s+(\S+))?\s*$/.exec(argument)
  return favourite === null ? change(room, "model", argument) : changeFavourite(room, favourite[1] ?? "")
}

const change = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, what: "agent" | "model", argument: string) {
  const { choose: make } = room.options
  const listed = what === "agent" ? Effect.succeed(room.options.agents ?? []) : modelsOf(room)
  if (make === undefined) return yield* Effect.fail(problem(`The ${what} of this chat can't be changed.`))
  const word = argument.trim()
  const isName = word !== "" && (what === "agent" || word.includes(":"))
  const fitting = isName
    ? [{ name: word }]
    : (yield* listed).filter((one) => one.name.toLowerCase().includes(word.toLowerCase()))
  if (word !== "" && fitting.length === 0) {
    return yield* Effect.fail(problem(`There is no model ${JSON.stringify(word)}; /model lists them.`))
  }
  const name =
    word !== "" && fitting.length === 1
      ? fitting[0]?.name
      : yield* choose(room, `the ${what}: write to search`, itemsOfChoices(fitting))
  if (name === undefined) return
  room.at.setup = yield* make({ agent: room.at.setup.name, model: room.at.setup.model, [what]: name })
  room.ui.note("info", `── ${what}: ${name}`)
})

/** Changes the provider. The models to choose from, `provider:model`, name the providers. */
const changeProvider = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, argument: string) {
  const models = new Map<string, string>()
  for (const { name } of yield* modelsOf(room)) {
    const provider = name.split(":")[0] ?? name
    if (!models.has(provider)) models.set(provider, name)
  }
  const items = [...models].map(([name, model]) => ({ value: name, label: name, about: model, isWhole: true }))
  if (items.length === 0) return yield* Effect.fail(problem("No provider has a key: deepagents models login"))
  const name = argument.trim() === "" ? yield* choose(room, "the provider:", items) : argument.trim()
  if (name === undefined) return
  const model = models.get(name)
  if (model === undefined) {
    const names = [...models.keys()].join(", ")
    const how = `Add its key: deepagents models login ${name}`
    return yield* Effect.fail(problem(`${JSON.stringify(name)} can't be used; there are ${names}. ${how}`))
  }
  yield* change(room, "model", model)
})

const changeTheme = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, argument: string) {
  const { at, options, ui } = room
  const names = themeNames()
  const items = names.map((value) => ({ value, label: value, about: value === at.theme ? "now" : "", isWhole: true }))
  const name = argument.trim() === "" ? yield* choose(room, "the colours:", items) : argument.trim()
  if (name === undefined) return
  const theme = names.find((one) => one === name)
  if (theme === undefined) {
    return yield* Effect.fail(problem(`There is no theme ${JSON.stringify(name)}; there are ${names.join(", ")}.`))
  }
  at.theme = theme
  yield* options.onTheme?.(theme) ?? Effect.void
  ui.note("info", `── colours: ${theme}, from here on`)
})

const changeVim = Effect.fnUntraced(function* <E, R>({ options, ui }: Room<E, R>) {
  const isVim = ui.vimMode() === undefined
  ui.setVim(isVim)
  yield* options.onVim?.(isVim) ?? Effect.void
  ui.note("info", isVim ? "── vim keys: Esc for the normal mode, i to write" : "── the usual keys")
})

const budget = <E, R>({ options, ui }: Room<E, R>): string => {
  const { usage } = ui.view()
  const { cost: most, tokens } = options.limits ?? {}
  const costText =
    usage.cost === undefined ? "its cost is not known for this model" : `it cost ${about(usage)}${money(usage.cost)}`
  return list([
    most === undefined ? "no limit in money (`--budget`)" : `a run may cost ${money(most)}`,
    tokens === undefined ? "no limit in tokens (`--tokens`)" : `a run may use ${count(tokens)} tokens`,
    `the last run used ${about(usage)}${count(totalTokens(usage))} tokens; ${costText}`
  ])
}

/** The instruction files in the prompt. */
const instructions = <E, R>({ options: { instructions: files = [] } }: Room<E, R>): string =>
  files.length === 0
    ? ""
    : `\n\nInstructions:\n\n${list(files.map(({ bytes, isWhole, path }) => `\`${cleanLine(path)}\` ${bytes} bytes${isWhole ? "" : ", only the beginning is read"}`))}`

const context = <E, R>(room: Room<E, R>): string => `${filling(room)}${instructions(room)}`

/** Says when the conversation is compacted. */
const compactionIn = (total: number, window: number | undefined): string => {
  if (window === undefined) return ""
  const left = Math.round(window * defaultFraction) - total
  return left > 0
    ? `. It is compacted in about ${count(left)} tokens, at ${Math.round(defaultFraction * 100)} % of the window`
    : ". It is compacted before the next turn"
}

const filling = <E, R>({ ui }: Room<E, R>): string => {
  const measured = ui.view().context
  if (measured === undefined) return "Nothing was sent to the model yet."
  const { parts, total, window } = measured
  const names: { readonly [part: string]: string } = {
    systemPrompt: "prompt",
    tools: "tools",
    human: "you",
    notices: "notices and summaries",
    ai: "answers",
    reasoning: "reasoning",
    toolCalls: "calls",
    toolResults: "results of tools",
    media: "images and files"
  }
  const share = (tokens: number): string => `${Math.round((100 * tokens) / Math.max(1, total))} %`
  const rows = Object.entries(parts)
    .filter(([, tokens]) => tokens > 0)
    .toSorted(([, left], [, right]) => right - left)
    .map(([part, tokens]) => `| ${valueAt(names, part) ?? part} | ${count(tokens)} | ${share(tokens)} |`)
  const whole = window === undefined ? `${count(total)} tokens` : `${count(total)} of ${count(window)} tokens`
  return `${whole} (estimated)${compactionIn(total, window)}\n\n| part | tokens | share |\n| --- | --- | --- |\n${rows.join("\n")}`
}

const cost = <E, R>({ ui }: Room<E, R>): string => {
  const { total } = ui.view()
  const facts = [
    `${about(total)}${count(total.inputTokens)} tokens in (${count(total.cacheReadTokens)} from the cache), ${about(total)}${count(total.outputTokens)} out, ${about(total)}${count(totalTokens(total))} in all`,
    total.cost === undefined
      ? "their cost is not known for this model"
      : `${about(total)}${money(total.cost)} in this chat`
  ]
  return list(total.isEstimated === true ? [...facts, "~ counts interrupted answers by an estimate"] : facts)
}

/** Lists the sub-agents, or shows the transcript of one by its number in the list. */
const showAgents = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, argument: string) {
  const { page, ui } = room
  const number = argument.trim()
  if (number === "") return ui.show(agents(room))
  const text = ui.transcripts.text(Number(number) - 1)
  if (text !== undefined) return yield* page(text)
  const { length } = ui.transcripts.names()
  const range = length === 0 ? "none was at work in this chat" : `there are 1 to ${length}`
  return yield* Effect.fail(problem(`There is no sub-agent ${JSON.stringify(number)}; ${range}.`))
})

const agents = <E, R>({ ui }: Room<E, R>): string => {
  const { lastAt, subagents, tasks } = ui.view()
  const lines = [
    ...subagents.map(
      ({ calls, last, path, startedAt, task, tokens }) =>
        `**${path.join(" › ")}** ${task} (${calls} calls, ${count(tokens)} tokens, ${duration(lastAt - startedAt)}): ${last}`
    ),
    ...tasks.map(({ agent, id, status, task }) => `**${id}** ${agent}, ${status}: ${task}`)
  ]
  const all = ui.transcripts.names().map((name, index) => `${index + 1}. ${name}`)
  const transcripts = all.length === 0 ? "" : `\n\n${all.join("\n")}\n\n\`/agents 1\` shows its whole work.`
  return `${lines.length === 0 ? "No sub-agent is at work." : list(lines)}${transcripts}`
}

const transcript = Effect.fnUntraced(function* <E, R>(room: Room<E, R>) {
  const { messages } = yield* toProblem(historyOf(room))
  return messages
    .map((message) => {
      const text = clean(Message.text(message))
      if (message.role === "human") return `## ${message.source === undefined ? "You" : message.source}\n\n${text}`
      if (message.role === "tool") return `### ${message.toolName}\n\n${fenced(text)}`
      return text
    })
    .filter((text) => text.trim() !== "")
    .join("\n\n")
})

/** A text in a fence that is longer than any in it. */
const fenced = (text: string): string => {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = "`".repeat(longest + 1)
  return `${fence}\n${text}\n${fence}`
}

const exportFile = Effect.fnUntraced(function* <E, R>(room: Room<E, R>, argument: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const name = argument.trim() === "" ? `${room.at.threadId.replaceAll(/[^\w.-]+/g, "-")}.md` : argument.trim()
  const file = path.resolve(room.options.folder ?? ".", name)
  if (yield* Effect.orElseSucceed(fs.exists(file), () => false)) {
    return yield* Effect.fail(problem(`${file} is there already; name another file: /export notes.md`))
  }
  yield* toProblem(fs.writeFileString(file, `${yield* transcript(room)}\n`))
  room.ui.note("info", `written to ${file}`)
})

const copyText = Effect.fnUntraced(function* <E, R>({ copy, ui }: Room<E, R>, argument: string) {
  const number = Number(argument.trim())
  const text = argument.trim() === "" ? ui.memory.answer.trim() : ui.memory.listings[number - 1]
  if (text === undefined || text === "") return yield* Effect.fail(problem("There is nothing like that to copy."))
  copy(text)
  ui.note("info", `copied ${text.length} characters, if the terminal takes it`)
})

const modes: ReadonlyArray<Mode> = ["ask", "auto-edit", "plan"]

const changeMode = Effect.fnUntraced(function* <E, R>({ desk, ui }: Room<E, R>, argument: string) {
  const name = argument.trim()
  const mode = modes.find((one) => one === name)
  if (name === "") return ui.note("info", `The mode is ${desk.mode()}; Shift+Tab changes it`)
  if (mode === undefined) {
    const yolo = name === "yolo" ? " yolo is only given by a flag when the program begins." : ""
    return yield* Effect.fail(
      problem(`There is no mode ${JSON.stringify(name)}; there are ${modes.join(", ")}.${yolo}`)
    )
  }
  desk.setMode(mode)
  ui.note("info", `── mode: ${mode}`)
})

const tools = <E, R>({ at }: Room<E, R>): string =>
  list([...Agent.toolNames(at.setup.agent)].toSorted().map((tool) => `\`${tool}\``))

const todos = <E, R>({ ui }: Room<E, R>): string => {
  const plan = ui.view().todos
  return plan.length === 0
    ? "There is no plan."
    : list(plan.map(({ content, status: is }) => `[${is === "completed" ? "x" : " "}] ${content}`))
}

const clear = <E, R>({ at, ui }: Room<E, R>): Effect.Effect<void> =>
  Effect.sync(() => {
    at.threadId = globalThis.crypto.randomUUID()
    ui.forget()
    ui.note("info", `── a new conversation, ${at.threadId}`)
  })

const status = <E, R>({ at, desk, options, ui }: Room<E, R>): string =>
  list([
    `agent **${at.setup.name}**, model **${at.setup.model}**`,
    `conversation \`${at.threadId}\`${options.folder === undefined ? "" : ` in \`${options.folder}\``}`,
    `mode **${desk.mode()}**, ${desk.permits.permissions.length} rules, ${desk.learned().length} approvals for good`,
    `context ${contextOf(ui.view()) ?? "not measured yet"}`
  ])

/** Shows Markdown. */
const shows =
  (text: <E, R>(room: Room<E, R>) => string): Builtin["run"] =>
  (room) =>
    Effect.sync(() => room.ui.show(text(room)))

/** A command of the chat. */
interface Builtin {
  readonly name: string
  readonly argument?: string
  readonly about: string
  /** The words for a slow command while it runs. */
  readonly work?: string
  /** The command changes or leaves the conversation, so it can't run during a turn. */
  readonly isAlone?: "changes" | "leaves"
  readonly run: <E, R>(
    room: Room<E, R>,
    argument: string,
    talk: Talk<E, R>
  ) => Effect.Effect<unknown, Problem, FileSystem.FileSystem | Path.Path>
}

/** The commands, in the order of the menu. */
const builtins: ReadonlyArray<Builtin> = [
  { name: "help", about: "the commands and the keys", run: shows(help) },
  {
    name: "agent",
    argument: "[name]",
    about: "talk to another agent",
    run: (room, argument) => change(room, "agent", argument)
  },
  {
    name: "agents",
    argument: "[n]",
    about: "sub-agents and tasks, or the whole work of the nth",
    run: showAgents
  },
  {
    name: "model",
    argument: "[name | star]",
    about: "continue with another model; star marks a favourite",
    work: "asks the providers for their models",
    run: changeModel
  },
  { name: "provider", argument: "[name]", about: "continue with another provider's model", run: changeProvider },
  { name: "tools", about: "the tools of this agent", run: shows(tools) },
  { name: "todos", about: "the plan", run: shows(todos) },
  { name: "sources", about: "the numbered sources of this conversation", run: (room) => showSources(room) },
  { name: "files", argument: "[folder or pattern]", about: "the files that the agent sees", run: Files.files },
  { name: "read", argument: "<file>", about: "show a file", run: Files.showFile },
  {
    name: "workflow",
    argument: "[show | run | resume | stop] [name]",
    about: "saved workflows, and those in the background",
    run: (room, argument) => workflow(room, argument)
  },
  { name: "ps", about: "processes and sub-agents in the background", run: Processes.list },
  { name: "kill", argument: "[id]", about: "end a process or a sub-agent in the background", run: Processes.kill },
  { name: "diff", about: "the files that this chat changed", run: Back.diff },
  { name: "undo", about: "take back the last turn: its words and its files", isAlone: "changes", run: Back.undo },
  { name: "redo", about: "repeat the turns that /undo or /rewind took back", isAlone: "changes", run: Back.redo },
  { name: "rewind", argument: "[turn]", about: "go back to an earlier turn", isAlone: "changes", run: Back.rewind },
  { name: "fork", argument: "[turn]", about: "go on in a copy of the conversation", isAlone: "leaves", run: Back.fork },
  { name: "tree", about: "all branches of the conversation", isAlone: "changes", run: Threads.tree },
  {
    name: "sessions",
    argument: "[id]",
    about: "go over to another conversation",
    isAlone: "leaves",
    run: Threads.sessions
  },
  { name: "save", argument: "<name>", about: "name this place of the conversation", run: Threads.save },
  {
    name: "history",
    about: "the whole conversation, in the pager",
    run: (room) => Effect.flatMap(transcript(room), room.page)
  },
  { name: "export", argument: "[file]", about: "write the conversation as Markdown", run: exportFile },
  { name: "copy", argument: "[n]", about: "copy the last answer, or its nth listing", run: copyText },
  {
    name: "compact",
    argument: "[what matters]",
    about: "replace the conversation by a summary",
    work: "writes a summary",
    isAlone: "changes",
    run: Threads.compact
  },
  { name: "context", about: "the parts of the model's window", run: shows(context) },
  { name: "cost", about: "tokens and cost so far", run: shows(cost) },
  { name: "budget", about: "the limits of a run, and its use so far", run: shows(budget) },
  { name: "approve", argument: "[ask | auto-edit | plan]", about: "which calls ask you", run: changeMode },
  {
    name: "permissions",
    argument: "[drop n]",
    about: "the rules for calls, and your approvals for good",
    run: changePermissions
  },
  { name: "status", about: "the agent, the folder, the mode", run: shows(status) },
  { name: "theme", argument: "[name]", about: "the colours of this chat", run: changeTheme },
  { name: "vim", about: "vim keys for the draft, or no longer", run: changeVim },
  { name: "keys", about: "the keys", run: shows(keys) },
  { name: "clear", about: "begin a new conversation", isAlone: "leaves", run: clear },
  { name: "quit", about: "leave; the conversation is kept", run: (_room, _argument, talk) => leave(talk) }
]
