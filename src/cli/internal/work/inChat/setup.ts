/** Slash commands about the setup of the agent: its skills and its memory files. */
import * as Effect from "effect/Effect"
import { cut } from "../../../../support/text/text.ts"
import { oneLine, visible } from "../../../../support/text/untrusted.ts"
import type { Command } from "../../chat/options.ts"
import { scanned } from "../../commands/setupCommands.ts"
import { pendingChanges, settleChanges } from "../../config/memory.ts"
import { type Key, originOf, type Setting } from "../../config/settings.ts"
import { fail } from "../../failure.ts"
import { type Context, memorySources } from "../app.ts"
import { describeSandbox, describeUnapproved } from "../machine/sandboxed.ts"
import { diffOf } from "../remembering.ts"
import { makeRun, show } from "./outcome.ts"

/** Characters of a file that are shown. */
const maxShown = 4_000

const skills = Effect.fnUntraced(function* (context: Context) {
  const scan = yield* scanned(context)
  const lines = [
    ...scan.skills.map(({ description, name, path }) => `- **${name}** ${oneLine(cut(description, 160))} \`${path}\``),
    ...scan.problems.map(({ field, path, problem }) => `- not read: \`${path}\` ${field} ${oneLine(problem)}`)
  ]
  return show(lines.length === 0 ? "There are no skills." : lines.join("\n"))
})

const indented = (text: string): string =>
  visible(text)
    .split("\n")
    .map((line) => `    ${line}`)
    .join("\n")

/** Shows the memory files and the changes that nobody decided on, or decides on these. */
const memory = Effect.fnUntraced(function* (context: Context, argument: string) {
  const changes = yield* pendingChanges(context.places)
  const action = argument.trim()
  if (action === "keep" || action === "drop") {
    yield* settleChanges(context.places, changes, action === "keep")
    const files = changes.map(({ path }) => oneLine(path)).join(", ")
    if (files === "") return show("No change of the memory waits for you.")
    return show(
      action === "keep" ? `Kept: ${files}. It counts from the next conversation on.` : `Taken back: ${files}.`
    )
  }
  if (action !== "") return yield* fail("usage", `There is no /memory ${JSON.stringify(action)}; say keep or drop.`)
  const parts = memorySources(context).map(({ path, text }) =>
    text === ""
      ? `**${path}** is not there.`
      : `**${path}**, ${text.length} characters:\n\n${indented(cut(text.trim(), maxShown))}`
  )
  const waiting = changes.map((change) => `**${oneLine(change.path)}** was changed:\n\n${indented(diffOf(change))}`)
  const how = waiting.length === 0 ? [] : ["`/memory keep` keeps the changes, `/memory drop` takes them back."]
  return show([...parts, ...waiting, ...how].join("\n\n"))
})

/** The parts that settings switch on and off, each with its state and the place that says so. */
export const featuresOf = (
  { extensions, settings }: Pick<Context, "extensions" | "settings">,
  isIsolating = false
): string => {
  const { fallback, favourites, lsp, plugins, scripts, vim } = settings
  const models = fallback ?? favourites
  const loaded = extensions.loaded.map(({ extension }) => extension.name)
  const row = (key: Key, isOn: boolean, detail = "", setting: Setting | undefined = settings[key]) =>
    `- **${key}** ${isOn ? "on" : "off"}${detail === "" ? "" : `: ${oneLine(detail)}`} — ${setting === undefined ? "default" : oneLine(originOf(setting))}`
  const isolation = isIsolating ? describeUnapproved : describeSandbox(settings)
  return [
    row(
      "scripts",
      scripts !== undefined && scripts.value !== false,
      scripts?.value === "review" ? "you approve each" : ""
    ),
    row("sandbox", isolation !== "", isolation),
    row("lsp", lsp?.value !== false, "language servers for diagnostics"),
    row("fallback", (models?.value.length ?? 0) > 0, models?.value.join(", "), models),
    row("plugins", (plugins?.value.length ?? 0) > 0, plugins?.value.join(", ")),
    row("vim", vim?.value === true),
    `- **extensions** ${loaded.length === 0 ? "off" : `on: ${oneLine(loaded.join(", "))}`} — \`deepagents extensions\``,
    "",
    "Settings count from the next start on: `~/.config/deepagents/config.json`; `deepagents config` lists all."
  ].join("\n")
}

/** Gives the commands for the folder and the agent of this chat. */
export const setupInChat = Effect.fnUntraced(function* (context: Context) {
  const run = yield* makeRun
  const commands: ReadonlyArray<Command> = [
    { name: "skills", description: "the skills that the agent finds", run: () => run(skills(context)) },
    {
      name: "features",
      description: "the optional parts of the program: on or off, and where that is set",
      run: () => Effect.map(context.isolation.isOn, (isOn) => show(featuresOf(context, isOn)))
    },
    {
      name: "memory",
      argument: "[keep | drop]",
      description: "the memory files of each conversation, and the agent's changes",
      run: (argument) => run(memory(context, argument))
    }
  ]
  return commands
})
