/** Sign-ins to servers: by a page at a terminal, by stored tokens in a run. */
import type { NodeServices } from "@effect/platform-node/NodeServices"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { type Authorize, McpAuthorization } from "../../../mcp/McpAuthorization.ts"
import * as McpOAuth from "../../../mcp/McpOAuth.ts"
import * as CredentialKey from "../../../stores/CredentialKey.ts"
import * as CredentialStore from "../../../stores/CredentialStore.ts"
import * as Storage from "../../../stores/Storage.ts"
import { loopback } from "../../../support/http/loopback.ts"
import type { Redirect } from "../../../support/http/redirect.ts"
import { visible } from "../../../support/text/untrusted.ts"
import { type Failure, layerOrFail } from "../failure.ts"
import { credentials, hasKept } from "./credentials.ts"
import type { Places } from "./places.ts"

/** The authorisation of servers over HTTP. */
export type Authorization<E = never> = Layer.Layer<never, E, NodeServices>

const shared = { tenant: "mcp", clientName: "deepagents" }

/** A run never opens a page. */
const nowhere: Redirect = {
  open: () => Effect.fail("it wants a sign-in: deepagents mcp login, or /mcp login in the chat")
}

/** An empty store. */
const nothing = CredentialStore.layer.pipe(Layer.provide([Storage.layerMemory, CredentialKey.layerRandom]), Layer.orDie)

/**
 * Reads the stored tokens. The keychain is asked only if a token was ever stored. Each connection looks again, since a
 * sign-in may have happened since. An unreadable store has no tokens.
 */
export const keptTokens = (places: Places): Authorization =>
  Layer.effect(
    McpAuthorization,
    Effect.map(Effect.context<NodeServices>(), (context): Authorize =>
      Effect.fnUntraced(function* (server, fetch) {
        const isThere = yield* Effect.provideContext(hasKept(places), context)
        const store = isThere
          ? Layer.catch(Layer.provide(credentials(places), Layer.succeedContext(context)), () => nothing)
          : nothing
        const services = yield* Layer.build(
          Layer.provide(McpOAuth.layer({ ...shared, redirect: nowhere, open: () => Effect.void }), store)
        )
        const authorize = yield* Effect.provideContext(McpAuthorization, services)
        return authorize === undefined ? fetch : yield* authorize(server, fetch)
      })
    )
  )

/** A browser on another machine can't redirect to this one. */
export const isRemote = Effect.map(Effect.option(Config.String("SSH_CONNECTION")), Option.isSome)

/** Shows the sign-in page, with a code for another device where needed, and stores the tokens. */
export const signingIn = (
  places: Places,
  isDevice: boolean,
  show: (lines: ReadonlyArray<string>) => Effect.Effect<void>
): Authorization<Failure> =>
  McpOAuth.layer({
    ...shared,
    ...(isDevice ? {} : { redirect: loopback }),
    open: Effect.fnUntraced(function* ({ origin, server, url, userCode }) {
      const way = userCode === undefined ? "" : `, on any device, with the code ${visible(userCode)}`
      const hint = "Is your browser on another machine? Then stop this, and add --device to the command."
      yield* show([
        `Sign in to ${visible(server)} at ${visible(origin)}${way}, within 5 minutes:`,
        "",
        visible(url),
        "",
        ...(!isDevice && (yield* isRemote) ? [hint, ""] : [])
      ])
    })
  }).pipe(Layer.provide(layerOrFail("failed")(credentials(places))))
