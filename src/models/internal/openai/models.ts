/**
 * Facts about OpenAI's models: context windows (tokens), whether they see and reason, and prices (US dollars per
 * million tokens, standard tier).
 *
 * A model that is not here works: its window and prices are unknown, and it is taken to see images. Options of the
 * layer win over this table.
 */
import type { Prices } from "../../../core/Usage.ts"
import { defined } from "../../../support/json/defined.ts"
import type { Effort } from "../turn/thinking.ts"

/**
 * One model. Prices are those of the shorter context where a model has two: its window is then the one they hold for.
 */
export interface ModelInfo {
  readonly contextWindowTokens: number
  readonly vision: boolean
  readonly reasoning: boolean
  readonly efforts: ReadonlyArray<Effort>
  readonly prices: Prices
}

/** The efforts that a model of OpenAI's takes, by its family. */
const effortsOf = (name: string): ReadonlyArray<Effort> => {
  if (name === "gpt-5-pro") return ["high"]
  if (name.endsWith("-pro")) return ["medium", "high", "xhigh"]
  if (/^o\d/.test(name)) return ["low", "medium", "high"]
  if (/^gpt-5(?:-mini|-nano)?$/.test(name)) return ["minimal", "low", "medium", "high"]
  if (name === "gpt-5.1") return ["none", "low", "medium", "high"]
  return ["none", "low", "medium", "high", "xhigh"]
}

type Row = Omit<ModelInfo, "efforts">

const model = (
  contextWindowTokens: number,
  kind: { readonly vision?: boolean | undefined; readonly reasoning?: boolean | undefined },
  input: number,
  output: number,
  cacheRead?: number,
  cacheWrite?: number
): Row => ({
  contextWindowTokens,
  vision: kind.vision ?? true,
  reasoning: kind.reasoning ?? true,
  prices: defined({ input, output, cacheRead, cacheWrite })
})

const plain = { reasoning: false }

/** As of November 2026. */
const models: Readonly<Record<string, Row>> = {
  "gpt-6-astra": model(272_000, {}, 10, 50, 1, 12.5),
  "gpt-6-sol": model(272_000, {}, 2, 10, 0.2, 2.5),
  "gpt-6-luna": model(272_000, {}, 0.1, 0.5, 0.01, 0.125),
  "gpt-5.6-sol": model(272_000, {}, 4, 20, 0.4, 5),
  "gpt-5.6-terra": model(272_000, {}, 2, 12, 0.2, 2.5),
  "gpt-5.6-luna": model(272_000, {}, 0.2, 1.2, 0.02, 0.25),
  "gpt-5.5": model(272_000, {}, 5, 30, 0.5),
  "gpt-5.5-pro": model(272_000, {}, 30, 180),
  "gpt-5.4": model(272_000, {}, 2.5, 15, 0.25),
  "gpt-5.4-pro": model(272_000, {}, 30, 180),
  "gpt-5.4-mini": model(400_000, {}, 0.75, 4.5, 0.075),
  "gpt-5.4-nano": model(400_000, {}, 0.2, 1.25, 0.02),
  "gpt-5.3-codex": model(400_000, {}, 1.75, 14, 0.175),
  "gpt-5.3-chat-latest": model(128_000, plain, 1.75, 14, 0.175),
  "gpt-5.2": model(400_000, {}, 1.75, 14, 0.175),
  "gpt-5.2-pro": model(400_000, {}, 21, 168),
  "gpt-5.1": model(400_000, {}, 1.25, 10, 0.125),
  "gpt-5": model(400_000, {}, 1.25, 10, 0.125),
  "gpt-5-mini": model(400_000, {}, 0.25, 2, 0.025),
  "gpt-5-nano": model(400_000, {}, 0.05, 0.4, 0.005),
  "gpt-5-pro": model(400_000, {}, 15, 120),
  "gpt-5-chat-latest": model(128_000, plain, 1.25, 10, 0.125),
  "gpt-4.1": model(1_047_576, plain, 2, 8, 0.5),
  "gpt-4.1-mini": model(1_047_576, plain, 0.4, 1.6, 0.1),
  "gpt-4.1-nano": model(1_047_576, plain, 0.1, 0.4, 0.025),
  "gpt-4o": model(128_000, plain, 2.5, 10, 1.25),
  "gpt-4o-mini": model(128_000, plain, 0.15, 0.6, 0.075),
  "gpt-4-turbo": model(128_000, plain, 10, 30),
  "gpt-4": model(8_192, { vision: false, reasoning: false }, 30, 60),
  o3: model(200_000, {}, 2, 8, 0.5),
  "o3-pro": model(200_000, {}, 20, 80),
  "o3-mini": model(200_000, { vision: false }, 1.1, 4.4, 0.55),
  "o4-mini": model(200_000, {}, 1.1, 4.4, 0.275),
  o1: model(200_000, {}, 15, 60, 7.5),
  "o1-pro": model(200_000, {}, 150, 600)
}

/** Finds a model by its name, with or without a date behind it and a vendor before it. */
export const findModel = (id: string): ModelInfo | undefined => {
  const name = familyOf(id)
  const known = [name, name.replace(/-\d{4}-\d{2}-\d{2}$/, "")].find((one) => Object.hasOwn(models, one))
  const found = known === undefined ? undefined : models[known]
  return found === undefined ? undefined : { ...found, efforts: found.reasoning ? effortsOf(known ?? "") : [] }
}

/** A model's name without the vendor before it, and without what a fine-tune puts around it. */
const familyOf = (id: string): string => {
  const name = id.startsWith("ft:") ? (id.split(":")[1] ?? "") : id
  return name.slice(name.lastIndexOf("/") + 1)
}

/** Reports whether a model reasons, by its family where it is not in the table. */
export const isReasoning = (id: string): boolean =>
  findModel(id)?.reasoning ??
  // A deployment has any name: `prod-gpt-5-mini`.
  (/(?:^|[^a-z0-9])(?:o[1-9]|gpt-(?:[5-9]|\d\d)|codex)/.test(familyOf(id)) && !id.includes("chat"))
