/** Facts about OpenAI's models. An unknown model works: it is assumed to see images, at an unknown price. */
import type { Ability } from "../../../core/ChatModel.ts"
import { type Catalogue, shipped } from "../facts/catalogue.ts"
import { findIn, type ModelFacts } from "../facts/facts.ts"

/** Finds a model by its name, with or without a date behind it and a vendor before it. */
export const findModel = (id: string, catalogue: Catalogue = shipped): ModelFacts | undefined => {
  const name = baseName(id)
  return findIn(catalogue, "openai", name, name.replace(/-\d{4}-\d{2}-\d{2}$/, ""))
}

/** Drops the vendor before a model's name, and the parts that a fine-tune adds. */
const baseName = (id: string): string => {
  const name = id.startsWith("ft:") ? (id.split(":")[1] ?? "") : id
  return name.slice(name.lastIndexOf("/") + 1)
}

/** The abilities of OpenAI's own API for a model. */
export const abilitiesOf = (id: string): ReadonlyArray<Ability> => [
  ...(/^gpt-(?:5\.[4-9]|[6-9])/.test(baseName(id)) ? (["toolSearch"] as const) : []),
  ...(/^gpt-(?:5\.[2-9]|[6-9])/.test(baseName(id)) ? (["compaction"] as const) : [])
]

/** Reports whether a model reasons. An unknown model is judged by its family. */
export const isReasoning = (id: string, catalogue: Catalogue = shipped): boolean => {
  const facts = findModel(id, catalogue)
  if (facts !== undefined) return facts.efforts.length > 0
  // A deployment has any name: `prod-gpt-5-mini`.
  return /(?:^|[^a-z0-9])(?:o[1-9]|gpt-(?:[5-9]|\d\d)|codex)/.test(baseName(id)) && !id.includes("chat")
}
