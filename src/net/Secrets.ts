/**
 * Secrets that a model uses by name. `{{secret:NAME}}` in a request is replaced on its way out, for the hosts of the
 * secret, and the value is removed from the response.
 *
 * ```ts
 * import { Redacted } from "effect"
 * import { Secrets } from "effect-deepagents/net"
 *
 * const secrets = Secrets.layer({
 *   WEATHER_KEY: { value: Redacted.make("…"), hosts: ["api.weather.example"] }
 * })
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"

/** A secret, and the hosts that may get it: `example.com`, `*.example.com`, `example.com:8443`. */
export interface Secret {
  readonly value: Redacted.Redacted
  readonly hosts: ReadonlyArray<string>
}

/** Provides secrets by name. */
export class Secrets extends Context.Service<
  Secrets,
  {
    readonly get: (name: string) => Effect.Effect<Secret | undefined>
    readonly names: Effect.Effect<ReadonlyArray<string>>
  }
>()("effect-deepagents/Secrets") {}

/** Provides fixed secrets. */
export const layer = (secrets: { readonly [name: string]: Secret }): Layer.Layer<Secrets> => {
  const all = new Map(Object.entries(secrets))
  return Layer.succeed(Secrets, {
    get: (name) => Effect.succeed(all.get(name)),
    names: Effect.succeed([...all.keys()])
  })
}
