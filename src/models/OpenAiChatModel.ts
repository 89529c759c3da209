/**
 * OpenAI's models, through the Responses API.
 *
 * ```ts
 * import { Config, Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
 *
 * const helper = Agent.make({ name: "helper", prompt: "You answer briefly." })
 *
 * const answer = Agent.run(helper, "What is a monad?").pipe(
 *   Effect.provide(OpenAiChatModel.layerConfig({ model: Config.String("MODEL"), reasoning: { effort: "low" } }))
 * )
 * ```
 *
 * The package `openai` must be installed. A run sends its whole history with each request, and by default OpenAI stores
 * nothing: reasoning comes encrypted and goes back as it came.
 */
import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { KeyValueStore } from "effect/persistence/KeyValueStore"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { ResponseCreateParamsStreaming } from "openai/resources/responses/responses"
import { ChatModel } from "../core/ChatModel.ts"
import { type ConfigOptions, fromConfigured } from "../core/configured.ts"
import type { JsonObject } from "../core/Json.ts"
import { ModelError } from "../core/ModelError.ts"
import * as Tool from "../core/Tool.ts"
import { valueAt } from "../support/json/valueAt.ts"
import type { Batching, OpenBatched } from "./internal/batch/batches.ts"
import { makeLayerBatch } from "./internal/batch/layer.ts"
import { atTier, type ModelFacts, pricingOf } from "./internal/facts/facts.ts"
import { ModelCatalogue } from "./internal/facts/reference.ts"
import { backgroundEvents, idIn } from "./internal/openai/background.ts"
import { type Client, type Connection, makeClient, type SendBatched, targetOf } from "./internal/openai/client.ts"
import { abilitiesOf, findModel, isReasoning } from "./internal/openai/models.ts"
import type { Parameters, ReasoningEffort } from "./internal/openai/parameters.ts"
import { sendNew } from "./internal/openai/previousResponse.ts"
import { makeResponsesDecoder } from "./internal/openai/responsesDecode.ts"
import { makeResponsesWriter } from "./internal/openai/responsesRequest.ts"
import { makeApiSessions, type Sender } from "./internal/openai/session.ts"
import { jsonOf } from "./internal/openai/settings.ts"
import { withUploads } from "./internal/openai/uploads.ts"
import { makeSocketWarner, openSocketSender } from "./internal/openai/webSocket.ts"
import { makeEffectCheck } from "./internal/refuse.ts"
import * as shapes from "./internal/shapes.ts"
import { makeEfforts, type ThinkingLevel } from "./internal/turn/thinking.ts"
import type { Uploads } from "./internal/turn/uploads.ts"
import type { Overrides } from "./internal/wire/overrides.ts"

/**
 * Connection and parameters of a model. Only parameters that are set are sent. Parameters of a request win over them,
 * and `null` there removes one. Window, vision and prices default to the catalogue (an unknown model has vision),
 * `structuredOutput` to `"native"`.
 */
export interface Options extends Connection, Overrides, Parameters {
  /** The model's id, as the API knows it. */
  readonly model: string
  /** Effort of the model's reasoning, and the form of its summary, if there is to be one. */
  readonly reasoning?:
    | {
        /** The amount of reasoning. Default: the model's own. */
        readonly effort?: ReasoningEffort | undefined
        /** Returns a summary of the reasoning. Default: none. */
        readonly summary?: "auto" | "concise" | "detailed" | undefined
      }
    | undefined
  /** Amount of thinking before an answer, in the words of every provider; `reasoning` wins over it. */
  readonly thinking?: ThinkingLevel | undefined
  /** Has OpenAI keep the responses (for its dashboard, 30 days). `false` by default. */
  readonly store?: boolean | undefined
  /**
   * Has OpenAI make each turn in the background, for turns of many minutes. A cut connection goes on behind its last
   * event, and a run after a crash goes on with the turn that its thread began. OpenAI stores such responses.
   * Default: `false`.
   */
  readonly background?: boolean | undefined
  /**
   * Sends only the messages since the last response, which OpenAI stores, instead of the whole history.
   * Default: `false`.
   */
  readonly previousResponse?: boolean | undefined
  /**
   * Sends the turns of a run over one WebSocket, each with only the messages since the last response, which the server
   * keeps in memory. A turn goes over HTTP if the server takes no WebSocket. Default: `false`.
   */
  readonly webSocket?: boolean | undefined
  /** Uploads large images and files once, and sends their ids. Default: each request holds them. */
  readonly uploads?: Uploads | undefined
  /**
   * Tools of OpenAI's, as its API describes them. It runs some (`web_search`, `file_search`, `code_interpreter`, `mcp` …).
   * The agent's own tools and gates do the client's part: `shell` (`{ type: "shell", environment: { type: "local" } }`),
   * `apply_patch`, `computer`, a `custom` tool of any name, `tool_search` (`execution: "client"`), and
   * {@link mcpApproval}.
   */
  readonly serverTools?: ReadonlyArray<JsonObject> | undefined
  /** Holds arguments to the schemas of their tools, if strict mode takes these schemas. */
  readonly strictTools?: boolean | undefined
  /** Parameters of the API that have no option here, by the API's names. */
  readonly parameters?: JsonObject | undefined
}
const refuse = makeEffectCheck("openai", shapes.openAiChatModelLayer)

/** Refuses features that exclude each other, with the remedy. */
const refuseTogether = (options: Options): ModelError | undefined => {
  const { azure, background, fetch, model, previousResponse, store, webSocket } = options
  const storing = background === true ? "background" : previousResponse === true ? "previousResponse" : undefined
  const other =
    background === true ? "background" : fetch !== undefined ? "fetch" : azure?.apiVersion && "azure.apiVersion"
  const detail =
    store === false && storing !== undefined
      ? `${storing} needs responses that OpenAI stores: leave store out`
      : webSocket === true && other
        ? `webSocket does not go with ${other}: leave one of them out`
        : undefined
  return detail === undefined
    ? undefined
    : new ModelError({ provider: "openai", model, reason: { _tag: "InvalidRequest" }, detail })
}

/** Facts about the features that a layer asks for. */
const featuresOf = ({ abilities, background = false, previousResponse = false, store, ...options }: Options) => ({
  background,
  previousResponse,
  store: store ?? (background || previousResponse),
  abilities: abilities ?? (targetOf(options) === "other" ? [] : abilitiesOf(options.model))
})

/** The prices of a model, and their use, for requests of a tier. */
const pricesOf = (own: Options["prices"], facts: ModelFacts | undefined, tier: "batch" | undefined) => ({
  prices: own ?? valueAt(facts?.tiers ?? {}, tier) ?? facts?.prices,
  price: atTier(pricingOf(facts, own), tier)
})

/** The opener of a session's sender, where its requests are more than the JSON of a body. */
const openSenderOf = (
  { background = false, model, previousResponse = false, webSocket = false }: Options,
  provider: string
): Effect.Effect<Sender<ResponseCreateParamsStreaming>, never, Scope.Scope> | undefined => {
  if (webSocket) return openSocketSender({ isStored: previousResponse, warn: makeSocketWarner({ provider, model }) })
  if (!background && !previousResponse) return undefined
  return Effect.succeed({
    send:
      (body, { resume, whole }) =>
      (sdk, signal) =>
        background
          ? backgroundEvents(sdk, whole ?? body, idIn(resume, model), signal)
          : sendNew(sdk, body, whole, signal)
  })
}

const make = Effect.fnUntraced(function* <R = never>(
  options: Options,
  makeBatched?: (client: Client) => Effect.Effect<OpenBatched<SendBatched>, ModelError, R>
) {
  const { model, parameters = {}, reasoning, webSocket = false } = options
  const { abilities, background, previousResponse, store } = featuresOf(options)
  const refused = refuseTogether(options)
  if (refused !== undefined) return yield* refused
  const provider = targetOf(options) === "azure-openai" ? "azure-openai" : "openai"
  const catalogue = yield* ModelCatalogue
  const facts = findModel(model, catalogue)
  const client = yield* makeClient(options, "responses", provider, model)
  const openBatched = makeBatched === undefined ? undefined : yield* makeBatched(client)
  const { price, prices } = pricesOf(options.prices, facts, openBatched && "batch")
  const efforts = makeEfforts(facts?.efforts)
  const settings = {
    provider,
    model,
    deployment: options.azure?.deployment,
    parameters: [{ ...jsonOf({ ...options, store }), ...(background ? { background } : {}) }, parameters],
    hasPrevious: previousResponse || webSocket,
    reasons: reasoning !== undefined || isReasoning(model, catalogue),
    get efforts() {
      return efforts.taken()
    },
    serverTools: options.serverTools,
    strictTools: options.strictTools,
    readsThoughts: targetOf(options) === "other",
    hasCacheKey: targetOf(options) !== "other"
  }
  return ChatModel.of({
    modelId: model,
    provider,
    supportsVision: options.supportsVision ?? facts?.vision ?? true,
    contextWindowTokens: options.contextWindowTokens ?? facts?.contextWindowTokens,
    structuredOutput: options.structuredOutput ?? "native",
    prices,
    abilities,
    makeSession: withUploads(
      client,
      options.uploads
    )(
      makeApiSessions(client, {
        provider,
        model,
        makeWriter: () => makeResponsesWriter(settings),
        path: "/responses",
        efforts,
        isBackground: background,
        openSender: openSenderOf(options, provider),
        openBatched,
        price,
        makeDecoder: makeResponsesDecoder
      })
    )
  })
})

/**
 * Answers approvals that an MCP server of `serverTools` asks for: a tool for the agent, which model and API don't see. Each
 * of its calls (server, tool, arguments) waits for a decision, as the calls of every tool with `needsApproval`; what is
 * refused is refused to OpenAI, with the reason.
 */
export const mcpApproval = Tool.make("mcp_approval", {
  description: "Approves a call that an MCP server waits with.",
  parameters: { server: Schema.String, tool: Schema.String, arguments: Schema.Json },
  needsApproval: true,
  annotations: { openWorld: true },
  execute: () => Effect.succeed("approved")
})

const makeChecked = Effect.fnUntraced(function* (options: Options) {
  const refused = refuse(options)
  return refused === undefined ? yield* make(options) : yield* refused
})

/**
 * Makes the layer of a model. Building it fails with a `ModelError`: `Authentication` without a key, `Unsupported`
 * without the package `openai`.
 */
export const layer = (options: Options): Layer.Layer<ChatModel, ModelError> =>
  Layer.effect(ChatModel, makeChecked(options))

/** As {@link layer}, with options of which any may be a `Config`. The key is read from `OPENAI_API_KEY` by default. */
export const layerConfig = (options: ConfigOptions<Options>): Layer.Layer<ChatModel, ModelError | Config.ConfigError> =>
  Layer.effect(ChatModel, Effect.flatMap(fromConfigured<Options>(options), makeChecked))

/** Options of {@link layerBatch}. */
export interface BatchOptions
  extends Omit<Options, "background" | "previousResponse" | "webSocket" | "serviceTier">, Batching {}

/** Refuses the dated API of Azure, which documents no batches of responses. */
const refuseDated = ({ azure, model }: Pick<Options, "azure" | "model">): ModelError | undefined => {
  if (azure?.apiVersion === undefined) return undefined
  const detail = "Azure's batches of responses are in its v1 API alone: leave azure.apiVersion out"
  return new ModelError({ provider: "azure-openai", model, reason: { _tag: "Unsupported" }, detail })
}

/**
 * As {@link layer}, by OpenAI's Batch API: half the price, and an answer within a day. For many runs at the same time,
 * such as the agents of a workflow: requests of the same moments share a batch.
 *
 * ```ts
 * import { Layer } from "effect"
 * import { KeyValueStore } from "effect/persistence"
 * import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
 *
 * export const cheap = OpenAiChatModel.layerBatch({ model: "gpt-6.1-sol" }).pipe(
 *   Layer.provide(KeyValueStore.layerMemory)
 * )
 * ```
 *
 * The store keeps the batch of each request until the run has its answer. After a crash, the same request goes on with
 * its batch, and reads its answer again if no run finished with it. A store on disk survives a crash; a process needs a
 * store of its own. With `azure`, `deployment` (or the model's name) must be a deployment for batches.
 */
export const layerBatch: (options: BatchOptions) => Layer.Layer<ChatModel, ModelError, KeyValueStore> =
  makeLayerBatch<BatchOptions>("openai", shapes.openAiChatModelLayerBatch, (own, batching) =>
    Effect.gen(function* () {
      const refused = refuseDated(own)
      if (refused !== undefined) return yield* refused
      const { makeBatched } = yield* Effect.promise(() => import("./internal/openai/batch.ts"))
      return yield* make(own, makeBatched(batching))
    })
  )
