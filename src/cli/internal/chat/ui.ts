/**
 * The screen of a chat and its keys. It is told what happens and never waits: events are taken at once, and painting is
 * a matter of its own. What a person wants is handed on as intents.
 */
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import { priced, type Prices } from "../../../core/Usage.ts"
import * as View from "../../../view/View.ts"
import type { Desk } from "../approvals/desk.ts"
import type { Bindings } from "../input/bindings.ts"
import { type Input, makeInput } from "../input/input.ts"
import { actionOf } from "../input/keys.ts"
import type { Highlight } from "../markdown/highlight.ts"
import type { Surface } from "../markdown/markdown.ts"
import { frameOf, type Frame, type Queued } from "../render/live.ts"
import { partLines } from "../render/part.ts"
import type { Style } from "../render/style.ts"
import { makePainter } from "../screen/painter.ts"
import { makeScreen } from "../screen/screen.ts"
import type { Terminal } from "../screen/terminal.ts"
import { makeAsking } from "./asking.ts"
import { makeCompletion } from "./completion.ts"
import { idleHints } from "./facts.ts"
import { makeMemory, type Memory, note } from "./memory.ts"
import { type Item, type Menu, menuLines } from "./menu.ts"
import { makeTranscripts, type Transcripts } from "./transcripts.ts"

/** Wishes of a person about the chat. */
export type Intent =
  | { readonly _tag: "Say"; readonly text: string; readonly kind: "send" | "steer" | "followUp" }
  | { readonly _tag: "Picked"; readonly value: string | undefined }
  | { readonly _tag: "Complete"; readonly text: string }
  | {
      readonly _tag: "Do"
      readonly what:
        | "interrupt"
        | "leave"
        | "external"
        | "output"
        | "image"
        | "suspend"
        | "rewind"
        | "takeBack"
        | "dropQueue"
    }

export interface Waiting extends Queued {
  readonly id: string
}

export interface Ui {
  readonly input: Input
  readonly memory: Memory
  readonly transcripts: Transcripts
  readonly view: () => View.View
  readonly event: (event: AgentEvent) => void
  readonly parts: (parts: ReadonlyArray<View.Part>) => void
  readonly show: (markdown: string) => void
  readonly note: (level: "info" | "warning" | "error", text: string) => void
  readonly queue: () => ReadonlyArray<Waiting>
  readonly setQueue: (queue: ReadonlyArray<Waiting>) => void
  readonly setBusy: (doing: string | undefined) => void
  readonly setMenu: (menu: Menu | undefined) => void
  readonly offer: (text: string, items: ReadonlyArray<Item>) => void
  readonly setFacts: (facts: ReadonlyArray<string>) => void
  readonly setHighlight: (highlight: Highlight) => void
  readonly refresh: () => void
  /** Takes away what was of another conversation: its plan, its window. What was used is counted on. */
  readonly forget: () => void
  /** Earlier inputs, the newest last. */
  readonly remember: (texts: ReadonlyArray<string>) => void
  /** The draft, whoever has the editor. */
  readonly draft: () => string
  readonly key: (data: string) => void
  readonly paste: (text: string) => void
  readonly focus: (isFocused: boolean) => void
  readonly resized: () => void
  /** While another program has the terminal, nothing is painted. */
  readonly setAway: (isAway: boolean) => void
  readonly close: () => void
}

/** Time for the second key that leaves, in milliseconds. */
const leaveWithin = 2_000

/** A turn that took longer is worth a bell, for who looks elsewhere. */
const longTurn = 20_000

/** Time between two signs of a spinner, in milliseconds. */
const turning = 125

export const makeUi = (options: {
  readonly terminal: Terminal
  readonly style: Style
  readonly prices: () => Prices | undefined
  readonly desk: () => Desk
  readonly commands: () => ReadonlyArray<Item>
  readonly bindings: Bindings
  readonly now: () => number
  readonly intend: (intent: Intent) => void
}): Ui => {
  const { desk, intend, now, style, terminal } = options
  const memory = makeMemory()
  const transcripts = makeTranscripts()
  let view = View.empty
  let queue: ReadonlyArray<Waiting> = []
  let facts: ReadonlyArray<string> = []
  let busy: string | undefined
  let isPlanOpen = false
  let isFocused = true
  let highlight: Highlight | undefined
  let leaveAt = 0
  let escapeAt = 0
  let ticker: NodeJS.Timeout | undefined

  const surface = (columns: number): Surface => ({ columns, style, highlight })
  const isWorking = (): boolean => view.status === "working" || busy !== undefined

  const panel = (): ReadonlyArray<string> => {
    if (asking.isOpen()) return asking.lines()
    const doing = [
      ...(busy ?? "")
        .split("\n")
        .flatMap((line, index) => (line === "" ? [] : [index === 0 ? `${style.cyan("⋯")} ${line}` : style.dim(line)])),
      ...(now() < leaveAt ? [style.yellow("Ctrl+C again leaves")] : [])
    ]
    const menu = completion.menu()
    return menu === undefined ? doing : [...doing, ...menuLines(menu, style)]
  }
  const hints = (): string => {
    if (asking.isOpen()) return ""
    if (isWorking()) return "Esc interrupts · Enter tells it now · Tab queues"
    if (queue.length > 0) return "Enter sends what is queued · Ctrl+U drops it"
    return idleHints
  }
  const frame = (columns: number, rows: number): Frame => {
    const { caret, lines } = input.render(columns)
    const around = {
      now: now(),
      frame: Math.floor(now() / turning),
      isPlanOpen,
      queue,
      panel: panel(),
      editor: lines,
      caret,
      hints: hints(),
      facts: [desk().mode(), ...facts]
    }
    return frameOf(view, around, surface(columns), rows)
  }
  const screen = makeScreen(terminal, frame)
  const painter = makePainter(screen.paint, terminal)

  /** A spinner turns while something runs, and only then. */
  const tick = (): void => {
    clearInterval(ticker)
    ticker = undefined
    if (isWorking() || asking.expiresAt() > now()) {
      ticker = setInterval(painter.request, view.pending.length > 0 ? 1_000 : turning)
    }
  }

  const append = (parts: ReadonlyArray<View.Part>): void => {
    const columns = Math.max(2, terminal.columns() - 1)
    for (const part of parts) {
      const lines = partLines(part, surface(columns))
      // Terminals that know the mark jump from turn to turn by it.
      screen.commit(
        part.kind === "user" ? lines.map((line, index) => (index === 1 ? `\u001b]133;A\u0007${line}` : line)) : lines
      )
    }
    painter.request()
  }
  const commit = (parts: ReadonlyArray<View.Part>): void => {
    for (const part of parts) note(memory, part)
    append(parts)
  }
  const bell = (words: string): void => {
    if (!isFocused) terminal.write(`\u001b]9;${View.harmless(words, { oneLine: true })}\u0007\u0007`)
  }

  const asking = makeAsking({
    desk,
    input: () => input,
    style,
    now,
    commit: screen.commit,
    bell,
    paint: painter.now,
    onChange: () => {
      tick()
      painter.request()
    }
  })
  const submit = (text: string): void => {
    if (asking.submit(text)) return
    if (text.trim() === "") return intend({ _tag: "Say", text: "", kind: "send" })
    completion.remember([text])
    intend({ _tag: "Say", text, kind: isWorking() ? "steer" : "send" })
  }
  const input = makeInput({
    rows: terminal.rows,
    onSubmit: submit,
    onChange: () => {
      if (!asking.isOpen()) completion.changed()
      painter.now()
    }
  })
  const completion = makeCompletion({
    input,
    commands: options.commands,
    submit,
    onFile: (text) => intend({ _tag: "Complete", text }),
    onPick: (value) => intend({ _tag: "Picked", value })
  })

  /** Keys beside those of the editor; tells whether this was one. */
  const act = (data: string): boolean => {
    const action = actionOf(data, options.bindings)
    const isEmpty = input.text() === ""
    switch (action) {
      case "queue": {
        if (!isWorking()) return data === "\t"
        const text = input.text().trim()
        if (text === "") return true
        input.set("")
        completion.remember([text])
        intend({ _tag: "Say", text, kind: "followUp" })
        return true
      }
      case "interrupt": {
        if (isWorking()) intend({ _tag: "Do", what: "interrupt" })
        else if (now() - escapeAt < 800) intend({ _tag: "Do", what: "rewind" })
        escapeAt = now()
        return true
      }
      case "cancel":
        return cancel(isEmpty)
      case "leave":
        if (!isEmpty) return false
        intend({ _tag: "Do", what: "leave" })
        return true
      case "search":
        completion.search()
        return true
      case "takeBack":
        intend({ _tag: "Do", what: "takeBack" })
        return true
      case "external":
      case "output":
      case "image":
      case "suspend":
        intend({ _tag: "Do", what: action })
        return true
      case "plan":
        isPlanOpen = !isPlanOpen
        return true
      case "mode": {
        const next = { ask: "auto-edit", "auto-edit": "plan", plan: "ask", yolo: "ask" } as const
        desk().setMode(next[desk().mode()])
        return true
      }
      case "repaint":
        screen.resized()
        return true
      case undefined:
        if (data === "\u0015" && isEmpty && queue.length > 0) {
          intend({ _tag: "Do", what: "dropQueue" })
          return true
        }
        return false
    }
  }
  const cancel = (isEmpty: boolean): boolean => {
    if (!isEmpty) {
      const text = input.text()
      completion.remember([text])
      input.set("")
      return true
    }
    if (now() < leaveAt) intend({ _tag: "Do", what: "leave" })
    else if (isWorking()) intend({ _tag: "Do", what: "interrupt" })
    leaveAt = now() + leaveWithin
    setTimeout(painter.request, leaveWithin).unref()
    return true
  }

  const key = (data: string): void => {
    if (asking.key(data)) return painter.now()
    if (!completion.key(data) && !act(data)) input.press(data)
    painter.now()
  }

  return {
    input,
    memory,
    transcripts,
    view: () => view,
    event: (event) => {
      transcripts.take(event)
      const prices = options.prices()
      const known = prices !== undefined && "usage" in event ? { ...event, usage: priced(event.usage, prices) } : event
      const was = view.status
      const [next, parts] = View.reduce(view, known)
      view = next
      if (event._tag === "Steered") queue = queue.filter(({ id }) => id !== event.messageId)
      if (parts.length > 0) commit(parts)
      if (was !== view.status) {
        tick()
        if (view.status === "idle" && now() - view.startedAt > longTurn) bell("the turn is over")
      }
      painter.request()
    },
    parts: commit,
    // No answer of the agent's that could be copied.
    show: (markdown) => append([{ kind: "text", markdown: View.harmless(markdown) }]),
    note: (level, text) => commit([{ kind: "note", level, text: View.harmless(text) }]),
    queue: () => queue,
    setQueue: (next) => {
      queue = next
      painter.request()
    },
    setBusy: (doing) => {
      busy = doing
      tick()
      painter.request()
    },
    setMenu: (next) => {
      completion.set(next)
      painter.now()
    },
    offer: (text, items) => {
      completion.offer(text, items)
      painter.now()
    },
    setFacts: (next) => {
      facts = next
      painter.request()
    },
    setHighlight: (loaded) => {
      highlight = loaded
    },
    refresh: asking.refresh,
    forget: () => {
      view = { ...View.empty, total: view.total }
      painter.request()
    },
    remember: completion.remember,
    draft: asking.draft,
    key,
    paste: (text) => {
      asking.typed()
      input.paste(text)
      painter.now()
    },
    focus: (value) => {
      isFocused = value
    },
    resized: screen.resized,
    setAway: (isAway) => {
      if (isAway) {
        painter.pause()
        return screen.close()
      }
      screen.forget()
      painter.resume()
    },
    close: () => {
      clearInterval(ticker)
      asking.close()
      painter.stop()
      screen.close()
    }
  }
}
