/** Requests and responses of search providers. */
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { describe } from "../../../support/http/describe.ts"
import { untraced } from "../../../support/http/untraced.ts"
import { defined } from "../../../support/json/defined.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import { textOf } from "./plain.ts"

/** A search. Providers ignore an unsupported `topic` or `includeContent`. */
export interface Query {
  readonly query: string
  readonly maxResults: number
  readonly topic: "general" | "news" | "finance"
  /** Requests the text of the pages. */
  readonly includeContent: boolean
}

/** A page that matches a search. */
export interface Result {
  readonly title: string
  readonly url: string
  readonly snippet: string
  /** Date in the format of the provider. */
  readonly published?: string | undefined
  readonly content?: string | undefined
}

interface Problem {
  readonly message: string
  readonly isRetryable: boolean
}

/** Makes requests to a provider, and reads its responses. */
export interface Provider {
  readonly name: string
  /** A text that errors must not contain. */
  readonly secret?: Redacted.Redacted | undefined
  readonly request: (query: Query) => HttpClientRequest.HttpClientRequest
  readonly read: (response: HttpClientResponse.HttpClientResponse) => Effect.Effect<ReadonlyArray<Result>, unknown>
}

const Text = Schema.optionalKey(Schema.NullOr(Schema.String))

const makeResults = (one: { readonly [Key in keyof Result]: string | null | undefined }): ReadonlyArray<Result> =>
  one.url === null || one.url === undefined || !/^https?:\/\//i.test(one.url)
    ? []
    : [
        {
          title: textOf(one.title ?? ""),
          url: one.url,
          snippet: textOf(one.snippet ?? ""),
          ...defined({ published: one.published ?? undefined, content: one.content ?? undefined })
        }
      ]

const json = (url: string, body: { readonly [field: string]: unknown }) =>
  HttpClientRequest.bodyJsonUnsafe(HttpClientRequest.post(url), body)

/** The API key of a provider. `apiUrl` replaces the address of its API. */
export interface KeyOptions {
  /** The API key. */
  readonly apiKey: Redacted.Redacted
  /** Base URL of the API. Default: the one of the provider. */
  readonly apiUrl?: string | undefined
}

const Tavily = Schema.Struct({
  results: Schema.Array(
    Schema.Struct({ title: Text, url: Text, content: Text, raw_content: Text, published_date: Text })
  )
})

export const tavily = ({ apiKey, apiUrl = "https://api.tavily.com" }: KeyOptions): Provider => ({
  name: "Tavily",
  secret: apiKey,
  request: ({ includeContent, maxResults, query, topic }) =>
    HttpClientRequest.bearerToken(
      json(`${apiUrl}/search`, { query, topic, max_results: maxResults, include_raw_content: includeContent }),
      apiKey
    ),
  read: (response) =>
    Effect.map(HttpClientResponse.schemaBodyJson(Tavily)(response), ({ results }) =>
      results.flatMap(({ content, published_date, raw_content, title, url }) =>
        makeResults({ title, url, snippet: content, published: published_date, content: raw_content })
      )
    )
})

const Brave = Schema.Struct({
  web: Schema.optionalKey(
    Schema.NullOr(
      Schema.Struct({
        results: Schema.Array(
          Schema.Struct({
            title: Text,
            url: Text,
            description: Text,
            page_age: Text,
            extra_snippets: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String)))
          })
        )
      })
    )
  )
})

export const brave = ({ apiKey, apiUrl = "https://api.search.brave.com" }: KeyOptions): Provider => ({
  name: "Brave",
  secret: apiKey,
  request: ({ includeContent, maxResults, query, topic }) =>
    HttpClientRequest.get(`${apiUrl}/res/v1/web/search`, {
      urlParams: {
        q: query,
        count: maxResults,
        ...(includeContent ? { extra_snippets: true } : {}),
        ...(topic === "news" ? { freshness: "pm" } : {})
      },
      headers: { accept: "application/json", "x-subscription-token": Redacted.value(apiKey) }
    }),
  read: (response) =>
    Effect.map(HttpClientResponse.schemaBodyJson(Brave)(response), ({ web }) =>
      (web?.results ?? []).flatMap(({ description, extra_snippets, page_age, title, url }) =>
        makeResults({
          title,
          url,
          snippet: description,
          published: page_age,
          content: extra_snippets?.map(textOf).join("\n")
        })
      )
    )
})

const Exa = Schema.Struct({
  results: Schema.Array(
    Schema.Struct({
      title: Text,
      url: Text,
      publishedDate: Text,
      text: Text,
      highlights: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.String)))
    })
  )
})

export const exa = ({ apiKey, apiUrl = "https://api.exa.ai" }: KeyOptions): Provider => ({
  name: "Exa",
  secret: apiKey,
  request: ({ includeContent, maxResults, query, topic }) =>
    HttpClientRequest.setHeader(
      json(`${apiUrl}/search`, {
        query,
        numResults: maxResults,
        contents: { highlights: true, ...(includeContent ? { text: true } : {}) },
        ...(topic === "news" ? { category: "news" } : topic === "finance" ? { category: "financial report" } : {})
      }),
      "x-api-key",
      Redacted.value(apiKey)
    ),
  read: (response) =>
    Effect.map(HttpClientResponse.schemaBodyJson(Exa)(response), ({ results }) =>
      results.flatMap(({ highlights, publishedDate, text, title, url }) =>
        makeResults({
          title,
          url,
          snippet: highlights?.join(" … ") ?? text?.slice(0, 500),
          published: publishedDate,
          content: text
        })
      )
    )
})

const SerperResult = Schema.Struct({ title: Text, link: Text, snippet: Text, date: Text })

const Serper = Schema.Struct({
  organic: Schema.optionalKey(Schema.Array(SerperResult)),
  news: Schema.optionalKey(Schema.Array(SerperResult))
})

export const serper = ({ apiKey, apiUrl = "https://google.serper.dev" }: KeyOptions): Provider => ({
  name: "Serper",
  secret: apiKey,
  request: ({ maxResults, query, topic }) =>
    HttpClientRequest.setHeader(
      json(`${apiUrl}/${topic === "news" ? "news" : "search"}`, { q: query, num: maxResults }),
      "x-api-key",
      Redacted.value(apiKey)
    ),
  read: (response) =>
    Effect.map(HttpClientResponse.schemaBodyJson(Serper)(response), ({ news, organic }) =>
      [...(organic ?? []), ...(news ?? [])].flatMap(({ date, link, snippet, title }) =>
        makeResults({ title, url: link, snippet, published: date })
      )
    )
})

const Searxng = Schema.Struct({
  results: Schema.Array(Schema.Struct({ title: Text, url: Text, content: Text, publishedDate: Text }))
})

export const searxng = ({ apiUrl }: { readonly apiUrl: string }): Provider => ({
  name: "SearXNG",
  request: ({ query, topic }) =>
    HttpClientRequest.get(`${apiUrl.replace(/\/$/, "")}/search`, {
      urlParams: { q: query, format: "json", ...(topic === "news" ? { categories: "news" } : {}) }
    }),
  read: (response) =>
    Effect.map(HttpClientResponse.schemaBodyJson(Searxng)(response), ({ results }) =>
      results.flatMap(({ content, publishedDate, title, url }) =>
        makeResults({ title, url, snippet: content, published: publishedDate })
      )
    )
})

/** Reads the text of a link. */
const readLinkText = (part: string): string => {
  const from = part.indexOf(">")
  const to = part.indexOf("</a>", from)
  return from === -1 || to === -1 ? "" : part.slice(from + 1, to)
}

/** Reads results of the page. Links redirect by DuckDuckGo, and contain their target. */
const readPage = (html: string): ReadonlyArray<Result> =>
  html
    .split('class="result__a"')
    .slice(1)
    .flatMap((part) => {
      const href = /^[^>]{0,200}href="([^"]{1,4000})"/.exec(part)?.[1]?.replaceAll("&amp;", "&") ?? ""
      const link = URL.canParse(href, "https://duckduckgo.com/") ? new URL(href, "https://duckduckgo.com/") : undefined
      const isOwn = link?.hostname.endsWith("duckduckgo.com") === true
      const at = part.indexOf("result__snippet")
      return makeResults({
        title: readLinkText(part),
        url: isOwn ? link.searchParams.get("uddg") : link?.href,
        snippet: at === -1 ? "" : readLinkText(part.slice(at))
      })
    })
    .filter(({ url }) => !new URL(url).hostname.endsWith("duckduckgo.com"))

export const duckDuckGo = ({
  apiUrl = "https://html.duckduckgo.com"
}: {
  readonly apiUrl?: string | undefined
}): Provider => ({
  name: "DuckDuckGo",
  request: ({ query }) =>
    HttpClientRequest.get(`${apiUrl}/html/`, {
      urlParams: { q: query },
      headers: { "user-agent": "Mozilla/5.0 (compatible; effect-deepagents)" }
    }),
  read: (response) =>
    Effect.flatMap(response.text, (html) =>
      html.includes("anomaly-modal")
        ? Effect.fail({
            message: "it takes the request for one of a robot; wait a while, or use a provider with a key",
            isRetryable: true
          })
        : Effect.succeed(readPage(html))
    )
})

const isProblem = (error: unknown): error is Problem =>
  typeof error === "object" && error !== null && "isRetryable" in error && "message" in error

/** Sends a search to a provider. Errors quote the start of its response. */
export const search = (
  client: HttpClient.HttpClient,
  provider: Provider,
  query: Query
): Effect.Effect<ReadonlyArray<Result>, Problem> =>
  Effect.gen(function* () {
    const response = yield* Effect.mapError(untraced(client).execute(provider.request(query)), (error): Problem => ({
      message: describe(error),
      isRetryable: error.reason._tag === "TransportError"
    }))
    if (response.status < 200 || response.status >= 300) {
      const secret = provider.secret === undefined ? "" : Redacted.value(provider.secret)
      const body = yield* Effect.orElseSucceed(response.text, () => "")
      const answer = oneLine(textOf(secret === "" ? body : body.replaceAll(secret, "…"))).slice(0, 300)
      const hint = response.status === 401 || response.status === 403 ? "; check its API key" : ""
      return yield* Effect.fail({
        message: `it answered ${response.status}${answer === "" ? "" : `: ${answer}`}${hint}`,
        isRetryable: response.status === 429 || response.status >= 500
      })
    }
    return yield* Effect.mapError(provider.read(response), (error): Problem =>
      isProblem(error)
        ? { message: error.message, isRetryable: error.isRetryable }
        : { message: "its answer is not what its documentation says", isRetryable: false }
    )
  })
