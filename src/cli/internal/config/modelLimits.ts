/** The limits and abilities of models, as providers list them. Prices are never taken from there. */
import { isObject, type Json, type JsonObject } from "../../../core/Json.ts"
import { defined } from "../../../support/json/defined.ts"

/** A row of the catalogue, as far as a list tells it. */
interface Limits {
  readonly in?: number
  readonly out?: number
  readonly vision?: boolean
  readonly efforts?: string
  readonly until?: string
}

const isCount = (value: Json | undefined): value is number => Number.isSafeInteger(value) && Number(value) > 0

const countIn = (fields: JsonObject, ...names: ReadonlyArray<string>): number | undefined =>
  names.map((name) => fields[name]).find(isCount)

const inside = (fields: JsonObject, name: string): JsonObject => {
  const value = fields[name]
  return isObject(value) ? value : {}
}

/** Reports whether Anthropic's list says that a model supports something. */
const isSupported = (ability: Json | undefined): boolean => isObject(ability) && ability["supported"] === true

/** Reports whether a model reads images, where a list says so in one of its ways. */
const visionIn = (model: JsonObject): boolean | undefined => {
  const { input_modalities: own, modalities } = model
  const listed = [inside(model, "architecture")["input_modalities"], own, modalities].find((one) => Array.isArray(one))
  if (Array.isArray(listed)) return listed.includes("image")
  const { capabilities } = model
  if (Array.isArray(capabilities)) return capabilities.includes("vision")
  const abilities = inside(model, "capabilities")
  const image = abilities["image_input"]
  if (isObject(image)) return isSupported(image)
  return typeof abilities["vision"] === "boolean" ? abilities["vision"] : undefined
}

/** The efforts that Anthropic's list tells of. */
const levels = ["low", "medium", "high", "xhigh", "max"]

/** OpenRouter maps every effort to the model's own. */
const mapped = "none minimal low medium high xhigh max"

/** Gives the efforts of a model, if a list says that it reasons. The lists of Mistral and Ollama name no efforts. */
const effortsIn = (model: JsonObject): string | undefined => {
  const { capabilities, supported_parameters: parameters } = model
  if (Array.isArray(parameters)) return parameters.includes("reasoning") ? mapped : ""
  if (Array.isArray(capabilities)) return capabilities.includes("thinking") ? undefined : ""
  const effort = inside(model, "capabilities")["effort"]
  if (isObject(effort)) return isSupported(effort) ? levels.filter((level) => isSupported(effort[level])).join(" ") : ""
  return inside(model, "capabilities")["reasoning"] === false ? "" : undefined
}

/** The day on which a model is taken away, as Anthropic's list plans it. */
const untilIn = ({ retires_at: time }: JsonObject): string | undefined =>
  typeof time === "string" ? /^\d{4}-\d{2}-\d{2}/.exec(time)?.[0] : undefined

/** The context in Ollama's words: under the architecture of the model. */
const contextIn = (model: JsonObject): number | undefined => {
  const info = inside(model, "model_info")
  return countIn(info, ...Object.keys(info).filter((name) => name.endsWith(".context_length")))
}

const limitsOf = (model: JsonObject): Limits => {
  const listedInput = countIn(
    model,
    "max_input_tokens",
    "inputTokenLimit",
    "max_context_length",
    "context_window",
    "context_length",
    "max_model_len"
  )
  const input = listedInput ?? contextIn(model)
  const output =
    countIn(model, "max_completion_tokens", "outputTokenLimit", "max_output_tokens", "max_tokens") ??
    countIn(inside(model, "top_provider"), "max_completion_tokens")
  const vision = visionIn(model)
  return defined({
    in: input,
    out: output === input ? undefined : output,
    vision,
    efforts: effortsIn(model),
    until: untilIn(model)
  })
}

const isName = (name: unknown): name is string => typeof name === "string" && /^[\w./:@+-]{1,200}$/.test(name)

/** The catalogue's name of a model: without Google's folder, and without the day of a Claude. */
const modelOf = (provider: string, name: string): string =>
  provider === "anthropic" ? name.replace(/-\d{8}$/, "") : name.replace(/^models\//, "")

/** The catalogue's name of a provider. */
const nameOf = (provider: string): string => (provider === "google" ? "gemini" : provider)

/** Reads the limits in a provider's list, by the catalogue's name of it. Models without any are left out. */
export const limitsIn = (
  provider: string,
  body: unknown
): readonly [name: string, rows: { readonly [model: string]: Limits }] => {
  const listed = isObject(body) ? (body["data"] ?? body["models"]) : body
  const rows = (Array.isArray(listed) ? listed : []).filter(isObject).flatMap((model) => {
    const name = model["id"] ?? model["name"]
    const limits = limitsOf(model)
    return isName(name) && Object.keys(limits).length > 0 ? [[modelOf(provider, name), limits] as const] : []
  })
  return [nameOf(provider), Object.fromEntries(rows.slice(0, 5_000))]
}
