/** The gate of a session whose agent has rules of its own: a mode decides, or a person. */
import * as Effect from "effect/Effect"
import * as Approval from "../../core/Approval.ts"
import type { Gate, Mode } from "./model.ts"

type Name = "ask" | "auto-edit" | "plan" | "yolo"

const modes: { readonly [name in Name]: Mode } = {
  ask: { id: "ask", name: "Ask", description: "Asks before calls that need a decision" },
  "auto-edit": {
    id: "auto-edit",
    name: "Auto-edit",
    description: "Changes files without asking, and asks about the rest"
  },
  plan: { id: "plan", name: "Plan", description: "Changes nothing: looks around, and answers with a plan" },
  yolo: { id: "yolo", name: "Yolo", description: "Runs everything without asking" }
}

const isName = (id: string): id is Name => Object.hasOwn(modes, id)

const planned =
  "This is plan mode: nothing may be changed yet. Look around, then answer with the plan; the user accepts it or says what to change."

const decide = (mode: Name, request: Approval.Request): Approval.Decision | undefined => {
  const isQuestion = request.answer !== undefined && request.allow.includes("respond")
  if (isQuestion) return undefined
  if (mode === "plan" && request.allow.includes("reject")) return Approval.reject(request, planned)
  if (request.byPerson === true || !request.allow.includes("approve")) return undefined
  const isFree = mode === "yolo" || (mode === "auto-edit" && request.editsFiles === true)
  return isFree ? Approval.approve(request) : undefined
}

/** Makes a gate. `yolo` can be chosen only if it is the first mode. */
export const makeGate = (first: Name): Gate => {
  let mode = first
  return {
    modes: [modes.ask, modes["auto-edit"], modes.plan, ...(first === "yolo" ? [modes.yolo] : [])],
    mode: () => mode,
    setMode: (id) => {
      if (isName(id)) mode = id
    },
    decide: (request) => Effect.sync(() => decide(mode, request)),
    // The rules of the agent know what is alike.
    always: (request) => ({
      covers: "calls like this one",
      approve: Effect.succeed(Approval.approve(request, { always: true }))
    })
  }
}
