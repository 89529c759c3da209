/** Chooses the web search provider: the one of the settings, else the first with a key. */
import * as Effect from "effect/Effect"
import type { Settings } from "../config/settings.ts"
import { fail } from "../failure.ts"

const variables = {
  tavily: "TAVILY_API_KEY",
  brave: "BRAVE_API_KEY",
  exa: "EXA_API_KEY",
  serper: "SERPER_API_KEY"
} as const

type KeyedSearch = keyof typeof variables

/** A search provider with its key. DuckDuckGo needs no key. */
export type Search = { readonly name: KeyedSearch; readonly key: string } | { readonly name: "duckduckgo" }

const providers: ReadonlyArray<KeyedSearch> = ["tavily", "brave", "exa", "serper"]

export const searchOf = (settings: Settings) => {
  const { env } = process
  const keyOf = (name: KeyedSearch) => (env[variables[name]] ?? "").trim()
  const provider = settings.search?.value ?? providers.find((name) => keyOf(name) !== "") ?? "duckduckgo"
  if (provider === "duckduckgo") return Effect.succeed<Search>({ name: provider })
  const key = keyOf(provider)
  return key === ""
    ? fail("usage", `search is ${provider} (${settings.search?.where ?? ""}), and ${variables[provider]} is not set`)
    : Effect.succeed<Search>({ name: provider, key })
}
