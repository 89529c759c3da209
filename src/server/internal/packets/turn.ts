/** Tells a turn of the model once, from its deltas and its message: deltas are told as they come, the message tells the rest. */
import type { Source } from "../../../core/Content.ts"
import type { AiMessage } from "../../../core/Message.ts"
import type { Tell } from "./part.ts"

interface Run {
  readonly kind: "Text" | "Reasoning"
  text: string
}

/** The pieces of the open step. */
export interface Turn {
  isOpen: boolean
  /** True when the message of the turn was told: later pieces belong to the next turn. */
  isComplete: boolean
  /** True when the step's pieces are void: the next turn goes on in it. */
  isBare: boolean
  id: string
  runs: Array<Run>
  /** True while the last run is open. */
  isRunning: boolean
  calls: Array<string>
  /** True when a text began behind a call: the message can't say so. */
  isMixed: boolean
}

export const make = (): Turn => ({
  isOpen: false,
  isComplete: false,
  isBare: false,
  id: "",
  runs: [],
  isRunning: false,
  calls: [],
  isMixed: false
})

const clear = (turn: Turn): void => {
  turn.runs = []
  turn.isRunning = false
  turn.calls = []
  turn.isMixed = false
}

const isEmpty = ({ calls, runs }: Turn): boolean => runs.length === 0 && calls.length === 0

/** Begins a turn, in a step of its own or in a bare one. */
export const open = (turn: Turn, id: string, tell: Tell): void => {
  clear(turn)
  if (!turn.isBare) tell({ _tag: "Step" })
  Object.assign(turn, { id, isOpen: true, isComplete: false, isBare: false })
}

const partId = ({ id, runs }: Turn): string => `${id}/${runs.length - 1}`

const endRun = (turn: Turn, tell: Tell): void => {
  const last = turn.runs.at(-1)
  if (!turn.isRunning || last === undefined) return
  turn.isRunning = false
  tell({ _tag: `${last.kind}End`, id: partId(turn) })
}

/** Tells a piece of text or of thoughts. */
export const say = (turn: Turn, kind: Run["kind"], text: string, tell: Tell): void => {
  let last = turn.runs.at(-1)
  if (last?.kind !== kind || !turn.isRunning) {
    endRun(turn, tell)
    last = { kind, text: "" }
    turn.runs.push(last)
    turn.isRunning = true
    turn.isMixed ||= turn.calls.length > 0
    tell({ _tag: `${kind}Start`, id: partId(turn) })
  }
  last.text += text
  tell({ _tag: `${kind}Delta`, id: partId(turn), text })
}

/** Tells a piece of a call. */
export const call = (turn: Turn, id: string, name: string, delta: string, tell: Tell): void => {
  if (!turn.calls.includes(id)) {
    turn.calls.push(id)
    tell({ _tag: "CallStart", id, name, messageId: turn.id })
  }
  if (delta !== "") tell({ _tag: "CallDelta", id, text: delta })
}

/** Makes the pieces of an incomplete turn void. */
export const discard = (turn: Turn, tell: Tell): void => {
  if (!turn.isOpen || turn.isComplete || isEmpty(turn)) return
  endRun(turn, tell)
  clear(turn)
  turn.isBare = true
  tell({ _tag: "Void" })
}

/** The texts and thoughts of a message, neighbours of one kind joined. */
const runsOf = ({ content }: AiMessage): ReadonlyArray<Run> => {
  const runs: Array<Run> = []
  for (const block of content) {
    if ((block.type !== "text" && block.type !== "reasoning") || block.text === "") continue
    const kind = block.type === "text" ? "Text" : "Reasoning"
    const last = runs.at(-1)
    if (last?.kind === kind) last.text += block.text
    else runs.push({ kind, text: block.text })
  }
  return runs
}

const namesOf = ({ malformedToolCalls, toolCalls }: AiMessage): ReadonlyArray<string> =>
  [...toolCalls, ...malformedToolCalls].map(({ id }) => id)

/** Reports whether the message continues the deltas. */
const isContinued = (turn: Turn, message: AiMessage, runs: ReadonlyArray<Run>): boolean => {
  const names = namesOf(message)
  const isSaid = turn.runs.every((run, index) => {
    const whole = runs[index]
    if (whole?.kind !== run.kind) return false
    return index === turn.runs.length - 1 ? whole.text.startsWith(run.text) : whole.text === run.text
  })
  const isCalled = turn.calls.every((id, index) => names[index] === id)
  return isSaid && isCalled && !turn.isMixed && (isEmpty(turn) || turn.id === message.id)
}

const urlOf = (source: Source, fallback: string): { readonly url: string; readonly mediaType: string } | undefined => {
  if (source.kind === "base64") {
    return { url: `data:${source.mimeType};base64,${source.data}`, mediaType: source.mimeType }
  }
  return source.kind === "url" ? { url: source.url, mediaType: fallback } : undefined
}

/** Tells the rest of a complete turn, which deltas did not tell. The step of the turn is open. */
export const complete = (turn: Turn, message: AiMessage, tell: Tell): void => {
  const runs = runsOf(message)
  if (!isContinued(turn, message, runs)) discard(turn, tell)
  turn.isBare = false
  turn.id = message.id
  for (let index = Math.max(0, turn.runs.length - 1); index < runs.length; index++) {
    const whole = runs[index]
    if (whole === undefined) break
    const rest = whole.text.slice(turn.runs[index]?.text.length ?? 0)
    if (rest !== "") say(turn, whole.kind, rest, tell)
  }
  endRun(turn, tell)
  for (const { arguments: args, id, name } of message.toolCalls)
    tell({ _tag: "Call", id, name, arguments: args, messageId: message.id })
  for (const { id, name = "", problem, raw } of message.malformedToolCalls) {
    tell({ _tag: "BadCall", id, name, raw, problem, messageId: message.id })
  }
  for (const block of message.content) {
    if (block.type !== "image" && block.type !== "file") continue
    const file = urlOf(block.source, block.type === "image" ? "image/*" : "application/octet-stream")
    if (file !== undefined) tell({ _tag: "File", ...file })
  }
  turn.isComplete = true
  tell({ _tag: "Turn", message })
}
