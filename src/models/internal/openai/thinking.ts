/** A level of thinking as the fields of a request, for each way in which servers are told. */
import type { JsonObject } from "../../../core/Json.ts"
import type { Ways } from "../servers/servers.ts"
import { budgetOf, type Effort, effortOf, type ThinkingLevel } from "../turn/thinking.ts"

/** Google takes a level or a budget, not both. */
const google = (level: ThinkingLevel, efforts: ReadonlyArray<Effort> | undefined): JsonObject =>
  typeof level === "object"
    ? { extra_body: { google: { thinking_config: { thinking_budget: level.budget } } } }
    : effort(level, efforts)

const effort = (level: ThinkingLevel, efforts: ReadonlyArray<Effort> | undefined): JsonObject => {
  const bestEffort = effortOf(level, efforts)
  return bestEffort === undefined ? {} : { reasoning_effort: bestEffort }
}

/** OpenRouter maps its own parameter to each model. */
const openrouter = (level: ThinkingLevel): JsonObject => {
  if (typeof level === "object" && level.budget > 0) return { reasoning: { max_tokens: level.budget } }
  return { reasoning: { effort: effortOf(level) ?? "none" } }
}

const isOff = (level: ThinkingLevel): boolean => budgetOf(level) === 0

/**
 * Writes the fields for a level. `efforts` lists the accepted efforts, if known. A model without efforts gets no field.
 */
export const thinkingFields = (
  how: Ways["thinking"],
  level: ThinkingLevel,
  efforts: ReadonlyArray<Effort> | undefined
): JsonObject => {
  if (efforts !== undefined && efforts.length === 0) return {}
  switch (how) {
    case "effort":
      return effort(level, efforts)
    case "google":
      return google(level, efforts)
    case "reasoning":
      return openrouter(level)
    case "toggle": {
      const bestEffort = effortOf(level, efforts)
      const canBeOff = efforts?.includes("none") ?? true
      return {
        ...(canBeOff ? { reasoning: { enabled: !isOff(level) } } : {}),
        ...(bestEffort === undefined || bestEffort === "none" || efforts === undefined || efforts.length < 3
          ? {}
          : { reasoning_effort: bestEffort })
      }
    }
    case "deepseek": {
      if (isOff(level)) return { thinking: { type: "disabled" } }
      const bestEffort = effortOf(
        level,
        efforts?.filter((one) => one !== "none")
      )
      return { thinking: { type: "enabled" }, ...(bestEffort === undefined ? {} : { reasoning_effort: bestEffort }) }
    }
    case "template":
      return {
        chat_template_kwargs: { enable_thinking: !isOff(level) },
        ...(isOff(level) ? {} : effort(level, efforts))
      }
  }
}
