/** Parameters for a provider, or for one model of it, beside those of the caller, as plain data. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { ChatModel } from "../core/ChatModel.ts"
import { JsonObject } from "../core/Json.ts"
import { normaliseName } from "../support/text/names.ts"

/**
 * Parameters for every model of a provider, or (with `model`) for one exact model of it. They are the provider's own,
 * by the names of its API, as in `ModelRequest.parameters`.
 */
export const ProviderProfile = Schema.Struct({
  provider: Schema.String,
  model: Schema.optionalKey(Schema.String),
  parameters: JsonObject
})
export interface ProviderProfile extends Schema.Schema.Type<typeof ProviderProfile> {}

/** The parameters that some profiles have for a model: its provider's first, its own over them. */
export const parametersOf = (profiles: ReadonlyArray<ProviderProfile>, provider: string, model: string): JsonObject => {
  const ours = profiles.filter((profile) => normaliseName(profile.provider) === normaliseName(provider))
  const general = ours.filter((profile) => profile.model === undefined)
  const exact = ours.filter((profile) => profile.model === model)
  return Object.assign({}, ...[...general, ...exact].map((profile) => profile.parameters))
}

/** Makes a model that is asked with these parameters, unless a request says otherwise. */
export const withParameters: {
  (parameters: JsonObject): <E, R>(layer: Layer.Layer<ChatModel, E, R>) => Layer.Layer<ChatModel, E, R>
  <E, R>(layer: Layer.Layer<ChatModel, E, R>, parameters: JsonObject): Layer.Layer<ChatModel, E, R>
} = dual(2, <E, R>(layer: Layer.Layer<ChatModel, E, R>, parameters: JsonObject): Layer.Layer<ChatModel, E, R> =>
  Object.keys(parameters).length === 0
    ? layer
    : Layer.effect(
        ChatModel,
        Effect.map(Layer.build(layer), (context) => {
          const model = Context.get(context, ChatModel)
          return ChatModel.of({
            ...model,
            makeSession: Effect.map(model.makeSession, (session) => ({
              nextTurn: (request) =>
                session.nextTurn({ ...request, parameters: { ...parameters, ...request.parameters } })
            }))
          })
        })
      )
)
