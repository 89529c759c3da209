/** The dialog of an approval or a question: its keys and its lines. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Approval from "../../../core/Approval.ts"
import { isObject, Json, stringify } from "../../../core/Json.ts"
import { describeArguments } from "../../../core/ToolCall.ts"
import { cleanLine, escapeUnseen } from "../../../support/text/clean.ts"
import { cut } from "../../../support/text/text.ts"
import { letterOf, pressed } from "../input/keys.ts"
import type { Style } from "../render/style.ts"
import { describeAlways } from "./always.ts"
import { answerOf, type Field, fieldsOf, readField } from "./form.ts"
import { describe, learn, type LearnedRules, likeOf } from "./learned.ts"
import type { Permits } from "./permits.ts"
import type { Preview } from "./preview.ts"

/** The pause before a dialog takes keys, in milliseconds: a person who types must not decide by accident. */
export const armedAfter = 700

interface FormState {
  readonly fields: ReadonlyArray<Field>
  readonly at: number
  readonly marked: number | undefined
  readonly chosen: ReadonlyArray<string>
  readonly values: ReadonlyMap<string, Json>
}

/** The state of a dialog. In `reason` and `edit`, and in fields of text, the editor has the keys. */
export interface Dialog {
  readonly request: Approval.Request
  readonly permits: Permits | undefined
  readonly stage: "choose" | "reason" | "edit" | "form"
  readonly form: FormState | undefined
  readonly problem: string
}

/** The effect of a key: the editor takes it, it changes the dialog, or it decides. */
export type Outcome =
  | { readonly _tag: "Editor" }
  | { readonly _tag: "Stay"; readonly dialog: Dialog; readonly draft?: string }
  | {
      readonly _tag: "Decided"
      readonly decision: Approval.Decision
      readonly learned?: LearnedRules
      /** True if the decision holds for all pending requests. */
      readonly others?: "approve" | "reject"
    }

export const isForm = (request: Approval.Request): boolean =>
  request.answer !== undefined && request.allow.includes("respond")

export const dialogOf = (request: Approval.Request, permits: Permits | undefined): Dialog =>
  isForm(request)
    ? {
        request,
        permits,
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
    : { request, permits, stage: "choose", form: undefined, problem: "" }

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
  const { permits, request } = dialog
  /** Approves later calls too, if the chat has rules. */
  const always = (scope: LearnedRules["scope"], isAny = false): Outcome | undefined => {
    if (permits === undefined) return undefined
    const like = isAny ? ({ kind: "any" } as const) : likeOf(request, permits)
    return { _tag: "Decided", decision: Approval.approve(request), learned: learn(request, like, scope) }
  }
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
      // The chat must not decide in a person's place. The rule that asks may keep the approval.
      return request.byPerson === true
        ? { _tag: "Decided", decision: Approval.approve(request, { always: true }) }
        : always("chat")
    case "A":
      return allows(dialog, "approve") && request.byPerson !== true ? always("project") : undefined
    case "s":
      // Every command is no approval that anybody means.
      return allows(dialog, "approve") && request.byPerson !== true && permits?.isCommand(request.toolName) === false
        ? always("chat", true)
        : undefined
    default:
      return undefined
  }
}

/** Goes to the next field. Behind the last field, the form is the answer. */
const advanced = (dialog: Dialog, form: FormState, value: Json | undefined): Outcome => {
  const field = form.fields[form.at]
  if (field === undefined) return { _tag: "Stay", dialog }
  if (value === undefined && field.isRequired) {
    return { _tag: "Stay", dialog: { ...dialog, problem: `${field.label}: this needs an answer` } }
  }
  const values = new Map(form.values)
  if (value !== undefined) values.set(field.id, value)
  const next: FormState = { ...form, at: form.at + 1, marked: undefined, chosen: [], values }
  return next.at < next.fields.length
    ? { _tag: "Stay", dialog: { ...dialog, form: next, problem: "" }, draft: "" }
    : { _tag: "Decided", decision: Approval.respond(dialog.request, answerOf(next.fields, values)) }
}

const fill = (dialog: Dialog, form: FormState, field: Field, data: string): Outcome => {
  const { options } = field
  const stay = (change: Partial<FormState>): Outcome => ({
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
  const candidates = [typeof command === "string" ? command : "", `${toolName} ${describeArguments(args)}`]
  const head = candidates.find((text) => text !== "" && description.startsWith(text)) ?? ""
  const notes = description.slice(head.length).trim()
  return notes === "" ? [] : escapeUnseen(notes).split("\n")
}

/** The longest diff that is shown in full. */
const shownLines = 200

const diffLines = ({ isNew, lines, path }: Preview, { bold, dim, green, red }: Style): ReadonlyArray<string> => [
  `${bold(cleanLine(path))}${isNew ? " (new)" : ""}`,
  ...(lines.length === 0 ? [dim("(as it is)")] : []),
  ...lines
    .slice(0, shownLines)
    .map((line) => (line.startsWith("+") ? green(line) : line.startsWith("-") ? red(line) : dim(line))),
  ...(lines.length > shownLines ? [dim(`… ${lines.length - shownLines} more lines: e shows all of it`)] : [])
]

/** Arguments that a preview shows by its diff. */
const previewed = new Set(["file_path", "content", "old_string", "new_string"])

/** Writes the whole request for the scrollback, with the codes of invisible characters. */
export const announcement = (request: Approval.Request, style: Style, preview?: Preview): ReadonlyArray<string> => {
  const { bold, yellow } = style
  const { arguments: args, description, path, toolName } = request
  const who = path.map(cleanLine).join(" › ")
  const command = args["command"]
  const rest = Object.entries(args).filter(
    ([name]) => name !== "command" && name !== "questions" && !(preview !== undefined && previewed.has(name))
  )
  return [
    yellow(`? ${who} ${isForm(request) ? "asks:" : `wants to call ${bold(cleanLine(toolName))}`}`),
    ...(isForm(request) ? escapeUnseen(description).split("\n") : []),
    ...(typeof command === "string" ? escapeUnseen(command).split("\n") : []),
    ...(preview === undefined ? [] : diffLines(preview, style)),
    ...rest.flatMap(([name, value]) => {
      const lines = escapeUnseen(typeof value === "string" ? value : stringify(value)).split("\n")
      return lines.length === 1 ? [`${cleanLine(name)}: ${lines[0]}`] : [`${cleanLine(name)}:`, ...lines]
    }),
    ...(isForm(request) ? [] : notesOf(request).map(yellow))
  ]
}

const fieldLines = (form: FormState, field: Field, style: Style): ReadonlyArray<string> => [
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

/** The width that a narrow terminal has. */
const narrow = 38

/** Breaks words into lines for a narrow terminal. */
const wrap = (text: string): ReadonlyArray<string> => {
  const lines: Array<string> = []
  let line = ""
  for (const word of text.split(" ")) {
    for (const part of word.match(/.{1,36}/gu) ?? [""]) {
      if (line !== "" && line.length + 1 + part.length > narrow - 2) {
        lines.push(`  ${line}`)
        line = part
      } else line = line === "" ? part : `${line} ${part}`
    }
  }
  return [...lines, `  ${line}`]
}

/** The keys that approve later calls too. The rule that asks may keep an approval that only a person gives. */
const alwaysLines = ({ permits, request }: Dialog, { bold, dim }: Style): ReadonlyArray<string> => {
  if (request.byPerson === true) {
    return [`${bold("a")} always`, ...wrap(describeAlways(request)).map(dim)]
  }
  if (permits === undefined) return []
  const words = describe({ like: likeOf(request, permits), toolName: request.toolName }, permits)
  return [
    `${bold("a")} always in this chat, ${bold("A")} in the project`,
    ...wrap(cut(words, 400)).map(dim),
    ...(permits.isCommand(request.toolName)
      ? []
      : [`${bold("s")} always`, ...wrap(`every call of ${cleanLine(request.toolName)}`).map(dim)])
  ]
}

/** Joins the keys into lines for a narrow terminal. */
const keyLines = (keys: ReadonlyArray<readonly [letter: string, words: string]>, { bold }: Style) => {
  const lines: Array<ReadonlyArray<readonly [string, string]>> = []
  const widthOf = (some: ReadonlyArray<readonly [string, string]>): number =>
    some.reduce((sum, [letter, words]) => sum + letter.length + words.length + 4, -3)
  for (const key of keys) {
    const last = lines.at(-1)
    if (last !== undefined && widthOf([...last, key]) <= narrow) lines[lines.length - 1] = [...last, key]
    else lines.push([key])
  }
  return lines.map((line) => line.map(([letter, words]) => `${bold(letter)} ${words}`).join("   "))
}

/** Writes the question and its keys, for the live part of the screen. */
export const lines = (
  dialog: Dialog,
  around: { readonly waiting: number; readonly isArmed: boolean; readonly now: number },
  style: Style
): ReadonlyArray<string> => {
  const { form, problem, request, stage } = dialog
  const { expiresAt } = request
  const countdown =
    expiresAt === undefined ? "" : ` · ${Math.max(0, Math.ceil((expiresAt - around.now) / 1_000))} s left`
  const batch = around.waiting > 1 ? ` · 1 of ${around.waiting}` : ""
  const problemLines = problem === "" ? [] : [style.red(problem)]
  const field = form?.fields[form.at]
  if (stage === "reason")
    return [...problemLines, style.yellow("Why not? Enter rejects, with the reason if there is one; Esc goes back")]
  if (stage === "edit")
    return [...problemLines, style.yellow("Other arguments: Enter runs it with these, Esc goes back")]
  const arm = around.isArmed ? "" : style.dim(" (when you stop typing)")
  if (form !== undefined && field !== undefined)
    return [...problemLines, ...fieldLines(form, field, style), ...(arm === "" ? [] : [arm])]
  const choices = [
    ...(allows(dialog, "approve") ? [["y", "yes"] as const] : []),
    ...(allows(dialog, "reject") ? [["n", "no, and why"] as const] : []),
    ...(allows(dialog, "edit") ? [["e", "edit"] as const] : []),
    ...(around.waiting > 1 && allows(dialog, "approve") ? [["Y", `yes to all ${around.waiting}`] as const] : [])
  ]
  return [
    ...problemLines,
    `${style.yellow("?")} ${request.path.map(cleanLine).join(" › ")}: ${style.bold(cleanLine(request.toolName))}${style.dim(batch + countdown)}${arm}`,
    ...keyLines(choices, style),
    ...(allows(dialog, "approve") ? alwaysLines(dialog, style) : [])
  ]
}
