/** The whole page. */
import * as Effect from "effect/Effect"
import { useEffect, useRef } from "preact/hooks"
import { AppView } from "./apps.ts"
import * as Choices from "./choices.ts"
import * as Client from "./client.ts"
import { CompareView } from "./compare.ts"
import { Composer } from "./composer.ts"
import { type Children, type Element, h, unseen, use } from "./element.ts"
import { drawFiles } from "./files.ts"
import { drawLive } from "./live.ts"
import { drawPanel } from "./panel.ts"
import type { Tools } from "./parts.ts"
import { drawRequest } from "./requests.ts"
import * as Page from "./state.ts"
import { drawInbox, drawThreads } from "./threads.ts"
import { Timeline } from "./timeline.ts"

/** The folded details that are open, by thread. */
const openKeys = new Map<string, Set<string>>()

const openKeysOf = (thread: string): Set<string> => {
  const keys = openKeys.get(thread) ?? new Set()
  openKeys.set(thread, keys)
  return keys
}

/** The whole listing that begins with a piece. */
const listingAt = ({ count, items }: Page.Shown, key: number): string => {
  const pieces: Array<string> = []
  for (let at = key; at < count; at++) {
    const part = items[at]?.part
    if (part?.kind !== "code" || (at > key && part.isFirst)) break
    pieces.push(part.text)
    if (!part.more) break
  }
  return pieces.join("\n")
}

const toolsOf = (state: Page.State, moment: Page.Shown): Tools => ({
  openKeys: openKeysOf(state.thread ?? ""),
  isIdle: !Page.isWorking(state),
  onFork: (item) => Page.update({ turningBack: { item, how: "fork" } }),
  onRewind: (item) => Page.update({ turningBack: { item, how: "rewind" } }),
  hasApp: (name) => state.appTools.includes(name),
  onApp: (call) => Page.update({ app: call }),
  listingAt: (key) => listingAt(moment, key)
})

/** The banner of a connection that is lost. */
const banner = ({ link }: Page.State, now: number): Element | null => {
  const isOffline = !navigator.onLine
  if (link._tag !== "Lost" && !isOffline) return null
  const seconds = link._tag === "Lost" ? Math.max(0, Math.ceil((link.until - now) / 1_000)) : 0
  const words = isOffline ? "You are offline." : "The connection to the server is lost."
  return h(
    "div",
    { class: "banner", role: "status" },
    h("span", null, `${words} What you see is as of then; runs go on without this page.`),
    h("button", { type: "button", onClick: Page.retryNow }, seconds > 0 ? `Try now (${seconds} s)` : "Try now")
  )
}

const problem = ({ problem }: Page.State): Element | null =>
  problem === undefined
    ? null
    : h(
        "div",
        { class: "banner bad", role: "alert" },
        h("span", null, problem),
        h("button", { type: "button", onClick: () => Page.update({ problem: undefined }) }, "Close")
      )

/** A dialog over the page, closed by Escape. */
const Dialog = ({ children, label, onClose }: { children: Children; label: string; onClose: () => void }): Element => {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
  }, [])
  return h("dialog", { ref: dialog, "aria-label": label, onClose }, children)
}

/** The preview of a fork or a rewind, with the parts of the conversation that leave the thread. */
const turnBack = ({ moment, turningBack }: Page.State): Element | null => {
  if (turningBack === undefined || moment === undefined) return null
  const { how, item } = turningBack
  const close = () => Page.update({ turningBack: undefined })
  const later = moment.items.slice(item.key, moment.count)
  const messages = later.filter(({ part }) => part.kind === "user").length
  const calls = later.filter(({ part }) => part.kind === "tool").length
  const counts = `${messages === 1 ? "1 message" : `${messages} messages`} of yours and ${calls === 1 ? "1 call" : `${calls} calls`}`
  const isRewind = how === "rewind"
  return use(Dialog, {
    label: isRewind ? "Edit this message" : "Fork from here",
    onClose: close,
    children: [
      h("h2", null, isRewind ? "Edit this message" : "Fork from here"),
      h("blockquote", null, item.part.kind === "user" ? item.part.text.slice(0, 500) : ""),
      h(
        "p",
        null,
        isRewind
          ? `The thread goes back to before this message: ${counts} leave it. They stay stored as a branch. Files and effects of calls stay as they are.`
          : "A new thread begins with the conversation before this message. This thread stays as it is."
      ),
      h("p", null, "The words of the message go to the input field."),
      h(
        "div",
        { class: "choices" },
        h(
          "button",
          { type: "button", class: "primary", onClick: () => Page.act(Page.turnBack) },
          isRewind ? "Go back" : "Fork"
        ),
        h("button", { type: "button", onClick: close }, "Cancel")
      )
    ]
  })
}

/** The origin of a thread, its forks, and the other forks of its origin. */
const relativesOf = ({ thread, threads }: Page.State): ReadonlyArray<Client.Thread> => {
  const origin = threads.find(({ id }) => id === thread)?.forkOf
  return threads
    .filter(
      ({ forkOf, id }) => id !== thread && (id === origin || forkOf === thread || (forkOf ?? "") === (origin ?? "-"))
    )
    .slice(0, 6)
}

const menu = (state: Page.State): Element | null => {
  const { thread } = state
  if (thread === undefined) return null
  const isIdle = !Page.isWorking(state)
  const choose = (run: () => void) => (event: { readonly currentTarget: HTMLElement }) => {
    event.currentTarget.closest("details")?.removeAttribute("open")
    run()
  }
  return h(
    "details",
    { class: "menu" },
    h("summary", null, "Thread"),
    h(
      "div",
      { class: "items" },
      h(
        "button",
        { type: "button", disabled: !isIdle, onClick: choose(() => Page.act(Page.forkThread(thread))) },
        "Fork all of it"
      ),
      relativesOf(state).map(({ id, title }) =>
        h(
          "button",
          { type: "button", key: id, onClick: choose(() => Page.update({ compared: id, place: "thread" })) },
          `Compare with “${(title ?? id).slice(0, 40)}”`
        )
      ),
      h(
        "button",
        { type: "button", disabled: !isIdle, onClick: choose(() => Page.act(Page.archiveThread(thread))) },
        "Archive"
      ),
      h(
        "button",
        {
          type: "button",
          class: "danger",
          disabled: !isIdle,
          onClick: choose(() => {
            if (confirm("Delete this thread for good?")) Page.act(Page.removeThread(thread))
          })
        },
        "Delete"
      )
    )
  )
}

const themes = { auto: "dark", dark: "light", light: "auto" } as const
const themeNames = { auto: "Theme: automatic", dark: "Theme: dark", light: "Theme: light" } as const

const titleOf = ({ moment, place, thread, threads }: Page.State): string => {
  if (place === "inbox") return "Inbox"
  if (thread === undefined) return "New thread"
  return (
    threads.find(({ id }) => id === thread)?.title ??
    (moment === undefined || moment.title === "" ? thread : moment.title)
  )
}

const header = (state: Page.State): Element => {
  const { moment, place, thread } = state
  const about = [moment?.view.agent ?? "", moment?.view.model ?? ""].filter((one) => one !== "").join(" · ")
  return h(
    "header",
    null,
    h(
      "button",
      {
        type: "button",
        class: "plain narrow",
        "aria-expanded": state.isMenuOpen,
        onClick: () => Page.update({ isMenuOpen: !state.isMenuOpen })
      },
      "Threads",
      state.inbox.length > 0 ? h("span", { class: "badge" }, String(state.inbox.length), unseen(" waiting")) : null
    ),
    h("div", { class: "heading" }, h("h1", null, titleOf(state)), h("div", { class: "quiet" }, about)),
    state.hasFiles && thread !== undefined && place !== "inbox"
      ? h(
          "button",
          {
            type: "button",
            class: "plain",
            "aria-expanded": place === "files",
            onClick: () => (place === "files" ? Page.update({ place: "thread" }) : Page.act(Page.openFiles(thread)))
          },
          "Files"
        )
      : null,
    menu(state),
    h(
      "button",
      { type: "button", class: "plain wide", onClick: () => Page.setTheme(themes[state.theme]) },
      themeNames[state.theme]
    ),
    moment === undefined
      ? null
      : h(
          "button",
          {
            type: "button",
            class: "plain",
            "aria-expanded": state.isPanelOpen,
            onClick: () => Page.update({ isPanelOpen: !state.isPanelOpen })
          },
          "Details"
        )
  )
}

/** Announces a change to screen readers. */
const announcement = ({ moment }: Page.State): string => {
  if (moment === undefined) return ""
  if (moment.requests.size > 0) return "A decision is needed"
  return moment.view.status === "working" ? "The agent is at work" : moment.count > 0 ? "The agent is done" : ""
}

const composer = (state: Page.State): Element =>
  use(Composer, {
    key: state.thread ?? "",
    agents: state.agents,
    agent: state.agent,
    isWorking: Page.isWorking(state),
    draft: state.draft,
    models: state.models,
    model: Choices.modelOf(state),
    modes: state.modes,
    mode: Choices.modeOf(state),
    levels: state.levels,
    thinking: Choices.thinkingOf(state),
    onChoice: Page.choose,
    onAgent: Page.chooseAgent,
    onCancel: () => Page.act(Page.cancel),
    onSend: (words, how, onTaken) =>
      Page.act(
        Page.send(words, how).pipe(
          Effect.tap(() => Effect.sync(() => onTaken(true))),
          Effect.tapError(() => Effect.sync(() => onTaken(false)))
        )
      )
  })

const isDark = ({ theme }: Page.State): boolean =>
  theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches)

const openApp = (state: Page.State): Element | null => {
  const { app, thread } = state
  if (app === undefined || thread === undefined) return null
  return use(AppView, {
    key: `${thread} ${app}`,
    thread,
    call: app,
    theme: isDark(state) ? "dark" : "light",
    onCall: Page.callForApp(thread, app),
    onClose: () => Page.update({ app: undefined })
  })
}

const conversation = (state: Page.State, now: number): Element => {
  const { compared, link, moment, thread, threads } = state
  if (compared !== undefined && thread !== undefined) {
    const titleOf = (one: string) => threads.find(({ id }) => id === one)?.title ?? one
    const onClose = () => Page.update({ compared: undefined })
    return use(CompareView, { key: `${thread} ${compared}`, thread, other: compared, titleOf, onClose })
  }
  const isOff = link._tag !== "Live"
  if (moment === undefined) {
    return h(
      "div",
      { class: "timeline empty" },
      thread === undefined
        ? h("div", { class: "welcome" }, h("h2", null, "What should be done?"), about(state))
        : h("p", { class: "quiet", role: "status" }, link._tag === "Closed" ? "There is nothing here." : "Loading")
    )
  }
  return use(Timeline, {
    key: thread ?? "",
    thread: thread ?? "",
    items: moment.items,
    count: moment.count,
    tools: toolsOf(state, moment),
    live: drawLive(moment, now, isOff, (decision) => {
      if (thread !== undefined) Page.act(Page.decide(thread, decision))
    })
  })
}

const files = ({ files, thread }: Page.State): Element =>
  files === undefined || thread === undefined
    ? h("div", { class: "timeline empty" }, h("p", { class: "quiet", role: "status" }, "Loading"))
    : drawFiles({
        files,
        addressOf: (path) => Client.addressOf(thread, path),
        onFolder: (path) => Page.act(Page.toggleFolder(thread, path)),
        onFile: (path) => Page.act(Page.showFile(thread, path)),
        onMore: () => Page.act(Page.showMore(thread)),
        onList: () => Page.act(Page.showFile(thread, undefined)),
        onClose: () => Page.update({ place: "thread" })
      })

const about = ({ agent, agents }: Page.State): Element => {
  const current = agents.find(({ name }) => name === agent)
  return h("p", { class: "quiet" }, current?.description ?? (agent === "" ? "This server has no agents." : agent))
}

const inbox = (state: Page.State): Element =>
  h(
    "div",
    { class: "timeline" },
    drawInbox(
      state.inbox,
      ({ request, threadId }) =>
        drawRequest({
          request,
          isOff: false,
          onDecide: (decision) => Page.act(Page.decide(threadId, decision))
        }),
      (thread) => Page.openThread(thread)
    )
  )

const entrance = (state: Page.State): Element =>
  h(
    "main",
    { class: "entrance" },
    h("h1", null, "Agents"),
    problem(state),
    state.access === "asking"
      ? h("p", { class: "quiet", role: "status" }, "Asking the server")
      : [
          h("p", null, "This browser has no session with the server."),
          h("p", null, "Open the address that the program prints, or paste its token here. A token works once."),
          h(
            "form",
            {
              onSubmit: (event) => {
                event.preventDefault()
                const token = new FormData(event.currentTarget).get("token")
                if (typeof token === "string" && token !== "") Page.act(Page.enterBy(token.replace(/^.*#t=/, "")))
              }
            },
            h("label", { class: "field" }, h("span", null, "Token"), h("input", { name: "token", type: "password" })),
            h("button", { type: "submit", class: "primary" }, "Enter")
          )
        ]
  )

const list = (state: Page.State, now: number): Element =>
  drawThreads(
    {
      threads: state.threads,
      thread: state.place === "inbox" ? undefined : state.thread,
      hasMore: state.next !== undefined,
      search: state.search,
      waiting: state.inbox.length,
      isInbox: state.place === "inbox",
      onOpen: Page.openThread,
      onInbox: () => {
        Page.update({ place: "inbox", isMenuOpen: false })
        Page.act(Page.loadThreads)
      },
      onMore: () => Page.act(Page.loadMore),
      onSearch: (search) => {
        Page.update({ search })
        Page.act(Page.loadThreads)
      }
    },
    now
  )

/** Draws the page. */
export const App = ({ state }: { readonly state: Page.State }): Element => {
  if (state.access !== "open") return entrance(state)
  const now = Date.now()
  const { isMenuOpen, isPanelOpen, moment, place } = state
  const hasPanel = isPanelOpen && moment !== undefined && place === "thread"
  return h(
    "div",
    { class: `page ${isMenuOpen ? "menu-open" : ""} ${hasPanel ? "panel-open" : ""}` },
    h("nav", { "aria-label": "Threads" }, list(state, now)),
    h(
      "main",
      null,
      header(state),
      banner(state, now),
      problem(state),
      place === "inbox" ? inbox(state) : place === "files" ? files(state) : conversation(state, now),
      place === "thread" ? openApp(state) : null,
      place === "thread" ? composer(state) : null,
      h("div", { class: "unseen", role: "status", "aria-live": "polite" }, announcement(state))
    ),
    hasPanel
      ? h(
          "aside",
          { "aria-label": "Details", tabIndex: 0 },
          h(
            "button",
            { type: "button", class: "plain narrow", onClick: () => Page.update({ isPanelOpen: false }) },
            "Close"
          ),
          drawPanel(moment)
        )
      : null,
    turnBack(state)
  )
}
