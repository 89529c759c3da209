/**
 * Opens the chat: a screen at a terminal, lines elsewhere.
 *
 * Needs a `SessionStore`, the `Backend` of the agent, and the services of the agent except `Approvals`, `Journal` and
 * `Backend`, which the chat provides.
 */
import * as Effect from "effect/Effect"
import type { Terminal } from "../screen/terminal.ts"
import { facts } from "./facts.ts"
import type { Options } from "./options.ts"

/** Chats until the person leaves. Returns the last thread. */
export const chat = Effect.fnUntraced(function* <E, R>(
  options: Options<E, R> & { readonly terminal?: Terminal | undefined }
) {
  const { colours, isPlain, isTerminal } = facts()
  if (options.plain === true || isPlain || !isTerminal) {
    const { plain } = yield* Effect.promise(() => import("../plain/plain.ts"))
    return yield* plain({ ...options, colours: colours && options.theme !== "none" })
  }
  const { interactive } = yield* Effect.promise(() => import("./chat.ts"))
  return yield* interactive({ ...options, colours })
})
