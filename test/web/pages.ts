/** Services of tests: handlers of web requests, behind an `HttpClient` in memory, or on a port of the moment. */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect, Layer } from "effect"
import { FetchHttpClient, HttpClient, HttpClientRequest, HttpClientResponse } from "effect/http"

export type Handler = (request: Request) => Response | Promise<Response>

export const json = (body: unknown, init?: ResponseInit): Response => Response.json(body, init)

/** A client that asks nobody but the handler. */
export const layer = (handler: Handler): Layer.Layer<HttpClient.HttpClient> =>
  Layer.succeed(
    HttpClient.HttpClient,
    HttpClient.make((request) =>
      Effect.gen(function* () {
        const asked = yield* Effect.orDie(Effect.fromResult(HttpClientRequest.toWebResult(request)))
        const answer = yield* Effect.promise(async () => handler(asked))
        return HttpClientResponse.fromWeb(request, answer)
      })
    )
  )

/** A client whose requests all go to a server on loopback, over the wire, for any host. */
export const loopback = (handler: Handler): Layer.Layer<HttpClient.HttpClient> =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.gen(function* () {
      const origin = yield* serve(handler)
      const client = yield* HttpClient.HttpClient
      return HttpClient.mapRequest(client, (request) =>
        HttpClientRequest.setUrl(request, request.url.replace(/^https?:\/\/[^/]+/, origin))
      )
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))

/** Serves a handler on loopback: for clients of vendors, and for requests as they are on a wire. */
export const serve = (handler: Handler) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const server = createServer((incoming, outgoing) => {
          void (async () => {
            const chunks: Array<Uint8Array> = []
            for await (const chunk of incoming) chunks.push(chunk as Uint8Array)
            const body = new Uint8Array(Buffer.concat(chunks))
            const headers = Object.entries(incoming.headers).map(([name, value]): [string, string] => [
              name,
              String(value)
            ])
            const method = incoming.method ?? "GET"
            const asked = new Request(new URL(incoming.url ?? "/", `http://${incoming.headers.host}`), {
              method,
              headers,
              ...(method === "GET" || method === "HEAD" ? {} : { body })
            })
            const answer = await handler(asked)
            outgoing.writeHead(answer.status, Object.fromEntries(answer.headers))
            outgoing.end(new Uint8Array(await answer.arrayBuffer()))
          })()
        })
        await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
        return server
      }),
      (server) =>
        Effect.promise(async () => {
          server.closeAllConnections()
          await new Promise<void>((resolve) => server.close(() => resolve()))
        })
    ),
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  )
