/**
 * Tell people by mail that something waits for them, over SMTP. Install `nodemailer`; it needs Node.
 *
 * ```ts
 * import { Redacted } from "effect"
 * import * as SmtpNotify from "effect-deepagents/rules/SmtpNotify"
 *
 * const mail = SmtpNotify.layer({
 *   host: "mail.example.com",
 *   user: "agents",
 *   password: Redacted.make("…"),
 *   from: "agents@example.com",
 *   to: ["ada@example.com"]
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { loadPeer } from "../support/effect/peer.ts"
import { defined } from "../support/json/defined.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { cut } from "../support/text/text.ts"
import { escaped } from "../support/text/untrusted.ts"
import { lines } from "./internal/notice.ts"
import * as shapes from "./internal/shapes.ts"
import { Notify, NotifyError } from "./Notify.ts"

/** A mail server. */
export interface Options {
  /** The mail server. */
  readonly host: string
  /** The port: 587 demands `STARTTLS`, 465 speaks TLS from the start. Default: 587. */
  readonly port?: number | undefined
  /** The user name. Default: no sign-in. */
  readonly user?: string | undefined
  /** The password of the user. */
  readonly password?: Redacted.Redacted<string> | undefined
  /** The sender's address. */
  readonly from: string
  /** The addresses of the recipients. */
  readonly to: ReadonlyArray<string>
  /** Allows a connection without TLS (a server on this machine). Default: `false`. */
  readonly insecure?: boolean | undefined
}

const way = "mail"

const milliseconds = 20_000

/** The code that a failure of the mailer has; its message may quote what was sent. */
const codeOf = (cause: unknown): string =>
  typeof cause === "object" && cause !== null && "code" in cause && typeof cause.code === "string"
    ? cause.code
    : "unknown"

const refuseLayer = makeLayerCheck("SmtpNotify.layer", shapes.smtpNotifyLayer)

/** Sends one mail for each notification. Building the layer fails if `nodemailer` is not installed. */
export const layer = (options: Options): Layer.Layer<Notify, NotifyError> =>
  refuseLayer(options) ??
  Layer.effect(
    Notify,
    Effect.gen(function* () {
      const mailer = yield* loadPeer(
        "nodemailer",
        () => import("nodemailer"),
        (problem) => new NotifyError({ way, problem })
      )
      const { from, host, insecure = false, password, port = 587, to, user } = options
      const transport = mailer.createTransport({
        host,
        port,
        secure: port === 465,
        requireTLS: !insecure,
        ignoreTLS: insecure,
        connectionTimeout: milliseconds,
        greetingTimeout: milliseconds,
        socketTimeout: milliseconds,
        disableFileAccess: true,
        disableUrlAccess: true,
        ...defined({ auth: user === undefined ? undefined : { user, pass: password && Redacted.value(password) } })
      })
      return {
        send: (notification) => {
          const [title = "", ...rest] = lines(notification)
          return Effect.asVoid(
            Effect.tryPromise({
              try: () =>
                transport.sendMail({
                  from,
                  to: [...to],
                  subject: cut(escaped(title), 200),
                  text: rest.join("\n"),
                  headers: { "X-Deepagents-Request": escaped(notification.id) }
                }),
              catch: (cause) =>
                new NotifyError({ way, problem: `the server ${host}:${port} did not take it (${codeOf(cause)})` })
            })
          )
        }
      }
    })
  )
