/** The open question of a chat: when it takes keys, and the draft it sets aside. */
import * as Approval from "../../../core/Approval.ts"
import type { ScreenDesk } from "../approvals/desk.ts"
import * as Dialog from "../approvals/dialog.ts"
import type { Input } from "../input/input.ts"
import { actionOf, pressed } from "../input/keys.ts"
import type { Style } from "../render/style.ts"

export interface Questions {
  readonly isOpen: () => boolean
  /** Reports whether a person was shown a request. */
  readonly wasAsked: (id: string) => boolean
  /** Reports whether a person approved a call as its diff showed it. */
  readonly hasShown: (event: { readonly runId: string; readonly callId: string }) => boolean
  readonly expiresAt: () => number
  readonly lines: () => ReadonlyArray<string>
  /** Updates the question from the pending requests. */
  readonly refresh: () => void
  /** Takes a key. `false` if the draft should have it. */
  readonly key: (data: string) => boolean
  /** Takes the text of the editor as the answer. `false` if no question is open. */
  readonly submit: (text: string) => boolean
  readonly typed: () => void
  readonly draft: () => string
  readonly close: () => void
}

const cancelled = "Cancelled: another call of this round was rejected."

/** The most requests that are remembered as shown. */
const maxAsked = 1_000

const keyOf = ({ callId, runId }: { readonly callId: string; readonly runId: string }): string => `${runId}/${callId}`

/** Adds to a set that forgets its oldest values. */
const remember = (set: Set<string>, value: string): void => {
  set.add(value)
  if (set.size > maxAsked) set.delete([...set][0] ?? "")
}

export const makeAsking = (options: {
  readonly desk: () => ScreenDesk
  readonly input: () => Input
  readonly style: Style
  readonly now: () => number
  readonly commit: (lines: ReadonlyArray<string>) => void
  readonly bell: (words: string) => void
  readonly paint: () => void
  readonly onChange: () => void
}): Questions => {
  const { desk, input, paint, style } = options
  let dialog: Dialog.Dialog | undefined
  /** The requests that were shown in full. Only they can be approved. */
  let shownIds = new Set<string>()
  /** The latest requests that were shown, answered ones too. */
  const askedIds = new Set<string>()
  /** The latest calls that were approved as their diffs showed them. */
  const approved = new Set<string>()
  /** The draft from before the question took the editor. */
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
  /** Arms the dialog after a pause without keys: a person who types must not answer by accident. */
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
    const fresh = waiting.filter(({ id }) => !shownIds.has(id))
    for (const request of fresh) {
      shownIds.add(request.id)
      remember(askedIds, request.id)
      options.commit(Dialog.announcement(request, style, desk().preview(request)))
      options.bell(`${request.toolName} waits for you`)
    }
    if (first === undefined) shownIds = new Set()
    const isSame = dialog !== undefined && dialog.request.id === first?.id
    if (!isSame) {
      leaveEditor()
      dialog = first === undefined ? undefined : Dialog.dialogOf(first, desk().permits)
    }
    // Keys pressed before the request came must not answer it.
    if (dialog !== undefined && (!isSame || fresh.length > 0)) arm()
    options.onChange()
  }
  /** Answers a request. An approved call shows no diff again. */
  const answer = (request: Approval.Request, decision: Approval.Decision): void => {
    if (decision._tag === "Approve" && desk().preview(request) !== undefined) remember(approved, keyOf(request))
    desk().answer(decision)
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
    const { decision, learned, others } = outcome
    const request = dialog?.request
    const rest = desk()
      .waiting()
      .filter((one) => one.id !== decision.id && !Dialog.isForm(one) && shownIds.has(one.id))
    dialog = undefined
    if (learned !== undefined) desk().add(learned)
    if (request !== undefined) answer(request, decision)
    for (const one of rest) {
      if (others === "approve" && one.allow.includes("approve")) answer(one, Approval.approve(one))
      if (others === "reject" && one.runId === request?.runId && one.allow.includes("reject")) {
        answer(one, Approval.reject(one, cancelled))
      }
    }
    refresh()
  }
  return {
    isOpen: () => dialog !== undefined,
    wasAsked: (id) => askedIds.has(id),
    hasShown: (event) => approved.has(keyOf(event)),
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
        // A person who was typing must neither send nor interrupt.
        return data === "\r" || data === "\u001b"
      }
      if (actionOf(data) === "cancel") {
        conclude({ _tag: "Decided", decision: Approval.reject(dialog.request) })
        return true
      }
      const outcome = Dialog.press(dialog, data)
      // The key begins something else, such as a command, which must not answer.
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
