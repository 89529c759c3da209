/**
 * The key that threads are signed with, where their store is in hands that are not trusted. `Tamper.layer` of
 * `effect-deepagents/rules` makes it of a secret.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"

/** Signs texts, and checks signatures (in hexadecimal digits). */
export class SigningKey extends Context.Service<
  SigningKey,
  {
    readonly sign: (text: string) => Effect.Effect<string>
    readonly isSigned: (text: string, mac: string) => Effect.Effect<boolean>
  }
>()("effect-deepagents/SigningKey") {}
