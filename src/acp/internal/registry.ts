/** The sessions that a client has open, and the work of opening and closing them. */
import { isAbsolute } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Service as Store } from "../../core/SessionStore.ts"
import type { AcpError } from "../AcpError.ts"
import type { Client } from "./client.ts"
import { fail } from "./failures.ts"
import type { SessionOpening, Session } from "./model.ts"
import type { Sdk } from "./sdk.ts"
import { cancel, type Live, makeLive } from "./session.ts"

/** The parts of a server. */
export interface Parts<R> {
  readonly sdk: Sdk
  readonly store: Effect.Effect<Store, AcpError, Scope.Scope>
  readonly name: string
  readonly version: string
  readonly open: (opening: SessionOpening) => Effect.Effect<Session, AcpError, R | Scope.Scope>
  readonly makeId: Effect.Effect<string>
  readonly login: ReadonlyArray<{ readonly id: string; readonly name: string; readonly args: ReadonlyArray<string> }>
}

const checkFolder = (method: string, cwd: string) =>
  isAbsolute(cwd) && !cwd.includes("\0")
    ? Effect.void
    : fail("Invalid", method, `the folder ${JSON.stringify(cwd.slice(0, 200))} is no path from the root`)

/** The open sessions of a connection. */
export interface Registry {
  readonly store: Effect.Effect<Store, AcpError>
  readonly get: (sessionId: string) => Live | undefined
  readonly find: (method: string, sessionId: string) => Effect.Effect<Live, AcpError>
  /** Reads the facts about a stored session. Fails for an unknown id. */
  readonly check: (method: string, sessionId: string) => Effect.Effect<void, AcpError>
  /** Opens a session. Only one of two requests for the same session does. */
  readonly open: (method: string, client: Client, opening: SessionOpening) => Effect.Effect<Live, AcpError>
  readonly close: (live: Live) => Effect.Effect<void>
}

export const makeRegistry = Effect.fnUntraced(function* <R>(
  parts: Pick<Parts<R>, "open" | "store">
): Effect.fn.Return<Registry, never, R | Scope.Scope> {
  const scope = yield* Effect.scope
  const context = yield* Effect.context<R | Scope.Scope>()
  const lives = new Map<string, Live>()
  const openingIds = new Set<string>()
  const store = Effect.provideContext(parts.store, context)

  const begin = Effect.fnUntraced(function* (method: string, client: Client, opening: SessionOpening) {
    yield* Effect.forEach([opening.cwd, ...opening.folders], (folder) => checkFolder(method, folder))
    const threads = yield* store
    const own = yield* Scope.fork(scope)
    const session = yield* parts.open(opening).pipe(
      Effect.provideContext(Context.add(context, Scope.Scope, own)),
      Effect.onError((cause) => Scope.close(own, Exit.failCause(cause)))
    )
    const live = makeLive({ client, opening, scope: own, session, store: threads })
    lives.set(opening.threadId, live)
    return live
  })

  return {
    store,
    get: (sessionId) => lives.get(sessionId),
    find: (method, sessionId) => {
      const live = lives.get(sessionId)
      return live === undefined
        ? fail("NotFound", method, `there is no open session ${JSON.stringify(sessionId.slice(0, 200))}; load it first`)
        : Effect.succeed(live)
    },
    check: Effect.fnUntraced(function* (method, sessionId) {
      const threads = yield* store
      yield* Effect.mapError(threads.info(sessionId), ({ message, reason }) =>
        fail(reason._tag === "NotFound" ? "NotFound" : "Refused", method, message)
      )
    }),
    open: Effect.fnUntraced(function* (method, client, opening) {
      const { threadId } = opening
      if (lives.has(threadId) || openingIds.has(threadId)) {
        return yield* fail("Busy", method, `the session ${threadId} is open on this connection already`)
      }
      openingIds.add(threadId)
      return yield* Effect.ensuring(
        begin(method, client, opening),
        Effect.sync(() => openingIds.delete(threadId))
      )
    }),
    close: Effect.fnUntraced(function* (live) {
      yield* cancel(live)
      lives.delete(live.opening.threadId)
      yield* Scope.close(live.scope, Exit.void)
    })
  }
})
