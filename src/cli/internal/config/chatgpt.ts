/**
 * Signs in with a ChatGPT plan, by the flow that OpenAI documents for open-source programs of one's own machine:
 * https://developers.openai.com/siwc/token-sharing-open-source
 */
import { randomBytes, randomUUID } from "node:crypto"
import type { NodeServices } from "@effect/platform-node/NodeServices"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { ChatModel } from "../../../core/ChatModel.ts"
import { ModelError } from "../../../core/ModelError.ts"
import * as ChatModels from "../../../models/ChatModels.ts"
import { OAuthError } from "../../../net/OAuthError.ts"
import * as CredentialStore from "../../../stores/CredentialStore.ts"
import { loopbackAt } from "../../../support/http/loopback.ts"
import { defined } from "../../../support/json/defined.ts"
import { expired, invalid, type Reason } from "../../../support/oauth/reason.ts"
import { make as makeRequests } from "../../../support/oauth/requests.ts"
import { visible } from "../../../support/text/untrusted.ts"
import { fail, Failure, layerOrFail } from "../failure.ts"
import { planFetch } from "./chatgptRequests.ts"
import { credentials, hasKept, namespace } from "./credentials.ts"
import type { Places } from "./places.ts"
import { isRemote } from "./signIn.ts"

/** The addresses of OpenAI. Tests have their own. */
export const OpenAi = Context.Reference<{ readonly issuer: string; readonly api: string }>(
  "effect-deepagents/cli/OpenAi",
  { defaultValue: () => ({ issuer: "https://auth.openai.com", api: "https://api.openai.com/v1" }) }
)

/** The client of a first sign-in. The callback names the client of later ones. */
const firstClient = "dynamic_agent_client"

const agentName = "effect-deepagents"

/** The scope that lets requests use the plan. The person may grant the others without it. */
const planScope = "chatgpt.tokens.use.direct"

const scopes = ["openid", "profile", "email", "offline_access", "resource.invoke", planScope]

const signInAgain = "Sign in again: deepagents models login openai --chatgpt"

const minutes = 5

const requests = makeRequests((input, init) => globalThis.fetch(input, init))

type Store = CredentialStore.CredentialStore["Service"]

/** This host and its client at OpenAI. A declined plan is asked about again at the next sign-in. */
interface Registration {
  readonly host: string
  readonly client?: string
  readonly subject?: string
  readonly isDeclined?: boolean
}

const withoutEnd = (text: string): string => text.replace(/[.\s]+$/, "")

/** The failure of a sign-in or of a renewal, with the remedy. */
const explain = (reason: Reason): Failure => {
  const { message } = new OAuthError({ provider: "ChatGPT", account: "default", reason })
  const words = reason._tag === "NotConnected" ? `The sign-in to ChatGPT has ended: ${reason.problem}` : message
  const remedy = reason._tag === "Unavailable" ? "" : ` ${signInAgain}`
  return new Failure({
    exit: reason._tag === "Unavailable" ? "failed" : "noModel",
    message: `${withoutEnd(visible(words))}.${remedy}`
  })
}

const toFailure = (error: { readonly message: string }): Failure =>
  error instanceof Failure ? error : new Failure({ exit: "failed", message: error.message })

/** Runs work over the store of keys, and turns its errors into failures of the program. */
const withStore = <A, R>(
  places: Places,
  use: (store: Store) => Effect.Effect<A, Failure | { readonly message: string }, R>
) =>
  Effect.mapError(
    Effect.provide(CredentialStore.CredentialStore.use(use), layerOrFail("failed")(credentials(places))),
    toFailure
  )

const readRegistration = Effect.fnUntraced(function* (store: Store) {
  const credential = yield* store.get("chatgpt", "registration")
  if (credential?._tag !== "ApiKey") return undefined
  const { client, isDeclined, subject } = credential.metadata ?? {}
  const registration: Registration = defined({
    host: Redacted.value(credential.key),
    client: typeof client === "string" ? client : undefined,
    subject: typeof subject === "string" ? subject : undefined,
    isDeclined: isDeclined === true
  })
  return registration
})

const storeRegistration = (store: Store, { host, ...metadata }: Registration) =>
  store.set("chatgpt", "registration", CredentialStore.ApiKey.make({ key: Redacted.make(host), metadata }))

/** The metadata of OpenAI's server. Its sign-in for programs has the addresses of the documentation. */
const findServer = Effect.gen(function* () {
  const { issuer } = yield* OpenAi
  const metadata = yield* requests.readServer(`${issuer}/.well-known/openid-configuration`)
  if (metadata === undefined || URL.parse(metadata.issuer)?.href !== URL.parse(issuer)?.href) {
    return yield* Effect.fail(invalid("its metadata are of another issuer"))
  }
  const isForeign = [metadata.jwks_uri, metadata.revocation_endpoint].some(
    (address) => address !== undefined && URL.parse(address)?.origin !== URL.parse(issuer)?.origin
  )
  if (isForeign) return yield* Effect.fail(invalid("its metadata name addresses of another server"))
  return {
    ...metadata,
    authorization_endpoint: `${issuer}/api/accounts/authorize`,
    token_endpoint: `${issuer}/api/accounts/oauth/token`
  }
})

/** Reads the client id of a callback. A callback with an error names no client. */
const clientOf = ({ searchParams }: URL, { client }: Registration): Effect.Effect<string, Reason> => {
  const ids = searchParams.getAll("client_id")
  const [id = client] = ids
  if (searchParams.has("error")) return Effect.succeed(client ?? firstClient)
  const isWrong = id === undefined || ids.length > 1 || id === firstClient || !/^[\w.:-]{1,200}$/.test(id)
  if (isWrong) return Effect.fail(invalid("the callback names no client"))
  return client === undefined || id === client
    ? Effect.succeed(id)
    : Effect.fail(invalid("the callback names another client than the one of this machine"))
}

/** Exchanges the code of a callback for tokens. Checks the account and the granted scopes. */
const finishSignIn = Effect.fnUntraced(function* (
  store: Store,
  server: Effect.Success<typeof findServer>,
  registration: Registration,
  callback: URL,
  waiting: { readonly state: string; readonly verifier: string; readonly redirect: string; readonly nonce: string }
) {
  const { api } = yield* OpenAi
  const client = yield* Effect.mapError(clientOf(callback, registration), explain)
  const exchange = requests.exchange(server, { id: client }, callback, waiting, { resource: api })
  const tokens = yield* Effect.mapError(exchange, explain)
  const { accessToken, expiresAt, refreshToken, subject } = tokens
  const drop = Effect.ignore(
    requests.revoke(server, { id: client }, refreshToken ?? accessToken, {
      token_type_hint: refreshToken === undefined ? "access_token" : "refresh_token"
    })
  )
  if (registration.subject !== undefined && registration.subject !== subject) {
    yield* drop
    const how = "Sign in with the account of before, or forget it first, by running this twice"
    return yield* fail("noModel", `That is another ChatGPT account. ${how}: deepagents models logout openai`)
  }
  const isDeclined = tokens.scopes?.includes(planScope) !== true
  yield* storeRegistration(store, defined({ host: registration.host, client, subject, isDeclined }))
  if (isDeclined) {
    yield* drop
    const how = `Allow it when you sign in again, or keep a key: deepagents models login openai`
    return yield* fail("noModel", `The sign-in does not allow the use of your ChatGPT plan; nothing was kept. ${how}`)
  }
  const token = defined({ accessToken, refreshToken, expiresAt, scopes: tokens.scopes, metadata: { client } })
  return yield* store.set(namespace, "openai", CredentialStore.OAuthToken.make(token))
})

/** Shows the page of the sign-in, waits for its callback on 127.0.0.1, and stores the tokens. */
export const signIn = Effect.fnUntraced(function* (
  places: Places,
  show: (lines: ReadonlyArray<string>) => Effect.Effect<void>
) {
  const { api } = yield* OpenAi
  const isAway = yield* Effect.orElseSucceed(isRemote, () => false)
  const signInTo = Effect.fnUntraced(function* (store: Store) {
    const server = yield* Effect.mapError(findServer, explain)
    const registration: Registration = (yield* readRegistration(store)) ?? { host: `urn:uuid:${randomUUID()}` }
    // The host keeps its id, even if this sign-in fails.
    yield* storeRegistration(store, registration)
    const arrived = yield* Deferred.make<string>()
    const pageText = yield* Deferred.make<string>()
    const receive = (callback: string) => Effect.andThen(Deferred.succeed(arrived, callback), Deferred.await(pageText))
    const redirect = yield* Effect.mapError(
      loopbackAt("/auth/callback").open(receive),
      (message) => new Failure({ exit: "failed", message })
    )
    const nonce = randomBytes(32).toString("base64url")
    const parameters = {
      resource: api,
      nonce,
      ext_agent_host_id: registration.host,
      ...(registration.client === undefined ? { agent_name_hint: agentName } : {}),
      ...(registration.isDeclined === true ? { prompt: "consent" } : {})
    }
    const page = requests.authorization(
      server,
      { id: registration.client ?? firstClient },
      { redirect, state: agentName, scopes },
      parameters
    )
    const { state, url, verifier } = yield* Effect.mapError(page, explain)
    const { port } = new URL(redirect)
    yield* show([
      `Continue with ChatGPT, within ${minutes} minutes:`,
      "",
      visible(url),
      "",
      ...(isAway
        ? [`Is your browser on another machine? Forward it first: ssh -L ${port}:127.0.0.1:${port} …`, ""]
        : [])
    ])
    const callback = yield* Effect.timeoutOrElse(Deferred.await(arrived), {
      duration: minutes * 60_000,
      orElse: () => Effect.fail(explain(expired(minutes * 60)))
    })
    const waiting = { state, verifier, redirect, nonce }
    // A code can be used once, so an interruption must not lose its tokens.
    const exit = yield* Effect.uninterruptible(
      Effect.exit(finishSignIn(store, server, registration, new URL(callback), waiting))
    )
    const isDone = Exit.isSuccess(exit)
    yield* Deferred.succeed(
      pageText,
      isDone ? "You are signed in. You can close this page." : "That did not work: see the terminal."
    )
    return yield* exit
  })
  return yield* withStore(places, (store) => Effect.scoped(signInTo(store)))
})

/** Gives the access token. It renews it before its end, in one process at a time. */
const accessToken = Effect.fnUntraced(function* (store: Store) {
  const renew = Effect.fnUntraced(function* (old: CredentialStore.Credential) {
    const { api } = yield* OpenAi
    if (old._tag === "ApiKey") return old
    const client = old.metadata?.["client"]
    if (old.refreshToken === undefined || typeof client !== "string") {
      return yield* Effect.fail(explain({ _tag: "NotConnected", problem: "it can't be renewed" }))
    }
    const server = yield* Effect.mapError(findServer, explain)
    const renewal = requests.refresh(server, { id: client }, old.refreshToken, { resource: api })
    const tokens = yield* Effect.mapError(renewal, (reason) =>
      explain(
        reason._tag === "Unavailable" ? reason : { _tag: "NotConnected", problem: "OpenAI no longer takes its token" }
      )
    )
    const { expiresAt: _, ...rest } = old
    const { accessToken: token, expiresAt, refreshToken } = tokens
    return CredentialStore.OAuthToken.make({ ...rest, ...defined({ accessToken: token, expiresAt, refreshToken }) })
  })
  const credential = yield* store.refreshed(namespace, "openai", { refresh: renew })
  return credential._tag === "OAuthToken" ? credential.accessToken : credential.key
})

/** The access token of the plan, for one request. */
export const planToken = (places: Places) => withStore(places, accessToken)

/**
 * Ends the sign-in. OpenAI revokes the tokens (`revoked`), or they are only removed (`unconfirmed`). The registration of
 * the account stays, unless nobody is signed in (`unregistered`).
 */
export const signOut = Effect.fnUntraced(function* (places: Places, forgetsAccount = true) {
  if (!(yield* hasKept(places))) return undefined
  return yield* withStore(
    places,
    Effect.fnUntraced(function* (store) {
      const credential = yield* store.get(namespace, "openai")
      const registration = yield* readRegistration(store)
      if (credential === undefined && forgetsAccount && registration?.client !== undefined) {
        yield* storeRegistration(store, { host: registration.host })
        return "unregistered" as const
      }
      if (credential?._tag !== "OAuthToken") return undefined
      const id = credential.metadata?.["client"]
      const token = credential.refreshToken ?? credential.accessToken
      const hint = credential.refreshToken === undefined ? "access_token" : "refresh_token"
      const revoke = Effect.flatMap(findServer, (server) =>
        requests.revoke(server, { id: typeof id === "string" ? id : "" }, token, { token_type_hint: hint })
      )
      const schedule = Schedule.exponential("200 millis").pipe(Schedule.upTo({ times: 2 }))
      const patient = Effect.retry(revoke, { schedule, while: ({ _tag }) => _tag === "Unavailable" })
      const isRevoked = yield* Effect.match(patient, { onSuccess: () => true, onFailure: () => false })
      yield* store.remove(namespace, "openai")
      return isRevoked ? ("revoked" as const) : ("unconfirmed" as const)
    })
  )
})

const remedies: ReadonlyArray<readonly [RegExp, "QuotaExhausted" | "Permission" | "Authentication", string]> = [
  [
    /subscription_sharing_usage_limit_exceeded/,
    "QuotaExhausted",
    "the limit of your ChatGPT plan is reached. See when it ends, and change it: https://chatgpt.com/settings/usage. Or set OPENAI_API_KEY"
  ],
  [
    /subscription_sharing_user_not_eligible/,
    "Permission",
    "this ChatGPT account can't use its plan in other programs: OpenAI allows it to Plus and Pro. Keep a key instead: deepagents models login openai"
  ],
  [
    /subscription_sharing_invalid_user/,
    "Authentication",
    `OpenAI no longer takes the sign-in with ChatGPT. ${signInAgain}`
  ]
]

/** Explains an error of a request with a plan. No token stays in it. */
const explainRequest = (error: ModelError, token: Redacted.Redacted): ModelError => {
  const { cause: _cause, detail = "", model, provider, reason, requestId } = error
  const isRefused = reason._tag === "Authentication"
  const remedy = remedies.find(([code]) => code.test(detail)) ?? (isRefused ? remedies.at(-1) : undefined)
  if (remedy !== undefined) {
    const [, tag, words] = remedy
    return new ModelError(defined({ provider, model, requestId, reason: { _tag: tag }, detail: words }))
  }
  const secret = Redacted.value(token)
  return detail.includes(secret)
    ? new ModelError(defined({ provider, model, requestId, reason, detail: detail.replaceAll(secret, "…") }))
    : error
}

/** The layer of a model that uses the plan: each request has a valid token, and the form that OpenAI takes with it. */
export const planLayer = (
  places: Places,
  spec: string,
  options: Omit<ChatModels.Options, "apiKey" | "baseURL" | "providers">
): Layer.Layer<ChatModel, Failure, NodeServices> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const store = yield* CredentialStore.CredentialStore
      const addresses = yield* OpenAi
      const fresh = Effect.mapError(Effect.provideService(accessToken(store), OpenAi, addresses), toFailure)
      let token = yield* fresh
      const provider: ChatModels.Provider<ModelError> = {
        name: "openai",
        layer: (model, own) =>
          Layer.unwrap(
            Effect.map(
              Effect.promise(() => import("../../../models/OpenAiChatModel.ts")),
              (OpenAiChatModel) =>
                OpenAiChatModel.layer({
                  model,
                  ...own,
                  baseURL: "https://api.openai.com/v1",
                  apiKey: token,
                  fetch: planFetch(addresses.api, () => token)
                })
            )
          )
      }
      const failed = ({ exit, message }: Failure, model: string) => {
        const reason = { _tag: exit === "noModel" ? "Authentication" : "Unknown" } as const
        return new ModelError({ provider: "openai", model, reason, detail: message })
      }
      const wrap = Effect.map(ChatModel, (model) => {
        return ChatModel.of({
          ...model,
          makeSession: Effect.map(model.makeSession, ({ nextTurn }) => ({
            nextTurn: (request) =>
              Stream.unwrap(
                Effect.map(
                  Effect.mapError(fresh, (error) => failed(error, model.modelId)),
                  (valid) => {
                    token = valid
                    return Stream.mapError(nextTurn(request), (error) => explainRequest(error, valid))
                  }
                )
              )
          }))
        })
      })
      const resolved = layerOrFail("noModel")(ChatModels.resolve(spec, { ...options, providers: [provider] }))
      return Layer.provide(Layer.effect(ChatModel, wrap), resolved)
    })
  ).pipe(
    Layer.provide(layerOrFail("failed")(credentials(places))),
    Layer.catch((error) => Layer.effectContext(Effect.fail(toFailure(error))))
  )
