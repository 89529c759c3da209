/** The unfinished parts of a thread: open text, running calls, sub-agents, requests. */
import type * as Approval from "../core/Approval.ts"
import type { Moment } from "../view/Transcript.ts"
import * as View from "../view/View.ts"
import { type Children, type Element, h, unseen } from "./element.ts"
import * as Format from "./format.ts"
import { openProse } from "./parts.ts"
import { drawRequest } from "./requests.ts"

/** The most open calls, and sub-agents, that are drawn here. */
const most = 8

const more = (count: number, what: string): Element | null =>
  count > 0 ? h("div", { class: "note" }, `and ${count} more ${what}`) : null

const call = ({ gist, isWritten, key, name, output, startedAt }: View.Call, now: number): Element =>
  h(
    "div",
    { class: "part", key },
    h(
      "div",
      { class: "line-part" },
      h("span", { class: "dot busy" }),
      unseen(isWritten ? "Running: " : "The agent writes a call: "),
      h("span", { class: "name" }, name),
      h("span", { class: "gist" }, gist),
      h("span", { class: "quiet sum" }, now - startedAt >= 1_000 ? Format.duration(now - startedAt) : "")
    ),
    output === "" ? null : h("pre", { class: "output", tabIndex: 0 }, output)
  )

const agent = ({ calls, last, path, runId, startedAt, task, tokens }: View.View["subagents"][number], now: number) =>
  h(
    "div",
    { class: "part", key: runId },
    h(
      "div",
      { class: "line-part" },
      h("span", { class: "dot busy" }),
      unseen("Sub-agent at work: "),
      h("span", { class: "name" }, path.join(" › ")),
      h("span", { class: "gist" }, last === "" ? task : last),
      h(
        "span",
        { class: "quiet sum" },
        `${calls === 1 ? "1 call" : `${calls} calls`} · ${Format.count(tokens)} tokens · ${Format.duration(now - startedAt)}`
      )
    )
  )

const isQuiet = (view: View.View, text: string, calls: number): boolean =>
  view.status === "working" && text === "" && calls === 0 && view.subagents.length === 0 && view.thinking === undefined

/** Draws the unfinished end of a conversation. `calls` of the outermost run come first, sub-agents behind. */
export const drawLive = (
  { requests, view }: Pick<Moment, "requests" | "view">,
  now: number,
  isOff: boolean,
  onDecide: (decision: Approval.Decision) => void
): Children => {
  const text = View.openText(view)
  const calls = View.calls(view).filter(({ runId }) => runId === view.runId)
  const { retry, subagents, thinking } = view
  return [
    thinking === undefined
      ? null
      : h(
          "div",
          { class: "part" },
          h("div", { class: "quiet" }, "Thinking"),
          h("div", { class: "thoughts open" }, thinking.text.slice(-600))
        ),
    text === "" ? null : h("div", { class: "part" }, openProse(text)),
    calls.slice(0, most).map((one) => call(one, now)),
    more(calls.length - most, "calls"),
    subagents.slice(0, most).map((one) => agent(one, now)),
    more(subagents.length - most, "sub-agents"),
    retry === undefined
      ? null
      : h("div", { class: "note warning" }, `${retry.reason} The model is asked again (try ${retry.attempt}).`),
    isQuiet(view, text, calls.length) && requests.size === 0
      ? h("div", { class: "part waiting" }, h("span", { class: "dot busy" }), h("span", { class: "quiet" }, "Working"))
      : null,
    [...requests.values()].map((request) => drawRequest({ request, isOff, onDecide }))
  ]
}
