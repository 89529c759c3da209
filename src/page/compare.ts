/** Two threads side by side, behind the messages that both have, with the use and the cost of each. */
import * as Effect from "effect/Effect"
import { useEffect, useState } from "preact/hooks"
import * as View from "../view/View.ts"
import * as Client from "./client.ts"
import { type Element, h } from "./element.ts"
import * as Format from "./format.ts"
import { drawItem, type Tools } from "./parts.ts"

interface Props {
  readonly thread: string
  readonly other: string
  /** Names a thread for people. */
  readonly titleOf: (thread: string) => string
  readonly onClose: () => void
}

const money = (cost: number | undefined): string => (cost === undefined ? "unknown cost" : `$${cost.toFixed(4)}`)

const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? "" : "s"}`

/** Parts of a comparison only show. */
const makeTools = (parts: ReadonlyArray<View.Part>, openKeys: Set<string>): Tools => ({
  openKeys,
  isIdle: false,
  hasApp: () => false,
  onApp: () => undefined,
  onFork: () => undefined,
  onRewind: () => undefined,
  listingAt: (key) => {
    const part = parts[key]
    return part?.kind === "code" ? part.text : ""
  }
})

const side = ({ calls, cost, isCut, messages, rounds, threadId, tokens }: Client.Side, title: string): Element => {
  const parts = View.ofMessages(messages)
  const tools = makeTools(parts, new Set())
  return h(
    "section",
    { "aria-label": title, key: threadId },
    h("h2", null, title),
    h(
      "p",
      { class: "quiet" },
      `${plural(rounds, "round")} · ${plural(calls, "call")} · ${Format.count(tokens)} tokens · ${money(cost)}`
    ),
    parts.length === 0 ? h("p", { class: "quiet" }, "Nothing of its own.") : null,
    parts.map((part, key) => drawItem({ key, part }, tools)),
    isCut === true ? h("p", { class: "quiet" }, "It has more.") : null
  )
}

/** Shows two threads side by side. */
export const CompareView = ({ onClose, other, thread, titleOf }: Props): Element => {
  const [comparison, setComparison] = useState<Client.Comparison>()
  const [problem, setProblem] = useState("")
  useEffect(() => {
    Effect.runFork(
      Effect.match(Client.compare(thread, other), {
        onSuccess: setComparison,
        onFailure: (refused) => setProblem(refused.problem)
      })
    )
  }, [])
  return h(
    "div",
    { class: "timeline compare" },
    h("button", { type: "button", onClick: onClose }, "Back to the conversation"),
    problem === "" ? null : h("p", { class: "bad", role: "alert" }, problem),
    comparison === undefined
      ? null
      : [
          h("p", { class: "quiet" }, `${plural(comparison.shared, "message")} in both, then:`),
          h(
            "div",
            { class: "columns" },
            side(comparison.left, `This thread: ${titleOf(thread)}`),
            side(comparison.right, `The other one: ${titleOf(other)}`)
          )
        ]
  )
}
