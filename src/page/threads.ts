/** The list of threads, and what waits for a person. */
import type { Thread, InboxItem } from "./client.ts"
import { type Element, h, unseen } from "./element.ts"
import * as Format from "./format.ts"

interface Props {
  readonly threads: ReadonlyArray<Thread>
  readonly thread: string | undefined
  readonly hasMore: boolean
  readonly search: string
  readonly waiting: number
  readonly isInbox: boolean
  readonly onOpen: (thread: string | undefined) => void
  readonly onInbox: () => void
  readonly onMore: () => void
  readonly onSearch: (text: string) => void
}

const states: ReadonlyMap<string, string> = new Map([
  ["working", "busy"],
  ["waiting", "waits"]
])

const entry = ({ onOpen, thread: shown }: Props, thread: Thread, now: number): Element => {
  const { id, state = "idle", title, updatedAt } = thread
  const dot = states.get(state)
  return h(
    "li",
    { key: id },
    h(
      "button",
      {
        type: "button",
        class: "thread",
        "aria-current": id === shown ? "page" : undefined,
        onClick: () => onOpen(id)
      },
      h("span", { class: "title" }, title === undefined || title === null || title === "" ? id : title),
      dot === undefined ? null : [h("span", { class: `dot ${dot}` }), unseen(state)],
      h("span", { class: "quiet" }, Format.ago(updatedAt, now))
    )
  )
}

/** Draws the list. */
export const drawThreads = (props: Props, now: number): Element => {
  const { hasMore, isInbox, onInbox, onMore, onOpen, onSearch, search, threads, waiting } = props
  return h(
    "div",
    { class: "threads" },
    h("button", { type: "button", class: "new", onClick: () => onOpen(undefined) }, "New thread"),
    h(
      "button",
      { type: "button", class: "thread", "aria-current": isInbox ? "page" : undefined, onClick: onInbox },
      h("span", { class: "title" }, "Inbox"),
      waiting === 0 ? null : h("span", { class: "badge" }, String(waiting), unseen(" waiting"))
    ),
    h("input", {
      type: "search",
      value: search,
      placeholder: "Search threads",
      "aria-label": "Search threads",
      onInput: ({ currentTarget }) => onSearch(currentTarget.value)
    }),
    h(
      "ul",
      null,
      threads.map((thread) => entry(props, thread, now))
    ),
    threads.length === 0
      ? h("p", { class: "quiet" }, search === "" ? "No threads yet." : "No thread has these words.")
      : null,
    hasMore ? h("button", { type: "button", class: "plain", onClick: onMore }, "Earlier threads") : null
  )
}

/** Draws the requests of all threads, the oldest first. */
export const drawInbox = (
  waiting: ReadonlyArray<InboxItem>,
  draw: (one: InboxItem) => Element,
  onOpen: (thread: string) => void
): Element =>
  h(
    "div",
    { class: "inbox", tabIndex: 0 },
    waiting.length === 0 ? h("p", { class: "quiet" }, "Nothing waits for you.") : null,
    waiting.map((one) =>
      h(
        "section",
        { key: one.request.id },
        draw(one),
        h("button", { type: "button", class: "plain", onClick: () => onOpen(one.threadId) }, "Open its thread")
      )
    )
  )
