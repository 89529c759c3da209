/** Reads what a hook answered: the JSON of Claude Code. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { cut } from "../../../support/text/text.ts"
import { visible } from "../../../support/text/untrusted.ts"
import type { HookEvent, Verdict } from "./model.ts"

/** The most characters of a reason and of a context. */
const limits = { reason: 4_000, context: 10_000 } as const

const textOf = (value: Json | undefined, most: number): string | undefined =>
  typeof value === "string" && value.trim() !== "" ? cut(visible(value).trim(), most) : undefined

/** Events whose hooks may add context by plain text. */
const plainContext: ReadonlySet<HookEvent> = new Set<HookEvent>(["SessionStart", "UserPromptSubmit"])

const decisions = { allow: "allow", ask: "ask", deny: "deny", approve: "allow", block: "deny" } as const

const decisionOf = (value: Json | undefined): Verdict["decision"] =>
  typeof value === "string" && Object.hasOwn(decisions, value) ? decisions[value as keyof typeof decisions] : undefined

const verdictOf = (json: JsonObject): Verdict => {
  const more = isObject(json["hookSpecificOutput"]) ? json["hookSpecificOutput"] : {}
  const input = more["updatedInput"]
  const context = textOf(more["additionalContext"], limits.context)
  return {
    decision: decisionOf(more["permissionDecision"]) ?? decisionOf(json["decision"]),
    reason: textOf(more["permissionDecisionReason"], limits.reason) ?? textOf(json["reason"], limits.reason),
    input: isObject(input) ? input : undefined,
    context: context === undefined ? undefined : [context],
    stop:
      json["continue"] === false ? (textOf(json["stopReason"], limits.reason) ?? "A hook ended the run.") : undefined
  }
}

/** Reads the output of a hook that succeeded: JSON, or plain text. Fails with a problem. */
export const readAnswer = (event: HookEvent, output: string, isWhole: boolean): Effect.Effect<Verdict, string> => {
  const text = output.trim()
  if (!text.startsWith("{")) {
    const context = plainContext.has(event) ? textOf(text, limits.context) : undefined
    return Effect.succeed(context === undefined ? {} : { context: [context] })
  }
  const json = Result.try((): Json => JSON.parse(text))
  if (Result.isFailure(json)) {
    return Effect.fail(isWhole ? "its output begins like JSON and is none" : "its output is longer than 256 KiB")
  }
  return Effect.succeed(isObject(json.success) ? verdictOf(json.success) : {})
}

/** Makes the verdict of a command with exit code 2, whose errors say the reason. */
export const blocked = (errors: string): Verdict => ({
  decision: "deny",
  reason: textOf(errors, limits.reason) ?? "A hook refused it."
})
