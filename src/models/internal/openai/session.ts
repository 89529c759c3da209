/** Sessions with an OpenAI API. */
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { type ModelRequest, type ModelSession, type TurnPart, turnPurpose } from "../../../core/ChatModel.ts"
import type { JsonObject } from "../../../core/Json.ts"
import type { OpenBatched } from "../batch/batches.ts"
import type { PriceUsage } from "../facts/facts.ts"
import type { Sink, TurnDecoder } from "../turn/decodeTurn.ts"
import { makeSessions } from "../turn/session.ts"
import type { Efforts } from "../turn/thinking.ts"
import type { Origin } from "../wire/errors.ts"
import { makeJsonWriter } from "../wire/jsonText.ts"
import type { Client, Path, SendBatched, SendRequest } from "./client.ts"
import type { DecodeContext } from "./responsesTurn.ts"
import type { PreparedRequest } from "./schemas.ts"

/** Facts for sending a request more than once, or in another way. */
export interface More<Body> {
  readonly origin: Origin
  /** All of the request, where the body goes on from the response before. */
  readonly whole?: Body | undefined
  /** The turn that an earlier run began. */
  readonly resume?: JsonObject | undefined
  /** True for a turn of the conversation. */
  readonly isTurn: boolean
}

/** Sends the requests of a session. */
export interface Sender<Body> {
  readonly send: (body: Body, more: More<Body>) => SendRequest
  /** Warns of how requests are sent. */
  readonly warning?: (() => TurnPart | undefined) | undefined
}

/** The differences of the two APIs. */
export interface Api<Body> {
  readonly provider: string
  readonly model: string
  /** Makes the writer of a session. A request fails with the name of a parameter that is not the caller's to set. */
  readonly makeWriter: () => (request: ModelRequest) => Result.Result<PreparedRequest<Body>, string>
  readonly path: Path
  /** Opens the sender of a session, for requests that may be sent more than once. Default: the JSON of the body. */
  readonly openSender?: Effect.Effect<Sender<Body>, never, Scope.Scope> | undefined
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
      const sender = api.openSender === undefined ? undefined : yield* api.openSender
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
                  : sender === undefined
                    ? client.stream(api.path, origin, writeJson(body))
                    : client.streamBy(
                        origin,
                        sender.send(body, {
                          origin,
                          whole,
                          resume: request.resume,
                          isTurn: request.purpose === turnPurpose
                        })
                      ),
              warnings: [sender?.warning?.()],
              makeDecoder: (sink) => api.makeDecoder(context, sink)
            }
          }
        )
    }),
    api.efforts
  )
