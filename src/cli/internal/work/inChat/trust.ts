/** `/trust` in the chat: lists the items of the project. Answers count from the next start on. */
import * as Effect from "effect/Effect"
import { cleanLine } from "../../../../support/text/clean.ts"
import type { Command, Problem } from "../../chat/options.ts"
import { knownIn } from "../../commands/trustCommand.ts"
import { answer } from "../../config/trust.ts"
import type { Context } from "../app.ts"
import { linesOf, rowOf } from "../trusting.ts"
import { makeRun, show } from "./outcome.ts"

/** The most lines of an item that are shown. */
const shownLines = 400

const actions = ["show", "add", "drop"]

const trust = Effect.fnUntraced(function* ({ places }: Context, argument: string) {
  const states = yield* knownIn(places)
  const [action = "", number = ""] = argument.trim().split(/\s+/)
  if (action === "") {
    if (states.length === 0) return show("The files of this folder have nothing that an agent would follow or run.")
    const rows = states.map((one, index) => `${index + 1}. ${rowOf(one).map(cleanLine).join(" · ")}`)
    return show(
      `${rows.join("\n")}\n\n\`/trust show 1\` shows it, \`/trust add 1\` trusts it, \`/trust drop 1\` withdraws that.`
    )
  }
  const one = states[Number(number) - 1]
  if (!actions.includes(action) || one === undefined) {
    return yield* Effect.fail<Problem>({ message: `Say /trust ${actions.join("|")} and a number of the list.` })
  }
  if (action === "show") {
    return show(
      linesOf(one, shownLines)
        .map((line) => `    ${line}`)
        .join("\n")
    )
  }
  if (action === "add" && one.item.problem !== undefined) {
    return yield* Effect.fail<Problem>({ message: `It can't be trusted: ${one.item.problem}.` })
  }
  yield* answer(places, [one.item], action === "add" ? true : undefined)
  const name = cleanLine(`${one.item.kind} ${one.item.name}`)
  return show(
    action === "add" ? `${name} counts from the next start on.` : `${name} is left out from the next start on.`
  )
})

export const trustInChat = Effect.fnUntraced(function* (context: Context) {
  const run = yield* makeRun
  return {
    name: "trust",
    argument: "[show | add | drop] [n]",
    description: "the items of this folder that the agent would follow or run",
    run: (argument) => run(trust(context, argument))
  } satisfies Command
})
