/** Ways back from an OAuth server: an address, and what comes to it. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/**
 * A way back from the page of an OAuth server. `open` makes it for one sign-in, and gives the address that the server is
 * told; what the person's browser brings to it goes to `receive`, whose text is shown as the page. It is closed with the
 * scope. A listener takes `port`, if there is one; else one of the moment. Fails with what is wrong.
 */
export interface Redirect {
  readonly open: (
    receive: (callback: string) => Effect.Effect<string>,
    port?: number
  ) => Effect.Effect<string, string, Scope.Scope>
}

/** An address of the application itself, which hands over what comes to it on its own. */
export const fixed = (address: string): Redirect => ({
  open: () =>
    URL.canParse(address)
      ? Effect.succeed(address)
      : Effect.fail(`the redirect address ${JSON.stringify(address)} is no URL`)
})

/** Tells whether a URL leads to this machine itself, where nobody listens in on plain HTTP. */
export const isLoopback = ({ hostname }: URL): boolean =>
  hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname)
