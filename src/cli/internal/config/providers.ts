/** Models that can be used here: by a key of the environment or a kept one, by a server on this machine, by a file. */
import { homedir } from "node:os"
import { join } from "node:path"
import type { NodeServices } from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { ChatModel } from "../../../core/ChatModel.ts"
import * as ChatModels from "../../../models/ChatModels.ts"
import { defined } from "../../../support/json/defined.ts"
import { normaliseName } from "../../../support/text/names.ts"
import { suggestion } from "../../../support/text/near.ts"
import { fail, type Failure, layerOrFail } from "../failure.ts"
import { catalogueLayer } from "./catalogue.ts"
import { planLayer } from "./chatgpt.ts"
import { keptKey, keptKinds } from "./credentials.ts"
import type { Places } from "./places.ts"
import type { Settings } from "./settings.ts"

/** A provider that needs a key, the place of its key, and the model to start with. */
export interface KeyedProvider {
  readonly name: string
  readonly variable: string
  readonly key: "environment" | "kept" | "chatgpt" | undefined
  readonly model: string
}

/** The origins of keys, in words. */
export const keyNames = { environment: "key in the environment", kept: "key kept", chatgpt: "ChatGPT plan" } as const

const setIn = (variable: string): boolean => (process.env[variable] ?? "").trim() !== ""

export const keyed = Effect.fnUntraced(function* (places: Places) {
  const kinds = yield* keptKinds(places)
  return ChatModels.providers.flatMap(({ firstModel, key: variable, name }): ReadonlyArray<KeyedProvider> => {
    if (variable === undefined || firstModel === undefined) return []
    const key = setIn(variable) ? "environment" : kinds.get(name)
    return [{ name, variable, key, model: `${name}:${firstModel}` }]
  })
})

/** The address of the Ollama server here. */
export const ollamaAddress = (): string =>
  (process.env["OLLAMA_BASE_URL"] ?? "http://127.0.0.1:11434").replace(/\/+$/, "").replace(/\/v1$/, "")

/** The models of an Ollama server, `undefined` if none listens. */
export const ollama: Effect.Effect<ReadonlyArray<string> | undefined> = Effect.gen(function* () {
  const base = ollamaAddress()
  const body: unknown = yield* Effect.tryPromise(async (signal) => {
    const response = await fetch(`${base}/api/tags`, { signal })
    return response.ok ? response.json() : undefined
  })
  const models = typeof body === "object" && body !== null && "models" in body ? body.models : undefined
  return Array.isArray(models)
    ? models.flatMap((one: unknown) =>
        typeof one === "object" && one !== null && "name" in one && typeof one.name === "string" ? [one.name] : []
      )
    : undefined
}).pipe(
  Effect.timeoutOrElse({ duration: "400 millis", orElse: () => Effect.undefined }),
  Effect.orElseSucceed(() => undefined)
)

/** Files of models (GGUF) in the folders where people put them. */
export const ggufs = Effect.fnUntraced(function* ({ data }: Places) {
  const fs = yield* FileSystem.FileSystem
  const folders = [join(data, "models"), join(homedir(), "models"), join(homedir(), ".cache", "deepagents", "models")]
  const files = yield* Effect.forEach(folders, (folder) =>
    Effect.orElseSucceed(
      Effect.map(fs.readDirectory(folder), (names) =>
        names.filter((name) => name.toLowerCase().endsWith(".gguf")).map((name) => join(folder, name))
      ),
      (): ReadonlyArray<string> => []
    )
  )
  return files.flat()
})

/** Remedies for having no model, in words. */
const advice = Effect.fnUntraced(function* (places: Places) {
  const models = yield* ollama
  const files = yield* ggufs(places)
  const all = yield* keyed(places)
  return [
    "No model can be used: no provider has a key. Choose one of these:",
    "",
    "  deepagents models login              keep a key (in the keychain, else sealed in a file)",
    ...all.slice(0, 3).map(({ name, variable }) => `  export ${variable}=…`.padEnd(39) + `a key of ${name}`),
    `  ${all
      .slice(3)
      .map(({ variable }) => variable)
      .join(", ")}`,
    ...(models === undefined
      ? []
      : models.length === 0
        ? ["  ollama pull qwen3:8b                 Ollama runs here, and has no model yet"]
        : models.slice(0, 5).map((name) => `  --model ollama:${name}`.padEnd(39) + "of the Ollama that runs here")),
    ...files.slice(0, 5).map((file) => `  --model llama:${file}`),
    "  --demo                               a scripted model, to look around"
  ].join("\n")
})

/** The name of the model that is to be asked. */
export const chooseModel = Effect.fnUntraced(function* (places: Places, settings: Settings) {
  if (settings.model !== undefined) return settings.model.value
  const provider = (yield* keyed(places)).find(({ key }) => key !== undefined)
  return provider === undefined ? yield* fail("noModel", yield* advice(places)) : provider.model
})

/** Finds the provider of a model, `provider:model`. */
export const providerOf = (spec: string): Effect.Effect<ChatModels.Provider, Failure> => {
  const [name = ""] = spec.split(":")
  const provider = ChatModels.providers.find((one) => normaliseName(one.name) === normaliseName(name))
  if (provider !== undefined && spec.includes(":") && !spec.endsWith(":")) return Effect.succeed(provider)
  const names = ChatModels.providers.map((one) => one.name)
  const why = provider === undefined ? suggestion(name, names) : `Name a model of it: ${name}:…`
  return fail("noModel", `${JSON.stringify(spec)} names no model; write provider:model. ${why}`)
}

/** Names the command that keeps another key in the place of a refused one. */
const nameLogin = <E, R>(layer: Layer.Layer<ChatModel, E, R>, provider: string): Layer.Layer<ChatModel, E, R> =>
  Layer.provide(
    Layer.effect(
      ChatModel,
      Effect.map(ChatModel, (model) => ({
        ...model,
        makeSession: Effect.map(model.makeSession, (session) => ({
          ...session,
          nextTurn: (request) =>
            Stream.mapError(session.nextTurn(request), (error) =>
              error.reason._tag === "Authentication"
                ? error.withDetail(
                    `${error.detail ?? "refused"}; keep another key: deepagents models login ${provider}`
                  )
                : error
            )
        }))
      }))
    ),
    layer
  )

/**
 * The layer of a model: with a kept key, unless the environment has one, and with what the settings say of it. A key
 * counts for the provider's own address only: settings that name another one need a key of the environment.
 */
export const modelLayer = (
  places: Places,
  settings: Settings,
  spec: string,
  thinking = settings.thinking?.value
): Layer.Layer<ChatModel, Failure, NodeServices> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const provider = yield* providerOf(spec)
      const facts = settings.models?.value[spec]
      const options = { ...facts, ...defined({ thinking }) }
      const isOwnAddress = facts?.baseURL !== undefined
      if (provider.name === "openai" && !setIn("OPENAI_API_KEY") && !isOwnAddress) {
        if ((yield* keptKinds(places)).get("openai") === "chatgpt") {
          if (setIn("OPENAI_BASE_URL")) {
            const why = "OPENAI_BASE_URL names another server than OpenAI's, which gets no token of a ChatGPT plan"
            return yield* fail("noModel", `${spec} can't be used: ${why}. Unset it, or set OPENAI_API_KEY`)
          }
          return Layer.provide(planLayer(places, spec, options), catalogueLayer(places))
        }
      }
      const apiKey: Redacted.Redacted | undefined =
        provider.key === undefined || setIn(provider.key) || isOwnAddress
          ? undefined
          : yield* keptKey(places, provider.name)
      if (provider.key !== undefined && !setIn(provider.key) && !isOwnAddress && apiKey === undefined) {
        const hint = provider.firstModel !== undefined ? `deepagents models login ${provider.name}, or ` : ""
        const how = `${hint}export ${provider.key}=…`
        return yield* fail("noModel", `${spec} can't be used: there is no key of ${provider.name}. Set one: ${how}`)
      }
      const layer = Layer.provide(
        layerOrFail("noModel")(ChatModels.resolve(spec, { ...options, ...defined({ apiKey }) })),
        catalogueLayer(places)
      )
      return apiKey === undefined ? layer : nameLogin(layer, provider.name)
    })
  )
