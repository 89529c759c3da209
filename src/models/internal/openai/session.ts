/** One run's line to an OpenAI API: writes a request, sends it, reads the turn. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { ModelRequest, ModelSession } from "../../../core/ChatModel.ts"
import { IdGenerator } from "../../../core/IdGenerator.ts"
import { decodeTurn, type Sink, type TurnDecoder } from "../turn/decodeTurn.ts"
import { makeMediaWarner } from "../turn/media.ts"
import { reservedParameter } from "../wire/errors.ts"
import { makeSchemaWarner, makeThinkingWarner, warned } from "../wire/warned.ts"
import type { Client } from "./client.ts"
import type { DecodeContext } from "./responsesTurn.ts"
import type { Written } from "./schemas.ts"

type Sending = Parameters<Client["stream"]>[1]

/** The differences of the two APIs. */
export interface Api<Body> {
  readonly provider: string
  readonly model: string
  /** Makes the writer of a session. A request fails with the name of a parameter that is not the caller's to set. */
  readonly makeWriter: () => (request: ModelRequest) => Result.Result<Written<Body>, string>
  readonly send: (body: Body) => Sending
  readonly makeDecoder: (context: DecodeContext, sink: Sink) => TurnDecoder<unknown>
}

/**
 * Makes what opens sessions. What a layer says once (unknown events, lost constraints) it says once for all of them.
 */
export const makeSessions = <Body>(client: Client, api: Api<Body>): Effect.Effect<ModelSession> => {
  const { model, provider } = api
  const unknown = new Set<string>()
  const warn = makeSchemaWarner({ provider, model })
  const warnOfMedia = makeMediaWarner()
  const warnOfThinking = makeThinkingWarner({ provider, model })

  return Effect.sync(() => {
    const write = api.makeWriter()
    const turn = Effect.fnUntraced(function* (request: ModelRequest) {
      const makeId = yield* IdGenerator
      const written = write(request)
      if (Result.isFailure(written)) return yield* reservedParameter(provider, model, written.failure)
      const { body, damaged, hosted, lost, names, restore, restoreCall, unheard } = written.success
      const context: DecodeContext = { origin: client.originOf(body), names, restore, restoreCall, hosted, makeId }
      const turn = decodeTurn(client.stream(body, api.send(body)), (sink) => api.makeDecoder(context, sink), unknown)
      return warned(warnOfThinking(unheard), warned(warn(lost), warned(warnOfMedia(damaged), turn)))
    })
    return { nextTurn: (request) => Stream.unwrap(turn(request)) }
  })
}
