/** One run's line to a model of the AI SDK: writes a call, makes it, reads the turn. */
import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Message
} from "@ai-sdk/provider"
import * as Effect from "effect/Effect"
import { fromAsyncIterable, type ModelRequest, type ModelSession, turnPurpose } from "../../../../core/ChatModel.ts"
import type { JsonObject } from "../../../../core/Json.ts"
import type { ModelError } from "../../../../core/ModelError.ts"
import { observed } from "../../../../support/effect/observed.ts"
import { makeOutputFormat, makeToolbox } from "../../../internal/openai/schemas.ts"
import type { Dialect } from "../../../internal/schema/toolSchema.ts"
import { narrow } from "../../../internal/turn/choice.ts"
import type { Sink } from "../../../internal/turn/decodeTurn.ts"
import { makeSessions, type Write } from "../../../internal/turn/session.ts"
import type { Origin } from "../../../internal/wire/errors.ts"
import { patiently } from "../../../internal/wire/patience.ts"
import { textsOf } from "../../../internal/wire/secrets.ts"
import { makeWarner } from "../../../internal/wire/warned.ts"
import { overlay, type ProviderTool } from "./call.ts"
import { makeDecoder } from "./decode.ts"
import { toModelError } from "./errors.ts"
import { reachOf } from "./media.ts"
import { makePromptWriter } from "./prompt.ts"

type Model = LanguageModelV3 | LanguageModelV4

type Tools = NonNullable<LanguageModelV4CallOptions["tools"]>

/** The settings of a layer, in the form in which they are used. `secrets` are hidden in errors. */
export interface Line {
  readonly settings: JsonObject
  readonly providerTools: { readonly [name: string]: ProviderTool }
  readonly headers: { readonly [name: string]: string }
  readonly secrets: ReadonlyArray<string>
  readonly idle: number
  readonly schemas: Dialect
}

type PromptV3 = LanguageModelV3CallOptions["prompt"]

/** A message as a model of V3 takes it: files are bare, and parts of the provider's own are calls and results. */
const downgraded = (message: LanguageModelV4Message): PromptV3[number] => {
  const { providerOptions } = message
  const options = providerOptions === undefined ? {} : { providerOptions }
  switch (message.role) {
    case "system":
      return { role: "system", content: message.content, ...options }
    case "user":
      return {
        role: "user",
        content: message.content.map((part) => {
          if (part.type === "text") return part
          const { data, ...rest } = part
          // The dialect lets no reference through, and texts are text parts.
          return { ...rest, data: data.type === "data" ? data.data : data.type === "url" ? data.url : "" }
        }),
        ...options
      }
    case "assistant":
    case "tool":
      // Calls and results are written the same in both; `custom` comes from models of V4 only.
      return message as PromptV3[number]
  }
}

const send = (
  model: Model,
  call: LanguageModelV4CallOptions
): PromiseLike<{ readonly stream: ReadableStream<unknown> }> => {
  if (model.specificationVersion === "v4") return model.doStream(call)
  const { prompt, reasoning: _, ...rest } = call
  return model.doStream({ ...rest, prompt: prompt.map(downgraded) })
}

const ended = { done: true, value: undefined } as const

/** The parts of a call that is made when somebody reads. Leaving them cancels the stream, and aborts the signal. */
const partsOf = (make: () => PromiseLike<{ readonly stream: ReadableStream<unknown> }>): AsyncIterable<unknown> => ({
  [Symbol.asyncIterator]: () => {
    const reader = observed(
      Promise.resolve()
        .then(make)
        .then(({ stream }) => stream.getReader())
    )
    return {
      next: () =>
        reader.then((it) => it.read()).then((part) => (part.done ? ended : { done: false, value: part.value })),
      return: () => reader.then((it) => it.cancel()).then(() => ended)
    }
  }
})

/** The tools of a request: the agent's, and the provider's where the request allows them. */
const toolsOf = (
  definitions: ReadonlyArray<Pick<ModelRequest["tools"][number], "name" | "description" | "parameters">>,
  providerTools: Line["providerTools"],
  isTurn: boolean
): Tools => {
  const own = new Map(Object.entries(providerTools))
  const names = new Set(definitions.map(({ name }) => name))
  return [
    ...definitions.map(({ description, name, parameters }): Tools[number] => {
      const provided = own.get(name)
      if (provided !== undefined) return { type: "provider", id: provided.id, name, args: { ...provided.args } }
      return { type: "function", name, description, inputSchema: parameters }
    }),
    ...[...own].flatMap(([name, { args, id, isProviderExecuted }]): Tools =>
      isTurn && !names.has(name) && isProviderExecuted !== false
        ? [{ type: "provider", id, name, args: { ...args } }]
        : []
    )
  ]
}

/** Makes the opener of a layer's sessions. */
export const makeSdkSessions = (model: Model, line: Line): Effect.Effect<ModelSession, ModelError> => {
  const { modelId, provider, specificationVersion, supportedUrls } = model
  const names = { provider, model: modelId }
  const warnOfParameters = makeWarner(
    "parameters",
    (list) => `the AI SDK knows no setting of this name, and did not pass it on: ${list}. Use providerOptions`
  )
  const warnOfCall = makeWarner("provider", (list) => `${provider}/${modelId}: ${list}`)
  const warn = (warnings: ReadonlyArray<string>, sink: Sink): void => {
    const warning = warnOfCall(warnings)
    if (warning !== undefined) sink.emit(warning)
  }
  const urlsOf = Effect.tryPromise({
    try: () => Promise.resolve(supportedUrls),
    catch: toModelError({ ...names, secrets: line.secrets })
  })

  const makeWriter = Effect.map(urlsOf, (urls): Write<unknown> => {
    const write = makePromptWriter(provider, reachOf(specificationVersion, provider, urls ?? {}))
    const toolbox = makeToolbox(line.schemas)
    const outputFormat = makeOutputFormat()

    return Effect.fnUntraced(function* (fullRequest, makeId) {
      const request = narrow(fullRequest)
      const overlaid = yield* Effect.fromResult(overlay(line.settings, request.parameters))
      const box = toolbox(request.tools)
      const { container, damaged, prompt } = write(request, box.names)
      const { format, lost, restore } = outputFormat(request.outputSchema)
      const tools = toolsOf(box.definitions, line.providerTools, request.purpose === turnPurpose)
      const { toolChoice } = request
      const { providerOptions, ...settings } = overlaid.settings
      const call = (abortSignal: AbortSignal): LanguageModelV4CallOptions => ({
        // Each is of the type that its name has: the options of the layer are typed, and providers check a request's.
        ...(settings as Partial<LanguageModelV4CallOptions>),
        prompt,
        ...(tools.length === 0
          ? {}
          : {
              tools,
              toolChoice:
                typeof toolChoice === "string"
                  ? { type: toolChoice }
                  : { type: "tool", toolName: box.names.wire(toolChoice.tool) }
            }),
        ...(format === undefined ? {} : { responseFormat: { type: "json", name: format.name, schema: format.schema } }),
        ...withContainer(providerOptions, container),
        headers: line.headers,
        abortSignal
      })
      const origin: Origin = { ...names, secrets: line.secrets, said: () => textsOf({ prompt, tools }, "request") }
      const events = fromAsyncIterable(
        patiently((signal) => partsOf(() => send(model, call(signal))), origin, line.idle),
        toModelError(origin)
      )
      const context = { origin, names: box.names, restore, makeId, warn }
      const warnings = [warnOfParameters(overlaid.unknown)]
      return { events, makeDecoder: (sink) => makeDecoder(context, sink), damaged, lost, warnings }
    })
  })

  return makeSessions(names, makeWriter)
}

const withContainer = (
  given: unknown,
  container: string | undefined
): Pick<LanguageModelV4CallOptions, "providerOptions"> => {
  // Provider options are objects. The provider rejects other values of a request.
  const options = given as NonNullable<LanguageModelV4CallOptions["providerOptions"]> | undefined
  if (container === undefined || options?.["anthropic"]?.["container"] !== undefined) {
    return options === undefined ? {} : { providerOptions: options }
  }
  return { providerOptions: { ...options, anthropic: { ...options?.["anthropic"], container: { id: container } } } }
}
