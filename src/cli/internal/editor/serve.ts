/** `deepagents acp`: the agent of a folder in an editor. Its parts load when a session is opened. */
import * as Module from "node:module"
import * as Effect from "effect/Effect"
import manifest from "../../../../package.json" with { type: "json" }
import { AcpError } from "../../../acp/AcpError.ts"
import * as AcpServer from "../../../acp/AcpServer.ts"
import type { SharedFlags } from "../commands/flags.ts"
import { orFail } from "../failure.ts"
import type { Services } from "../work/app.ts"

const load = <Module>(module: () => Promise<Module>) => Effect.promise(module)

/** Keeps the compiled code for the next start. Node keeps it at the end of a process, and editors kill theirs. */
const keepCompiled = Effect.delay(
  Effect.sync(() => Module.flushCompileCache()),
  "2 seconds"
)

/** Serves an editor on standard input and output until it leaves. */
export const serve = Effect.fnUntraced(function* (flags: SharedFlags) {
  const node = yield* Effect.context<Services>()
  yield* Effect.forkChild(keepCompiled)
  const store = yield* Effect.cached(
    Effect.flatMap(
      load(() => import("./store.ts")),
      ({ openStore }) => Effect.provideContext(openStore, node)
    )
  )
  yield* AcpServer.serve({
    name: "deepagents",
    version: manifest.version,
    login: [{ id: "login", name: "Keep a key of a model's provider", args: ["--login"] }],
    makeId: Effect.flatMap(
      load(() => import("../work/threads.ts")),
      ({ newId }) => newId
    ),
    store: Effect.mapError(store, ({ message }) => new AcpError({ reason: "Refused", detail: message })),
    open: (opening) =>
      Effect.flatMap(
        load(() => import("./session.ts")),
        ({ openSession }) => openSession(flags, opening, store)
      )
  }).pipe(orFail("failed"))
})
