/** The check of the `Host` header: a page that has its own name lead to this machine is refused. */
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"

const loopback: ReadonlyArray<string> = ["localhost", "127.0.0.1", "[::1]"]

/** The name without its port. */
const nameOf = (host: string): string => host.toLowerCase().replace(/:\d*$/, "")

/** Refuses what asks for another host. An allowed one with a port must be met with it. */
export const hosts = (allowed: ReadonlyArray<string> = loopback) => {
  const known = new Set(allowed.map((host) => host.toLowerCase()))
  return HttpRouter.middleware((app) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const { headers } = request
      const host = headers["host"]?.toLowerCase() ?? ""
      if (!known.has(host) && !known.has(nameOf(host))) {
        return HttpServerResponse.text("This host is not served here.", { status: 403 })
      }
      const origin = headers["origin"]?.toLowerCase()
      if (origin !== `http://${host}` && origin !== `https://${host}`) return yield* app
      // A page of this server is no stranger to it, wherever it is served.
      const own = request.modify({ headers: Headers.remove(headers, "origin") })
      return yield* Effect.provideService(app, HttpServerRequest.HttpServerRequest, own)
    })
  ).layer
}
