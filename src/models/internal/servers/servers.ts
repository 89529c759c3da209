/**
 * Servers that speak Chat Completions, as data: their address, their key, and their rules. A new server is one entry
 * of `servers`; facts about its models are in `../facts/models.json` under its name.
 */
import { valueAt } from "../../../support/json/valueAt.ts"
import { normaliseName } from "../../../support/text/names.ts"
import { profileOf } from "../anthropic/models.ts"
import { type Catalogue, shipped } from "../facts/catalogue.ts"
import { findIn, type ModelFacts } from "../facts/facts.ts"
import { findModel } from "../openai/models.ts"
import type { Dialect } from "../schema/toolSchema.ts"

/** The rules of a server. */
export interface Ways {
  /** The name of the parameter that limits an answer. */
  readonly maxTokens: "max_tokens" | "max_completion_tokens"
  /** False if the server rejects the parameter that asks for usage. It reports usage anyway. */
  readonly streamOptions: boolean
  /** The longest call id in characters. With `exactly`, an id is that many letters and digits. */
  readonly callIds: { readonly length: number; readonly exactly?: true | undefined }
  readonly schemas: Dialect
  /** `own` sends back the model's own reasoning. `each` puts the field into every message, even empty. */
  readonly reasoning: "own" | "each"
  /** The tag around thoughts inside the text. */
  readonly tag: "think" | "thought"
  /** True if tool calls go back with their thought signature, and others with a dummy signature. */
  readonly signatures: boolean
  /** The form in which a PDF is sent. */
  readonly documents: "file" | "document_url" | "none"
  /** True if recordings can be sent. */
  readonly audio: boolean
  /** True if a human message may follow tool results. */
  readonly humanAfterTools: boolean
  /** True if a request can force the model to call a tool. */
  readonly forcedTools: boolean
  /** Models that support an answer in a schema beside tools. Others answer by a tool call. */
  readonly native?: RegExp | undefined
  /** True if answers say what they cost. */
  readonly reportsCost?: true | undefined
  /** Models whose prompts are marked for a cache, in Claude's form. */
  readonly cacheMarks?: RegExp | undefined
  /** The form of the parameter for thinking. */
  readonly thinking: "effort" | "google" | "reasoning" | "toggle" | "deepseek" | "template"
}

/** A server that speaks Chat Completions. */
export interface Server {
  readonly name: string
  readonly baseURL: string
  /** The environment variable of its key. A server without it takes the key of {@link variableOf} if it is set. */
  readonly key?: string | undefined
  /** The model that a new user starts with. */
  readonly firstModel?: string | undefined
  readonly ways: Ways
  /** Facts for a model that the catalogue does not list. */
  readonly assumed?: Partial<ModelFacts> | undefined
}

/** An unknown server: the common subset of the protocol. */
export const plain: Ways = {
  maxTokens: "max_tokens",
  streamOptions: true,
  callIds: { length: 40 },
  schemas: "openai",
  reasoning: "own",
  tag: "think",
  signatures: false,
  documents: "file",
  audio: true,
  humanAfterTools: true,
  forcedTools: true,
  thinking: "effort"
}

/** A server that reads only text and images. */
const pictures: Ways = { ...plain, documents: "none", audio: false }

export const gemini: Server = {
  name: "gemini",
  baseURL: "https://generativelanguage.googleapis.com/v1beta/openai",
  key: "GEMINI_API_KEY",
  ways: {
    ...pictures,
    schemas: "gemini",
    tag: "thought",
    signatures: true,
    audio: true,
    // Models before Gemini 3 reject a schema beside tools.
    native: /^(?:models\/)?gemini-(?:[3-9]|\d\d)/,
    thinking: "google"
  },
  assumed: { contextWindowTokens: 1_048_576, vision: true }
}

/** The environment variable of a server, such as `VLLM_BASE_URL`. */
export const variableOf = (name: string, setting: "API_KEY" | "BASE_URL"): string =>
  `${name.toUpperCase().replaceAll("-", "_")}_${setting}`

const local = (name: string, port: number, thinking: Ways["thinking"]): Server => ({
  name,
  baseURL: `http://localhost:${port}/v1`,
  ways: { ...pictures, thinking }
})

/** All known servers. The program asks for their keys in this order. */
export const servers: ReadonlyArray<Server> = [
  {
    name: "openrouter",
    baseURL: "https://openrouter.ai/api/v1",
    key: "OPENROUTER_API_KEY",
    firstModel: "anthropic/claude-sonnet-5.5",
    ways: { ...plain, reportsCost: true, cacheMarks: /^~?anthropic\//, thinking: "reasoning" }
  },
  {
    name: "xai",
    baseURL: "https://api.x.ai/v1",
    key: "XAI_API_KEY",
    firstModel: "grok-4.3",
    ways: { ...pictures, reportsCost: true, native: /^grok-(?:[4-9]|\d\d|latest|build)/ },
    assumed: { contextWindowTokens: 256_000, vision: true }
  },
  {
    name: "mistral",
    baseURL: "https://api.mistral.ai/v1",
    key: "MISTRAL_API_KEY",
    firstModel: "mistral-medium-2604",
    ways: {
      ...pictures,
      streamOptions: false,
      callIds: { length: 9, exactly: true },
      documents: "document_url",
      humanAfterTools: false
    },
    assumed: { contextWindowTokens: 128_000 }
  },
  {
    name: "deepseek",
    baseURL: "https://api.deepseek.com/v1",
    key: "DEEPSEEK_API_KEY",
    firstModel: "deepseek-v4-pro",
    ways: { ...pictures, reasoning: "each", forcedTools: false, thinking: "deepseek" },
    assumed: { contextWindowTokens: 128_000 }
  },
  {
    name: "groq",
    baseURL: "https://api.groq.com/openai/v1",
    key: "GROQ_API_KEY",
    firstModel: "openai/gpt-oss-120b",
    ways: { ...pictures, maxTokens: "max_completion_tokens" },
    assumed: { contextWindowTokens: 131_072 }
  },
  {
    name: "together",
    baseURL: "https://api.together.xyz/v1",
    key: "TOGETHER_API_KEY",
    firstModel: "moonshotai/Kimi-K2.6",
    ways: { ...pictures, thinking: "toggle" }
  },
  {
    name: "fireworks",
    baseURL: "https://api.fireworks.ai/inference/v1",
    key: "FIREWORKS_API_KEY",
    firstModel: "accounts/fireworks/models/kimi-k2p6",
    ways: pictures
  },
  {
    name: "cerebras",
    baseURL: "https://api.cerebras.ai/v1",
    key: "CEREBRAS_API_KEY",
    firstModel: "zai-glm-4.7",
    ways: { ...pictures, maxTokens: "max_completion_tokens" },
    assumed: { contextWindowTokens: 131_072 }
  },
  gemini,
  {
    // A gateway to models of many providers, which reports no cost in its answers.
    name: "litellm",
    baseURL: "http://localhost:4000/v1",
    key: "LITELLM_API_KEY",
    ways: { ...plain, cacheMarks: /claude/ }
  },
  local("lm-studio", 1234, "effort"),
  local("llama-server", 8080, "template"),
  local("vllm", 8000, "template")
]

const hostOf = (url: string | undefined): string => /^https:\/\/([^/:]+)/.exec(url ?? "")?.[1]?.toLowerCase() ?? ""

const isHost = (one: string, other: string): boolean => one !== "" && (one === other || one.endsWith(`.${other}`))

/** Google's other address of the same API. */
const aliases: { readonly [host: string]: string } = { "aiplatform.googleapis.com": "gemini" }

/** Finds a server by its name, else by its address. */
export const serverOf = (name: string | undefined, baseURL: string | undefined): Server | undefined => {
  const byName = servers.find((server) => normaliseName(server.name) === normaliseName(name ?? ""))
  if (byName !== undefined) return byName
  const host = hostOf(baseURL)
  const alias = Object.entries(aliases).find(([other]) => isHost(host, other) || host.endsWith(`-${other}`))?.[1]
  return servers.find((server) => server.name === alias || isHost(host, hostOf(server.baseURL)))
}

/** Finds a model by its exact name, else by its name without a date or a suffix. */
const findAt = (provider: string, model: string, catalogue: Catalogue): ModelFacts | undefined =>
  findIn(
    catalogue,
    provider,
    model,
    model.replace(/[-@](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{4})$/, ""),
    model.replace(/:[a-z]+$/, "")
  )

const findClaude = (model: string, catalogue: Catalogue): ModelFacts | undefined => {
  const { efforts, facts } = profileOf(model.replaceAll(".", "-"), catalogue)
  return facts === undefined ? undefined : { ...facts, efforts: ["none", ...efforts] }
}

/** The vendors of the models at OpenRouter, by OpenRouter's names. */
const vendors: { readonly [vendor: string]: (model: string, catalogue: Catalogue) => ModelFacts | undefined } = {
  openai: findModel,
  anthropic: findClaude,
  google: (model, catalogue) => findAt("gemini", model, catalogue),
  "x-ai": (model, catalogue) => findAt("xai", model, catalogue),
  mistralai: (model, catalogue) => findAt("mistral", model, catalogue),
  deepseek: (model, catalogue) => findAt("deepseek", model, catalogue)
}

/** Gives the facts about a model at a server. `undefined` for an unknown model. */
export const factsAt = (server: Server, model: string, catalogue: Catalogue = shipped): ModelFacts | undefined => {
  if (server.name !== "openrouter") return findAt(server.name, model, catalogue)
  const [vendor = "", name = ""] = model
    .replace(/^~/, "")
    .replace(/:[a-z]+$/, "")
    .split("/")
  const own = findIn(catalogue, server.name, model)
  const facts = valueAt(vendors, vendor)?.(name, catalogue)
  // The efforts of the vendor stay, if the row has no efforts.
  if (own !== undefined) return own.efforts.length > 0 ? own : { ...own, efforts: facts?.efforts ?? own.efforts }
  return facts === undefined ? undefined : { ...facts, prices: undefined }
}
