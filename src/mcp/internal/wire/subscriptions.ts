/** Subscriptions to resources of a connection. A resource is asked for once, however many listen. */
import type { Client } from "@modelcontextprotocol/client"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { McpError } from "../../McpError.ts"
import * as Listening from "./listening.ts"

type Request = <A>(ask: (client: Client, signal: AbortSignal) => Promise<A>) => Effect.Effect<A, McpError>

interface Subscription {
  readonly listeners: Set<() => void>
  readonly leave: Effect.Effect<unknown, McpError>
}

/** Makes what subscribes: by a request of the older protocol, by a stream of the newer one. */
export const make = (client: Client, request: Request): Effect.Effect<Subscribe, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const subscriptions = new Map<string, Subscription>()
    const lock = Semaphore.makeUnsafe(1)
    const tell = (uri: string): void => {
      for (const listener of subscriptions.get(uri)?.listeners ?? []) listener()
    }
    client.setNotificationHandler("notifications/resources/updated", ({ params }) => tell(params.uri))
    const enter = Effect.fnUntraced(function* (uri: string) {
      if (client.getProtocolEra() !== "modern") {
        yield* request((sdkClient, signal) => sdkClient.subscribeResource({ uri }, { signal }))
        return request((sdkClient) => sdkClient.unsubscribeResource({ uri }))
      }
      const filter = { resourceSubscriptions: [uri] }
      const stream = yield* request((sdkClient, signal) => sdkClient.listen(filter, { signal }))
      const fiber = yield* Effect.forkIn(
        Listening.keepOpen(client, filter, stream, () => tell(uri)),
        scope
      )
      return Fiber.interrupt(fiber)
    })
    const join = Effect.fnUntraced(function* (uri: string, listener: () => void) {
      const old = subscriptions.get(uri)
      if (old !== undefined) return void old.listeners.add(listener)
      const leave = yield* enter(uri)
      subscriptions.set(uri, { listeners: new Set([listener]), leave })
    })
    const part = Effect.fnUntraced(function* (uri: string, listener: () => void) {
      const subscribed = subscriptions.get(uri)
      subscribed?.listeners.delete(listener)
      if (subscribed === undefined || subscribed.listeners.size > 0) return
      subscriptions.delete(uri)
      // A connection that was lost has none.
      yield* Effect.ignore(Effect.timeoutOption(subscribed.leave, "1 second"))
    })
    return (uri, changed) => {
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
  })

/** Hears of changes of a resource as long as the scope lasts. */
export type Subscribe = (uri: string, changed: () => void) => Effect.Effect<void, McpError, Scope.Scope>
