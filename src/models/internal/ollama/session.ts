/** One run's line to an Ollama server: writes a request, sends it, reads the turn. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { ModelRequest, ModelSession } from "../../../core/ChatModel.ts"
import { IdGenerator } from "../../../core/IdGenerator.ts"
import { decodeTurn } from "../turn/decodeTurn.ts"
import { makeMediaWarner } from "../turn/media.ts"
import { reservedParameter } from "../wire/errors.ts"
import { makeThinkingWarner, makeWarner, warned } from "../wire/warned.ts"
import type { Client } from "./client.ts"
import { makeDecoder } from "./decode.ts"
import { makeWriter, type Settings } from "./request.ts"

/** Makes what opens sessions. What a layer says once it says once for all of them. */
export const makeSessions = (client: Client, settings: Settings): Effect.Effect<ModelSession> => {
  const { abilities, model, provider } = settings
  const unknown = new Set<string>()
  const warnOfMedia = makeMediaWarner()
  const warnOfThinking = makeThinkingWarner({ provider, model })
  const warnOfTools = makeWarner("tools", (name) => `${name} can't call tools: its server says so`)

  return Effect.sync(() => {
    const write = makeWriter(settings)
    const turn = Effect.fnUntraced(function* (request: ModelRequest) {
      const makeId = yield* IdGenerator
      const written = write(request)
      if (Result.isFailure(written)) return yield* reservedParameter(provider, model, written.failure)
      const { body, damaged, forced, names, unheard } = written.success
      const context = { origin: client.originOf(body), names, forced, makeId }
      const turn = decodeTurn(client.chat(body), (sink) => makeDecoder(context, sink), unknown)
      const isUnable = abilities !== undefined && !abilities.has("tools") && "tools" in body
      const parts = warned(warnOfThinking(unheard), warned(warnOfMedia(damaged), turn))
      return warned(warnOfTools(isUnable ? [`${provider}/${model}`] : []), parts)
    })
    return { nextTurn: (request) => Stream.unwrap(turn(request)) }
  })
}
