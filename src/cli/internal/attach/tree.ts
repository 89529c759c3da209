/** The command `attach`. Its code loads when it is called. */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { off } from "../commands/flags.ts"
import { contextFor, load, root } from "../commands/root.ts"

export const attach = Command.make(
  "attach",
  {
    url: Argument.String("url").pipe(
      Argument.withDescription("The address of the server; the server of this folder by default"),
      Argument.optional
    ),
    thread: Argument.String("thread").pipe(
      Argument.withDescription("A thread of the server; a new one by default"),
      Argument.optional
    ),
    tokenFile: Flag.String("token-file").pipe(
      Flag.withMetavar("path"),
      Flag.withDescription("The file with the token of the server; else DEEPAGENTS_ATTACH_TOKEN, or a kept one"),
      Flag.optional
    ),
    login: Flag.Boolean("login").pipe(Flag.withDescription("Keeps the token, typed or piped in, and ends"), off),
    logout: Flag.Boolean("logout").pipe(Flag.withDescription("Forgets the token, and ends"), off)
  },
  Effect.fnUntraced(function* ({ login: keeps, logout: forgets, thread, tokenFile, url }) {
    const flags = yield* root
    const context = yield* contextFor(flags, false)
    const Attach = yield* load(() => import("./attach.ts"))
    return yield* Attach.attach(context, flags, {
      url: Option.getOrUndefined(url),
      thread: Option.getOrUndefined(thread),
      tokenFile: Option.getOrUndefined(tokenFile),
      access: keeps ? "keep" : forgets ? "forget" : undefined
    })
  })
).pipe(
  Command.withDescription("Looks at a running server from this terminal: its threads, runs and questions"),
  Command.withExamples([
    { command: "deepagents attach", description: "The server of this folder" },
    { command: "deepagents attach https://agents.example.com report-7", description: "A thread of a server elsewhere" }
  ])
)
