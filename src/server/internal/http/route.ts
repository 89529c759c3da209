/** Routes: what they take, and the way from a request to their handlers. */
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Schema from "effect/Schema"
import type { Scope } from "effect/Scope"
import { type Service, SessionStore } from "../../../core/SessionStore.ts"
import type { Runs } from "../service.ts"
import { type Principal, type Tenant, tenant, type ThreadRef } from "../tenant.ts"
import type { Auth } from "./auth.ts"
import * as Guard from "./guard.ts"
import { type Failure, Problem, type Refusal, respondFailures } from "./problem.ts"
import type { Count, Enter } from "./rate.ts"
import type { Beats } from "./sse.ts"

/** The server behind the routes. */
export interface Door {
  readonly guard: Guard.Guard
  readonly auth: Auth["Service"]
  readonly runs: Runs["Service"]
  readonly store: Service
  readonly beats: Beats
  /** Reports whether the routes of files are there. */
  readonly hasFiles: boolean
  /** Reports whether the routes of apps are there. */
  readonly hasApps: boolean
  readonly count: Count
  readonly enter: Enter
}

/** A request that came through the guard. */
export interface Call<Body = unknown> {
  readonly door: Door
  readonly request: HttpServerRequest.HttpServerRequest
  /** A part of the path; empty if the path has none of this name. */
  readonly param: (name: string) => string
  /** The first value of a parameter of the query. */
  readonly query: (name: string) => string | undefined
  /** All values of a parameter of the query. */
  readonly queryAll: (name: string) => ReadonlyArray<string>
  readonly body: Body
}

/** A request of a principal. */
export interface TenantCall<Body = unknown> extends Call<Body> {
  readonly principal: Principal
  readonly tenant: Tenant
  /** Counts the request as a reader of its tenant until it is over. Fails if the tenant has too many. */
  readonly enter: Effect.Effect<void, Failure>
  /** The thread of the path's `id`. */
  readonly thread: Effect.Effect<ThreadRef, Failure>
}

type Response = Effect.Effect<HttpServerResponse.HttpServerResponse, Failure>

/** A route as the page of the API describes it. */
interface About<Body> {
  readonly method: "DELETE" | "GET" | "PATCH" | "POST"
  readonly path: `/${string}`
  readonly summary: string
  /** The parameters of the query, and their meanings. */
  readonly query?: Readonly<Record<string, string>> | undefined
  /** The JSON of the body. Default: none is read. */
  readonly body?: Schema.ConstraintDecoder<Body> | undefined
  /** The status and the content of a successful response. Default: 200, and JSON. */
  readonly status?: number | undefined
  readonly returns?: string | undefined
  /** True for clients that send neither a body nor its type. Default: `false`. */
  readonly isBare?: boolean | undefined
  /** Gives further members of the body of a refusal, as the clients of the route read them. Default: none. */
  readonly refusal?: Refusal | undefined
}

/** A route of the server. */
export interface Route extends About<unknown> {
  readonly isOpen: boolean
  readonly serve: (door: Door, request: HttpServerRequest.HttpServerRequest, parts: Parts) => Response
}

interface Parts {
  readonly params: Readonly<Record<string, string | undefined>>
  readonly query: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  /** The scope of the request, which ends with its response. */
  readonly scope: Scope
}

const firstOf = (value: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof value === "string" ? value : value?.[0]

const readCall = Effect.fnUntraced(function* <Body>(
  door: Door,
  request: HttpServerRequest.HttpServerRequest,
  { params, query }: Parts,
  body: Schema.ConstraintDecoder<Body> | undefined
) {
  const decodedBody = body === undefined ? undefined : yield* Guard.readBody(door.guard, request, body)
  return {
    door,
    request,
    param: (name: string) => params[name] ?? "",
    query: (name: string) => firstOf(query[name]),
    queryAll: (name: string) => [query[name] ?? []].flat(),
    // Without a schema, nobody reads the body.
    body: decodedBody as Body
  }
})

/** Makes a route of threads: its requests name a principal, whose threads they reach. */
export const route = <Body = never>(
  about: About<Body> & { readonly handle: (call: TenantCall<NoInfer<Body>>) => Response }
): Route => ({
  ...about,
  isOpen: false,
  serve: Effect.fnUntraced(function* (door, request, parts) {
    const principal = yield* Effect.mapError(
      door.auth.authenticate(request),
      ({ message }) =>
        new Problem({ status: 401, code: "Unauthorized", detail: message, headers: { "www-authenticate": "Bearer" } })
    )
    yield* door.count(principal)
    const own = yield* Effect.provideService(tenant(principal), SessionStore, door.store)
    const call = yield* readCall(door, request, parts, about.body)
    const enter = door.enter(principal, parts.scope)
    return yield* about.handle({ ...call, principal, tenant: own, enter, thread: own.thread(call.param("id")) })
  })
})

/** Makes a route for everybody whom the guard lets in. It reaches no thread. */
export const openRoute = <Body = never>(
  about: About<Body> & { readonly handle: (call: Call<NoInfer<Body>>) => Response }
): Route => ({
  ...about,
  isOpen: true,
  serve: (door, request, parts) => Effect.flatMap(readCall(door, request, parts, about.body), about.handle)
})

/** Answers with JSON. */
export const json = (value: unknown, status = 200): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(value, {
    status,
    headers: { "cache-control": "no-store", "x-content-type-options": "nosniff" }
  })

/** Answers without content. */
export const nothing = HttpServerResponse.empty({ status: 204, headers: { "cache-control": "no-store" } })

/**
 * Writes the path of a route for the router. Its parameters have 100 characters at most, unless the program that makes the
 * router says otherwise, and ids have up to 255: an id is read in pieces.
 */
const widen = (path: About<unknown>["path"]): About<unknown>["path"] =>
  `/${path.slice(1).replace(":id", ":id(.{1,100}):id1(.{0,100}):id2(.{0,100})")}`

/** Joins the pieces of an id. */
const join = ({ id, id1, id2, ...params }: Parts["params"]): Parts["params"] =>
  id === undefined ? params : { ...params, id: `${id}${id1 ?? ""}${id2 ?? ""}` }

/** Adds routes to the router. */
export const addRoutes = Effect.fnUntraced(function* (door: Door, routes: ReadonlyArray<Route>) {
  const router = yield* HttpRouter.HttpRouter
  const guarded = ({ isBare, refusal, serve }: Pick<Route, "isBare" | "refusal" | "serve">) =>
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      const scope = yield* Effect.scope
      const params = join(yield* HttpRouter.params)
      const query = yield* HttpServerRequest.ParsedSearchParams
      const response = yield* respondFailures(
        Effect.suspend(() => {
          const problem = Guard.check(door.guard, request, isBare)
          return problem === undefined ? serve(door, request, { params, query, scope }) : Effect.fail(problem)
        }),
        refusal
      )
      return Guard.addCors(door.guard, request, response)
    })
  for (const one of routes) yield* router.add(one.method, widen(one.path), guarded(one))
  if (door.guard.origins.size === 0) return
  for (const path of new Set(routes.map((one) => one.path))) {
    yield* router.add("OPTIONS", widen(path), guarded({ serve: () => Effect.succeed(Guard.preflight) }))
  }
})
