/** Runs in this process, and the mailbox that outlives it. */
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { Service } from "../../core/SessionStore.ts"
import { toSteering } from "../../durable/planning.ts"
import * as Lease from "./lease.ts"
import type { Mailbox } from "./mailbox.ts"
import { makeObserve } from "./observing.ts"
import * as Position from "./position.ts"
import { onMove } from "./scope.ts"
import type { AgentInfo, Runs, RunsError } from "./service.ts"
import { endOf, makeDecide, makeStart, openThread, readPending } from "./taking.ts"
import { abandon, type AnyAgent, decidedIn, isBusy, refuse, type Registry, reread, resume } from "./works.ts"

const makeSteer = ({ lease, works }: Registry): Runs["Service"]["steer"] =>
  Effect.fnUntraced(function* (thread, input) {
    const { baseId } = yield* openThread(thread)
    const notRunning = () => refuse("NotRunning", thread.id, "no run is at work on the thread; start one")
    yield* Lease.check(lease, thread.id)
    const handle = works.get(baseId)?.handle
    if (handle === undefined) return yield* notRunning()
    yield* Effect.mapError(handle.steer(toSteering(input)), notRunning)
  })

const makeCancel = ({ lease, mailbox, works }: Registry): Runs["Service"]["cancel"] =>
  Effect.fnUntraced(function* (thread) {
    const { baseId } = yield* openThread(thread)
    yield* Lease.check(lease, thread.id)
    const work = works.get(baseId)
    const mail = work?.queue[0]
    if (work === undefined || mail === undefined) return false
    // A crash between the two must not bring it back.
    yield* mailbox.drop(mail)
    if (work.queue[0] !== mail) return true
    work.isCancelled = true
    yield* work.handle?.interrupt ?? Effect.void
    return true
  })

/** Reports whether a run is at work on a thread, or waits: here, or in the process that has the mailbox. */
const isAtWork = Effect.fnUntraced(function* ({ lease, mailbox, works }: Registry, baseId: string) {
  if (isBusy(works.get(baseId))) return true
  if (yield* Lease.isOwn(lease)) return false
  return (yield* mailbox.all).some(({ threadId }) => threadId === baseId)
})

const makeStatus = (registry: Registry): Runs["Service"]["status"] =>
  Effect.fnUntraced(function* (thread) {
    const named = yield* openThread(thread)
    const isWorking = yield* isAtWork(registry, named.baseId)
    if (!isWorking) yield* named.store.leaf(thread.id)
    const mailByRequest = decidedIn(registry.works.get(named.baseId))
    const pending = (yield* readPending(named, thread.id)).filter(({ id }) => !mailByRequest.has(id))
    const position = Position.write(yield* endOf(registry, named, thread.id))
    const state = isWorking ? "working" : pending.length > 0 ? "waiting" : "idle"
    const [mail, ...rest] = registry.works.get(named.baseId)?.queue ?? []
    const queued = rest.flatMap(({ id, push }) => (push._tag === "Input" ? [id] : []))
    return mail?.push._tag === "Input"
      ? { state, pending, position, queued, input: { id: mail.id, position: mail.position } }
      : { state, pending, position, queued }
  })

const makeState = (registry: Registry): Runs["Service"]["state"] =>
  Effect.fnUntraced(function* (thread) {
    const { baseId, store } = yield* openThread(thread)
    if (yield* isAtWork(registry, baseId)) return "working"
    const { items } = yield* store.waiting({ threadId: thread.id, limit: 1 })
    return items.length > 0 ? "waiting" : "idle"
  })

const listAgents = (agents: Registry["agents"]): ReadonlyArray<AgentInfo> =>
  Object.entries(agents).map(([name, { description }]) => ({ name, ...(description === "" ? {} : { description }) }))

/** Makes the service. It resumes the runs of the mailbox, or stands by while another process has it. */
export const make = Effect.fnUntraced(function* (
  agents: Readonly<Record<string, AnyAgent>>,
  base: Service,
  mailbox: Mailbox,
  lease: Lease.Lease,
  { keep, limits, models, modes }: Pick<Registry, "keep" | "limits" | "models" | "modes">
): Effect.fn.Return<Runs["Service"], RunsError, Scope.Scope> {
  const parent = yield* Effect.scope
  const registry: Registry = {
    agents,
    base,
    mailbox,
    lease,
    keep,
    limits,
    models,
    modes,
    context: yield* Effect.context<never>(),
    scope: yield* Scope.fork(parent),
    works: new Map(),
    isClosing: false,
    seq: 0,
    active: new Map()
  }
  // It comes before the end of the runs, which the scope began with.
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      registry.isClosing = true
    })
  )
  yield* onMove(base, (threadId) => reread(registry, threadId))
  yield* Lease.begin(lease, { gain: resume(registry), lose: abandon(registry, parent) })
  return {
    agents: listAgents(agents),
    models: Object.keys(models),
    modes,
    start: makeStart(registry),
    decide: makeDecide(registry),
    steer: makeSteer(registry),
    cancel: makeCancel(registry),
    state: makeState(registry),
    status: makeStatus(registry),
    observe: makeObserve(registry)
  }
})
