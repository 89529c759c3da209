/** The servers that are known by name, found by it or by their address; and what is known of a model there. */
import { normaliseName } from "../../../support/text/names.ts"
import { profileOf } from "../anthropic/models.ts"
import { findModel } from "../openai/models.ts"
import { deepseek, gemini, mistral, xai } from "./cloud.ts"
import { cerebras, fireworks, groq, openrouter, together } from "./hosts.ts"
import { llamaServer, lmStudio, vllm } from "./local.ts"
import type { ModelFacts, Server } from "./Server.ts"

export const servers: ReadonlyArray<Server> = [
  lmStudio,
  llamaServer,
  vllm,
  openrouter,
  deepseek,
  groq,
  together,
  fireworks,
  cerebras,
  mistral,
  xai,
  gemini
]

const hostOf = (url: string | undefined): string => /^https:\/\/([^/:]+)/.exec(url ?? "")?.[1]?.toLowerCase() ?? ""

const isHost = (one: string, other: string): boolean => one !== "" && (one === other || one.endsWith(`.${other}`))

/** Google's other address of the same API. */
const aliases: { readonly [host: string]: string } = { "aiplatform.googleapis.com": "gemini" }

/** Finds a server by the name that a caller gave it, else by its address. */
export const serverOf = (name: string | undefined, baseURL: string | undefined): Server | undefined => {
  const named = servers.find((server) => normaliseName(server.name) === normaliseName(name ?? ""))
  if (named !== undefined) return named
  const host = hostOf(baseURL)
  const alias = Object.entries(aliases).find(([other]) => isHost(host, other) || host.endsWith(`-${other}`))?.[1]
  return servers.find((server) => server.name === alias || isHost(host, hostOf(server.baseURL)))
}

/** Finds a row of a table: exactly, or without the date or the word behind a name. */
const find = (models: Server["models"], model: string): ModelFacts | undefined => {
  const names = [model, model.replace(/[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4})$/, ""), model.replace(/:[a-z]+$/, "")]
  const known = names.find((name) => Object.hasOwn(models, name))
  return known === undefined ? undefined : models[known]
}

const claude = (model: string): ModelFacts | undefined => {
  const profile = profileOf(model.replaceAll(".", "-"))
  if (profile.rates === undefined) return undefined
  return {
    contextWindowTokens: profile.contextWindowTokens ?? 200_000,
    vision: profile.supportsVision,
    efforts: ["none", "low", "medium", "high"]
  }
}

/** The companies whose models OpenRouter serves, by the names that it has for them. */
const vendors: { readonly [vendor: string]: (model: string) => ModelFacts | undefined } = {
  openai: findModel,
  anthropic: claude,
  google: (model) => find(gemini.models, model),
  "x-ai": (model) => find(xai.models, model),
  mistralai: (model) => find(mistral.models, model),
  deepseek: (model) => find(deepseek.models, model)
}

/** The facts of a model at a server; `undefined` where nothing is known of it. */
export const factsAt = (server: Server, model: string): ModelFacts | undefined => {
  if (server.name !== "openrouter") return find(server.models, model)
  const [vendor = "", name = ""] = model
    .replace(/^~/, "")
    .replace(/:[a-z]+$/, "")
    .split("/")
  const facts = Object.hasOwn(vendors, vendor) ? vendors[vendor]?.(name) : undefined
  // OpenRouter says in each answer what it cost.
  return facts === undefined ? undefined : { ...facts, prices: undefined }
}
