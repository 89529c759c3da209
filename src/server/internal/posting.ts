/** Posts the inputs that no client sends: those of webhooks and of the clock. */
import * as Effect from "effect/Effect"
import type { HumanMessage } from "../../core/Message.ts"
import type { SessionError } from "../../core/SessionError.ts"
import { type Service, SessionStore } from "../../core/SessionStore.ts"
import { cut, joinLines } from "../../support/text/text.ts"
import type { Runs, RunsError, Acceptance } from "./service.ts"
import { type Principal, type Tenant, tenant } from "./tenant.ts"

export const isMissing = ({ reason }: SessionError): boolean => reason._tag === "NotFound"

/** Makes the thread of a first input, with a title. */
export const nameThread = (
  { tenant: { store } }: { readonly tenant: Pick<Tenant, "store"> },
  threadId: string,
  title: string
): Effect.Effect<void, SessionError> =>
  Effect.catchIf(Effect.asVoid(store.info(threadId)), isMissing, () =>
    Effect.catchIf(
      Effect.asVoid(store.create({ threadId, metadata: { title } })),
      ({ reason }) => reason._tag === "AlreadyExists",
      () => Effect.void
    )
  )

/** The input of a principal for a thread, which need not exist. */
export interface Post {
  readonly principal: Principal
  readonly thread: string
  readonly agent: string
  readonly message: HumanMessage
  readonly id: string
  readonly title: string
}

/** Gives an input to its thread. Posting it again has no effect. */
export const post = Effect.fnUntraced(function* (
  runs: Runs["Service"],
  store: Service,
  { agent, id, message, principal, thread, title }: Post
): Effect.fn.Return<Acceptance, RunsError | SessionError> {
  const own = yield* Effect.provideService(tenant(principal), SessionStore, store)
  const ref = yield* own.thread(thread)
  if (runs.agents.some(({ name }) => name === agent))
    yield* nameThread({ tenant: own }, thread, cut(joinLines(title), 60))
  return yield* runs.start(ref, { agent, input: message, id })
})
