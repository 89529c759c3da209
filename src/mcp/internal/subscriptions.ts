/**
 * Subscriptions to resources of a connection. A resource is asked for once, however many listen.
 */
import type { Client } from "@modelcontextprotocol/client"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { McpError } from "../McpError.ts"

type Request = <A>(ask: (client: Client, signal: AbortSignal) => Promise<A>) => Effect.Effect<A, McpError>

interface Subscribed {
  readonly listeners: Set<() => void>
  readonly leave: () => Promise<unknown>
}

/** Asks for a resource: by a request of the older protocol, by a stream of the newer one. */
const enter = async (client: Client, uri: string, signal: AbortSignal): Promise<Subscribed["leave"]> => {
  if (client.getProtocolEra() === "modern") {
    const subscription = await client.listen({ resourceSubscriptions: [uri] }, { signal })
    return () => subscription.close()
  }
  await client.subscribeResource({ uri }, { signal })
  return () => client.unsubscribeResource({ uri })
}

/** Makes what subscribes. */
export const make = (client: Client, request: Request) => {
  const known = new Map<string, Subscribed>()
  const lock = Semaphore.makeUnsafe(1)
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => {
    for (const listener of known.get(params.uri)?.listeners ?? []) listener()
  })
  const join = Effect.fnUntraced(function* (uri: string, listener: () => void) {
    const old = known.get(uri)
    if (old !== undefined) return void old.listeners.add(listener)
    const listeners = new Set([listener])
    const leave = yield* request((asked, signal) => enter(asked, uri, signal))
    known.set(uri, { listeners, leave })
  })
  const part = Effect.fnUntraced(function* (uri: string, listener: () => void) {
    const subscribed = known.get(uri)
    subscribed?.listeners.delete(listener)
    if (subscribed === undefined || subscribed.listeners.size > 0) return
    known.delete(uri)
    // A connection that was lost has none.
    yield* Effect.ignore(Effect.timeoutOption(request(subscribed.leave), "1 second"))
  })
  return (uri: string, changed: () => void): Effect.Effect<void, McpError, Scope.Scope> => {
    // Each subscription is one of its own, also of the same function.
    const listener = (): void => changed()
    return Effect.acquireRelease(
      lock.withPermits(1)(join(uri, listener)),
      () => lock.withPermits(1)(part(uri, listener)),
      {
        interruptible: true
      }
    )
  }
}
