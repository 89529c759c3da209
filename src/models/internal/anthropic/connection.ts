/** Options of the SDK that the transports to Anthropic and to Bedrock share. */
import * as Duration from "effect/Duration"
import type * as Redacted from "effect/Redacted"
import { type GivenHeaders, revealed, secretsIn } from "../../../support/store/redacted.ts"
import type { Origin } from "../wire/errors.ts"
import { guardedFetch } from "../wire/guardedFetch.ts"

/** Settings of the connection to a server. */
export interface Connection {
  /**
   * The address of any server that speaks the Messages API. Default: Anthropic's, or the SDK's environment variable.
   */
  readonly baseURL?: string | undefined
  /** Headers of each request; a server that wants its key in `x-api-key` gets it here. Default: none. */
  readonly headers?: GivenHeaders | undefined
  /** Beta features by name. Default: none. */
  readonly betas?: ReadonlyArray<string> | undefined
  /**
   * Makes HTTP requests. Node's own goes through `HTTPS_PROXY` when `NODE_USE_ENV_PROXY=1` is set. Default: the
   * global `fetch`.
   */
  readonly fetch?: typeof globalThis.fetch | undefined
  /**
   * The longest wait for the response and for each next event; the `ModelTimeout` middleware limits a turn. Default:
   * 10 minutes.
   */
  readonly timeout?: Duration.Input | undefined
}

/** Options of the SDK: the set ones, without its own retries, logs, spans and warnings. */
export const clientOptions = (
  { baseURL, fetch = globalThis.fetch, headers, timeout }: Connection,
  origin: Origin,
  { isReaderBound = false }: { readonly isReaderBound?: boolean | undefined } = {}
) =>
  ({
    maxRetries: 0,
    logLevel: "off",
    openTelemetry: false,
    baseURL,
    fetch: guardedFetch(fetch, origin, { timeout, isReaderBound }),
    timeout: timeout === undefined ? undefined : Duration.toMillis(timeout),
    defaultHeaders: revealed(headers)
  }) as const

/** The values of secrets, which must not be in any error. */
export const secretsOf = (
  { headers }: Connection,
  own: ReadonlyArray<Redacted.Redacted | undefined>
): ReadonlyArray<string> => secretsIn([...own, ...Object.values(headers ?? {})])

/** Builds the header for beta features of the layer and the request. */
export const betaHeader = (connection: Connection, betas: ReadonlyArray<string>): Record<string, string> => {
  const all = new Set([...(connection.betas ?? []), ...betas])
  return all.size === 0 ? {} : { "anthropic-beta": [...all].join(",") }
}
