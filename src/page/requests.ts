/** Requests for decisions, and questions of tools. A person decides on exactly what is shown: nothing is hidden in it. */
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { useState } from "preact/hooks"
import * as Approval from "../core/Approval.ts"
import { JsonObject } from "../core/Json.ts"
import * as Form from "../view/Form.ts"
import { withMarks } from "../view/View.ts"
import { type Element, h, unseen, use } from "./element.ts"
import { diff } from "./parts.ts"

interface Props {
  readonly request: Approval.Request
  readonly onDecide: (decision: Approval.Decision) => void
  readonly isOff: boolean
}

const able = { many: true }

const decodeArguments = Schema.decodeUnknownExit(Schema.fromJsonString(JsonObject))

const prefixed = (mark: string, text: string): string =>
  text
    .split("\n")
    .map((line) => `${mark}${line}`)
    .join("\n")

/** The change of a call that edits a file, as lines; or else its arguments. */
const changeOf = ({ arguments: args, editsFiles }: Approval.Request): string | undefined => {
  const { content, file_path: path, new_string: to, old_string: from } = args
  if (editsFiles !== true || typeof path !== "string") return undefined
  if (typeof from === "string" && typeof to === "string") {
    return `${path}\n${prefixed("-", from)}\n${prefixed("+", to)}`
  }
  return typeof content === "string" ? `${path}\n${prefixed("+", content)}` : undefined
}

/** Shows all arguments: texts as they are, other values as JSON. */
const details = (args: JsonObject): ReadonlyArray<Element> =>
  Object.entries(args).map(([name, value]) =>
    h(
      "div",
      { class: "argument" },
      h("div", { class: "quiet" }, withMarks(name)),
      h("pre", { tabIndex: 0 }, withMarks(typeof value === "string" ? value : JSON.stringify(value, null, 2)))
    )
  )

const heading = (request: Approval.Request, words: string): Element =>
  h(
    "div",
    { class: "asks" },
    h("strong", null, words),
    request.path.length > 1
      ? h("span", { class: "quiet" }, ` asked by ${request.path.slice(1).map(withMarks).join(" › ")}`)
      : null
  )

const Permission = ({ isOff, onDecide, request }: Props): Element => {
  const [mode, setMode] = useState<"deny" | "edit" | "look">("look")
  const [text, setText] = useState("")
  const [problem, setProblem] = useState("")
  const change = changeOf(request)
  const begin = (next: "deny" | "edit"): void => {
    setMode(next)
    setProblem("")
    setText(next === "edit" ? JSON.stringify(request.arguments, null, 2) : "")
  }
  const runEdited = (): void => {
    const decoded = decodeArguments(text)
    if (Exit.isSuccess(decoded)) onDecide(Approval.edit(request, decoded.value))
    else setProblem("This is not a JSON object.")
  }
  const may = (choice: Approval.Choice) => request.allow.length === 0 || request.allow.includes(choice)
  const deny = () => onDecide(Approval.reject(request, text.trim() === "" ? undefined : text.trim()))
  return h(
    "div",
    { class: "request", role: "group", "aria-label": `Permission for ${withMarks(request.toolName)}` },
    heading(request, `Allow ${withMarks(request.toolName)}?`),
    request.description === "" ? null : h("p", { class: "described" }, withMarks(request.description)),
    change === undefined ? details(request.arguments) : diff(withMarks(change)),
    mode === "look"
      ? null
      : h(
          "label",
          { class: "field" },
          h("span", null, mode === "edit" ? "Arguments, as JSON" : "Why not? The agent reads it (optional)"),
          h("textarea", {
            rows: mode === "edit" ? 8 : 2,
            value: text,
            spellcheck: mode === "deny",
            class: mode === "edit" ? "mono" : "",
            autoFocus: true,
            onInput: ({ currentTarget }) => setText(currentTarget.value)
          })
        ),
    problem === "" ? null : h("p", { class: "bad", role: "alert" }, problem),
    h(
      "div",
      { class: "choices" },
      mode === "look"
        ? [
            may("approve")
              ? h(
                  "button",
                  {
                    type: "button",
                    class: "primary",
                    disabled: isOff,
                    onClick: () => onDecide(Approval.approve(request))
                  },
                  "Allow"
                )
              : null,
            may("reject") ? h("button", { type: "button", onClick: () => begin("deny") }, "Deny") : null,
            may("edit") ? h("button", { type: "button", onClick: () => begin("edit") }, "Change") : null
          ]
        : [
            mode === "edit"
              ? h("button", { type: "button", class: "primary", disabled: isOff, onClick: runEdited }, "Allow this")
              : h("button", { type: "button", class: "danger", disabled: isOff, onClick: deny }, "Deny"),
            h("button", { type: "button", onClick: () => setMode("look") }, "Back")
          ]
    )
  )
}

type Answer = boolean | number | string | ReadonlyArray<string>

interface Field {
  readonly name: string
  readonly group: string
  readonly schema: JsonObject
  readonly value: Answer | undefined
  readonly set: (value: Answer) => void
}

const textsOf = (value: unknown): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : []

/** A choice of one, or of several. */
const choiceOf = (field: Field, options: ReadonlyArray<string>, isMany: boolean): Element => {
  const selection = isMany ? textsOf(field.value) : [String(field.value ?? "")]
  return h(
    "div",
    { class: "options" },
    options.map((option) =>
      h(
        "label",
        null,
        h("input", {
          type: isMany ? "checkbox" : "radio",
          name: field.group,
          checked: selection.includes(option),
          onChange: ({ currentTarget }) => {
            if (!isMany) field.set(option)
            else if (currentTarget.checked) field.set([...selection, option])
            else field.set(selection.filter((one) => one !== option))
          }
        }),
        " ",
        withMarks(option)
      )
    )
  )
}

const fieldOf = (field: Field): Element => {
  const { name, schema, set, value } = field
  const description = schema["description"]
  const title = schema["title"]
  const words = [typeof title === "string" ? title : name, typeof description === "string" ? description : ""].filter(
    (one, at) => one !== "" && (at > 0 || one !== "answer")
  )
  const caption = withMarks(words.length === 0 ? "Your answer" : words.join(": "))
  const one = textsOf(schema["enum"])
  const items = schema["items"]
  const many = items !== null && typeof items === "object" && "enum" in items ? textsOf(items["enum"]) : []
  if (one.length > 0 || many.length > 0) {
    return h(
      "fieldset",
      null,
      h("legend", null, caption),
      choiceOf(field, one.length > 0 ? one : many, one.length === 0)
    )
  }
  const type = schema["type"]
  if (type === "boolean") {
    return h(
      "label",
      { class: "check" },
      h("input", {
        type: "checkbox",
        checked: value === true,
        onChange: ({ currentTarget }) => set(currentTarget.checked)
      }),
      " ",
      caption
    )
  }
  if (type === "number" || type === "integer") {
    return h(
      "label",
      { class: "field" },
      h("span", null, caption),
      h("input", {
        type: "number",
        step: type === "integer" ? 1 : "any",
        value: typeof value === "number" ? value : "",
        onInput: ({ currentTarget }) => set(currentTarget.valueAsNumber)
      })
    )
  }
  return h(
    "label",
    { class: "field" },
    h("span", null, caption),
    h("textarea", {
      rows: 2,
      value: typeof value === "string" ? value : "",
      onInput: ({ currentTarget }) => set(currentTarget.value)
    })
  )
}

const isGiven = (value: Answer | undefined): boolean =>
  value !== undefined && value !== "" && !(typeof value === "number" && Number.isNaN(value))

const Question = ({ isOff, onDecide, request }: Props): Element => {
  const form = Form.make(request, able)
  const { properties, required } = form.requestedSchema
  const [values, setValues] = useState<ReadonlyMap<string, Answer>>(
    () =>
      new Map(
        Object.entries(properties).flatMap(([name, schema]): ReadonlyArray<readonly [string, Answer]> => {
          const preset = schema["default"]
          if (typeof preset === "string" || typeof preset === "number" || typeof preset === "boolean") {
            return [[name, preset]]
          }
          return schema["type"] === "boolean" ? [[name, false]] : []
        })
      )
  )
  const isReady = required.every((name) => isGiven(values.get(name)))
  const answer = (): void => {
    const content = Object.fromEntries([...values].filter(([, value]) => isGiven(value)))
    onDecide(Form.decisionOf(request, { action: "accept", content }, able))
  }
  return h(
    "form",
    {
      class: "request",
      "aria-label": "Question",
      onSubmit: (event) => {
        event.preventDefault()
        if (isReady && !isOff) answer()
      }
    },
    heading(request, "The agent asks"),
    h("p", { class: "described" }, withMarks(form.message)),
    Object.entries(properties).map(([name, schema]) =>
      fieldOf({
        name,
        group: `${request.id} ${name}`,
        schema,
        value: values.get(name),
        set: (value) => setValues(new Map(values).set(name, value))
      })
    ),
    h(
      "div",
      { class: "choices" },
      h("button", { type: "submit", class: "primary", disabled: !isReady || isOff }, "Answer"),
      request.allow.includes("reject")
        ? h(
            "button",
            {
              type: "button",
              disabled: isOff,
              onClick: () => onDecide(Form.decisionOf(request, { action: "decline" }))
            },
            "Decline"
          )
        : null
    )
  )
}

/** A request, as a form of its kind. */
export const drawRequest = (props: Props): Element => {
  const { request } = props
  const isQuestion = request.answer !== undefined || (request.allow.length > 0 && !request.allow.includes("approve"))
  return h(
    "div",
    { class: "part", key: request.id },
    unseen("A decision is needed. "),
    use(isQuestion ? Question : Permission, props)
  )
}
