/**
 * The one door of the chat: with a terminal it has a screen of its own, else it is lines.
 *
 * Needs a `SessionStore`, the `Backend` of the agent, and what the agent needs beside the `Approvals`, the `Journal` and
 * the `Backend` that its runs are given here.
 */
import * as Effect from "effect/Effect"
import type { Options } from "./options.ts"

/** Facts about the terminal that the process was started in. */
interface Facts {
  readonly isTerminal: boolean
  readonly colours: boolean
  readonly isPlain: boolean
}

const facts = (): Facts => {
  const { env, stdin, stdout } = process
  const isTerminal = stdin.isTTY === true && stdout.isTTY === true
  const isDumb = env["TERM"] === "dumb"
  const isOff = (env["NO_COLOR"] ?? "") !== "" || env["FORCE_COLOR"] === "0" || isDumb
  return {
    isTerminal,
    colours: stdout.isTTY === true ? !isOff : (env["FORCE_COLOR"] ?? "0") !== "0",
    isPlain: isDumb || (env["ACCESSIBLE"] ?? "") !== ""
  }
}

/** Chats until the person leaves; gives the thread that the chat was in last. */
export const chat = Effect.fnUntraced(function* <E, R>(options: Options<E, R>) {
  const { colours, isPlain, isTerminal } = facts()
  if (options.plain === true || isPlain || !isTerminal) {
    const { plain } = yield* Effect.promise(() => import("../plain/plain.ts"))
    return yield* plain({ ...options, colours: colours && options.theme !== "none" })
  }
  const { interactive } = yield* Effect.promise(() => import("./chat.ts"))
  return yield* interactive({ ...options, colours })
})
