/**
 * The streams by which a server of the newer protocol tells of changes. A server may end one in good order, when it is
 * restarted behind its address for one: it is asked for again.
 */
import type { Client, McpSubscription, SubscriptionFilter } from "@modelcontextprotocol/client"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { pauseAfter, wentWell } from "./pauses.ts"

/** The changes of lists that a server says it tells of. */
export const listsOf = (client: Client): SubscriptionFilter => {
  const { prompts, resources, tools } = client.getServerCapabilities() ?? {}
  return {
    ...(tools?.listChanged === true ? { toolsListChanged: true } : {}),
    ...(prompts?.listChanged === true ? { promptsListChanged: true } : {}),
    ...(resources?.listChanged === true ? { resourcesListChanged: true } : {})
  }
}

/** Keeps a stream open until it is interrupted. After a gap, `missed` is called: nobody knows what changed in it. */
export const keepOpen = (
  client: Client,
  filter: SubscriptionFilter,
  first: McpSubscription | undefined,
  missed: () => void
): Effect.Effect<never> =>
  Effect.gen(function* () {
    let open = first
    for (let attempt = 1; ; attempt++) {
      if (open !== undefined) {
        const { close, closed } = open
        const since = yield* Clock.currentTimeMillis
        yield* Effect.onInterrupt(
          Effect.promise(() => closed),
          () => Effect.promise(() => close().catch(() => undefined))
        )
        if (wentWell((yield* Clock.currentTimeMillis) - since)) attempt = 1
      }
      yield* Effect.sleep(pauseAfter(attempt))
      open = yield* Effect.orElseSucceed(
        Effect.tryPromise((signal) => client.listen(filter, { signal })),
        () => undefined
      )
      if (open !== undefined) missed()
    }
  })
