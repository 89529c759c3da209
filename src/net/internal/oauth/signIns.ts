/** Runs sign-ins: begins them, waits for the person, and stores tokens. */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as RcMap from "effect/RcMap"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Question from "../../../core/Question.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import { CredentialStore } from "../../../stores/CredentialStore.ts"
import type { StoreError } from "../../../stores/StoreError.ts"
import { span } from "../../../support/effect/span.ts"
import { fetchLike } from "../../../support/http/fetchLike.ts"
import type { Redirect } from "../../../support/http/redirect.ts"
import { defined } from "../../../support/json/defined.ts"
import type { Server } from "../../../support/oauth/metadata.ts"
import { expired, unsupported } from "../../../support/oauth/reason.ts"
import { make as makeRequests, type Requests } from "../../../support/oauth/requests.ts"
import type { OAuthError } from "../../OAuthError.ts"
import * as Flows from "./flows.ts"
import type { Service, SignIn } from "./model.ts"
import * as Tokens from "./tokens.ts"
import { askedOf, failWith, missingScopes, type Subject, subjectOf } from "./tokens.ts"

type Failure = OAuthError | StoreError

/** Seconds until a sign-in expires. */
const maxSeconds = 300

/** The question about a sign-in. The record of the call stores it, so that a resumed call repeats the same question. */
const SignInView = Schema.Struct({
  state: Schema.String,
  url: Schema.String,
  userCode: Schema.optionalKey(Schema.String),
  expiresAt: Schema.Finite
})
type SignInView = typeof SignInView.Type

interface Live {
  readonly requestedScopes: ReadonlyArray<string>
  readonly completion: Deferred.Deferred<void, Failure>
  readonly prompt: SignInView
}

const mergeScopes = (...lists: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => [
  ...new Set(lists.flat())
]

const questionOf = (
  { account, provider, scopes }: Subject,
  { url, userCode }: SignInView
): Question.Question<boolean> => {
  const { origin } = new URL(url)
  const code = userCode === undefined ? "" : `, and type in the code ${userCode}`
  const whose = account === "default" ? provider.name : `${provider.name} (${account})`
  const text = `Sign in to ${whose}: open the page below, of ${origin}${code}. Answer yes when that is done, no to do without.`
  return Question.confirm(text, defined({ origin, url, userCode, scopes }))
}

/** The parts of the service that its steps share. */
interface Parts {
  readonly credentials: CredentialStore["Service"]
  readonly way: Requests
  readonly lives: Map<string, Live>
  readonly store: Effect.Success<ReturnType<typeof Tokens.make>>["store"]
}

/** Exchanges the callback of a sign-in for tokens, and stores them. */
const finishSignIn = Effect.fnUntraced(function* ({ credentials, lives, store, way }: Parts, callback: string) {
  const url = URL.canParse(callback) ? new URL(callback) : undefined
  const state = url?.searchParams.get("state") ?? ""
  const flow = yield* Flows.takeFlow(credentials, state)
  if (url === undefined || flow === undefined) {
    const problem = "no sign-in waits for its state: it was finished, took too long, or was begun by somebody else"
    return yield* failWith({ provider: { name: "a service" }, account: "default" })({
      _tag: "InvalidResponse",
      problem
    })
  }
  const live = [...lives.values()].find(({ prompt }) => prompt.state === state)
  const { asked, client, name, redirect: back, server, tenant, verifier } = flow
  const tokens = Effect.mapError(
    way.exchange(server, client, url, { state, verifier, redirect: back }),
    failWith({ provider: { name: flow.provider }, account: flow.account })
  )
  const completion = Effect.flatMap(tokens, store({ asked, name, tenant }, server.issuer, client.id))
  // A code can be used once, so an interruption must not lose its tokens.
  yield* Effect.uninterruptible(
    live === undefined ? completion : Effect.onExit(completion, (exit) => Deferred.done(live.completion, exit))
  )
})

/** Begins a sign-in with a code for another device. */
const beginByDevice = Effect.fnUntraced(function* (
  { store, way }: Parts,
  subject: Subject,
  server: Server,
  requestedScopes: ReadonlyArray<string>
) {
  const device = yield* way.device(server, subject.client, requestedScopes, subject.provider.parameters ?? {})
  const expiresAt = (yield* Clock.currentTimeMillis) + device.seconds * 1000
  const prompt: SignInView = { state: device.userCode, url: device.url, userCode: device.userCode, expiresAt }
  const work = Effect.flatMap(
    Effect.mapError(way.poll(server, subject.client, device), failWith(subject)),
    store({ asked: requestedScopes, name: subject.name, tenant: subject.tenant }, subject.issuer, subject.client.id)
  )
  return { prompt, work, seconds: device.seconds }
})

const toSignIn = ({ completion, prompt }: Live): SignIn => ({
  url: prompt.url,
  origin: new URL(prompt.url).origin,
  userCode: prompt.userCode,
  expiresAt: prompt.expiresAt,
  finished: Deferred.await(completion)
})

/** Makes the service. */
export const make = Effect.fnUntraced(function* (redirect: Redirect | undefined) {
  const credentials = yield* CredentialStore
  const way = makeRequests(yield* fetchLike)
  const layerScope = yield* Effect.scope
  const locks = yield* RcMap.make({ lookup: (_: string) => Semaphore.make(1) })
  const lives = new Map<string, Live>()
  const { findToken, revoke, serverOf, store, valid } = yield* Tokens.make(credentials, way)
  const parts: Parts = { credentials, way, lives, store }
  const finish = (callback: string) => finishSignIn(parts, callback)
  /** Waits for the end of a sign-in, and removes it. */
  const watchSignIn = (
    key: string,
    live: Live,
    scope: Scope.Closeable,
    work: Effect.Effect<void, Failure>,
    lateError: Failure
  ) =>
    Effect.gen(function* () {
      const remaining = live.prompt.expiresAt - (yield* Clock.currentTimeMillis)
      yield* Effect.timeoutOrElse(Effect.raceFirst(work, Deferred.await(live.completion)), {
        duration: remaining,
        orElse: () => Effect.fail(lateError)
      })
    }).pipe(
      Effect.onExit((exit) =>
        Effect.gen(function* () {
          if (lives.get(key) === live) lives.delete(key)
          yield* Deferred.done(live.completion, exit)
          yield* Flows.removeFlow(credentials, live.prompt.state)
          yield* Scope.close(scope, exit)
        })
      ),
      Effect.forkIn(layerScope, { startImmediately: true })
    )

  const beginByRedirect = Effect.fnUntraced(function* (
    subject: Subject,
    server: Server,
    requestedScopes: ReadonlyArray<string>,
    completion: Deferred.Deferred<void, Failure>
  ) {
    const { client, name, provider, tenant } = subject
    if (redirect === undefined) {
      const problem =
        "there is no way back from its page; give OAuth.layer a redirect, or the provider the flow `device`"
      return yield* Effect.fail(unsupported(problem))
    }
    const receive = (callback: string): Effect.Effect<string> =>
      Effect.match(
        Effect.tapError(finish(callback), (error) => Deferred.fail(completion, error)),
        {
          onSuccess: () => `You are signed in to ${provider.name}. You can close this page.`,
          onFailure: (error) => `That did not work: ${error.message}`
        }
      )
    const back = yield* Effect.mapError(redirect.open(receive), unsupported)
    const expiresAt = (yield* Clock.currentTimeMillis) + maxSeconds * 1000
    const { state, url, verifier } = yield* way.authorization(
      server,
      client,
      { redirect: back, state: Flows.prefixOf(expiresAt), scopes: requestedScopes },
      provider.parameters ?? {}
    )
    const flow: Flows.Flow = {
      provider: provider.name,
      account: subject.account,
      tenant,
      name,
      server: { ...server, issuer: server.issuer },
      client: defined(client),
      asked: requestedScopes,
      redirect: back,
      verifier
    }
    yield* Flows.storeFlow(credentials, state, flow)
    return { prompt: { state, url, expiresAt }, work: Effect.never, seconds: maxSeconds }
  })

  const openSignIn = Effect.fnUntraced(function* (subject: Subject, key: string) {
    const fail = failWith(subject)
    const before = yield* findToken(subject)
    const requestedScopes = mergeScopes(before === undefined ? [] : askedOf(before), subject.scopes)
    const openLive = lives.get(key)
    if (openLive !== undefined && missingScopes(requestedScopes, openLive.requestedScopes).length === 0) return openLive
    const completion = yield* Deferred.make<void, Failure>()
    const scope = yield* Scope.fork(layerScope)
    const begun = Effect.gen(function* () {
      const server = yield* serverOf(subject.provider)
      return subject.provider.flow === "device"
        ? yield* beginByDevice(parts, subject, server, requestedScopes)
        : yield* beginByRedirect(subject, server, requestedScopes, completion)
    })
    const reported = Effect.mapError(begun, (error) => (error._tag === "StoreError" ? error : fail(error)))
    return yield* Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const { prompt, seconds, work } = yield* restore(reported)
        const live: Live = { requestedScopes, completion, prompt }
        lives.set(key, live)
        yield* watchSignIn(key, live, scope, work, fail(expired(seconds)))
        return live
      }).pipe(
        Scope.provide(scope),
        Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
      )
    )
  })

  const keyOf = ({ name, tenant }: Subject): string => JSON.stringify([tenant, name])

  const openOnce = (subject: Subject): Effect.Effect<Live, Failure> => {
    const key = keyOf(subject)
    return Effect.scoped(Effect.flatMap(RcMap.get(locks, key), (lock) => lock.withPermits(1)(openSignIn(subject, key))))
  }

  const begin: Service["begin"] = (provider, account) => Effect.map(openOnce(subjectOf(provider, account)), toSignIn)

  const connect: Service["connect"] = Effect.fnUntraced(function* (provider, account) {
    const subject = subjectOf(provider, account)
    const had = yield* Effect.catchTag(valid(subject), "OAuthError", (error) =>
      error.reason._tag === "NotConnected" ? Effect.undefined : Effect.fail(error)
    )
    if (had !== undefined) return had
    const { ask, step } = yield* ToolContext
    const begun = Effect.map(openOnce(subject), ({ prompt }) => prompt)
    const prompt = yield* step(`sign in: ${subject.name}`, begun, SignInView)
    const candidate = lives.get(keyOf(subject))
    const live = candidate?.prompt.state === prompt.state ? candidate : undefined
    const finished = live === undefined ? Effect.never : Effect.as(Deferred.await(live.completion), true)
    const declined = failWith(subject)({ _tag: "Declined" })
    const cancel = live === undefined ? Effect.void : Deferred.fail(live.completion, declined)
    const answer = Effect.tapError(ask(questionOf(subject, prompt)), () => cancel)
    if (!(yield* Effect.raceFirst(finished, answer))) {
      yield* cancel
      return yield* declined
    }
    if (live !== undefined) yield* Deferred.await(live.completion)
    return yield* valid(subject)
  })

  const service: Service = {
    begin: (provider, account) => span("OAuth.begin")(begin(provider, account)),
    connect: (provider, account) => span("OAuth.connect")(connect(provider, account)),
    accessToken: (provider, account, options) =>
      span("OAuth.accessToken")(valid(subjectOf(provider, account), options?.refused)),
    complete: (callback) => span("OAuth.complete")(finish(callback)),
    revoke: (provider, account) => span("OAuth.revoke")(revoke(provider, account))
  }
  return service
})
