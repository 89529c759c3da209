/** Changes files once: a tool that asks in the middle of its work runs again, and must not repeat earlier changes. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as BackendError from "../../../core/BackendError.ts"
import { type Json } from "../../../core/Json.ts"
import { canonical } from "../../../core/schema/jsonTree.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import { sha256 } from "../../../support/store/hash.ts"
import type { Rules } from "./model.ts"

/** Does an operation once in a tool call. */
export type Once = <A, I, E>(
  operation: string,
  input: Json,
  schema: Schema.Codec<A, I>,
  work: Effect.Effect<A, E>
) => Effect.Effect<A, E>

/** Makes the {@link Once} of some rules. Without a rule that asks, no tool runs again, and nothing is recorded. */
export const onceFor = ({ commands, files }: Pick<Rules, "commands" | "files">): Once => {
  const asks = [commands, ...files.map(({ ruling }) => ruling)].some(({ _tag }) => _tag === "Ask")
  if (!asks) return (_operation, _given, _schema, work) => work
  return (operation, input, schema, work) =>
    Effect.flatMap(Effect.serviceOption(ToolContext), (context) =>
      Option.isNone(context)
        ? work
        : Effect.flatMap(sha256(canonical(input)), (digest) =>
            context.value.step(`${operation} ${digest}`, work, schema)
          )
    )
}

export const Written = Schema.Struct({ path: Schema.String, created: Schema.Boolean, version: Schema.String })

export const Edited = Schema.Struct({
  path: Schema.String,
  replaced: Schema.Finite,
  lines: Schema.Array(Schema.Finite),
  version: Schema.String
})

export const Uploaded = Schema.Array(
  Schema.Union([
    Schema.Struct({ path: Schema.String, ok: Schema.Literal(true), value: Written }),
    Schema.Struct({ path: Schema.String, ok: Schema.Literal(false), error: BackendError.BackendError })
  ])
)
