/** Runs in this process, and the mailbox that outlives it. */
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { toSteering } from "../../durable/planning.ts"
import * as Lease from "./lease.ts"
import { makeObserve } from "./observing.ts"
import * as Owner from "./owner.ts"
import { checkInput } from "./packets/input.ts"
import * as Position from "./position.ts"
import { onMove } from "./scope.ts"
import type { AgentInfo, Runs, RunsError } from "./service.ts"
import { endOf, makeDecide, makeStart, openThread, readPending } from "./taking.ts"
import { abandon, count, decidedIn, isAtWork, refuse, type Registry, reread, resume } from "./works.ts"

const makeSteer = ({ owner, works }: Registry): Runs["Service"]["steer"] =>
  Effect.fnUntraced(function* (thread, input) {
    const { baseId } = yield* openThread(thread)
    const message = toSteering(input)
    yield* checkInput(message.content)
    const notRunning = () => refuse("NotRunning", thread.id, "no run is at work on the thread; start one")
    yield* Owner.check(owner, thread.id)
    const handle = works.get(baseId)?.handle
    if (handle === undefined) return yield* notRunning()
    yield* Effect.mapError(handle.steer(message), notRunning)
  })

const makeCancel = ({ mailbox, owner, works }: Registry): Runs["Service"]["cancel"] =>
  Effect.fnUntraced(function* (thread) {
    const { baseId } = yield* openThread(thread)
    yield* Owner.check(owner, thread.id)
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

/** Lists the agents of a layer. */
export const listAgents = (agents: Registry["agents"]): ReadonlyArray<AgentInfo> =>
  Object.entries(agents).map(([name, { description }]) => ({ name, ...(description === "" ? {} : { description }) }))

/** The settings of runs, with the mail at work by tenant. */
export type Settings = Pick<
  Registry,
  "active" | "agents" | "base" | "keep" | "limits" | "mailbox" | "models" | "modes" | "thinking"
>

/** Makes the place of threads at work, which ends with its scope. */
export const makeRegistry = Effect.fnUntraced(function* (
  settings: Settings,
  owner: Owner.Owner
): Effect.fn.Return<Registry, never, Scope.Scope> {
  const registry: Registry = {
    ...settings,
    owner,
    context: yield* Effect.context<never>(),
    scope: yield* Scope.fork(yield* Effect.scope),
    works: new Map(),
    isClosing: false,
    seq: 0
  }
  // It comes before the end of the runs, which the scope began with.
  yield* Effect.addFinalizer(() =>
    Effect.sync(() => {
      registry.isClosing = true
      for (const { queue } of registry.works.values()) {
        for (const { principal } of queue) count(registry, principal.tenant, -1)
      }
    })
  )
  yield* onMove(settings.base, (threadId) => reread(registry, threadId))
  return registry
})

/** The service over the threads at work of a registry. */
export const serviceOf = (registry: Registry): Runs["Service"] => ({
  agents: listAgents(registry.agents),
  models: Object.keys(registry.models),
  modes: registry.modes,
  thinking: registry.thinking,
  start: makeStart(registry),
  decide: makeDecide(registry),
  steer: makeSteer(registry),
  cancel: makeCancel(registry),
  state: makeState(registry),
  status: makeStatus(registry),
  observe: makeObserve(registry)
})

/** Makes the service. It resumes the runs of the mailbox, or stands by while another process has it. */
export const make = Effect.fnUntraced(function* (
  settings: Settings,
  lease: Lease.Lease
): Effect.fn.Return<Runs["Service"], RunsError, Scope.Scope> {
  const parent = yield* Effect.scope
  const registry = yield* makeRegistry(settings, Lease.toOwner(lease))
  yield* Lease.begin(lease, {
    gain: Effect.flatMap(settings.mailbox.all, (mails) => resume(registry, mails)),
    lose: abandon(registry, parent)
  })
  return serviceOf(registry)
})
