import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"

/** Removes the trace headers (`traceparent`, `b3`) from the requests of a client. They stay spans here. */
export const untraced = (client: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.transform(client, Effect.provideService(HttpClient.TracerPropagationEnabled, false))
