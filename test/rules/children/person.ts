/** A person at the inbox in a process of its own: `argv` is the kind of store, its folder and the person's name. When there is a file `go`, it claims all pending requests, decides all of them, also claimed ones of others, and prints each result. */
import { existsSync, writeSync } from "node:fs"
import { Approval } from "effect-deepagents"
import { Inbox } from "effect-deepagents/rules"
import { SessionStore } from "effect-deepagents/sessions"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { layer } from "../../sessions/children/stores.ts"
import { inbox } from "./clerk.ts"

const [kind = "", path = "", id = ""] = process.argv.slice(2)
const by = { id }

const outcome = <A>(work: Effect.Effect<A, Inbox.InboxError>) =>
  Effect.match(work, { onSuccess: () => "done", onFailure: ({ reason }) => reason._tag })

const program = Effect.gen(function* () {
  const { claim, decide, list } = yield* Inbox.Inbox
  const items = yield* list()
  writeSync(1, "ready\n")
  while (!existsSync(`${path}/go`)) yield* Effect.sleep("5 millis")
  const told = yield* Effect.forEach(items, ({ id: item, request, threadId }) =>
    Effect.gen(function* () {
      // Racing requests are decided without a claim.
      const claimed = threadId?.startsWith("race") === true ? "not tried" : yield* outcome(claim(item, { by }))
      const decided = yield* outcome(decide([Approval.approve(request)], { by }))
      return { threadId, claimed, decided }
    })
  )
  writeSync(1, `${JSON.stringify(told)}\n`)
})

const sessions = SessionStore.journal.pipe(Layer.provideMerge(layer(kind, path)))

Effect.runFork(Effect.provide(program, inbox(path).pipe(Layer.provideMerge(sessions))))
