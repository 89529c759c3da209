/** Questions of a run, asked line by line. */
import * as Effect from "effect/Effect"
import * as Approval from "../../../core/Approval.ts"
import type { Json } from "../../../core/Json.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import { describeAlways } from "../approvals/always.ts"
import * as Dialog from "../approvals/dialog.ts"
import { answerOf, type Field, fieldsOf, readField } from "../approvals/form.ts"
import { describe, learn, type LearnedRules, likeOf } from "../approvals/learned.ts"
import type { Permits } from "../approvals/permits.ts"

/** Makes the questions: `approve` for a call, `fill` for a form, `number` for a choice. `readLine` gives `undefined` at the end of the input. */
export const makeQuestions = (options: {
  readonly readLine: Effect.Effect<string | undefined>
  readonly write: (text: string) => void
  readonly permits: Permits
  readonly onLearned: (learned: LearnedRules) => void
}) => {
  const { permits, readLine, write } = options
  const say = (line: string): void => write(`${line}\n`)

  /** Asks for a choice by its number. Returns `undefined` at the end of the input. */
  const number = Effect.fnUntraced(function* (choices: ReadonlyArray<string>) {
    for (const [index, choice] of choices.entries()) say(`  ${index + 1}. ${choice}`)
    for (;;) {
      write(`1-${choices.length}: `)
      const line = yield* readLine
      if (line === undefined) return undefined
      const index = Number(line.trim()) - 1
      if (Number.isInteger(index) && index >= 0 && index < choices.length) return index
      say("Write one of the numbers.")
    }
  })

  const approve = Effect.fnUntraced(function* (request: Approval.Request) {
    const like = likeOf(request, permits)
    const words = describe({ like, toolName: request.toolName }, permits)
    const answers: ReadonlyArray<readonly [Approval.Choice, string, LearnedRules["scope"]?]> = [
      ["approve", "yes"],
      ["reject", "no"],
      ...(request.byPerson === true
        ? [["approve", `always: ${describeAlways(request)}`, "chat"] as const]
        : [
            ["approve", `always in this chat: ${words}`, "chat"] as const,
            ["approve", `always in this project: ${words}`, "project"] as const
          ])
    ]
    const choices = answers.filter(([choice]) => request.allow.includes(choice))
    const answer = choices[(yield* number(choices.map(([, words]) => words))) ?? -1]
    if (answer === undefined) return Approval.reject(request, "Nobody answered.")
    const [choice, , scope] = answer
    if (choice === "reject") {
      write("why not (a line, may be empty): ")
      const reason = (yield* readLine)?.trim()
      return Approval.reject(request, reason === "" ? undefined : reason)
    }
    if (scope === undefined) return Approval.approve(request)
    if (request.byPerson === true) return Approval.approve(request, { always: true })
    options.onLearned(learn(request, like, scope))
    return Approval.approve(request)
  })

  const field = Effect.fnUntraced(function* (one: Field) {
    say(`${one.label}${one.isRequired ? "" : " (an empty line skips it)"}`)
    if (one.kind === "one" || one.kind === "boolean") {
      const index = yield* number(one.options)
      return index === undefined ? undefined : one.kind === "boolean" ? index === 0 : (one.options[index] ?? "")
    }
    if (one.kind === "many")
      say(`${one.options.map((option, index) => `${index + 1}. ${option}`).join("  ")} (numbers)`)
    for (;;) {
      write("> ")
      const line = yield* readLine
      if (line === undefined || (line.trim() === "" && !one.isRequired)) return undefined
      if (one.kind === "many") {
        return line.split(/[\s,]+/).flatMap((word) => one.options[Number(word) - 1] ?? [])
      }
      const answer = readField(one, line, Dialog.json)
      if ("value" in answer) return answer.value
      say(answer.problem)
    }
  })

  const fill = Effect.fnUntraced(function* (request: Approval.Request) {
    const fields = fieldsOf(request.answer ?? {}, cleanLine(request.description))
    const values = new Map<string, Json>()
    for (const one of fields) {
      const value: Json | undefined = yield* field(one)
      if (value !== undefined) values.set(one.id, value)
      else if (one.isRequired) return Approval.reject(request, "The user gave no answer.")
    }
    return Approval.respond(request, answerOf(fields, values))
  })

  return { approve, fill, number }
}
