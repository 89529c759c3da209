/**
 * Connections: sources of the credential of an account, hidden from the model.
 *
 * ```ts
 * import { Connection, OpenApiTools } from "effect-deepagents/connect"
 *
 * const crm = OpenApiTools.fromUrl("https://crm.example.com/openapi.json", {
 *   auth: Connection.stored({ service: "CRM", namespace: "tenant/acme", name: "crm/ada" })
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { ApiKey, type Credential, CredentialStore, OAuthToken } from "../stores/CredentialStore.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import * as shapes from "./internal/shapes.ts"
import { ServiceError } from "./ServiceError.ts"

/** A source of the credential of one account. */
export interface Connection<out R = never> {
  /** The name of the service, for people. */
  readonly service: string
  /** A sentence on how to connect. */
  readonly how: string
  /** Returns a valid credential. With the `refused` one, it returns a renewed credential. */
  readonly credential: (refused?: Credential) => Effect.Effect<Credential, ServiceError, R>
}

/** Returns the key or the access token of a credential. */
export const secretOf = (credential: Credential): Redacted.Redacted<string> =>
  credential._tag === "ApiKey" ? credential.key : credential.accessToken

const isSame = (one: Credential, other: Credential): boolean =>
  Redacted.value(secretOf(one)) === Redacted.value(secretOf(other))

/** Wrong options are a failure of the service, since its tools can't fail otherwise. */
const makeCheck = (where: string, shape: string) =>
  makeEffectCheck(where, shape, (operation, problem) =>
    Effect.fail(
      new ServiceError({ service: "service", operation, reason: "InvalidRequest", problem, isRetryable: false })
    )
  )

const refuseStored = makeCheck("Connection.stored", shapes.connectionStored)

/**
 * A connection by the {@link CredentialStore}.
 */
export const stored = <E = never, R = never, E2 = never, R2 = never>(options: {
  /** The name of the service, for people. */
  readonly service: string
  /** The owner of the credential (the tenant, the user), or an effect that finds it at each call. */
  readonly namespace: string | Effect.Effect<string, E, R>
  /** The account; by default the service's name in lower case, with `-` for spaces. */
  readonly name?: string | undefined
  /** Renews a token, once for all processes. Without it, tokens expire. */
  readonly refresh?: ((credential: Credential) => Effect.Effect<Credential, E2, R2>) | undefined
  /** A sentence on how to connect, for a person without a connection. */
  readonly how?: string | undefined
}): Connection<CredentialStore | R | R2> => {
  const refused = refuseStored(options)
  if (refused !== undefined) return { service: "service", how: "", credential: () => refused }
  const { namespace, refresh, service } = options
  const name = options.name ?? service.toLowerCase().replaceAll(/\s+/g, "-")
  const how =
    options.how ??
    `Ask the user to connect ${service}: the application stores a credential named "${name}" in the CredentialStore.`
  const failure = (reason: "NotConnected" | "Unreachable", problem: string) =>
    new ServiceError({ service, operation: "connect", reason, problem, isRetryable: reason === "Unreachable" })
  const missing = failure("NotConnected", `${service} is not connected. ${how}`)
  const space: Effect.Effect<string, E, R> = typeof namespace === "string" ? Effect.succeed(namespace) : namespace
  return {
    service,
    how,
    // Failures of others may quote a secret: they go to the log, not to the model.
    credential: (refused) =>
      Effect.gen(function* () {
        const store = yield* CredentialStore
        const owner = yield* space
        const storedCredential = yield* store.get(owner, name)
        if (storedCredential === undefined) return yield* missing
        if (refresh === undefined) return storedCredential
        return yield* store.refreshed(owner, name, {
          refresh,
          ...(refused === undefined ? {} : { isExpired: (credential: Credential) => isSame(credential, refused) })
        })
      }).pipe(
        Effect.catch((error) =>
          error === missing
            ? Effect.fail(missing)
            : Effect.andThen(
                Effect.logWarning(`The credential of ${service} can't be had`, error),
                Effect.fail(failure("NotConnected", `the credential of ${service} can't be read or renewed. ${how}`))
              )
        )
      )
  }
}

const refuseFromToken = makeCheck("Connection.fromToken", shapes.connectionFromToken)

/**
 * A connection by the access tokens of `OAuth.accessToken`, or of `OAuth.connect`, which asks a person to sign in. The
 * model reads only `how` to connect; the failure itself goes to the log.
 */
export const fromToken = <E, R>(options: {
  /** The name of the service, for people. */
  readonly service: string
  /** Gives the access token, and renews a refused one. */
  readonly token: (refused: Redacted.Redacted | undefined) => Effect.Effect<Redacted.Redacted, E, R>
  /** The sentence that tells a person how to connect. Default: sign in to the service. */
  readonly how?: string | undefined
}): Connection<R> => {
  const refused = refuseFromToken(options)
  if (refused !== undefined) return { service: "service", how: "", credential: () => refused }
  const { service, token } = options
  const how = options.how ?? `Ask the user to sign in to ${service}.`
  return {
    service,
    how,
    credential: (refused) =>
      token(refused === undefined ? undefined : secretOf(refused)).pipe(
        Effect.map((accessToken) => OAuthToken.make({ accessToken })),
        Effect.catch((error) =>
          Effect.andThen(
            Effect.logWarning(`There is no token for ${service}`, error),
            Effect.fail(
              new ServiceError({
                service,
                operation: "connect",
                reason: "NotConnected",
                problem: `${service} is not connected. ${how}`,
                isRetryable: false
              })
            )
          )
        )
      )
  }
}

/**
 * A connection by one credential for everybody: a key of the application, or a bot's.
 */
export const fixed = (service: string, credential: Credential | Redacted.Redacted<string>): Connection => {
  const fixedCredential = Redacted.isRedacted(credential) ? ApiKey.make({ key: credential }) : credential
  return {
    service,
    how: `The application's own credential for ${service} is to be replaced where the application is configured.`,
    credential: () => Effect.succeed(fixedCredential)
  }
}
