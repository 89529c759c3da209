/** Checks the header `Host`, against pages whose own name leads to this machine. */
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"

const loopback: ReadonlyArray<string> = ["localhost", "127.0.0.1", "[::1]"]

/** Gives the name without its port. */
const nameOf = (host: string): string => host.toLowerCase().replace(/:\d*$/, "")

/** Refuses requests for other hosts. An allowed host with a port needs that port. */
export const hosts = (allowed: ReadonlyArray<string> = loopback) => {
  const hostNames = new Set(allowed.map((host) => host.toLowerCase()))
  return HttpRouter.middleware((app) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const { headers } = request
      const host = headers["host"]?.toLowerCase() ?? ""
      if (!hostNames.has(host) && !hostNames.has(nameOf(host))) {
        return HttpServerResponse.text("This host is not served here.", { status: 403 })
      }
      const origin = headers["origin"]?.toLowerCase()
      if (origin !== `http://${host}` && origin !== `https://${host}`) return yield* app
      // The server's own pages may call it.
      const own = request.modify({ headers: Headers.remove(headers, "origin") })
      return yield* Effect.provideService(app, HttpServerRequest.HttpServerRequest, own)
    })
  ).layer
}
