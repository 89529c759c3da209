/** The model of a thread: the choice of its last input that made one, in the metadata of the thread. */
import * as Effect from "effect/Effect"
import type { Json, JsonObject } from "../../core/Json.ts"
import type { Service } from "../../core/SessionStore.ts"
import { isMissing } from "./posting.ts"

const key = "effect-deepagents/model"

/** The model that a thread has by its metadata. */
export const modelIn = (metadata: JsonObject): string | undefined => {
  const name: Json | undefined = metadata[key]
  return typeof name === "string" && name !== "" ? name : undefined
}

/** Reads the model of a thread. One that can't be read has none: its run fails by the store. */
export const readModel = (store: Service, threadId: string): Effect.Effect<string | undefined> =>
  store.info(threadId).pipe(
    Effect.map(({ metadata }) => modelIn(metadata)),
    Effect.orElseSucceed(() => undefined)
  )

/** Chooses the model of a thread, which need not exist. */
export const chooseModel = Effect.fnUntraced(function* (store: Service, threadId: string, model: string | null) {
  const thread = yield* Effect.catchIf(store.info(threadId), isMissing, () => Effect.undefined)
  const modelName = model ?? ""
  if (thread === undefined) yield* store.create({ threadId, metadata: { [key]: modelName } })
  else if ((modelIn(thread.metadata) ?? "") !== modelName) {
    yield* store.describe(threadId, { ...thread.metadata, [key]: modelName })
  }
})
