/** The models that providers list for a key, kept on disk for a day. */
import { join } from "node:path"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as ChatModels from "../../../models/ChatModels.ts"
import { OpenAi, planToken } from "./chatgpt.ts"
import { keptKey } from "./credentials.ts"
import type { Places } from "./places.ts"
import { type KeyedProvider, keyed, ollamaAddress } from "./providers.ts"
import { readRecord } from "./settings.ts"
import { writePrivate } from "./trust.ts"

/** Time after which a list is asked for again, in milliseconds. */
const fresh = 24 * 3_600_000

/** The longest answer in characters, the most models of a provider, and the most requests for single models. */
const most = { answer: 4_000_000, models: 2_000, shown: 200 } as const

/** The answer of a provider to a key. */
type KeyCheck =
  | { readonly _tag: "Accepted"; readonly models: ReadonlyArray<string>; readonly body: unknown }
  | { readonly _tag: "Refused"; readonly status: number }
  | { readonly _tag: "Unknown"; readonly why: string }

/** The address that lists models: of a variable such as `OPENAI_BASE_URL`, else of the provider. */
const addressOf = (name: string): string | undefined => {
  const own = process.env[`${name.toUpperCase().replaceAll("-", "_")}_BASE_URL`]?.replace(/\/+$/, "")
  if (own !== undefined && own !== "") return name === "anthropic" ? `${own}/v1/models?limit=1000` : `${own}/models`
  return ChatModels.providers.find((provider) => provider.name === name)?.modelsURL
}

const headersOf = (name: string, key: string): { readonly [name: string]: string } => {
  if (name === "anthropic") return { "x-api-key": key, "anthropic-version": "2023-06-01" }
  return name === "google" ? { "x-goog-api-key": key } : { authorization: `Bearer ${key}` }
}

const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Names of models: as they are typed, short, and without anything that acts on a terminal. */
const isName = (name: unknown): name is string => typeof name === "string" && /^[\w./:@+-]{1,200}$/.test(name)

/** Reads the names of models from an answer: `data` of most providers, `models` of Google and ChatGPT, or a list. */
export const namesIn = (body: unknown): ReadonlyArray<string> => {
  const listed = isRecord(body) ? (body["data"] ?? body["models"]) : body
  return (Array.isArray(listed) ? listed : [])
    .flatMap((one: unknown) =>
      isRecord(one) && (one["visibility"] ?? "list") === "list" ? [one["id"] ?? one["slug"] ?? one["name"]] : []
    )
    .filter(isName)
    .map((name) => name.replace(/^models\//, ""))
    .slice(0, most.models)
}

/** Asks a provider for its models. */
export const checkKey = Effect.fnUntraced(function* (name: string, key: Redacted.Redacted, address = addressOf(name)) {
  if (address === undefined) return { _tag: "Unknown", why: `${name} lists no models` } satisfies KeyCheck
  const result = yield* Effect.result(
    Effect.tryPromise({
      try: async (signal) => {
        // A key goes to this address alone.
        const response = await fetch(address, {
          signal,
          redirect: "error",
          headers: headersOf(name, Redacted.value(key))
        })
        return { status: response.status, text: (await response.text()).slice(0, most.answer) }
      },
      catch: () => `${new URL(address).host} can't be reached`
    }).pipe(Effect.timeoutOrElse({ duration: "6 seconds", orElse: () => Effect.fail(`${name} does not answer`) }))
  )
  if (Result.isFailure(result)) return { _tag: "Unknown", why: result.failure } satisfies KeyCheck
  const { status, text } = result.success
  if (status === 401 || status === 403) return { _tag: "Refused", status } satisfies KeyCheck
  const body = Result.try((): unknown => JSON.parse(text))
  if (status !== 200 || Result.isFailure(body)) {
    return { _tag: "Unknown", why: `${name} answered with status ${status}` } satisfies KeyCheck
  }
  return { _tag: "Accepted", models: namesIn(body.success), body: body.success } satisfies KeyCheck
})

/** A model to choose from. `listedAt` is missing for models that no provider has listed yet. */
interface ListedModel {
  readonly name: string
  readonly listedAt: number | undefined
}

interface StoredList {
  readonly at: number
  readonly models: ReadonlyArray<string>
}

const storedIn = (value: unknown): StoredList | undefined => {
  if (!isRecord(value) || typeof value["at"] !== "number" || !Array.isArray(value["models"])) return undefined
  return { at: value["at"], models: value["models"].filter(isName) }
}

/** Asks a provider with its key, or with the token of a sign-in. */
const askModels = Effect.fnUntraced(function* (places: Places, { key: kind, name, variable }: KeyedProvider) {
  const { api } = yield* OpenAi
  const key =
    kind === "environment"
      ? Redacted.make((process.env[variable] ?? "").trim())
      : yield* Effect.orElseSucceed(kind === "chatgpt" ? planToken(places) : keptKey(places, name), () => undefined)
  if (key === undefined) return undefined
  return yield* checkKey(name, key, kind === "chatgpt" ? `${api}/models` : undefined)
})

const readJson = (url: string, init: RequestInit) =>
  Effect.tryPromise(async (signal): Promise<unknown> => {
    const response = await fetch(url, { ...init, signal, redirect: "error" })
    const text = response.ok ? (await response.text()).slice(0, most.answer) : ""
    return JSON.parse(text)
  }).pipe(Effect.timeout("6 seconds"))

/** Asks an Ollama server for its models and their abilities. Empty if none listens. */
export const listOllama = Effect.fnUntraced(function* (address: string) {
  const names = yield* readJson(`${address}/api/tags`, {}).pipe(
    Effect.timeout("1 second"),
    Effect.map(namesIn),
    Effect.orElseSucceed((): ReadonlyArray<string> => [])
  )
  const models = yield* Effect.forEach(
    names.slice(0, most.shown),
    (name) =>
      readJson(`${address}/api/show`, { method: "POST", body: JSON.stringify({ model: name }) }).pipe(
        Effect.map((shown) => (isRecord(shown) ? [{ ...shown, id: name }] : [])),
        Effect.orElseSucceed(() => [])
      ),
    { concurrency: 4 }
  )
  return models.length === 0 ? [] : [{ name: "ollama", body: models.flat() }]
})

/**
 * Asks all providers with a key, and the Ollama server here, for their lists, as they write them. A provider that does not
 * answer is left out.
 */
export const listBodies = Effect.fnUntraced(function* (places: Places) {
  const providers = (yield* keyed(places)).filter(({ key }) => key !== undefined)
  const bodies = yield* Effect.forEach(
    providers,
    Effect.fnUntraced(function* (provider) {
      const checked = yield* askModels(places, provider)
      return checked?._tag === "Accepted" ? [{ name: provider.name, body: checked.body }] : []
    }),
    { concurrency: 6 }
  )
  return [...bodies.flat(), ...(yield* listOllama(ollamaAddress()))]
})

/** Lists the models of all providers with a key. Without an answer, an older list or the first model counts. */
export const listModels = Effect.fnUntraced(function* (places: Places) {
  const file = join(places.data, "model-lists.json")
  const now = yield* Clock.currentTimeMillis
  const record = yield* Effect.orElseSucceed(readRecord(file), (): { readonly [name: string]: unknown } => ({}))
  const providers = (yield* keyed(places)).filter(({ key }) => key !== undefined)
  const lists = yield* Effect.forEach(
    providers,
    Effect.fnUntraced(function* (provider) {
      // A plan has models of its own.
      const name = provider.key === "chatgpt" ? "openai by ChatGPT" : provider.name
      const before = Object.hasOwn(record, name) ? storedIn(record[name]) : undefined
      if (before !== undefined && now - before.at < fresh) return { name, provider, list: before }
      const checked = yield* askModels(places, provider)
      const list = checked?._tag === "Accepted" ? { at: now, models: checked.models } : before
      return { name, provider, list }
    }),
    { concurrency: 6 }
  )
  const newLists = Object.fromEntries(lists.flatMap(({ list, name }) => (list === undefined ? [] : [[name, list]])))
  yield* Effect.ignore(writePrivate(file, `${JSON.stringify({ ...record, ...newLists })}\n`))
  return lists.flatMap(({ list, provider: { model, name } }): ReadonlyArray<ListedModel> => {
    const names = list?.models.map((one) => `${name}:${one}`) ?? []
    return [...new Set([model, ...names])].map((one) => ({ name: one, listedAt: list?.at }))
  })
})
