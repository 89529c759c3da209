/**
 * A gateway from a sandbox to the network that fills in secrets: commands write `{{secret:NAME}}`, and never see the value.
 *
 * Commands send a request to `EGRESS_URL/https://host/path` instead of `https://host/path`. Secrets are filled into its
 * headers, query and body, for their own hosts only, and removed from the response. Other programs use the proxy of
 * `HTTPS_PROXY`, which applies the rules of the network and fills nothing in.
 *
 * ```ts
 * import { Effect, Layer, Redacted } from "effect"
 * import * as LocalShell from "effect-deepagents/backends/LocalShell"
 * import { Secrets } from "effect-deepagents/net"
 * import * as NodeEgress from "effect-deepagents/net/NodeEgress"
 * import * as NodeNetwork from "effect-deepagents/net/NodeNetwork"
 *
 * const rules = { allow: ["api.example.com"] }
 * const secrets = Secrets.layer({ API_KEY: { value: Redacted.make("…"), hosts: ["api.example.com"] } })
 *
 * // curl -H 'authorization: Bearer {{secret:API_KEY}}' "$EGRESS_URL/https://api.example.com/orders"
 * const shell = Layer.unwrap(
 *   Effect.map(NodeEgress.start({ rules }), ({ env }) => LocalShell.layer({ root: "./work", env: { set: env } }))
 * ).pipe(Layer.provide(Layer.merge(NodeNetwork.layer(rules), secrets)))
 * ```
 */
import { randomBytes } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpMethod from "effect/http/HttpMethod"
import type * as Scope from "effect/Scope"
import type { Resolve } from "../support/http/connect.ts"
import { describe } from "../support/http/describe.ts"
import * as fills from "../support/http/fill.ts"
import { Tied, withoutRedirects } from "../support/http/hops.ts"
import * as proxy from "../support/http/proxy.ts"
import * as judging from "../support/http/rules.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { mask } from "../support/text/mask.ts"
import * as shapes from "./internal/shapes.ts"
import type * as Network from "./Network.ts"
import { Secrets } from "./Secrets.ts"

/** Options of the gateway. */
export interface Options {
  /** Rules of the proxy. */
  readonly rules: Network.Rules
  /** Maximum bytes of a request body with secrets. Default: 10,000,000. */
  readonly maxBytes?: number | undefined
  /** Replaces `dns.lookup`. */
  readonly resolve?: Resolve | undefined
  /** A listener that was made elsewhere, such as in the network of a sandbox. Default: a port of loopback. */
  readonly listener?: proxy.Listener | undefined
}

/** A running gateway. Both fields contain its password, but no secret. */
export interface Egress {
  /** Address of the gateway. */
  readonly url: string
  /** Environment for the commands of a sandbox. */
  readonly env: { readonly [name: string]: string }
}

/** Headers of the connection to the proxy, and headers that the client writes itself. */
const dropped = new Set("host content-length accept-encoding expect".split(" "))

interface Refusal {
  readonly status: number
  readonly message: string
}

const refuse = (status: number, message: string): Effect.Effect<never, Refusal> => Effect.fail({ status, message })

const readBody = (request: IncomingMessage, most: number): Effect.Effect<Buffer, Refusal> =>
  Effect.callback((resume) => {
    const chunks: Array<Buffer> = []
    let length = 0
    request
      .on("data", (chunk: Buffer) => {
        length += chunk.length
        if (length > most) resume(refuse(413, `the request is longer than ${most} bytes`))
        else chunks.push(chunk)
      })
      .on("end", () => resume(Effect.succeed(Buffer.concat(chunks))))
      .on("error", () => resume(refuse(400, "the request broke off")))
  })

const forward = (request: IncomingMessage, path: string, most: number) =>
  Effect.gen(function* () {
    const method = (request.method ?? "GET").toUpperCase()
    if (!HttpMethod.isHttpMethod(method) || !URL.canParse(path) || !/^https?:\/\//i.test(path)) {
      return yield* refuse(400, "write the whole address behind EGRESS_URL, as in $EGRESS_URL/https://example.com/path")
    }
    const url = new URL(path)
    const bytes = yield* readBody(request, most)
    const headers = Object.entries(proxy.endToEnd(request.headers)).flatMap(([name, value]): Array<[string, string]> =>
      dropped.has(name) ? [] : [[name, Array.isArray(value) ? value.join(", ") : value]]
    )
    const type = headers.find(([name]) => name === "content-type")?.[1] ?? "application/octet-stream"
    const encoding = fills.isEscaped(type) ? "utf8" : "latin1"
    const body = bytes.toString(encoding)
    const query = [...url.searchParams]
    const values = [...headers, ...query].map(([, value]) => value)
    const used = yield* Effect.mapError(
      fills.lookUp(yield* Secrets, [...fills.textsOf(body, type), ...values], url),
      (message): Refusal => ({ status: 403, message })
    )
    if (query.some(([, value]) => fills.fill(value, used) !== value)) {
      url.search = ""
      for (const [name, value] of query) url.searchParams.append(name, fills.fill(value, used))
    }
    const hostSecrets = yield* fills.knownTo(yield* Secrets, url)
    if (hostSecrets.size > 0 && headers.some(([name]) => name === "range")) {
      return yield* refuse(403, "the header range is not sent to a host that a secret is for; leave it out")
    }
    // A binary body contains the bytes of the text.
    const inBytes = (text: string) => Buffer.from(text).toString("latin1")
    const filled = fills.fillBody(
      body,
      type,
      encoding === "utf8" ? used : new Map([...used].map(([name, value]) => [name, inBytes(value)]))
    )
    const { filled: filledHeaders, tied } = fills.fillHeaders(headers, used)
    const bare = HttpClientRequest.setHeaders(HttpClientRequest.make(method)(url), filledHeaders)
    const content = filled === body ? bytes : Buffer.from(filled, encoding)
    const onward = content.length === 0 ? bare : HttpClientRequest.bodyUint8Array(bare, new Uint8Array(content), type)
    return yield* HttpClient.execute(onward).pipe(
      Effect.flatMap((response) => Effect.map(response.arrayBuffer, (content) => ({ response, content }))),
      withoutRedirects,
      Effect.provideService(Tied, tied),
      Effect.provideService(HttpClient.TracerPropagationEnabled, false),
      Effect.provideService(HttpClient.TracerDisabledWhen, () => used.size > 0),
      Effect.mapBoth({
        onFailure: (error): Refusal => ({ status: 502, message: mask(describe(error), hostSecrets) }),
        onSuccess: ({ content, response }) => ({
          status: response.status,
          headers: Object.entries(response.headers).flatMap(([name, value]): Array<[string, string]> =>
            value === undefined || ["transfer-encoding", "connection", "content-length"].includes(name)
              ? []
              : [[name, mask(value, hostSecrets)]]
          ),
          content: Buffer.from(mask(Buffer.from(content).toString("latin1"), hostSecrets, inBytes), "latin1")
        })
      })
    )
  })

const noProxy = "127.0.0.1,localhost,::1"

const refuseStart = makeEffectCheck("NodeEgress.start", shapes.nodeEgressStart)

/** Starts a gateway on loopback, until the scope ends. Provide an `HttpClient` with the same rules: `NodeNetwork.layer`. */
export const start = (options: Options): Effect.Effect<Egress, never, Scope.Scope | HttpClient.HttpClient | Secrets> =>
  refuseStart(options) ??
  Effect.gen(function* () {
    const run = yield* FiberSet.makeRuntime<HttpClient.HttpClient | Secrets>()
    const password = randomBytes(24).toString("base64url")
    const most = options.maxBytes ?? 10_000_000
    const own = (request: IncomingMessage, response: ServerResponse) => {
      const [, candidate = "", path = ""] = /^\/([^/]+)\/(.+)$/.exec(request.url ?? "") ?? []
      if (candidate !== password) {
        response.writeHead(403, { "content-type": "text/plain" }).end("this way out is not yours")
        return
      }
      const fiber = run(
        Effect.match(forward(request, path, most), {
          onFailure: ({ message, status }) => {
            response.writeHead(status, { "content-type": "text/plain; charset=utf-8" }).end(message)
          },
          onSuccess: ({ content, headers, status }) => {
            response.writeHead(status, Object.fromEntries(headers)).end(content)
          }
        })
      )
      response.on("close", () => fiber.interruptUnsafe())
    }
    const judge = judging.judge(options.rules)
    const { port, token } = yield* proxy.start({ judge, own, resolve: options.resolve, listener: options.listener })
    const url = `http://127.0.0.1:${port}/${password}`
    const proxyUrl = `http://egress:${token}@127.0.0.1:${port}`
    return {
      url,
      env: {
        EGRESS_URL: url,
        HTTP_PROXY: proxyUrl,
        HTTPS_PROXY: proxyUrl,
        http_proxy: proxyUrl,
        https_proxy: proxyUrl,
        // Loopback is that of the commands themselves: a server that they develop.
        NO_PROXY: noProxy,
        no_proxy: noProxy
      }
    }
  })
