/** Keeps the ids of traces from strangers. */
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"

/** A client whose requests are spans as before, and carry no header (`traceparent`, `b3`) that names them. */
export const untraced = (client: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.transform(client, Effect.provideService(HttpClient.TracerPropagationEnabled, false))
