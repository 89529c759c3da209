/**
 * Tells other servers of runs that ended and of requests that wait for people: signed, and retried until they take it.
 *
 * Provide the layer to `Server.layer`. Deliveries have the form of Standard Webhooks, and are stored before the run counts as
 * done.
 *
 * ```ts
 * import { Config, Effect, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import * as NodeNetwork from "effect-deepagents/net/NodeNetwork"
 * import { Server, Webhooks } from "effect-deepagents/server"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 * const webhooks = Layer.unwrap(
 *   Effect.map(Config.Redacted("WEBHOOK_SECRET"), (secret) =>
 *     Webhooks.layer({ endpoints: [{ name: "desk", tenant: "acme", url: "https://desk.example.com/hook", secret }] })
 *   )
 * ).pipe(Layer.provide(NodeNetwork.layer({})))
 *
 * const runs = Server.layer({ helper }).pipe(Layer.provide(webhooks))
 * ```
 */
import * as Clock from "effect/Clock"
import * as Mac from "effect/crypto/Mac"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Network from "../net/Network.ts"
import { Storage } from "../stores/Storage.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { sha256 } from "../support/store/hash.ts"
import { OnSettled, type SettledWork } from "./internal/settled.ts"
import * as shapes from "./internal/shapes.ts"
import { keyBytes, shortest, standard } from "./internal/signature.ts"

/** The kinds of deliveries. */
export type Kind = "run.ended" | "approval.needed"

/** A server that is told. */
export interface Endpoint {
  /** Stored deliveries refer to the name, so keep it. Logs have it in the place of the address. */
  readonly name: string
  /** The tenant whose runs it hears of. */
  readonly tenant: string
  readonly url: string | Redacted.Redacted
  /** The secret that signs, as `whsec_` and base64. */
  readonly secret: Redacted.Redacted
  /** The kinds that it hears of. Default: both. */
  readonly kinds?: ReadonlyArray<Kind> | undefined
}

/** The options of this module. */
export interface Options {
  /** The servers that are told. Each has its own deliveries. */
  readonly endpoints: ReadonlyArray<Endpoint>
  /** Allowed exceptions among private addresses, as in `Network.Rules`. Default: none. */
  readonly allowPrivate?: ReadonlyArray<string> | undefined
}

/** The options of webhooks are wrong. */
export class WebhooksError extends TaggedError<WebhooksError>()("WebhooksError", {
  endpoint: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `Webhooks of ${JSON.stringify(this.endpoint)}: ${this.problem}`
  }
}

const Row = Schema.fromJsonString(
  Schema.Struct({
    v: Schema.Literal(1),
    id: Schema.String,
    endpoint: Schema.String,
    body: Schema.String,
    attempts: Schema.Finite,
    /** The time of the next attempt, in milliseconds since 1970. */
    next: Schema.Finite
  })
)
const encodeRow = Schema.encodeSync(Row)
const decodeRow = Schema.decodeUnknownResult(Row)

const space = "queue"

/** The attempts before a delivery is given up: two days and a half. */
const most = 16

/** The milliseconds behind an attempt, which are more than it can take: 20 seconds, and four times more each time, up to five hours. */
const pauseBehind = (attempts: number): number => Math.min(20_000 * 4 ** attempts, 18_000_000)

/** The time after which the queue is read again, since other processes change it. */
const rest = 10_000

const pageSize = 100

const rulesOf = ({ allowPrivate }: Options): Network.Rules => ({
  maxRedirects: 0,
  maxBytes: 65_536,
  timeout: 15_000,
  ...(allowPrivate === undefined ? {} : { allowPrivate })
})

/** The body of a delivery. It has ids, and no word of the conversation. */
const bodyOf = ({ agent, id, outcome, pending, threadId }: SettledWork, at: number): string => {
  const isWaiting = pending.length > 0
  const common = { thread: threadId, input: id, agent }
  const requests = pending.map((request) => ({ id: request.id, tool: request.toolName }))
  return JSON.stringify({
    type: isWaiting ? "approval.needed" : "run.ended",
    timestamp: new Date(at).toISOString(),
    data: isWaiting ? { ...common, requests } : { ...common, outcome }
  })
}

const refuseLayer = makeLayerCheck("Webhooks.layer", shapes.webhooksLayer)

/**
 * Posts to the endpoints when a run has ended, or waits for a decision. Deliveries are in the table `webhooks` of the `Storage`
 * until an endpoint answers with a status of 200 to 299, and are retried for days. Private addresses and redirects are refused.
 * Fails with {@link WebhooksError} for secrets that could sign nothing.
 */
export const layer = (options: Options): Layer.Layer<never, WebhooksError, Storage | HttpClient.HttpClient> =>
  refuseLayer(options) ??
  Layer.effect(
    OnSettled,
    Effect.gen(function* () {
      const mac = yield* Mac.Mac
      const client = yield* HttpClient.HttpClient
      const table = (yield* Storage).table("webhooks")
      const endpoints = new Map<string, Endpoint & { readonly key: Mac.Key }>()
      for (const endpoint of options.endpoints) {
        const { name, secret } = endpoint
        const bytes = keyBytes(standard, secret)
        if (bytes === undefined || bytes.length < shortest) {
          const problem = `the secret must be whsec_ and base64 of at least ${shortest} bytes`
          return yield* new WebhooksError({ endpoint: name, problem })
        }
        if (endpoints.has(name))
          return yield* new WebhooksError({ endpoint: name, problem: "two endpoints have this name" })
        endpoints.set(name, { ...endpoint, key: yield* Effect.orDie(Mac.key(Mac.hmacSha256, bytes)) })
      }
      let woken = Deferred.makeUnsafe<void>()

      const post = Effect.fnUntraced(function* (
        { key, url }: Endpoint & { readonly key: Mac.Key },
        row: typeof Row.Type
      ) {
        const time = Math.floor((yield* Clock.currentTimeMillis) / 1_000)
        const signed = new TextEncoder().encode(`${row.id}.${time}.${row.body}`)
        const tag = Base64.encode(yield* Effect.orDie(mac.sign(key, signed)))
        const request = HttpClientRequest.post(Redacted.isRedacted(url) ? Redacted.value(url) : url, {
          headers: { "webhook-id": row.id, "webhook-timestamp": String(time), "webhook-signature": `v1,${tag}` }
        }).pipe(HttpClientRequest.bodyText(row.body, "application/json"))
        const { status } = yield* HttpClient.withScope(client).execute(request)
        return status
      }, Effect.scoped)

      /** Works on a stored delivery, and gives the time of its next attempt. */
      const deliver = Effect.fnUntraced(function* (key: string, text: string) {
        const now = yield* Clock.currentTimeMillis
        const row = decodeRow(text)
        if (Result.isFailure(row)) return now + rest
        const { attempts, next } = row.success
        if (next > now) return next
        const endpoint = endpoints.get(row.success.endpoint)
        if (endpoint === undefined || attempts >= most) {
          yield* Effect.logError(`A webhook for ${JSON.stringify(row.success.endpoint)} is given up`)
          yield* table.swap(space, key, text, undefined)
          return now + rest
        }
        const after = now + pauseBehind(attempts)
        const claimed = encodeRow({ ...row.success, attempts: attempts + 1, next: after })
        // One of several processes sends it. If that one ends, the next attempt comes at its time.
        if (!(yield* table.swap(space, key, text, claimed))) return now
        // The failure may have the address in it, which may be a secret.
        const status = yield* Effect.orElseSucceed(post(endpoint, row.success), () => 0)
        if (status >= 200 && status < 300) {
          yield* table.swap(space, key, claimed, undefined)
          return now + rest
        }
        yield* Effect.logWarning(
          `A webhook for ${JSON.stringify(endpoint.name)} was not taken (${status === 0 ? "no answer, or an address that is not allowed" : status}); attempt ${attempts + 1} of ${most}`
        )
        return after
      })

      const round = Effect.gen(function* () {
        woken = Deferred.makeUnsafe()
        let wake = (yield* Clock.currentTimeMillis) + rest
        for (let after: string | undefined; ;) {
          const rows = yield* table.scan(space, { after, limit: pageSize })
          const times = yield* Effect.forEach(rows, ({ key, value }) => deliver(key, value), { concurrency: 8 })
          wake = Math.min(wake, ...times)
          after = rows.at(-1)?.key
          if (rows.length < pageSize) return Math.max(0, wake - (yield* Clock.currentTimeMillis))
        }
      }).pipe(Effect.catch((error) => Effect.as(Effect.logError("The queue of webhooks can't be read", error), rest)))
      yield* Effect.forkScoped(
        Effect.forever(Effect.flatMap(round, (millis) => Effect.raceFirst(Effect.sleep(millis), Deferred.await(woken))))
      )

      const store = Effect.fnUntraced(function* (settled: SettledWork) {
        const at = yield* Clock.currentTimeMillis
        const body = bodyOf(settled, at)
        const kind: Kind = settled.pending.length > 0 ? "approval.needed" : "run.ended"
        for (const { kinds, name, tenant } of endpoints.values()) {
          if (tenant !== settled.tenant || kinds?.includes(kind) === false) continue
          const id = `msg_${(yield* sha256([name, tenant, settled.threadId, settled.id, kind].join("\u0000"))).slice(0, 40)}`
          const row = encodeRow({ v: 1, id, endpoint: name, body, attempts: 0, next: at })
          yield* table.swap(space, id, undefined, row)
        }
        Deferred.doneUnsafe(woken, Effect.void)
      })
      return (settled) => Effect.catch(store(settled), (error) => Effect.logError("A webhook can't be stored", error))
    })
  ).pipe(
    Layer.provide(Network.layer(rulesOf(options))),
    Layer.provide(Layer.provideMerge(Mac.layerWebCrypto, SecureRandom.layerWebCrypto))
  )
