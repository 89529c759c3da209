/** Slash commands about the setup of the agent: its skills and its memory files. */
import * as Effect from "effect/Effect"
import { Backend } from "../../../core/Backend.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine, visible } from "../../../support/text/untrusted.ts"
import type { Command, Problem, Said } from "../chat/options.ts"
import { scanned } from "../commands/setupCommands.ts"
import { type Context, files, memorySources, type Services } from "./app.ts"

/** Characters of a file that are shown. */
const shown = 4_000

const show = (markdown: string): Said => ({ _tag: "Show", markdown })

const skills = Effect.fnUntraced(function* (context: Context) {
  const found = yield* scanned(context)
  const lines = [
    ...found.skills.map(({ description, name, path }) => `- **${name}** ${oneLine(cut(description, 160))} \`${path}\``),
    ...found.problems.map(({ field, path, problem }) => `- not read: \`${path}\` ${field} ${oneLine(problem)}`)
  ]
  return show(lines.length === 0 ? "There are no skills." : lines.join("\n"))
})

const indented = (text: string): string =>
  visible(text)
    .split("\n")
    .map((line) => `    ${line}`)
    .join("\n")

const memory = Effect.fnUntraced(function* (context: Context) {
  const backend = yield* Backend
  const parts = yield* Effect.forEach(memorySources(context), (path) =>
    Effect.map(backend.download([path]), ([file]) => {
      if (file?.ok !== true) return `**${path}** is not there.`
      const text = new TextDecoder().decode(file.value)
      return `**${path}**, ${text.length} characters:\n\n${indented(cut(text.trim(), shown))}`
    })
  )
  return show(parts.join("\n\n"))
})

/** Gives the commands for the folder and the agent of this chat. */
export const setupInChat = Effect.fnUntraced(function* (context: Context) {
  const services = yield* Effect.context<Services>()
  const run = (effect: Effect.Effect<Said, { readonly message: string }, Services>): Effect.Effect<Said, Problem> =>
    effect.pipe(
      Effect.provideContext(services),
      Effect.mapError(({ message }): Problem => ({ message }))
    )
  const commands: ReadonlyArray<Command> = [
    { name: "skills", description: "the skills that the agent finds", run: () => run(skills(context)) },
    {
      name: "memory",
      description: "the files that the agent is given in each conversation",
      run: () => run(Effect.provide(memory(context), files(context, "memory")))
    }
  ]
  return commands
})
