/** The dialog of an approval or a question: its keys and its lines. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Approval from "../../../core/Approval.ts"
import { isObject, Json, stringify } from "../../../core/Json.ts"
import { describeArguments } from "../../../core/ToolCall.ts"
import { cleanLine, escapeUnseen } from "../../../support/text/clean.ts"
import { letterOf, pressed } from "../input/keys.ts"
import type { Style } from "../render/style.ts"
import { answerOf, type Field, fieldsOf, readField } from "./form.ts"
import { likeOf, type Rule, ruleFor, wordsOf } from "./rules.ts"

/** The pause before a dialog takes keys, in milliseconds: a person who types must not decide by accident. */
export const armedAfter = 700

interface Filling {
  readonly fields: ReadonlyArray<Field>
  readonly at: number
  readonly marked: number | undefined
  readonly chosen: ReadonlyArray<string>
  readonly values: ReadonlyMap<string, Json>
}

/** The state of a dialog. In `reason` and `edit`, and in fields of text, the editor has the keys. */
export interface Dialog {
  readonly request: Approval.Request
  readonly stage: "choose" | "reason" | "edit" | "form"
  readonly form: Filling | undefined
  readonly problem: string
}

/** The effect of a key: the editor takes it, it changes the dialog, or it decides. */
export type Outcome =
  | { readonly _tag: "Editor" }
  | { readonly _tag: "Stay"; readonly dialog: Dialog; readonly draft?: string }
  | {
      readonly _tag: "Decided"
      readonly decision: Approval.Decision
      readonly rule?: Rule
      /** True if the decision holds for all pending requests. */
      readonly others?: "approve" | "reject"
    }

export const isForm = (request: Approval.Request): boolean =>
  request.answer !== undefined && request.allow.includes("respond")

export const dialogOf = (request: Approval.Request): Dialog =>
  isForm(request)
    ? {
        request,
        stage: "form",
        form: {
          fields: fieldsOf(request.answer ?? {}, cleanLine(request.description)),
          at: 0,
          marked: undefined,
          chosen: [],
          values: new Map()
        },
        problem: ""
      }
    : { request, stage: "choose", form: undefined, problem: "" }

const isChoice = ({ kind }: Field): boolean => kind === "one" || kind === "many" || kind === "boolean"

/** Reports whether the editor takes the keys. */
export const usesEditor = ({ form, stage }: Dialog): boolean => {
  const field = form?.fields[form.at]
  return stage === "reason" || stage === "edit" || (stage === "form" && field !== undefined && !isChoice(field))
}

const parseJson = Schema.decodeUnknownResult(Schema.fromJsonString(Json))

export const json = (text: string): Json | undefined => Result.getOrUndefined(parseJson(text))

const allows = ({ request }: Dialog, choice: Approval.Choice): boolean => request.allow.includes(choice)

const choose = (dialog: Dialog, letter: string): Outcome | undefined => {
  const { request } = dialog
  switch (letter) {
    case "y":
      return allows(dialog, "approve") ? { _tag: "Decided", decision: Approval.approve(request) } : undefined
    case "Y":
      return allows(dialog, "approve")
        ? { _tag: "Decided", decision: Approval.approve(request), others: "approve" }
        : undefined
    case "n":
      return allows(dialog, "reject") ? { _tag: "Stay", dialog: { ...dialog, stage: "reason" }, draft: "" } : undefined
    case "e":
      return allows(dialog, "edit")
        ? {
            _tag: "Stay",
            dialog: { ...dialog, stage: "edit", problem: "" },
            draft: JSON.stringify(request.arguments, null, 2)
          }
        : undefined
    case "a":
      if (!allows(dialog, "approve")) return undefined
      // A rule of the chat must not decide in a person's place. The rule that asks may keep the approval.
      return request.byPerson === true
        ? { _tag: "Decided", decision: Approval.approve(request, { always: true }) }
        : { _tag: "Decided", decision: Approval.approve(request), rule: ruleFor(request, likeOf(request)) }
    case "s":
      return allows(dialog, "approve") && request.byPerson !== true
        ? { _tag: "Decided", decision: Approval.approve(request), rule: ruleFor(request, { kind: "any" }) }
        : undefined
    default:
      return undefined
  }
}

/** Goes to the next field. Behind the last field, the form is the answer. */
const advanced = (dialog: Dialog, form: Filling, value: Json | undefined): Outcome => {
  const field = form.fields[form.at]
  if (field === undefined) return { _tag: "Stay", dialog }
  if (value === undefined && field.isRequired) {
    return { _tag: "Stay", dialog: { ...dialog, problem: `${field.label}: this needs an answer` } }
  }
  const values = new Map(form.values)
  if (value !== undefined) values.set(field.id, value)
  const next: Filling = { ...form, at: form.at + 1, marked: undefined, chosen: [], values }
  return next.at < next.fields.length
    ? { _tag: "Stay", dialog: { ...dialog, form: next, problem: "" }, draft: "" }
    : { _tag: "Decided", decision: Approval.respond(dialog.request, answerOf(next.fields, values)) }
}

const fill = (dialog: Dialog, form: Filling, field: Field, data: string): Outcome => {
  const { options } = field
  const stay = (change: Partial<Filling>): Outcome => ({
    _tag: "Stay",
    dialog: { ...dialog, form: { ...form, ...change }, problem: "" }
  })
  const toggled = (option: string): ReadonlyArray<string> =>
    form.chosen.includes(option) ? form.chosen.filter((one) => one !== option) : [...form.chosen, option]
  const valueOf = (index: number): Json => (field.kind === "boolean" ? index === 0 : (options[index] ?? ""))
  const key = pressed(data)
  const { marked: at } = form
  if (key === "up") return stay({ marked: ((at ?? 0) - 1 + options.length) % options.length })
  if (key === "down") return stay({ marked: at === undefined ? 0 : (at + 1) % options.length })
  if (key === "tab" && !field.isRequired) return advanced(dialog, form, undefined)
  const option = at === undefined ? undefined : options[at]
  if (key === "space" && field.kind === "many" && option !== undefined) return stay({ chosen: toggled(option) })
  if (key === "enter") {
    if (field.kind === "many") return advanced(dialog, form, [...form.chosen])
    // A person marks each option.
    return at === undefined ? stay({}) : advanced(dialog, form, valueOf(at))
  }
  const number = Number(letterOf(data) ?? NaN) - 1
  if (Number.isInteger(number) && number >= 0 && number < options.length) {
    return field.kind === "many"
      ? stay({ marked: number, chosen: toggled(options[number] ?? "") })
      : stay({ marked: number })
  }
  return stay({})
}

/** Handles a key of an armed dialog. */
export const press = (dialog: Dialog, data: string): Outcome => {
  const { form, request, stage } = dialog
  const field = form?.fields[form.at]
  if (pressed(data) === "escape") {
    if (stage === "edit") return { _tag: "Stay", dialog: { ...dialog, stage: "choose", problem: "" }, draft: "" }
    if (stage === "choose" && allows(dialog, "reject"))
      return { _tag: "Stay", dialog: { ...dialog, stage: "reason" }, draft: "" }
    if (stage === "reason")
      return { _tag: "Stay", dialog: { ...dialog, stage: isForm(request) ? "form" : "choose" }, draft: "" }
    return allows(dialog, "reject")
      ? { _tag: "Decided", decision: Approval.reject(request, "The user gave no answer.") }
      : { _tag: "Stay", dialog }
  }
  if (usesEditor(dialog)) {
    return pressed(data) === "tab" && form !== undefined && field?.isRequired === false
      ? advanced(dialog, form, undefined)
      : { _tag: "Editor" }
  }
  if (stage === "form" && form !== undefined && field !== undefined) return fill(dialog, form, field, data)
  return choose(dialog, letterOf(data) ?? "") ?? { _tag: "Stay", dialog }
}

/** Handles a text from the editor. */
export const submit = (dialog: Dialog, text: string): Outcome => {
  const { form, request, stage } = dialog
  if (stage === "reason") {
    const reason = text.trim()
    return reason === ""
      ? { _tag: "Decided", decision: Approval.reject(request) }
      : { _tag: "Decided", decision: Approval.reject(request, reason), others: "reject" }
  }
  if (stage === "edit") {
    const args = json(text)
    return isObject(args)
      ? { _tag: "Decided", decision: Approval.edit(request, args) }
      : { _tag: "Stay", dialog: { ...dialog, problem: "These are no arguments: write a JSON object" }, draft: text }
  }
  const field = form?.fields[form.at]
  if (form === undefined || field === undefined) return { _tag: "Stay", dialog }
  if (text.trim() === "") return advanced(dialog, form, undefined)
  const answer = readField(field, text, json)
  return "value" in answer
    ? advanced(dialog, form, answer.value)
    : { _tag: "Stay", dialog: { ...dialog, problem: answer.problem }, draft: text }
}

/** What the description says beside the call itself: risks of a command, and why a rule asks. */
const notesOf = ({ arguments: args, description, toolName }: Approval.Request): ReadonlyArray<string> => {
  const { command } = args
  const shown = [typeof command === "string" ? command : "", `${toolName} ${describeArguments(args)}`]
  const said = shown.find((text) => text !== "" && description.startsWith(text)) ?? ""
  const notes = description.slice(said.length).trim()
  return notes === "" ? [] : escapeUnseen(notes).split("\n")
}

/** Writes the whole request for the scrollback, with the codes of invisible characters. */
export const announcement = (request: Approval.Request, { bold, yellow }: Style): ReadonlyArray<string> => {
  const { arguments: args, description, path, toolName } = request
  const who = path.map(cleanLine).join(" › ")
  const command = args["command"]
  const rest = Object.entries(args).filter(([name]) => name !== "command" && name !== "questions")
  return [
    yellow(`? ${who} ${isForm(request) ? "asks:" : `wants to call ${bold(cleanLine(toolName))}`}`),
    ...(isForm(request) ? escapeUnseen(description).split("\n") : []),
    ...(typeof command === "string" ? escapeUnseen(command).split("\n") : []),
    ...rest.flatMap(([name, value]) => {
      const lines = escapeUnseen(typeof value === "string" ? value : stringify(value)).split("\n")
      return lines.length === 1 ? [`${cleanLine(name)}: ${lines[0]}`] : [`${cleanLine(name)}:`, ...lines]
    }),
    ...(isForm(request) ? [] : notesOf(request).map(yellow))
  ]
}

const fieldLines = (form: Filling, field: Field, style: Style): ReadonlyArray<string> => [
  `${style.bold(field.label)} ${style.dim(`(${form.at + 1} of ${form.fields.length}${field.isRequired ? "" : ", Tab skips it"})`)}`,
  ...field.options.map((option, index) => {
    const mark = form.marked === index ? style.cyan("›") : " "
    const box = field.kind === "many" ? (form.chosen.includes(option) ? "[x] " : "[ ] ") : ""
    return `${mark} ${index + 1}. ${box}${cleanLine(option)}`
  }),
  style.dim(
    isChoice(field)
      ? field.kind === "many"
        ? "Space marks, Enter goes on, Esc declines"
        : "a number or ↑↓ marks, Enter goes on, Esc declines"
      : "write the answer, Enter goes on, Esc declines"
  )
]

/** The keys that approve later calls too. The rule that asks may keep an approval that only a person gives. */
const alwaysLines = (request: Approval.Request, style: Style): ReadonlyArray<string> =>
  request.byPerson === true
    ? [`${style.bold("a")} always ${style.dim("as far as the rule that asks allows it")}`]
    : [
        `${style.bold("a")} always ${style.dim(wordsOf(ruleFor(request, likeOf(request))))}`,
        `${style.bold("s")} always ${style.dim(wordsOf(ruleFor(request, { kind: "any" })))}`
      ]

/** Writes the question and its keys, for the live part of the screen. */
export const lines = (
  dialog: Dialog,
  around: { readonly waiting: number; readonly isArmed: boolean; readonly now: number },
  style: Style
): ReadonlyArray<string> => {
  const { form, problem, request, stage } = dialog
  const { expiresAt } = request
  const left = expiresAt === undefined ? "" : ` · ${Math.max(0, Math.ceil((expiresAt - around.now) / 1_000))} s left`
  const batch = around.waiting > 1 ? ` · 1 of ${around.waiting}` : ""
  const said = problem === "" ? [] : [style.red(problem)]
  const field = form?.fields[form.at]
  if (stage === "reason")
    return [...said, style.yellow("Why not? Enter rejects, with the reason if there is one; Esc goes back")]
  if (stage === "edit") return [...said, style.yellow("Other arguments: Enter runs it with these, Esc goes back")]
  const arm = around.isArmed ? "" : style.dim(" (when you stop typing)")
  if (form !== undefined && field !== undefined)
    return [...said, ...fieldLines(form, field, style), ...(arm === "" ? [] : [arm])]
  const key = (letter: string, words: string): string => `${style.bold(letter)} ${words}`
  const choices = [
    ...(allows(dialog, "approve") ? [key("y", "yes")] : []),
    ...(allows(dialog, "reject") ? [key("n", "no, and why")] : []),
    ...(allows(dialog, "edit") ? [key("e", "edit")] : []),
    ...(around.waiting > 1 && allows(dialog, "approve") ? [key("Y", `yes to all ${around.waiting}`)] : [])
  ]
  return [
    ...said,
    `${style.yellow("?")} ${request.path.map(cleanLine).join(" › ")}: ${style.bold(cleanLine(request.toolName))}${style.dim(batch + left)}${arm}`,
    choices.join("   "),
    ...(allows(dialog, "approve") ? alwaysLines(request, style) : [])
  ]
}
