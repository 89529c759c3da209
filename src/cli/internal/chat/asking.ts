/** The question that is on the screen: when it takes keys, and what becomes of the draft meanwhile. */
import * as Approval from "../../../core/Approval.ts"
import type { Desk } from "../approvals/desk.ts"
import * as Dialog from "../approvals/dialog.ts"
import type { Input } from "../input/input.ts"
import { actionOf, pressed } from "../input/keys.ts"
import type { Style } from "../render/style.ts"

export interface Asking {
  readonly isOpen: () => boolean
  readonly expiresAt: () => number
  readonly lines: () => ReadonlyArray<string>
  /** Looks at what waits. */
  readonly refresh: () => void
  /** Takes a key; `false` if it is for the draft. */
  readonly key: (data: string) => boolean
  /** Takes what was written; `false` if it was no answer. */
  readonly submit: (text: string) => boolean
  readonly typed: () => void
  readonly draft: () => string
  readonly close: () => void
}

const cancelled = "Cancelled: another call of this round was rejected."

export const makeAsking = (options: {
  readonly desk: () => Desk
  readonly input: () => Input
  readonly style: Style
  readonly now: () => number
  readonly commit: (lines: ReadonlyArray<string>) => void
  readonly bell: (words: string) => void
  readonly paint: () => void
  readonly onChange: () => void
}): Asking => {
  const { desk, input, paint, style } = options
  let dialog: Dialog.Dialog | undefined
  /** The requests that were shown in full: only they can be approved. */
  let shown = new Set<string>()
  /** The draft as it was when the question took the editor. */
  let stashed: string | undefined
  let isArmed = false
  let timer: NodeJS.Timeout | undefined

  const takeEditor = (text: string): void => {
    stashed ??= input().text()
    input().set(text)
  }
  const leaveEditor = (): void => {
    if (stashed !== undefined) input().set(stashed)
    stashed = undefined
  }
  /** The dialog takes keys when none was pressed for a while: who is typing is not asked yet. */
  const arm = (): void => {
    isArmed = false
    clearTimeout(timer)
    timer = setTimeout(() => {
      isArmed = true
      if (dialog !== undefined && Dialog.usesEditor(dialog)) takeEditor(stashed === undefined ? "" : input().text())
      paint()
    }, Dialog.armedAfter)
  }
  const refresh = (): void => {
    const waiting = desk().waiting()
    const [first] = waiting
    const fresh = waiting.filter(({ id }) => !shown.has(id))
    for (const request of fresh) {
      shown.add(request.id)
      options.commit(Dialog.announcement(request, style))
      options.bell(`${request.toolName} waits for you`)
    }
    if (first === undefined) shown = new Set()
    const isSame = dialog !== undefined && dialog.request.id === first?.id
    if (!isSame) {
      leaveEditor()
      dialog = first === undefined ? undefined : Dialog.dialogOf(first)
    }
    // A request that came a moment ago is answered by no key that was meant for something else.
    if (dialog !== undefined && (!isSame || fresh.length > 0)) arm()
    options.onChange()
  }
  const conclude = (outcome: Dialog.Outcome): void => {
    if (outcome._tag === "Stay") {
      dialog = outcome.dialog
      if (!Dialog.usesEditor(dialog)) leaveEditor()
      else if (outcome.draft !== undefined) takeEditor(outcome.draft)
      return paint()
    }
    if (outcome._tag !== "Decided") return
    leaveEditor()
    const { decision, others, rule } = outcome
    const runId = dialog?.request.runId
    const rest = desk()
      .waiting()
      .filter((request) => request.id !== decision.id && !Dialog.isForm(request) && shown.has(request.id))
    dialog = undefined
    if (rule !== undefined) desk().add(rule)
    desk().answer(decision)
    for (const request of rest) {
      if (others === "approve" && request.allow.includes("approve")) desk().answer(Approval.approve(request))
      if (others === "reject" && request.runId === runId && request.allow.includes("reject")) {
        desk().answer(Approval.reject(request, cancelled))
      }
    }
    refresh()
  }
  return {
    isOpen: () => dialog !== undefined,
    expiresAt: () => dialog?.request.expiresAt ?? 0,
    lines: () =>
      dialog === undefined
        ? []
        : Dialog.lines(dialog, { waiting: desk().waiting().length, isArmed, now: options.now() }, style),
    refresh,
    key: (data) => {
      if (dialog === undefined) return false
      if (!isArmed) {
        arm()
        // Neither sent nor interrupted by who was typing when the question came.
        return data === "\r" || data === "\u001b"
      }
      if (actionOf(data) === "cancel") {
        conclude({ _tag: "Decided", decision: Approval.reject(dialog.request) })
        return true
      }
      const outcome = Dialog.press(dialog, data)
      // The beginning of something else, such as a command: what follows it answers nothing.
      if (outcome._tag === "Stay" && outcome.dialog === dialog && pressed(data) === "other") {
        arm()
        return false
      }
      if (outcome._tag === "Editor") input().press(data)
      else conclude(outcome)
      return true
    },
    submit: (text) => {
      if (dialog === undefined || !isArmed || !Dialog.usesEditor(dialog)) return false
      conclude(Dialog.submit(dialog, text))
      return true
    },
    typed: () => {
      if (dialog !== undefined && !isArmed) arm()
    },
    draft: () => stashed ?? input().text(),
    close: () => clearTimeout(timer)
  }
}
