/**
 * Secrets that a model uses by name: `{{secret:NAME}}` in a request is filled in on its way out, for the hosts that it
 * is meant for, and taken out of whatever comes back.
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

/** The secrets by name, and their names. */
export class Secrets extends Context.Service<
  Secrets,
  {
    readonly get: (name: string) => Effect.Effect<Secret | undefined>
    readonly names: Effect.Effect<ReadonlyArray<string>>
  }
>()("effect-deepagents/Secrets") {}

/** Secrets that are given here, by name. */
export const layer = (secrets: { readonly [name: string]: Secret }): Layer.Layer<Secrets> => {
  const all = new Map(Object.entries(secrets))
  return Layer.succeed(Secrets, {
    get: (name) => Effect.succeed(all.get(name)),
    names: Effect.succeed([...all.keys()])
  })
}

/** No secrets. */
export const none: Layer.Layer<Secrets> = layer({})
