/** A level of thinking as the fields of a request, for each way in which servers are told. */
import type { JsonObject } from "../../../core/Json.ts"
import type { Ways } from "../servers/servers.ts"
import { budgetOf, type Effort, effortOf, type ThinkingLevel } from "../turn/thinking.ts"

/** Google takes a level or a budget, not both. */
const google = (level: ThinkingLevel, taken: ReadonlyArray<Effort> | undefined): JsonObject =>
  typeof level === "object"
    ? { extra_body: { google: { thinking_config: { thinking_budget: level.budget } } } }
    : effort(level, taken)

const effort = (level: ThinkingLevel, taken: ReadonlyArray<Effort> | undefined): JsonObject => {
  const chosen = effortOf(level, taken)
  return chosen === undefined ? {} : { reasoning_effort: chosen }
}

/** OpenRouter maps its own parameter to each model. */
const openrouter = (level: ThinkingLevel): JsonObject => {
  if (typeof level === "object" && level.budget > 0) return { reasoning: { max_tokens: level.budget } }
  return { reasoning: { effort: effortOf(level) ?? "none" } }
}

const isOff = (level: ThinkingLevel): boolean => budgetOf(level) === 0

/**
 * Writes the fields for a level. `taken` lists the accepted efforts, if known. A model without efforts gets no field.
 */
export const thinkingFields = (
  how: Ways["thinking"],
  level: ThinkingLevel,
  taken: ReadonlyArray<Effort> | undefined
): JsonObject => {
  if (taken !== undefined && taken.length === 0) return {}
  switch (how) {
    case "effort":
      return effort(level, taken)
    case "google":
      return google(level, taken)
    case "reasoning":
      return openrouter(level)
    case "toggle": {
      const chosen = effortOf(level, taken)
      const canBeOff = taken?.includes("none") ?? true
      return {
        ...(canBeOff ? { reasoning: { enabled: !isOff(level) } } : {}),
        ...(chosen === undefined || chosen === "none" || taken === undefined || taken.length < 3
          ? {}
          : { reasoning_effort: chosen })
      }
    }
    case "deepseek": {
      if (isOff(level)) return { thinking: { type: "disabled" } }
      const chosen = effortOf(
        level,
        taken?.filter((one) => one !== "none")
      )
      return { thinking: { type: "enabled" }, ...(chosen === undefined ? {} : { reasoning_effort: chosen }) }
    }
    case "template":
      return {
        chat_template_kwargs: { enable_thinking: !isOff(level) },
        ...(isOff(level) ? {} : effort(level, taken))
      }
  }
}
