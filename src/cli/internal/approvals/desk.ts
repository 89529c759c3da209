/** The desk of a chat: modes and rules decide calls, or a person does. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Approval from "../../../core/Approval.ts"
import type { Mode } from "../chat/options.ts"
import { covers, type Rule } from "./rules.ts"

export interface Desk {
  readonly layer: Layer.Layer<Approval.Approvals>
  readonly waiting: () => ReadonlyArray<Approval.Request>
  readonly answer: (decision: Approval.Decision) => void
  readonly mode: () => Mode
  readonly setMode: (mode: Mode) => void
  readonly rules: () => ReadonlyArray<Rule>
  readonly add: (rule: Rule) => void
  readonly drop: (index: number) => Rule | undefined
}

const planned =
  "This is plan mode: nothing may be changed yet. Look around, then answer with the plan; the user accepts it or says what to change."

const isQuestion = (request: Approval.Request): boolean =>
  request.answer !== undefined && request.allow.includes("respond")

/** Decides by mode and rules. Returns `undefined` if a person has to decide. */
export const automatic = (
  request: Approval.Request,
  mode: Mode,
  rules: ReadonlyArray<Rule>,
  isAllowed: (callId: string) => boolean = () => false
): Approval.Decision | undefined => {
  if (isQuestion(request)) return undefined
  if (mode === "plan") return request.allow.includes("reject") ? Approval.reject(request, planned) : undefined
  // Only a person may decide such a request.
  if (request.byPerson === true || !request.allow.includes("approve")) return undefined
  const isFree =
    mode === "yolo" ||
    (mode === "auto-edit" && request.editsFiles === true) ||
    covers(rules, request) ||
    isAllowed(request.callId)
  return isFree ? Approval.approve(request) : undefined
}

interface Waiting {
  readonly request: Approval.Request
  readonly resume: (decision: Effect.Effect<Approval.Decision>) => void
}

export const makeDesk = (options: {
  readonly mode: Mode
  readonly principal: Approval.Principal | undefined
  /** Tells whether a hook allowed a call. */
  readonly isAllowed?: ((callId: string) => boolean) | undefined
  /** Gets each request that a person has to decide. */
  readonly onWait?: ((request: Approval.Request) => void) | undefined
  readonly onChange: () => void
}): Desk => {
  let mode = options.mode
  let rules: ReadonlyArray<Rule> = []
  let waiting: ReadonlyArray<Waiting> = []
  const signed = (request: Approval.Request, decision: Approval.Decision): Approval.Decision =>
    options.principal === undefined ? decision : Approval.decidedBy(decision, request, { by: options.principal })

  const settle = (one: Waiting, decision: Approval.Decision): void => {
    waiting = waiting.filter((other) => other !== one)
    one.resume(Effect.succeed(signed(one.request, decision)))
    options.onChange()
  }
  /** Decides pending requests by a new rule or another mode. */
  const review = (): void => {
    for (const one of waiting) {
      const decision = automatic(one.request, mode, rules, options.isAllowed)
      if (decision !== undefined) settle(one, decision)
    }
    options.onChange()
  }
  const decide = (request: Approval.Request): Effect.Effect<Approval.Decision> =>
    Effect.callback<Approval.Decision>((resume) => {
      const decision = automatic(request, mode, rules, options.isAllowed)
      if (decision !== undefined) return resume(Effect.succeed(signed(request, decision)))
      const one: Waiting = { request, resume }
      waiting = [...waiting, one]
      options.onWait?.(request)
      options.onChange()
      return Effect.sync(() => {
        waiting = waiting.filter((other) => other !== one)
        options.onChange()
      })
    })
  return {
    layer: Layer.succeed(Approval.Approvals, { decide }),
    waiting: () => waiting.map(({ request }) => request),
    answer: (decision) => {
      const one = waiting.find(({ request }) => request.id === decision.id)
      if (one !== undefined) settle(one, decision)
    },
    mode: () => mode,
    setMode: (next) => {
      mode = next
      review()
    },
    rules: () => rules,
    add: (rule) => {
      rules = [...rules, rule]
      review()
    },
    drop: (index) => {
      const rule = rules[index]
      rules = rules.filter((other) => other !== rule)
      options.onChange()
      return rule
    }
  }
}
