/**
 * Notify people of pending requests: at the terminal, by a webhook, in Slack, in Telegram.
 *
 * Each way is a layer of `Notify`. {@link all} combines ways, {@link only} filters by kind and severity. `SmtpNotify` sends
 * mail.
 *
 * ```ts
 * import { Config, Effect, Layer } from "effect"
 * import { FetchHttpClient } from "effect/http"
 * import { Notify } from "effect-deepagents/rules"
 *
 * const ways = Layer.unwrap(
 *   Effect.map(Config.Redacted("SLACK_WEBHOOK"), (url) =>
 *     Notify.all([Notify.terminal, Notify.only(Notify.slack({ url }), { severity: "high" })])
 *   )
 * ).pipe(Layer.provide(FetchHttpClient.layer))
 * ```
 */
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Headers from "effect/http/Headers"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type { Json } from "../core/Json.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { type Kind, lines, type Notification, type Severity } from "./internal/notice.ts"
import * as shapes from "./internal/shapes.ts"

export type { Kind, Severity } from "./internal/notice.ts"

export { Notification } from "./internal/notice.ts"

/** A way failed to send a notification. The error contains no secret. */
export class NotifyError extends TaggedError<NotifyError>()("NotifyError", {
  way: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `The notification by ${this.way} was not sent: ${this.problem}`
  }
}

/** Sends notifications. */
export class Notify extends Context.Service<
  Notify,
  { readonly send: (notification: Notification) => Effect.Effect<void, NotifyError> }
>()("effect-deepagents/Notify") {}

/** Writes notifications to the console, on standard error. */
export const terminal: Layer.Layer<Notify> = Layer.succeed(Notify, {
  send: (notification) => Console.error(lines(notification).join("\n"))
})

const seconds = 10

/** Posts JSON. The address may be a secret, so failures don't quote it, and it is hidden from the tracer. */
const post = (
  way: string,
  client: HttpClient.HttpClient,
  url: Redacted.Redacted<string>,
  headers: { readonly [name: string]: Redacted.Redacted<string> },
  body: Json
): Effect.Effect<void, NotifyError> => {
  const plain = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Redacted.value(value)]))
  const request = HttpClientRequest.bodyJsonUnsafe(
    HttpClientRequest.post(Redacted.value(url), { headers: plain }),
    body
  )
  return HttpClient.withScope(client)
    .execute(request)
    .pipe(
      Effect.mapError(() => new NotifyError({ way, problem: "the address can't be reached" })),
      Effect.flatMap(({ status }) =>
        status >= 200 && status < 300
          ? Effect.void
          : Effect.fail(new NotifyError({ way, problem: `the server answered with status ${status}` }))
      ),
      Effect.timeoutOrElse({
        duration: seconds * 1000,
        orElse: () => Effect.fail(new NotifyError({ way, problem: `no answer came in ${seconds} seconds` }))
      }),
      Effect.scoped,
      Effect.provideService(HttpClient.TracerDisabledWhen, () => true),
      Effect.updateService(Headers.CurrentRedactedNames, (names) => [...names, ...Object.keys(headers)])
    )
}

const over = (
  way: string,
  send: (
    post: (
      url: Redacted.Redacted<string>,
      headers: { readonly [name: string]: Redacted.Redacted<string> },
      body: Json
    ) => Effect.Effect<void, NotifyError>,
    notification: Notification
  ) => Effect.Effect<void, NotifyError>
): Layer.Layer<Notify, never, HttpClient.HttpClient> =>
  Layer.effect(
    Notify,
    Effect.map(HttpClient.HttpClient, (client) => ({
      send: (notification: Notification) =>
        send((url, headers, body) => post(way, client, url, headers, body), notification)
    }))
  )

const refuseWebhook = makeLayerCheck("Notify.webhook", shapes.notifyWebhook)

/** Posts notifications as JSON (see {@link Notification}) to an address, with headers that may be secrets. */
export const webhook = (options: {
  /** The address that notifications are posted to. */
  readonly url: Redacted.Redacted<string>
  /** Headers of each post. Default: none. */
  readonly headers?: { readonly [name: string]: Redacted.Redacted<string> } | undefined
}): Layer.Layer<Notify, never, HttpClient.HttpClient> =>
  refuseWebhook(options) ??
  over("webhook", (post, notification) => post(options.url, options.headers ?? {}, { ...notification }))

/** Escapes mentions and links. */
const escapeSlack = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")

const refuseSlack = makeLayerCheck("Notify.slack", shapes.notifySlack)

/** Posts notifications to an incoming webhook of Slack. */
export const slack = (options: {
  /** The address of the incoming webhook. */
  readonly url: Redacted.Redacted<string>
}): Layer.Layer<Notify, never, HttpClient.HttpClient> =>
  refuseSlack(options) ??
  over("Slack", (post, notification) =>
    post(
      options.url,
      {},
      { text: escapeSlack(lines(notification).join("\n")), unfurl_links: false, unfurl_media: false }
    )
  )

const refuseTelegram = makeLayerCheck("Notify.telegram", shapes.notifyTelegram)

/** Sends notifications by a bot of Telegram to the chat `chatId`. `baseUrl` is the address of the API. */
export const telegram = (options: {
  /** The token of the bot. */
  readonly token: Redacted.Redacted<string>
  /** The chat that the bot writes to. */
  readonly chatId: string
  /** The address of the API. Default: `https://api.telegram.org`. */
  readonly baseUrl?: string | undefined
}): Layer.Layer<Notify, never, HttpClient.HttpClient> => {
  const refused = refuseTelegram(options)
  if (refused !== undefined) return refused
  const { baseUrl = "https://api.telegram.org", chatId, token } = options
  const url = Redacted.make(`${baseUrl.replace(/\/+$/, "")}/bot${Redacted.value(token)}/sendMessage`)
  return over("Telegram", (post, notification) =>
    post(
      url,
      {},
      {
        chat_id: chatId,
        text: lines(notification).join("\n"),
        link_preview_options: { is_disabled: true }
      }
    )
  )
}

/** The number of notifications with a failed way that {@link all} remembers. */
const mostOpen = 1000

/**
 * Sends by all of these ways. It tries all, and fails if one of them fails. Sent again, a notification with the same `id`
 * goes only by the failed ways. This process remembers the last 1,000.
 */
export const all = <E, R>(ways: ReadonlyArray<Layer.Layer<Notify, E, R>>): Layer.Layer<Notify, E, R> =>
  Layer.effect(
    Notify,
    Effect.map(
      Effect.forEach(ways, (way) => Effect.map(Layer.build(way), (context) => Context.get(context, Notify))),
      (services) => {
        /** The successful ways of notifications that another way failed to send. */
        const open = new Map<string, Set<Notify["Service"]>>()
        const sendBy =
          (notification: Notification, successes: Set<Notify["Service"]>) => (service: Notify["Service"]) =>
            Effect.exit(Effect.tap(service.send(notification), () => Effect.sync(() => successes.add(service))))
        return {
          send: (notification: Notification) =>
            Effect.gen(function* () {
              const { id } = notification
              const successes = open.get(id) ?? new Set()
              open.set(id, successes)
              const [oldest] = open.keys()
              if (open.size > mostOpen && oldest !== undefined) open.delete(oldest)
              const remaining = services.filter((service) => !successes.has(service))
              const exits = yield* Effect.forEach(remaining, sendBy(notification, successes), {
                concurrency: "unbounded"
              })
              const failed = exits.find(Exit.isFailure)
              if (failed !== undefined) return yield* failed
              open.delete(id)
            })
        }
      }
    )
  )

const ranks: { readonly [S in Severity]: number } = { low: 0, normal: 1, high: 2 }

/** Filters notifications by kind and by lowest severity. */
export const only = <E, R>(
  way: Layer.Layer<Notify, E, R>,
  filter: { readonly kinds?: ReadonlyArray<Kind> | undefined; readonly severity?: Severity | undefined }
): Layer.Layer<Notify, E, R> =>
  Layer.effect(
    Notify,
    Effect.map(Layer.build(way), (context) => {
      const { send } = Context.get(context, Notify)
      const { kinds, severity = "low" } = filter
      return {
        send: (notification: Notification) =>
          (kinds === undefined || kinds.includes(notification.kind)) && ranks[notification.severity] >= ranks[severity]
            ? send(notification)
            : Effect.void
      }
    })
  )
