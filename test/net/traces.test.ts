/**
 * The ids of traces stay here: servers of strangers get no header of them.
 */
import { assert, describe, it } from "@effect/vitest"
import { Approval, Tool } from "effect-deepagents"
import { Secrets } from "effect-deepagents/net"
import * as NodeNetwork from "effect-deepagents/net/NodeNetwork"
import { FetchUrl, HttpRequest, WebSearch } from "effect-deepagents/web"
import * as NodeWebReader from "effect-deepagents/web/NodeWebReader"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import { serve } from "./servers.ts"

const ofTraces = ["traceparent", "tracestate", "b3", "x-b3-traceid", "baggage"]

const get = (url: string, headers: Record<string, string> = {}) =>
  Effect.flatMap(HttpClient.get(url, { headers }), (response) => response.text)

describe("traces", () => {
  it.live("no header of them goes out by the rules, at the first hop or behind a redirect; one of your own does", () =>
    Effect.gen(function* () {
      const stranger = yield* serve((_, response) => response.end("page"))
      const first = yield* serve((request, response) =>
        request.url === "/away" ? response.writeHead(302, { location: stranger.url }).end() : response.end("page")
      )
      yield* Effect.all([get(first.url), get(`${first.url}/away`), get(first.url, { traceparent: "mine" })]).pipe(
        Effect.withSpan("mine"),
        Effect.provide(NodeNetwork.layer({ allowPrivate: ["127.0.0.1"] }))
      )
      const sent = [...first.seen, ...stranger.seen].map(({ headers }) =>
        ofTraces.flatMap((name) => headers[name] ?? [])
      )
      assert.deepStrictEqual(sent, [[], [], ["mine"], []])
    })
  )

  it.live("tools send no headers of traces, with any client", () =>
    Effect.gen(function* () {
      const stranger = yield* serve((_, response) => response.end("page"))
      const { url } = stranger
      const services = Layer.mergeAll(
        FetchHttpClient.layer,
        NodeWebReader.layer(),
        Secrets.layer({}),
        Layer.succeed(Approval.Approvals, {
          decide: (request) => Effect.succeed(Approval.approve(request))
        }),
        Layer.provide(WebSearch.searxng({ apiUrl: url }), FetchHttpClient.layer)
      )
      yield* Effect.all([
        Tool.run(FetchUrl.make(), { url }),
        Tool.run(HttpRequest.make(), { url }),
        Effect.exit(Tool.run(WebSearch.make(), { query: "towers" })),
        get(url)
      ]).pipe(Effect.withSpan("mine"), Effect.provide(services))
      const sent = stranger.seen.map(({ headers }) => ofTraces.filter((name) => name in headers))
      // The client itself would send them.
      assert.deepStrictEqual(sent, [[], [], [], ["traceparent", "b3"]])
    })
  )
})
