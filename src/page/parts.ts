import type { Item } from "../view/Transcript.ts"
/** Finished parts of a conversation. */
import type { Part } from "../view/View.ts"
import { type Children, type Element, h, unseen } from "./element.ts"
import * as Format from "./format.ts"
import { hostOf, markupOf, markupOfPart, safeUrl } from "./markdown.ts"

type Of<Kind extends Part["kind"]> = Extract<Part, { readonly kind: Kind }>

/** What parts may do. `openKeys` are the folded details that a person opened. */
export interface Tools {
  readonly openKeys: Set<string>
  readonly onRewind: (item: Item) => void
  readonly onFork: (item: Item) => void
  readonly isIdle: boolean
  /** Reports whether the result of a tool has an app. */
  readonly hasApp: (name: string) => boolean
  readonly onApp: (call: string) => void
  /** The whole listing that a piece begins. */
  readonly listingAt: (key: number) => string
}

/** Folded details. They stay open when the list takes them away and brings them back. */
const fold = (
  openKeys: Set<string>,
  key: string,
  summary: Children,
  body: () => Children,
  className = "fold"
): Element =>
  h(
    "details",
    {
      class: className,
      open: openKeys.has(key),
      onToggle: ({ currentTarget }) => {
        if (currentTarget.open) openKeys.add(key)
        else openKeys.delete(key)
      }
    },
    h("summary", null, summary),
    body()
  )

const kindOfLine = (line: string): string =>
  line.startsWith("@@")
    ? "hunk"
    : line.startsWith("+") && !line.startsWith("+++")
      ? "added"
      : line.startsWith("-") && !line.startsWith("---")
        ? "removed"
        : ""

/** The most lines of a diff that are drawn. */
const mostLines = 400

/** Draws a diff in lines. */
export const diff = (text: string): Element => {
  const lines = text.split("\n")
  return h(
    "pre",
    { class: "diff", tabIndex: 0 },
    lines.slice(0, mostLines).map((line) => h("span", { class: `line ${kindOfLine(line)}` }, `${line}\n`)),
    lines.length > mostLines ? h("span", { class: "line hunk" }, `${lines.length - mostLines} more lines`) : null
  )
}

/** Draws a link to another page, with its machine. Other addresses are text. */
const outside = (address: string, words: string): Element => {
  const url = safeUrl(address)
  if (url === undefined) return h("span", null, words, address === "" ? "" : ` (${address})`)
  return h(
    "a",
    { href: url.href, title: url.href, target: "_blank", rel: "noopener noreferrer" },
    words,
    " ",
    h("span", { class: "host" }, hostOf(url))
  )
}

/** Draws Markdown that is not finished. */
export const openProse = (text: string): Element =>
  h("div", { class: "prose", dangerouslySetInnerHTML: { __html: markupOf(text) } })

const copy = (text: string, button: HTMLElement): void => {
  const before = button.textContent
  // The page may be without a secure context, where nothing can be copied.
  navigator.clipboard?.writeText(text).then(
    () => {
      button.textContent = "Copied"
      setTimeout(() => {
        button.textContent = before
      }, 1_500)
    },
    () => undefined
  )
}

const user = (item: Item, part: Of<"user">, tools: Tools): Element => {
  const rest = part.attachments - (item.pictures?.length ?? 0)
  return h(
    "div",
    { class: "user" },
    unseen("You: "),
    h("div", { class: "words" }, part.text),
    item.pictures?.map((picture) => h("img", { src: picture, alt: "Attached image" })),
    rest > 0 ? h("div", { class: "quiet" }, rest === 1 ? "1 attachment" : `${rest} attachments`) : null,
    item.messageId === undefined
      ? null
      : h(
          "div",
          { class: "actions" },
          h(
            "button",
            { type: "button", class: "plain", disabled: !tools.isIdle, onClick: () => tools.onRewind(item) },
            "Edit"
          ),
          h(
            "button",
            { type: "button", class: "plain", disabled: !tools.isIdle, onClick: () => tools.onFork(item) },
            "Fork from here"
          )
        )
  )
}

const code = (item: Item, part: Of<"code">, { listingAt }: Tools): Element =>
  h(
    "div",
    { class: `code ${part.isFirst ? "first" : ""} ${part.more ? "" : "last"}` },
    part.isFirst
      ? h(
          "div",
          { class: "bar" },
          h("span", null, part.language === "" ? "text" : part.language),
          h(
            "button",
            {
              type: "button",
              class: "plain",
              onClick: ({ currentTarget }) => copy(listingAt(item.key), currentTarget)
            },
            "Copy"
          )
        )
      : null,
    h("pre", { tabIndex: 0 }, h("code", null, part.text))
  )

/** The length of a gist that its line may cut, in characters. */
const longGist = 40

const tool = (item: Item, part: Of<"tool">, { hasApp, onApp, openKeys }: Tools): Element => {
  const { diff: changes, gist, isError, millis, name, output, summary } = part
  const line = [
    h("span", { class: `dot ${isError ? "bad" : "good"}` }),
    unseen(isError ? "Failed call: " : "Call: "),
    h("span", { class: "name" }, name),
    h("span", { class: "gist" }, gist),
    h("span", { class: "quiet sum" }, summary),
    millis >= 1_000 ? h("span", { class: "quiet time" }, Format.duration(millis)) : null
  ]
  const { call } = item
  const whole = fold(
    openKeys,
    `tool ${item.key}`,
    line,
    () => [
      gist.length < longGist ? null : h("pre", { class: "gist-whole", tabIndex: 0 }, gist),
      changes === undefined ? null : diff(changes),
      output === "" || changes !== undefined ? null : h("pre", { class: "output", tabIndex: 0 }, output)
    ],
    `fold tool ${isError ? "bad" : ""}`
  )
  return call === undefined || !hasApp(call.name)
    ? whole
    : h(
        "div",
        null,
        whole,
        h(
          "button",
          { type: "button", class: "plain", onClick: () => onApp(call.id) },
          "Open app",
          unseen(` of ${name}`)
        )
      )
}

const subagent = ({ calls, millis, outcome, path, task, usage }: Of<"subagent">): Element =>
  h(
    "div",
    { class: "line-part" },
    h("span", { class: `dot ${outcome === "completed" ? "good" : "bad"}` }),
    unseen("Sub-agent: "),
    h("span", { class: "name" }, path.join(" › ")),
    h("span", { class: "gist" }, task),
    h(
      "span",
      { class: "quiet sum" },
      [Format.ending(outcome), calls === 1 ? "1 call" : `${calls} calls`, Format.usage(usage), Format.duration(millis)]
        .filter((one) => one !== "")
        .join(" · ")
    )
  )

const decisionWords: ReadonlyMap<string, string> = new Map([
  ["approve", "Allowed"],
  ["edit", "Allowed with changes"],
  ["reject", "Denied"],
  ["respond", "Answered"],
  ["void", "No longer asked"]
])

const turnEnd = ({ millis, stopReason, usage }: Of<"turnEnd">): Element =>
  h(
    "div",
    { class: "turn-end" },
    h(
      "span",
      null,
      [Format.ending(stopReason), Format.usage(usage), Format.duration(millis)].filter((one) => one !== "").join(" · ")
    )
  )

const body = (item: Item, tools: Tools): Element => {
  const { part } = item
  switch (part.kind) {
    case "user":
      return user(item, part, tools)
    case "text":
      return h("div", { class: "prose", dangerouslySetInnerHTML: { __html: markupOfPart(part) } })
    case "code":
      return code(item, part, tools)
    case "thinking":
      return fold(
        tools.openKeys,
        `thinking ${item.key}`,
        h(
          "span",
          { class: "quiet" },
          part.millis >= 1_000 ? `Thought for ${Format.duration(part.millis)}` : "Thoughts"
        ),
        () => h("div", { class: "thoughts" }, part.text)
      )
    case "tool":
      return tool(item, part, tools)
    case "subagent":
      return subagent(part)
    case "decision":
      return h("div", { class: "note" }, `${decisionWords.get(part.decision) ?? part.decision}: ${part.toolName}`)
    case "note":
      return h("div", { class: `note ${part.level}` }, part.text)
    case "sources":
      return h(
        "div",
        { class: "sources" },
        h("div", { class: "quiet" }, "Sources"),
        h(
          "ol",
          null,
          part.sources.map(({ number, title, url }) => h("li", { value: number }, outside(url, title)))
        )
      )
    case "turnEnd":
      return turnEnd(part)
  }
}

/** Draws a part. */
export const drawItem = (item: Item, tools: Tools): Element =>
  h("div", { class: `part ${item.part.kind}`, "data-key": item.key, key: item.key }, body(item, tools))
