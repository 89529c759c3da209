/** Serves a connection. The methods of its sessions load once `initialize` was answered, which editors wait for. */
import type * as Acp from "@agentclientprotocol/sdk"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type * as Scope from "effect/Scope"
import { AcpError } from "../AcpError.ts"
import { type Client, makeClient } from "./client.ts"
import { drafts, type Methods } from "./connection.ts"
import type { Parts } from "./registry.ts"
import type { Sdk } from "./sdk.ts"
import type { Wire } from "./wire.ts"

type ToRequestError = (sdk: Sdk, error: AcpError) => Acp.RequestError

const dataOf = ({ detail, reason }: AcpError) => ({ reason, detail })

/** Failures that have a code of their own. */
const codes: { readonly [Reason in AcpError["reason"]]?: ToRequestError } = {
  Busy: (sdk, error) => sdk.RequestError.invalidRequest(dataOf(error), error.detail),
  Invalid: (sdk, error) => sdk.RequestError.invalidParams(dataOf(error), error.detail),
  SignedOut: (sdk, error) => sdk.RequestError.authRequired(dataOf(error), error.detail),
  NotFound: (sdk, error) => new sdk.RequestError(-32_002, error.detail, dataOf(error))
}

/** The error of the protocol for a failure. */
const toRequestError = (sdk: Sdk, error: unknown): Acp.RequestError =>
  error instanceof AcpError
    ? (codes[error.reason]?.(sdk, error) ?? sdk.RequestError.internalError(dataOf(error), error.detail))
    : sdk.RequestError.internalError()

/** Abilities of the protocol's draft. Clients that don't know them ignore them. */
const abilitiesOfDraft = { fork: {}, archive: {}, title: {} }

const initialized = <R>(parts: Parts<R>, { auth }: Acp.ClientCapabilities): Acp.InitializeResponse => ({
  protocolVersion: parts.sdk.PROTOCOL_VERSION,
  agentInfo: { name: parts.name, version: parts.version },
  authMethods:
    auth?.terminal === true
      ? parts.login.map(({ args, id, name }) => ({ type: "terminal", id, name, args: [...args] }) as const)
      : [],
  agentCapabilities: {
    loadSession: true,
    promptCapabilities: { image: true, audio: false, embeddedContext: true },
    mcpCapabilities: { http: true, sse: true },
    sessionCapabilities: { list: {}, close: {}, resume: {}, delete: {}, additionalDirectories: {}, ...abilitiesOfDraft }
  }
})

/** The package checks parameters of methods that it knows. */
const unparsed = (params: unknown): unknown => params

/** Serves a connection until its scope ends. */
export const connect = Effect.fnUntraced(function* <R>(
  parts: Parts<R>,
  wire: Wire
): Effect.fn.Return<void, never, R | Scope.Scope> {
  const { sdk } = parts
  const runWith = yield* FiberSet.makeRuntimePromise<never, unknown, unknown>()
  const context = yield* Effect.context<R | Scope.Scope>()
  let abilities: Acp.ClientCapabilities = {}
  let client: Client | undefined
  const afterAnswer = (requestId: string | number | null, work: Effect.Effect<unknown>) =>
    wire.afterAnswer(requestId, () => void runWith(work))
  const methods = yield* Effect.cached(
    Effect.promise(() => import("./methods.ts")).pipe(
      Effect.flatMap(({ makeMethods }) =>
        makeMethods(parts, {
          afterAnswer,
          clientOf: (agent) => {
            client ??= makeClient(agent, () => abilities)
            return client
          }
        })
      ),
      Effect.provideContext(context)
    )
  )
  const answer = <A>(work: (methods: Methods) => Effect.Effect<A, AcpError>, signal: AbortSignal): Promise<A> =>
    runWith(
      Effect.catchCause(Effect.flatMap(methods, work), (cause) =>
        Effect.gen(function* () {
          if (Cause.hasInterruptsOnly(cause)) return yield* Effect.fail(sdk.RequestError.requestCancelled())
          const error = Cause.squash(cause)
          if (!(error instanceof AcpError)) yield* Effect.logError("A request of an editor failed", cause)
          return yield* Effect.fail(toRequestError(sdk, error))
        })
      ),
      { signal }
    )
  const app = sdk
    .agent({ name: parts.name })
    .onRequest("initialize", ({ params, requestId }) => {
      abilities = params.clientCapabilities ?? {}
      afterAnswer(requestId, methods)
      return initialized(parts, abilities)
    })
    .onRequest("authenticate", () => ({}))
    .onNotification("session/cancel", ({ params }) => {
      void runWith(Effect.flatMap(methods, ({ cancel }) => cancel(params.sessionId)))
    })
    .onRequest("session/new", (request) => answer((all) => all["session/new"](request), request.signal))
    .onRequest("session/load", (request) => answer((all) => all["session/load"](request), request.signal))
    .onRequest("session/resume", (request) => answer((all) => all["session/resume"](request), request.signal))
    .onRequest("session/close", (request) => answer((all) => all["session/close"](request), request.signal))
    .onRequest("session/delete", (request) => answer((all) => all["session/delete"](request), request.signal))
    .onRequest("session/set_mode", (request) => answer((all) => all["session/set_mode"](request), request.signal))
    .onRequest("session/set_config_option", (request) =>
      answer((all) => all["session/set_config_option"](request), request.signal)
    )
    .onRequest("session/prompt", (request) => answer((all) => all["session/prompt"](request), request.signal))
  for (const method of drafts) {
    app.onRequest(method, unparsed, (request) => answer((all) => all[method](request), request.signal))
  }
  const served = app.connect(wire.stream)
  yield* Effect.addFinalizer(() => Effect.sync(() => served.close()))
  yield* Effect.promise(() => served.closed)
})
