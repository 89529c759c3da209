/**
 * Claude on Amazon Bedrock, as a `ChatModel`: the same requests and answers as Anthropic's own, signed for AWS.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import * as BedrockChatModel from "effect-deepagents/models/BedrockChatModel"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You help." })
 *
 * const answer = Agent.run(helper, "What is Effect?").pipe(
 *   Effect.provide(BedrockChatModel.layer({ model: "global.anthropic.claude-opus-5-5", region: "eu-central-1" }))
 * )
 * ```
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { ChatModel, type Service } from "../core/ChatModel.ts"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import { ModelError } from "../core/ModelError.ts"
import { type Connection, secretsOf } from "./internal/anthropic/connection.ts"
import { bedrockFactor, profileOf } from "./internal/anthropic/models.ts"
import { makeService } from "./internal/anthropic/service.ts"
import type { Settings } from "./internal/anthropic/settings.ts"
import * as transport from "./internal/bedrock/transport.ts"
import { ModelCatalogue } from "./internal/facts/reference.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"
import { timeoutOf } from "./internal/wire/guardedFetch.ts"
import type { Overrides } from "./internal/wire/overrides.ts"

/** Options of a layer. Only `model` is needed. */
export interface Options extends Connection, Settings, Overrides {
  /**
   * A model id (`anthropic.claude-…-v1:0`), a cross-region inference profile (`eu.anthropic.…`, `global.anthropic.…`)
   * or the ARN of one.
   */
  readonly model: string
  /** The region. Default: `AWS_REGION`, else us-east-1. */
  readonly region?: string | undefined
  /** An API key of Bedrock. Default: `AWS_BEARER_TOKEN_BEDROCK`, else AWS's credential chain. */
  readonly bearerToken?: Redacted.Redacted | undefined
  /** AWS credentials. Default: AWS's credential chain (environment, profiles, SSO, containers, instances). */
  readonly credentials?: transport.Credentials | undefined
}

const provider = "bedrock"

/** The one version that all Claude models on Bedrock accept. Models up to 4.6 reject the SDK's own. */
const version = "bedrock-2023-05-31"
const refuse = makeEffectCheck("bedrock", shapes.bedrockChatModelLayer)

const make = Effect.fnUntraced(function* (options: Options): Effect.fn.Return<Service, ModelError> {
  const refused = refuse(options)
  if (refused !== undefined) return yield* refused
  const { model } = options
  const secrets = secretsOf(options, [
    options.bearerToken,
    options.credentials?.secretAccessKey,
    options.credentials?.sessionToken
  ])
  return makeService({
    provider,
    encoding: {
      model,
      profile: profileOf(model, yield* ModelCatalogue),
      settings: options,
      remote: false,
      fields: { anthropic_version: version }
    },
    overrides: options,
    open: Effect.succeed(yield* transport.make(options, { provider, model, secrets })),
    secrets,
    idle: timeoutOf(options.timeout),
    priceFactor: bedrockFactor(model)
  })
})

/**
 * Makes the layer of a model. Building it fails with `Unsupported` if the SDK is not installed. Missing credentials and
 * other request failures fail the turn.
 */
export const layer = (options: Options): Layer.Layer<ChatModel, ModelError> => Layer.effect(ChatModel, make(options))

/** As {@link layer}, with options of which any may be a `Config`. The region is read from `AWS_REGION` by default. */
export const layerConfig = (options: ConfigOptions<Options>): Layer.Layer<ChatModel, ModelError | Config.ConfigError> =>
  Layer.effect(
    ChatModel,
    Effect.gen(function* () {
      const own = yield* fromConfigured<Options>(options)
      const refused = refuse(own)
      if (refused !== undefined) return yield* refused
      const missing = new ModelError({
        provider,
        model: own.model,
        reason: { _tag: "InvalidRequest" },
        detail: "there is no region: set AWS_REGION, or give region"
      })
      const region = own.region ?? (yield* Effect.mapError(Config.String("AWS_REGION"), () => missing))
      return yield* make({ ...own, region })
    })
  )
