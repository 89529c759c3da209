/** The desk of a chat: rules, approvals for good and modes decide calls, or a person does. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Approval from "../../../core/Approval.ts"
import type { Mode } from "../chat/options.ts"
import { commandsFor, covers, type LearnedRules } from "./learned.ts"
import { isOwn } from "./own.ts"
import type { Permits } from "./permits.ts"
import type { Preview } from "./preview.ts"

export interface Desk {
  readonly layer: Layer.Layer<Approval.Approvals>
  readonly waiting: () => ReadonlyArray<Approval.Request>
  /** The change that a pending request would make. */
  readonly preview: (request: Approval.Request) => Preview | undefined
  readonly answer: (decision: Approval.Decision) => void
  readonly mode: () => Mode
  readonly setMode: (mode: Mode) => void
  readonly nextMode: () => void
  readonly permits: Permits
  readonly learned: () => ReadonlyArray<LearnedRules>
  readonly add: (learned: LearnedRules) => void
  readonly drop: (index: number) => LearnedRules | undefined
}

/** The part of a desk that a screen uses. Without `permits`, no key approves later calls. */
export interface ScreenDesk extends Pick<Desk, "add" | "answer" | "nextMode" | "preview" | "waiting"> {
  /** The name of the mode; empty where modes have none. */
  readonly mode: () => string
  readonly permits: Permits | undefined
}

const nextModes = { ask: "auto-edit", "auto-edit": "plan", plan: "ask", yolo: "ask" } as const

const planned =
  "This is plan mode: nothing may be changed yet. Look around, then answer with the plan; the user accepts it or says what to change."

const isQuestion = (request: Approval.Request): boolean =>
  request.answer !== undefined && request.allow.includes("respond")

const rejected = (request: Approval.Request, reason: string): Approval.Decision | undefined =>
  request.allow.includes("reject") ? Approval.reject(request, reason) : undefined

/** Commands that a sandbox keeps in the folder change no more than the edits of the mode `auto-edit`. */
const isFreeIn = (mode: Mode, permits: Permits, request: Approval.Request): boolean =>
  mode === "yolo" ||
  (mode === "auto-edit" &&
    (request.editsFiles === true ||
      (isOwn(request) && permits.isContained({ name: request.toolName, arguments: request.arguments }))))

/**
 * Decides without a person: refusing rules, then reading commands in every mode, then the mode `plan`, then rules and
 * approvals for good, then the other modes. Returns `undefined` if a person has to decide.
 */
export const automatic = (
  request: Approval.Request,
  mode: Mode,
  permits: Permits,
  learned: ReadonlyArray<LearnedRules>,
  isAllowed: (callId: string) => boolean = () => false
): Approval.Decision | undefined => {
  if (isQuestion(request)) return undefined
  const ruling = permits.rule({ name: request.toolName, arguments: request.arguments }, commandsFor(learned, request))
  if (ruling?._tag === "Refuse") return rejected(request, ruling.reason)
  // Only a person may decide such a request.
  const isFor = request.byPerson !== true && request.allow.includes("approve")
  const isRuled = isOwn(request) && ruling?._tag === "Allow"
  if (isFor && isRuled && ruling.by === "reads") return Approval.approve(request)
  if (mode === "plan") return rejected(request, planned)
  if (!isFor || ruling?._tag === "Ask") return undefined
  const isFree = isFreeIn(mode, permits, request) || isRuled || covers(learned, request) || isAllowed(request.callId)
  return isFree ? Approval.approve(request) : undefined
}

interface WaitingRequest {
  readonly request: Approval.Request
  readonly preview: Preview | undefined
  readonly resume: (decision: Effect.Effect<Approval.Decision>) => void
}

export const makeDesk = (options: {
  readonly mode: Mode
  readonly principal: Approval.Principal | undefined
  /** Tells whether a hook allowed a call. */
  readonly isAllowed?: ((callId: string) => boolean) | undefined
  /** Gets each request that a person has to decide. */
  readonly onWait?: ((request: Approval.Request) => void) | undefined
  readonly permits: Permits
  /** Looks at the change that a call would make. */
  readonly look: (request: Approval.Request) => Effect.Effect<Preview | undefined>
  /** Gets the approvals for good. */
  readonly onLearned: (learned: ReadonlyArray<LearnedRules>) => void
  readonly onChange: () => void
}): Desk => {
  const { permits } = options
  let mode = options.mode
  let learned = permits.kept
  let waiting: ReadonlyArray<WaitingRequest> = []
  const signed = (request: Approval.Request, decision: Approval.Decision): Approval.Decision =>
    options.principal === undefined ? decision : Approval.decidedBy(decision, request, { by: options.principal })

  const settle = (one: WaitingRequest, decision: Approval.Decision): void => {
    waiting = waiting.filter((other) => other !== one)
    one.resume(Effect.succeed(signed(one.request, decision)))
    options.onChange()
  }
  /** Decides pending requests by a new approval for good or another mode. */
  const review = (): void => {
    for (const one of waiting) {
      const decision = automatic(one.request, mode, permits, learned, options.isAllowed)
      if (decision !== undefined) settle(one, decision)
    }
    options.onChange()
  }
  const setMode = (next: Mode): void => {
    mode = next
    review()
  }
  const changeLearned = (next: ReadonlyArray<LearnedRules>): void => {
    learned = next
    options.onLearned(next)
    review()
  }
  const wait = (request: Approval.Request, preview: Preview | undefined): Effect.Effect<Approval.Decision> =>
    Effect.callback<Approval.Decision>((resume) => {
      const one: WaitingRequest = { request, preview, resume }
      waiting = [...waiting, one]
      options.onWait?.(request)
      options.onChange()
      return Effect.sync(() => {
        waiting = waiting.filter((other) => other !== one)
        options.onChange()
      })
    })
  const decide = Effect.fnUntraced(function* (request: Approval.Request) {
    const decision = automatic(request, mode, permits, learned, options.isAllowed)
    if (decision !== undefined) return signed(request, decision)
    return yield* wait(request, yield* options.look(request))
  })
  return {
    layer: Layer.succeed(Approval.Approvals, { decide }),
    waiting: () => waiting.map(({ request }) => request),
    preview: ({ id }) => waiting.find(({ request }) => request.id === id)?.preview,
    answer: (decision) => {
      const one = waiting.find(({ request }) => request.id === decision.id)
      if (one !== undefined) settle(one, decision)
    },
    mode: () => mode,
    setMode,
    nextMode: () => setMode(nextModes[mode]),
    permits,
    learned: () => learned,
    add: (one) => changeLearned([...learned, one]),
    drop: (index) => {
      const one = learned[index]
      if (one !== undefined) changeLearned(learned.filter((other) => other !== one))
      return one
    }
  }
}
