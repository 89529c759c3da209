/**
 * The one door of the chat: with a terminal it has a screen of its own, else it is lines.
 *
 * Needs a `SessionStore`, the `Backend` of the agent, and what the agent needs beside the `Approvals`, the `Journal` and
 * the `Backend` that its runs are given here.
 */
import * as Effect from "effect/Effect"
import type { Terminal } from "../screen/terminal.ts"
import { facts } from "./facts.ts"
import type { Options } from "./options.ts"

/** Chats until the person leaves; gives the thread that the chat was in last. */
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
