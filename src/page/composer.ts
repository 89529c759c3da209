/** The field for a person's message. */
import * as Effect from "effect/Effect"
import { useEffect, useRef, useState } from "preact/hooks"
import * as Content from "../core/Content.ts"
import type { Agents, Words } from "./client.ts"
import { type Children, type Element, h, unseen } from "./element.ts"

interface Props {
  readonly agents: Agents
  readonly agent: string
  readonly isWorking: boolean
  readonly draft: { readonly text: string; readonly serial: number }
  readonly models: ReadonlyArray<string>
  readonly model: string
  readonly modes: ReadonlyArray<string>
  readonly mode: string
  readonly levels: ReadonlyArray<string>
  readonly thinking: string
  readonly onAgent: (name: string) => void
  readonly onChoice: (choice: { readonly model?: string; readonly mode?: string; readonly thinking?: string }) => void
  readonly onCancel: () => void
  /** Sends it, and says whether it was taken. */
  readonly onSend: (words: Words, how: "input" | "steer", onTaken: (isTaken: boolean) => void) => void
}

interface Picture {
  readonly name: string
  readonly mimeType: string
  readonly base64: string
}

/** The most bytes of an image, and the most images of a message. */
const largest = 4_000_000
const mostPictures = 6
const types = ["image/png", "image/jpeg", "image/gif", "image/webp"]

/** Reads an image as base 64. */
const readPicture = (file: File): Effect.Effect<Picture, string> => {
  if (!types.includes(file.type)) return Effect.fail("This is no PNG, JPEG, GIF or WebP image.")
  if (file.size > largest) return Effect.fail("This image has more than 4 MB.")
  return Effect.tryPromise({ try: () => file.arrayBuffer(), catch: () => "This image can't be read." }).pipe(
    Effect.map((buffer) => {
      let binary = ""
      const bytes = new Uint8Array(buffer)
      for (let at = 0; at < bytes.length; at += 8_192) binary += String.fromCharCode(...bytes.subarray(at, at + 8_192))
      return { name: file.name, mimeType: file.type, base64: btoa(binary) }
    })
  )
}

const wordsOf = (text: string, pictures: ReadonlyArray<Picture>): Words =>
  pictures.length === 0
    ? text
    : {
        content: [
          ...(text === "" ? [] : [Content.text(text)]),
          ...pictures.map(({ base64, mimeType }) => Content.image({ base64, mimeType }))
        ]
      }

/** Makes the field as high as its text, up to a limit of the style sheet. */
const fit = (field: HTMLTextAreaElement | null): void => {
  if (field === null) return
  field.style.height = "auto"
  field.style.height = `${field.scrollHeight}px`
}

const choose = (
  name: string,
  value: string,
  options: ReadonlyArray<Element>,
  onChoice: (value: string) => void
): Element =>
  h(
    "label",
    { class: "agent" },
    unseen(name),
    h("select", { value, onChange: ({ currentTarget }) => onChoice(currentTarget.value) }, options)
  )

/** Draws the choices of agent, model, mode and thinking. */
const choosers = ({ agent, agents, mode, model, models, modes, ...props }: Props): Children => [
  agents.length > 1
    ? choose(
        "Agent",
        agent,
        agents.map(({ description, name }) => h("option", { value: name, title: description }, name)),
        props.onAgent
      )
    : null,
  models.length > 0
    ? choose(
        "Model",
        model,
        [h("option", { value: "" }, "Default model"), ...models.map((name) => h("option", { value: name }, name))],
        (name) => props.onChoice({ model: name })
      )
    : null,
  modes.length > 1
    ? choose(
        "Mode",
        mode,
        modes.map((name) => h("option", { value: name }, `Mode: ${name}`)),
        (name) => props.onChoice({ mode: name })
      )
    : null,
  props.levels.length > 0
    ? choose(
        "Thinking",
        props.thinking,
        [
          h("option", { value: "" }, "Default thinking"),
          ...props.levels.map((level) => h("option", { value: level }, `Thinking: ${level}`))
        ],
        (level) => props.onChoice({ thinking: level })
      )
    : null
]

export const Composer = (props: Props): Element => {
  const { draft, isWorking, onCancel, onSend } = props
  const field = useRef<HTMLTextAreaElement>(null)
  const chooser = useRef<HTMLInputElement>(null)
  const [text, setText] = useState(draft.text)
  const [pictures, setPictures] = useState<ReadonlyArray<Picture>>([])
  const [problem, setProblem] = useState("")
  const [isSending, setIsSending] = useState(false)

  useEffect(() => {
    if (draft.serial === 0) return
    setText(draft.text)
    field.current?.focus()
  }, [draft.serial])
  useEffect(() => fit(field.current), [text])

  const isEmpty = text.trim() === "" && pictures.length === 0

  const submit = (how: "input" | "steer"): void => {
    if (isEmpty || isSending) return
    setIsSending(true)
    onSend(wordsOf(text, pictures), how, (isTaken) => {
      setIsSending(false)
      if (!isTaken) return
      setText("")
      setPictures([])
    })
  }

  const addFiles = (files: ReadonlyArray<File>): void => {
    setProblem("")
    for (const file of files.slice(0, mostPictures)) {
      Effect.runFork(
        Effect.match(readPicture(file), {
          onSuccess: (picture) => setPictures((before) => [...before, picture].slice(0, mostPictures)),
          onFailure: setProblem
        })
      )
    }
  }

  const send = () => submit(isWorking ? "steer" : "input")

  return h(
    "form",
    {
      class: "composer",
      onSubmit: (event) => {
        event.preventDefault()
        send()
      }
    },
    problem === "" ? null : h("p", { class: "bad", role: "alert" }, problem),
    pictures.length === 0
      ? null
      : h(
          "ul",
          { class: "pictures" },
          pictures.map((picture, index) =>
            h(
              "li",
              null,
              h("img", { src: `data:${picture.mimeType};base64,${picture.base64}`, alt: picture.name }),
              h(
                "button",
                {
                  type: "button",
                  class: "plain",
                  onClick: () => setPictures(pictures.filter((_, at) => at !== index))
                },
                "Remove",
                unseen(` ${picture.name}`)
              )
            )
          )
        ),
    h("textarea", {
      ref: field,
      rows: 1,
      value: text,
      "aria-label": isWorking ? "Message to the agent at work" : "Message",
      placeholder: isWorking ? "Steer the agent at work" : "Ask for something",
      onInput: ({ currentTarget }) => setText(currentTarget.value),
      onKeyDown: (event) => {
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
        event.preventDefault()
        if (event.altKey) submit("input")
        else send()
      },
      onPaste: (event) => {
        const files = [...(event.clipboardData?.files ?? [])].filter(({ type }) => type.startsWith("image/"))
        if (files.length === 0) return
        event.preventDefault()
        addFiles(files)
      }
    }),
    h(
      "div",
      { class: "bar" },
      h("input", {
        ref: chooser,
        type: "file",
        accept: types.join(","),
        multiple: true,
        hidden: true,
        onChange: ({ currentTarget }) => {
          addFiles([...(currentTarget.files ?? [])])
          currentTarget.value = ""
        }
      }),
      h("button", { type: "button", class: "plain", onClick: () => chooser.current?.click() }, "Add image"),
      choosers(props),
      h("span", { class: "grow" }),
      isWorking
        ? [
            h("button", { type: "button", class: "danger", onClick: onCancel }, "Stop"),
            h(
              "button",
              {
                type: "button",
                disabled: isEmpty || isSending,
                title: "The message waits for the end of the run (Alt+Enter)",
                onClick: () => submit("input")
              },
              "Queue"
            )
          ]
        : null,
      h("button", { type: "submit", class: "primary", disabled: isEmpty || isSending }, isWorking ? "Steer" : "Send")
    )
  )
}
