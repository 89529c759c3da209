/** Callback addresses of OAuth sign-ins. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/**
 * The way back from an OAuth server. `open` returns the callback address of one sign-in. `receive` gets the callback URL,
 * and returns the text of the page. A listener uses `port` or a free one, and closes with the scope. A failure is a text.
 */
export interface Redirect {
  readonly open: (
    receive: (callback: string) => Effect.Effect<string>,
    port?: number
  ) => Effect.Effect<string, string, Scope.Scope>
}

/** A callback address that the application serves, and whose callbacks it delivers itself. */
export const fixed = (address: string): Redirect => ({
  open: () =>
    URL.canParse(address)
      ? Effect.succeed(address)
      : Effect.fail(`the redirect address ${JSON.stringify(address)} is no URL`)
})

/** Reports whether a URL leads to this machine, where plain HTTP is safe. */
export const isLoopback = ({ hostname }: URL): boolean =>
  hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname)
