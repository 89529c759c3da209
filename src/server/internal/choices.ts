/** The model, the mode and the thinking of a thread: the choices of its last input that made some, in the metadata of the thread. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Json, JsonObject } from "../../core/Json.ts"
import type { Service } from "../../core/SessionStore.ts"
import { defined } from "../../support/json/defined.ts"
import { isMissing } from "./posting.ts"

/** The mode of the thread at work, which its server offers. Elsewhere it is empty. */
export const Mode = Context.Reference<string>("effect-deepagents/Mode", { defaultValue: () => "" })

/** The names that were chosen. */
export interface Choices {
  readonly model?: string | undefined
  readonly mode?: string | undefined
  readonly thinking?: string | undefined
}

/** The choices of an input. `null` takes a choice back. */
type NewChoices = { readonly [Key in keyof Choices]?: string | null | undefined }

const keys = {
  model: "effect-deepagents/model",
  mode: "effect-deepagents/mode",
  thinking: "effect-deepagents/thinking"
} as const

const nameIn = (metadata: JsonObject, key: string): string | undefined => {
  const name: Json | undefined = metadata[key]
  return typeof name === "string" && name !== "" ? name : undefined
}

/** The choices that a thread has by its metadata. */
export const choicesIn = (metadata: JsonObject): Choices =>
  defined({
    model: nameIn(metadata, keys.model),
    mode: nameIn(metadata, keys.mode),
    thinking: nameIn(metadata, keys.thinking)
  })

/** Reads the choices of a thread. An unreadable thread has none: its run fails by the store. */
export const readChoices = (store: Service, threadId: string): Effect.Effect<Choices> =>
  store.info(threadId).pipe(
    Effect.map(({ metadata }) => choicesIn(metadata)),
    Effect.orElseSucceed((): Choices => ({}))
  )

/** Keeps the choices of an input for its thread, which need not exist. */
export const keepChoices = Effect.fnUntraced(function* (
  store: Service,
  threadId: string,
  { mode, model, thinking }: NewChoices
) {
  if (mode === undefined && model === undefined && thinking === undefined) return
  const thread = yield* Effect.catchIf(store.info(threadId), isMissing, () => Effect.undefined)
  const before = thread?.metadata ?? {}
  const changes = Object.entries({ [keys.model]: model, [keys.mode]: mode, [keys.thinking]: thinking }).flatMap(
    ([key, name]) =>
      name === undefined || (thread !== undefined && (nameIn(before, key) ?? "") === (name ?? ""))
        ? []
        : [[key, name ?? ""]]
  )
  if (changes.length === 0) return
  const metadata = { ...before, ...Object.fromEntries(changes) }
  if (thread === undefined) yield* store.create({ threadId, metadata })
  else yield* store.describe(threadId, metadata)
})
