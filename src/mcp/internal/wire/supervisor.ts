/** Keeps a connection to a server, restores it when it is lost, and reports its state. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Latch from "effect/Latch"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { defined } from "../../../support/json/defined.ts"
import { McpError } from "../../McpError.ts"
import * as Errors from "../errors.ts"
import { pauseAfter, wentWell } from "./pauses.ts"
import * as Sdk from "./sdk.ts"
import * as Session from "./session.ts"
import type { SiftedTools } from "./sift.ts"

/** State of a connection. */
export type State =
  | { readonly _tag: "Connecting"; readonly error?: McpError }
  | { readonly _tag: "Connected"; readonly session: Session.Session; readonly protocolVersion: string | undefined }
  | { readonly _tag: "Broken"; readonly error: McpError; readonly retryAt: number | undefined }

/** A server that is looked after. `tools` stay when the connection is lost, until it could not be made again. */
export interface SupervisedServer {
  readonly target: Session.Target
  readonly state: SubscriptionRef.SubscriptionRef<State>
  readonly tools: SubscriptionRef.SubscriptionRef<SiftedTools>
  /** Counts how often lists other than that of the tools may have changed. */
  readonly edition: { count: number }
  readonly wake: Latch.Latch
  /** The connection. Waits for a connection in progress. */
  readonly session: Effect.Effect<Session.Session, McpError>
}

/** So often it is tried to make a lost connection again before its tools are taken away. */
const patience = 3
/** So long a request waits for a lost connection. */
const waiting = "10 seconds"

const noTools: SiftedTools = { tools: [], problems: [] }

/**
 * Only a person can mend it: to try again by itself would show them the same page again and again. So it is with a server
 * that violated the protocol in some attempts, one after the other.
 */
const isFinal = ({ reason }: McpError, invalid: number): boolean =>
  reason === "Unauthorized" || reason === "MissingPackage" || invalid >= patience

/** Reads the tools again after a change. A failure keeps the known ones. */
const follow = (supervised: SupervisedServer, session: Session.Session) =>
  Effect.forever(
    Effect.flatMap(session.changed, (what) => {
      if (what !== "tools") {
        supervised.edition.count++
        return Effect.void
      }
      return session.listTools.pipe(
        Effect.flatMap((tools) => SubscriptionRef.set(supervised.tools, tools)),
        Effect.catch((error) => Effect.sync(() => supervised.target.log.add(`${error.message}\n`)))
      )
    })
  )

/** One connection, from its beginning to its end, which is a failure. */
const connection = (supervised: SupervisedServer, around: Session.Surroundings, onConnected: () => void) =>
  Effect.gen(function* () {
    const { state, target, tools } = supervised
    const sdk = yield* Sdk.load(target.name)
    const session = yield* Session.open(sdk, target, around)
    const time = Session.connectTimeoutOf(target.config)
    const listed = yield* Effect.timeoutOrElse(session.listTools, {
      duration: time,
      orElse: () => Effect.fail(Errors.tooSlowToConnect(target.name, time, "the list of its tools"))
    })
    yield* SubscriptionRef.set(tools, listed)
    supervised.edition.count++
    yield* Effect.forkScoped(follow(supervised, session))
    onConnected()
    const protocolVersion = session.client.getNegotiatedProtocolVersion()
    yield* SubscriptionRef.set(state, { _tag: "Connected", session, protocolVersion })
    return yield* Effect.flatMap(Deferred.await(session.loss), Effect.fail)
  }).pipe(Effect.scoped)

const errorOf = (server: string, cause: Cause.Cause<McpError>): McpError => {
  const error = Cause.squash(cause)
  return error instanceof McpError ? error : Errors.unavailable(server, "an unexpected failure", error)
}

/** Supervises a server until interruption. After a final failure it tries again only on request. */
export const run = (
  supervised: SupervisedServer,
  around: Session.Surroundings
): Effect.Effect<never, never, ChildProcessSpawner> =>
  Effect.gen(function* () {
    const { state, target, tools, wake } = supervised
    const clock = yield* Clock.Clock
    // A server that dies whenever it is connected to is connected to in vain, but its tools stay.
    let attempt = 0
    let inVain = 0
    let invalid = 0
    let last: McpError | undefined
    while (true) {
      if (attempt > 0) yield* SubscriptionRef.set(state, { _tag: "Connecting", ...defined({ error: last }) })
      yield* Latch.close(wake)
      let since: number | undefined
      const noteConnection = (): void => {
        since = clock.currentTimeMillisUnsafe()
        inVain = 0
      }
      const exit = yield* Effect.exit(connection(supervised, around, noteConnection))
      if (Exit.isSuccess(exit)) continue
      if (Cause.hasInterrupts(exit.cause)) return yield* Effect.interrupt
      const now = clock.currentTimeMillisUnsafe()
      attempt = since !== undefined && wentWell(now - since) ? 1 : attempt + 1
      inVain++
      // Somebody asked for a new connection meanwhile.
      if (yield* Latch.close(wake)) continue
      const error = errorOf(target.name, exit.cause)
      last = error
      invalid = error.reason === "Invalid" && since === undefined ? invalid + 1 : 0
      const pause = isFinal(error, invalid) ? undefined : pauseAfter(attempt)
      if (pause === undefined || inVain > patience) yield* SubscriptionRef.set(tools, noTools)
      const retryAt = pause === undefined ? undefined : now + pause
      yield* SubscriptionRef.set(state, { _tag: "Broken", error, retryAt })
      const woken = Latch.await(wake)
      if (pause === undefined) invalid = 0
      yield* pause === undefined ? woken : Effect.raceFirst(Effect.sleep(pause), woken)
    }
  })

/** Makes what looks after a server. */
export const make = (target: Session.Target): Effect.Effect<SupervisedServer> =>
  Effect.gen(function* () {
    const state = yield* SubscriptionRef.make<State>({ _tag: "Connecting" })
    // A lost connection stays listed for a moment.
    const standing = (one: State): Session.Session | undefined =>
      one._tag === "Connected" && !Deferred.isDoneUnsafe(one.session.loss) ? one.session : undefined
    const wait = SubscriptionRef.changes(state).pipe(
      Stream.filter((one) => standing(one) !== undefined || (one._tag === "Broken" && one.retryAt === undefined)),
      Stream.runHead,
      Effect.timeoutOption(waiting)
    )
    const waited = Effect.gen(function* () {
      yield* wait
      const last = yield* SubscriptionRef.get(state)
      const now = standing(last)
      if (now !== undefined) return now
      const error = last._tag === "Connected" ? undefined : last.error
      return yield* error ?? Errors.unavailable(target.name, "it is not connected yet", undefined)
    })
    const session = Effect.suspend(() => {
      const now = standing(SubscriptionRef.getUnsafe(state))
      return now === undefined ? waited : Effect.succeed(now)
    })
    return {
      target,
      state,
      tools: yield* SubscriptionRef.make(noTools),
      edition: { count: 0 },
      wake: yield* Latch.make(false),
      session
    }
  })

/** Waits until the first attempt is over, successful or not. */
export const settled = ({ state }: SupervisedServer): Effect.Effect<void> =>
  Effect.gen(function* () {
    const now = yield* SubscriptionRef.get(state)
    if (now._tag !== "Connecting") return
    yield* SubscriptionRef.changes(state).pipe(
      Stream.filter((one) => one._tag !== "Connecting"),
      Stream.runHead
    )
  })

/** Makes the connection at once, or anew. */
export const reconnect = ({ state, target, wake }: SupervisedServer): Effect.Effect<void> =>
  Effect.gen(function* () {
    const now = yield* SubscriptionRef.get(state)
    yield* Latch.open(wake)
    if (now._tag !== "Connected") return
    // The old connection takes its time to close: nobody is to take it for the new one.
    yield* SubscriptionRef.set(state, { _tag: "Connecting" })
    yield* Deferred.succeed(now.session.loss, Errors.lostConnection(target.name, "it was asked to connect anew"))
  })
