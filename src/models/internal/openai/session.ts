/** Sessions with an OpenAI API. */
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type { ModelRequest, ModelSession } from "../../../core/ChatModel.ts"
import type { JsonObject } from "../../../core/Json.ts"
import type { OpenBatched } from "../batch/batches.ts"
import type { PriceUsage } from "../facts/facts.ts"
import type { Sink, TurnDecoder } from "../turn/decodeTurn.ts"
import { makeSessions } from "../turn/session.ts"
import type { Efforts } from "../turn/thinking.ts"
import { makeJsonWriter } from "../wire/jsonText.ts"
import type { Client, Path, SendBatched, SendRequest } from "./client.ts"
import type { DecodeContext } from "./responsesTurn.ts"
import type { PreparedRequest } from "./schemas.ts"

/** Facts for sending a request more than once: all of it, and the turn that an earlier run began. */
interface More<Body> {
  readonly whole?: Body | undefined
  readonly resume?: JsonObject | undefined
}

/** The differences of the two APIs. */
export interface Api<Body> {
  readonly provider: string
  readonly model: string
  /** Makes the writer of a session. A request fails with the name of a parameter that is not the caller's to set. */
  readonly makeWriter: () => (request: ModelRequest) => Result.Result<PreparedRequest<Body>, string>
  readonly path: Path
  /** Sends by the SDK, for requests that may be sent more than once. Default: the JSON of the body. */
  readonly send?: ((body: Body, more: More<Body>) => SendRequest) | undefined
  /** Opens the sender of a session's requests in batches, instead of requests of their own. */
  readonly openBatched?: OpenBatched<SendBatched> | undefined
  /** True if answers tell under which id they can be resumed. */
  readonly isBackground?: boolean | undefined
  readonly price: PriceUsage
  readonly efforts: Efforts
  readonly makeDecoder: (context: DecodeContext, sink: Sink) => TurnDecoder<unknown>
}

/** Makes the opener of sessions with an OpenAI API. */
export const makeApiSessions = <Body extends object>(
  client: Client,
  api: Api<Body>
): Effect.Effect<ModelSession, never, Scope.Scope> =>
  makeSessions(
    api,
    Effect.gen(function* () {
      const sendBatched = api.openBatched === undefined ? undefined : yield* api.openBatched
      const write = api.makeWriter()
      const writeJson = makeJsonWriter()
      return (request: ModelRequest, makeId: () => string) =>
        Effect.map(
          Effect.fromResult(write(request)),
          ({ body, hosted, names, restore, restoreCall, whole, ...written }) => {
            const origin = client.originOf(body)
            const context = {
              origin,
              names,
              restore,
              restoreCall,
              hosted,
              makeId,
              price: api.price,
              isBackground: api.isBackground
            }
            return {
              ...written,
              events:
                sendBatched !== undefined
                  ? sendBatched(origin, body)
                  : api.send === undefined
                    ? client.stream(api.path, origin, writeJson(body))
                    : client.streamBy(origin, api.send(body, { whole, resume: request.resume })),
              makeDecoder: (sink) => api.makeDecoder(context, sink)
            }
          }
        )
    }),
    api.efforts
  )
