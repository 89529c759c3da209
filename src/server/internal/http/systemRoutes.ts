/** Routes of the server itself: health, metrics, sessions of pages, the page of the API. */
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { describeApi } from "./openApi.ts"
import { Problem } from "./problem.ts"
import { json, nothing, openRoute, type Route, route, type TenantCall } from "./route.ts"

const health = openRoute({
  method: "GET",
  path: "/health",
  summary: "Tells that the server is there.",
  handle: () => Effect.succeed(json({ status: "ok" }))
})

const metrics = route({
  method: "GET",
  path: "/metrics",
  summary: "Gives the metrics of the process to principals with the role `operator`.",
  returns: "text/plain",
  handle: Effect.fnUntraced(function* ({ principal }: TenantCall) {
    if (!principal.roles.includes("operator")) {
      return yield* new Problem({
        status: 403,
        code: "Role",
        detail: "Metrics are for principals with the role operator."
      })
    }
    return HttpServerResponse.text(yield* PrometheusMetrics.format(), {
      contentType: "text/plain; version=0.0.4; charset=utf-8",
      headers: { "cache-control": "no-store" }
    })
  })
})

const session = openRoute({
  method: "POST",
  path: "/session",
  summary: "Exchanges the token of a page for a cookie, once and within a minute.",
  body: Schema.Struct({ token: Schema.String.check(Schema.isMaxLength(8_192)) }),
  status: 204,
  handle: Effect.fnUntraced(function* ({ body, door }) {
    const refused = new Problem({
      status: 401,
      code: "Unauthorized",
      detail: "This token was used, or is too old; get a new one from the program that opened the page."
    })
    const { exchange } = door.auth
    if (exchange === undefined) return yield* refused
    const { name, value } = yield* Effect.mapError(exchange(Redacted.make(body.token)), () => refused)
    return HttpServerResponse.setCookieUnsafe(nothing, name, Redacted.value(value), {
      httpOnly: true,
      sameSite: "strict",
      path: "/"
    })
  })
})

/** Adds the page of the API to routes, and to itself. */
export const withApi = (routes: ReadonlyArray<Route>): ReadonlyArray<Route> => {
  const all: Array<Route> = [...routes]
  let described: unknown
  all.push(
    openRoute({
      method: "GET",
      path: "/openapi.json",
      summary: "Describes this API by OpenAPI 3.1.",
      handle: () => Effect.sync(() => json((described ??= describeApi(all))))
    })
  )
  return all
}

/** The routes of the server itself. */
export const systemRoutes: ReadonlyArray<Route> = [health, metrics, session]
