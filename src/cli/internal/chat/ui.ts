/**
 * The screen of a chat and its keys. It takes events at once and never waits: a painter draws at its own pace. What a
 * person wants leaves as an intent.
 */
import type { AgentEvent } from "../../../core/AgentEvent.ts"
import { add, priced, type Prices, type Usage } from "../../../core/Usage.ts"
import { clean, cleanLine } from "../../../support/text/clean.ts"
import * as View from "../../../view/View.ts"
import type { ScreenDesk } from "../approvals/desk.ts"
import type { Bindings } from "../input/bindings.ts"
import { type Input, makeInput } from "../input/input.ts"
import { makeVim, type Vim } from "../input/vim.ts"
import type { Highlight } from "../markdown/highlight.ts"
import type { Surface } from "../markdown/markdown.ts"
import { frameOf, type Frame } from "../render/live.ts"
import { partLines } from "../render/part.ts"
import type { Style } from "../render/style.ts"
import { makePainter, type Painter } from "../screen/painter.ts"
import { makeScreen, type Screen } from "../screen/screen.ts"
import type { Terminal } from "../screen/terminal.ts"
import { takeKey } from "./actions.ts"
import { type Questions, makeAsking } from "./asking.ts"
import { type Completion, makeCompletion } from "./completion/completion.ts"
import { type Item, type Menu, menuLines } from "./completion/menu.ts"
import { makeTakeEvent, type Step } from "./events.ts"
import { idleHints } from "./facts.ts"
import { makeMemory, type Memory, note } from "./memory.ts"
import { type Intent, isWorking, type UiState, type WaitingMessage } from "./state.ts"
import { makeTranscripts, type Transcripts } from "./transcripts.ts"

export interface Ui {
  readonly input: Input
  readonly memory: Memory
  readonly transcripts: Transcripts
  readonly view: () => View.View
  /** Takes an event of the run. `step` is given for events that were folded elsewhere. */
  readonly event: (event: AgentEvent, step?: Step) => void
  /** Sets the view that was folded elsewhere. `refresh` follows. */
  readonly setView: (view: View.View) => void
  readonly parts: (parts: ReadonlyArray<View.Part>) => void
  readonly show: (markdown: string) => void
  readonly note: (level: "info" | "warning" | "error", text: string) => void
  readonly queue: () => ReadonlyArray<WaitingMessage>
  readonly setQueue: (queue: ReadonlyArray<WaitingMessage>) => void
  readonly setBusy: (doing: string | undefined) => void
  readonly setMenu: (menu: Menu | undefined) => void
  readonly offer: (text: string, items: ReadonlyArray<Item>) => void
  /** Takes vim keys for the draft, or no longer. */
  readonly setVim: (isVim: boolean) => void
  readonly vimMode: () => "insert" | "normal" | undefined
  readonly setStatusLine: (line: string | undefined) => void
  readonly setFacts: (facts: ReadonlyArray<string>) => void
  readonly setHighlight: (highlight: Highlight) => void
  readonly refresh: () => void
  /** Shows no size of the context until the model was asked again. */
  readonly dropContext: () => void
  /** Adds the usage of an earlier run of the conversation. */
  readonly addUsage: (usage: Usage) => void
  /** Clears the conversation: its plan, its window. The usage stays. */
  readonly forget: () => void
  /** Earlier inputs, the newest last. */
  readonly remember: (texts: ReadonlyArray<string>) => void
  /** The draft, also while a question uses the editor. */
  readonly draft: () => string
  readonly key: (data: string) => void
  readonly paste: (text: string) => void
  readonly focus: (isFocused: boolean) => void
  readonly resized: () => void
  /** Pauses painting while another program has the terminal. */
  readonly setAway: (isAway: boolean) => void
  readonly close: () => void
}

/** A turn that took longer rings a bell when it ends, in milliseconds. */
const longTurn = 20_000

/** Time between two frames of a spinner, in milliseconds. */
const turning = 125

/** Options of the screen of a chat. */
interface UiOptions {
  readonly terminal: Terminal
  readonly style: Style
  readonly prices: () => Prices | undefined
  readonly desk: () => ScreenDesk
  readonly commands: () => ReadonlyArray<Item>
  readonly bindings: Bindings
  /** The lines about keys, while a run is at work and while none is. Default: the keys of the chat. */
  readonly hints?: { readonly idle: string; readonly working: string } | undefined
  readonly now: () => number
  readonly intend: (intent: Intent) => void
}

/** The lines between the conversation and the draft: what runs, and an open menu. */
const panelOf = (state: UiState, menu: Menu | undefined, now: number, style: Style): ReadonlyArray<string> => [
  ...(state.busy ?? "")
    .split("\n")
    .flatMap((line, index) => (line === "" ? [] : [index === 0 ? `${style.cyan("⋯")} ${line}` : style.dim(line)])),
  ...(now < state.leaveAt ? [style.yellow("Ctrl+C again leaves")] : []),
  ...(menu === undefined ? [] : menuLines(menu, style))
]

const hintsOf = ({ hints, state, vim }: Pick<Scene, "hints" | "state" | "vim">): string => {
  if (hints !== undefined) return isWorking(state) ? hints.working : hints.idle
  if (isWorking(state))
    return `${vim?.mode() === "insert" ? "Esc Esc" : "Esc"} interrupts · Enter tells it now · Tab queues`
  return state.queue.length > 0 ? "Enter sends what is queued · Ctrl+U drops it" : idleHints
}

/** A spinner that turns only while something runs. */
const makeSpinner = (painter: Painter, interval: () => number | undefined) => {
  let ticker: NodeJS.Timeout | undefined
  const stop = (): void => {
    clearInterval(ticker)
    ticker = undefined
  }
  return {
    stop,
    update: (): void => {
      stop()
      const millis = interval()
      if (millis !== undefined) ticker = setInterval(painter.request, millis)
    }
  }
}

/** Makes the functions that change the state alone. */
const makeSetters = (
  state: UiState,
  change: (next: Partial<UiState>) => void,
  pricesOf: () => Prices | undefined
): Pick<
  Ui,
  | "addUsage"
  | "dropContext"
  | "focus"
  | "forget"
  | "setFacts"
  | "setHighlight"
  | "setQueue"
  | "setStatusLine"
  | "setView"
> => ({
  addUsage: (usage) => {
    const prices = pricesOf()
    const pricedUsage = prices === undefined ? usage : priced(usage, prices)
    change({ view: { ...state.view, total: add(state.view.total, pricedUsage) } })
  },
  dropContext: () => change({ view: { ...state.view, context: undefined } }),
  focus: (isFocused) => change({ isFocused }),
  forget: () => change({ view: { ...View.empty, total: state.view.total } }),
  setFacts: (facts) => change({ facts }),
  setHighlight: (highlight) => change({ highlight }),
  setQueue: (queue) => change({ queue }),
  setView: (view) => change({ view }),
  setStatusLine: (statusLine) => change({ statusLine })
})

/** Stops painting while another program has the terminal. */
const setAway = (painter: Painter, screen: Screen, isAway: boolean): void => {
  if (isAway) {
    painter.pause()
    return screen.close()
  }
  screen.forget()
  painter.resume()
}

/** Writes finished parts above the live frame. */
const commitParts = (screen: Screen, parts: ReadonlyArray<View.Part>, surface: Surface): void => {
  for (const part of parts) {
    const lines = partLines(part, surface)
    // Terminals that know the mark jump from turn to turn by it.
    screen.commit(
      part.kind === "user" ? lines.map((line, index) => (index === 1 ? `\u001b]133;A\u0007${line}` : line)) : lines
    )
  }
}

const makeState = (): UiState => ({
  view: View.empty,
  queue: [],
  facts: [],
  statusLine: undefined,
  busy: undefined,
  isPlanOpen: false,
  isFocused: true,
  highlight: undefined,
  leaveAt: 0,
  escapeAt: 0
})

/** The inputs of a frame. */
interface Scene {
  readonly state: UiState
  readonly input: Input
  readonly asking: Questions
  readonly completion: Completion
  readonly vim: Vim | undefined
  readonly mode: string
  readonly hints: UiOptions["hints"]
  readonly now: number
  readonly style: Style
}

const frameFor = (scene: Scene, columns: number, rows: number): Frame => {
  const { asking, completion, input, now, state, style, vim } = scene
  const { caret, lines } = input.render(columns)
  const isAsking = asking.isOpen()
  const around = {
    now,
    frame: Math.floor(now / turning),
    isPlanOpen: state.isPlanOpen,
    queue: state.queue,
    panel: isAsking ? asking.lines() : panelOf(state, completion.menu(), now, style),
    editor: lines,
    caret,
    hints: isAsking ? "" : hintsOf(scene),
    facts: [vim?.mode() ?? "", scene.mode, ...state.facts].filter((fact) => fact !== ""),
    statusLine: state.statusLine
  }
  return frameOf(state.view, around, { columns, style, highlight: state.highlight }, rows)
}

/** Makes the screen of a chat. */
export const makeUi = (options: UiOptions): Ui => {
  const { desk, hints, intend, now, style, terminal } = options
  const memory = makeMemory()
  const transcripts = makeTranscripts()
  let vim: Vim | undefined
  const state = makeState()
  const surface = (columns: number): Surface => ({ columns, style, highlight: state.highlight })
  const frame = (columns: number, rows: number): Frame =>
    frameFor({ state, input, asking, completion, vim, mode: desk().mode(), hints, now: now(), style }, columns, rows)
  const screen = makeScreen(terminal, frame)
  const painter = makePainter(screen.paint, terminal)
  const spinner = makeSpinner(painter, () => {
    if (!isWorking(state) && asking.expiresAt() <= now()) return undefined
    return state.view.pending.length > 0 ? 1_000 : turning
  })
  const append = (parts: ReadonlyArray<View.Part>): void => {
    commitParts(screen, parts, surface(Math.max(2, terminal.columns() - 1)))
    painter.request()
  }
  /** Commits parts. The question of a call may have shown the diff. */
  const commit = (parts: ReadonlyArray<View.Part>, hasShownDiff = false): void => {
    for (const part of parts) note(memory, part)
    append(hasShownDiff ? parts.map((part) => (part.kind === "tool" ? { ...part, diff: undefined } : part)) : parts)
  }
  const bell = (words: string): void => {
    if (!state.isFocused) terminal.write(`\u001b]9;${cleanLine(words)}\u0007\u0007`)
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
      spinner.update()
      painter.request()
    }
  })
  const submit = (text: string): void => {
    if (asking.submit(text)) return
    vim?.insert()
    if (text.trim() === "") return intend({ _tag: "Say", text: "", kind: "send" })
    completion.remember([text])
    intend({ _tag: "Say", text, kind: isWorking(state) ? "steer" : "send" })
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
  const target = {
    state,
    input,
    completion,
    bindings: options.bindings,
    desk,
    now,
    intend,
    repaint: screen.resized,
    request: painter.request
  }
  const takeEvent = makeTakeEvent({
    state,
    asking,
    prices: options.prices,
    commit,
    onStatus: () => {
      const { startedAt, status } = state.view
      spinner.update()
      if (status === "idle" && now() - startedAt > longTurn) bell("the turn is over")
    }
  })
  /** Changes the state, and asks for a frame. */
  const change = (next: Partial<UiState>): void => {
    Object.assign(state, next)
    painter.request()
  }

  return {
    ...makeSetters(state, change, options.prices),
    input,
    memory,
    transcripts,
    view: () => state.view,
    event: (event, step) => {
      transcripts.take(event)
      takeEvent(event, step)
      painter.request()
    },
    parts: (parts) => commit(parts),
    // Not an answer of the agent's, so `/copy` must not take it.
    show: (markdown) => append([{ kind: "text", markdown: clean(markdown) }]),
    note: (level, text) => commit([{ kind: "note", level, text: clean(text) }]),
    queue: () => state.queue,
    setBusy: (busy) => {
      change({ busy })
      spinner.update()
    },
    setMenu: (next) => {
      completion.set(next)
      painter.now()
    },
    offer: (text, items) => {
      completion.offer(text, items)
      painter.now()
    },
    setVim: (isVim) => {
      vim = isVim ? makeVim(input) : undefined
      painter.now()
    },
    vimMode: () => vim?.mode(),
    refresh: asking.refresh,
    remember: completion.remember,
    draft: asking.draft,
    key: (data) => {
      if (!asking.key(data) && !completion.key(data) && vim?.key(data) !== true && !takeKey(target, data)) {
        input.press(data)
      }
      painter.now()
    },
    paste: (text) => {
      asking.typed()
      input.paste(text)
      painter.now()
    },
    resized: screen.resized,
    setAway: (isAway) => setAway(painter, screen, isAway),
    close: () => {
      spinner.stop()
      asking.close()
      painter.stop()
      screen.close()
    }
  }
}
