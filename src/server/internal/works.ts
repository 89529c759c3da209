/** The threads at work: one queue and one log each, and the runs of what is in the queue. */
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Agent from "../../core/Agent.ts"
import type { AgentEvent } from "../../core/AgentEvent.ts"
import {
  absent,
  ChatModel,
  type ModelRequest,
  type Service as ChatModelService,
  turnPurpose
} from "../../core/ChatModel.ts"
import { Journal } from "../../core/Journal.ts"
import { type HumanMessage, makeId } from "../../core/Message.ts"
import type { Leaf, NewEntry, Service } from "../../core/SessionStore.ts"
import { zero } from "../../core/Usage.ts"
import { codecs, orNothing, plan } from "../../durable/planning.ts"
import { Calling } from "../../mcp/McpApps.ts"
import { watch } from "../../sessions/decorated.ts"
import { loadThread, makeJournal } from "../../sessions/journal.ts"
import { callingModel, lastInput, serverOf } from "./apps/calls.ts"
import { Mode, readChoices } from "./choices.ts"
import * as Log from "./log.ts"
import type { Mail, Mailbox } from "./mailbox.ts"
import type { Owner } from "./owner.ts"
import { RunsError } from "./service.ts"
import { OnSettled } from "./settled.ts"
import { Caller } from "./tenant.ts"

export type AnyAgent = Agent.Agent<unknown, unknown, unknown>

/** A thread at work. */
export interface Work {
  readonly log: Log.Log
  /** The mail that is at work or waits, in order. */
  readonly queue: Array<Mail>
  /** The ids of the inputs that are on their way into the queue. */
  readonly coming: Set<string>
  handle: Agent.Handle<unknown, unknown> | undefined
  isBegun: boolean
  isCancelled: boolean
  /** Steering that the run before took and could not give to its model. */
  readonly undelivered: Array<HumanMessage>
}

/** All threads at work, and their surroundings. */
export interface Registry {
  readonly agents: Readonly<Record<string, AnyAgent>>
  readonly base: Service
  readonly mailbox: Mailbox
  readonly owner: Owner
  /** The models that an input may choose, each made when a run has it first. */
  readonly models: Readonly<Record<string, Effect.Effect<ChatModelService, unknown>>>
  /** The modes that an input may choose. The first is the default. */
  readonly modes: ReadonlyArray<string>
  /** The levels of thinking that an input may choose. */
  readonly thinking: ReadonlyArray<string>
  /** Bytes of events that are kept of a thread at work. */
  readonly keep: number
  /** Runs and inputs that wait, at most: of all tenants, and of each. */
  readonly limits: { readonly all: number; readonly tenant: number }
  /** Runs end with it, and with the lease. */
  scope: Scope.Closeable
  readonly context: Context.Context<never>
  readonly works: Map<string, Work>
  /** True while the server ends, or its lease: the ends of runs are not told. */
  isClosing: boolean
  /** The order of the last mail. */
  seq: number
  /** Mail at work or waiting, by tenant. */
  readonly active: Map<string, number>
}

/** The leaf of a missing thread. */
export const nowhere: Leaf = { id: null, step: 0 }

/** The time that the log of an idle thread is kept for readers that come again. */
const lingering = "60 seconds"

/** Makes the failure of an operation on a thread. */
export const refuse = (reason: RunsError["reason"], threadId: string, problem: string): RunsError =>
  new RunsError({ reason, threadId, problem })

/** Counts mail of a tenant. */
export const count = ({ active }: Registry, tenant: string, by: 1 | -1): void => {
  const amount = by + (active.get(tenant) ?? 0)
  if (amount > 0) active.set(tenant, amount)
  else active.delete(tenant)
}

/** Reports whether the server, or the tenant, has as much mail as it may. */
export const isFull = ({ active, limits }: Registry, tenant: string): boolean => {
  if ((active.get(tenant) ?? 0) >= limits.tenant) return true
  let all = 0
  for (const some of active.values()) all += some
  return all >= limits.all
}

/** Gives the work of a thread, and makes it if it is missing. */
export const workOf = ({ works }: Registry, baseId: string): Work => {
  const current = works.get(baseId)
  if (current !== undefined) return current
  const work = {
    log: Log.make(),
    queue: [],
    coming: new Set<string>(),
    handle: undefined,
    isBegun: false,
    isCancelled: false,
    undelivered: []
  }
  works.set(baseId, work)
  return work
}

/** Forgets a thread without runs and readers. */
export const forget = ({ works }: Registry, baseId: string, work: Work): void => {
  const isUsed =
    work.queue.length > 0 || work.coming.size > 0 || work.log.readers.size > 0 || work.undelivered.length > 0
  if (!isUsed && works.get(baseId) === work) works.delete(baseId)
}

/** Sends the readers of an idle thread, which was rewound or deleted, to the store. */
export const reread = ({ works }: Registry, baseId: string): void => {
  const work = works.get(baseId)
  if (work !== undefined && !work.isBegun) Log.leave(work.log)
}

/** The mail at work or waiting that decides on requests, by the ids of the requests. */
export const decidedIn = (work: Work | undefined): ReadonlyMap<string, Mail> => {
  const mailByRequest = new Map<string, Mail>()
  for (const [index, mail] of (work?.queue ?? []).entries()) {
    if (mail.push._tag !== "Decisions" || (index === 0 && work?.isCancelled === true)) continue
    for (const { id } of mail.push.decisions) if (!mailByRequest.has(id)) mailByRequest.set(id, mail)
  }
  return mailByRequest
}

/** Reports whether a thread has mail. */
export const isBusy = (work: Work | undefined): boolean => work !== undefined && work.queue.length > 0

/** Reports whether a run is at work on a thread, or waits: here, or in the process that has its mail. */
export const isAtWork = Effect.fnUntraced(function* ({ mailbox, owner, works }: Registry, baseId: string) {
  if (isBusy(works.get(baseId))) return true
  if (yield* owner.isOwn) return false
  return (yield* mailbox.of(baseId)).length > 0
})

const tell = ({ isClosing, keep }: Registry, work: Work, events: ReadonlyArray<AgentEvent>): void => {
  if (!isClosing) Log.tell(work.log, events, keep)
}

/** Tells of a run that could not begin. */
const tellFailure = (registry: Registry, work: Work, { agent }: Mail, cause: Cause.Cause<unknown>): void => {
  const error = Cause.squash(cause)
  const message = error instanceof Error ? error.message : String(error)
  const tag = error instanceof Error && "_tag" in error ? String(error._tag) : "Defect"
  const path = [registry.agents[agent]?.name ?? agent]
  const head = { seq: 0, runId: makeId(), path, at: Date.now() }
  tell(registry, work, [{ _tag: "RunFailed", ...head, error: { tag, message }, rounds: 0, usage: zero }])
}

/** The events that a server gives, with the id of the thread that its tenant knows. */
const renamed = (event: AgentEvent, threadId: string): AgentEvent =>
  "threadId" in event && event.threadId !== undefined ? { ...event, threadId } : event

/** The ids of the calls whose answers are among entries. */
const answersIn = (entries: ReadonlyArray<NewEntry>): ReadonlyArray<string> =>
  entries.flatMap(({ entry }) =>
    entry._tag === "Message" && entry.message.role === "tool" ? [entry.message.toolCallId] : []
  )

/** Works on one piece of mail: a run, or nothing if it is settled. */
const turn = Effect.fnUntraced(function* (registry: Registry, work: Work, mail: Mail, threadId: string) {
  const { agents, base } = registry
  const { log } = work
  const { threadId: baseId } = mail
  const agent = agents[mail.agent]
  if (agent === undefined) return yield* refuse("InvalidInput", threadId, `there is no agent "${mail.agent}" any more`)
  const lock = yield* makeJournal(base).hold?.(baseId) ?? Effect.void
  Log.begin(log, yield* orNothing(base.leaf(baseId), nowhere))
  work.isBegun = true
  let from = log.next
  const store = watch(base, {
    before: () => {
      from = log.next
    },
    after: (leaf, entries) => Log.save(log, leaf, from, answersIn(entries))
  })
  const todo = yield* plan(
    store,
    agent,
    codecs<unknown, unknown>({ output: undefined, error: undefined }),
    baseId,
    mail.push
  )
  if (todo._tag === "Settled" || work.isCancelled) return undefined
  const { open } = todo.journal
  const handle = yield* Agent.start(agent, todo.input, { threadId: baseId }).pipe(
    Effect.provideService(Journal, { open, hold: () => Effect.succeed(lock) })
  )
  for (const message of work.undelivered.splice(0)) yield* Effect.ignore(handle.steer(message))
  work.handle = handle
  const relay = yield* Effect.forkScoped(
    Stream.runForEachArray(handle.events, (events) => {
      tell(
        registry,
        work,
        events.map((event) => renamed(event, threadId))
      )
      // A model that never waits would starve the readers.
      return Effect.yieldNow
    }),
    { startImmediately: true }
  )
  if (work.isCancelled) yield* handle.interrupt
  const exit = yield* Effect.exit(handle.await)
  yield* Fiber.await(relay)
  // A run that came to wait for a decision goes on with them.
  if (!work.isCancelled) work.undelivered.push(...(yield* handle.undelivered))
  if (Exit.isSuccess(exit)) return exit.value.stopReason
  return Cause.hasInterruptsOnly(exit.cause) ? "interrupted" : "failed"
}, Effect.scoped)

/** The server whose interface began the work of mail; `undefined` for the words of a person. */
const readCaller = ({ base }: Registry, { push, threadId }: Mail): Effect.Effect<string | undefined> =>
  push._tag === "Input"
    ? Effect.succeed(serverOf(push.message))
    : Effect.orElseSucceed(
        Effect.map(loadThread(base, threadId), ({ checkpoint }) => {
          const messages = checkpoint?.messages ?? []
          return serverOf(messages[lastInput(messages)])
        }),
        () => undefined
      )

/** Makes a model think as much as the inputs of a thread chose, in turns of the conversation. */
const thinkingModel = (model: ChatModelService, thinking: string): ChatModelService => ({
  ...model,
  makeSession: Effect.map(model.makeSession, (session) => ({
    ...session,
    nextTurn: (request: ModelRequest) =>
      session.nextTurn(
        request.purpose === turnPurpose ? { ...request, parameters: { ...request.parameters, thinking } } : request
      )
  }))
})

/** Gives the services of a run: who asks, and the mode and the model of the thread. An input has the mode of its time. */
const servicesOf = Effect.fnUntraced(function* (registry: Registry, mail: Mail) {
  const { base, context, models, modes, thinking } = registry
  const { call, id, mode: ofInput, principal, push, threadId } = mail
  const choices = yield* readChoices(base, threadId)
  const wanted = push._tag === "Input" ? ofInput : choices.mode
  const mode = modes.find((one) => one === wanted) ?? modes[0] ?? ""
  const services = Context.add(Context.add(context, Caller, principal), Mode, mode)
  const name = choices.model
  const model = name !== undefined && Object.hasOwn(models, name) ? models[name] : undefined
  if (name !== undefined && model === undefined)
    yield* Effect.logWarning("The model of a thread is not offered any more: its run has the default")
  const caller = yield* readCaller(registry, mail)
  const level = thinking.find((one) => one === choices.thinking)
  if (model === undefined && caller === undefined && level === undefined) return services
  const plain = model === undefined ? Context.getOrElse(context, ChatModel, () => absent) : yield* model
  const real = level === undefined ? plain : thinkingModel(plain, level)
  if (caller === undefined) return Context.add(services, ChatModel, real)
  return Context.add(services, ChatModel, callingModel(real, call, id)).pipe(Context.add(Calling, caller))
})

/** Tells listeners of settled mail, before it is gone. */
const tellSettled = Effect.fnUntraced(function* (
  { base }: Registry,
  { agent, id, principal: { tenant }, threadId: baseId }: Mail,
  threadId: string,
  outcome: string | undefined
) {
  const listen = yield* OnSettled
  const items = yield* Effect.orElseSucceed(
    Effect.map(base.waiting({ threadId: baseId }), (page) => page.items),
    () => []
  )
  yield* listen({ tenant, threadId, id, agent, outcome, pending: items.map(({ request }) => request) })
})

/** The id of a thread as its tenant knows it. */
const nameIn = (baseId: string): string => baseId.slice(baseId.indexOf("/", 2) + 1)

/** Works on the mail of a thread, until all is done. */
const drain = Effect.fnUntraced(function* (registry: Registry, work: Work, baseId: string) {
  for (let mail = work.queue[0]; mail !== undefined; mail = work.queue[0]) {
    const one = mail
    const threadId = nameIn(one.threadId)
    const exit = yield* Effect.exit(
      Effect.flatMap(servicesOf(registry, one), (services) =>
        Effect.provideContext(
          // The layer's type has the services of all agents.
          turn(registry, work, one, threadId) as Effect.Effect<string | undefined, unknown>,
          services
        )
      )
    )
    if (registry.isClosing) return
    if (Exit.isFailure(exit) && !work.isCancelled) {
      yield* Effect.logError("A run could not begin", exit.cause)
      tellFailure(registry, work, one, exit.cause)
    }
    const outcome = Exit.isSuccess(exit) ? exit.value : "failed"
    yield* Effect.provideContext(tellSettled(registry, one, threadId, outcome), registry.context)
    yield* Effect.ignore(registry.mailbox.drop(one))
    Object.assign(work, { handle: undefined, isBegun: false, isCancelled: false })
    work.queue.shift()
    count(registry, one.principal.tenant, -1)
  }
  Log.signal(work.log)
  const end = work.log.next
  const release = Effect.sync(() => {
    // Work that came in the meantime has a minute of its own.
    if (isBusy(work) || work.log.next !== end) return
    Log.release(work.log)
    forget(registry, baseId, work)
  })
  yield* Effect.forkIn(Effect.delay(release, lingering), registry.scope)
})

/** Puts mail, which was counted, behind the mail before it. */
export const enqueue = (registry: Registry, mail: Mail): Effect.Effect<void> =>
  Effect.suspend(() => {
    const work = workOf(registry, mail.threadId)
    work.queue.push(mail)
    Log.signal(work.log)
    return work.queue.length === 1
      ? Effect.asVoid(Effect.forkIn(drain(registry, work, mail.threadId), registry.scope))
      : Effect.void
  })

/** Reports whether mail is at work or waits. */
export const isQueued = ({ works }: Registry, { id, threadId }: Mail): boolean =>
  works.get(threadId)?.queue.some((mail) => mail.id === id) === true

/** Puts stored mail to work, which another process or an earlier one took and did not settle. */
export const resume = Effect.fnUntraced(function* (registry: Registry, mails: ReadonlyArray<Mail>) {
  for (const mail of mails) {
    if (isQueued(registry, mail)) continue
    count(registry, mail.principal.tenant, 1)
    yield* enqueue(registry, mail)
  }
})

/** Ends all runs without settling their mail: another process has it now. Their readers go on from the store. */
export const abandon = Effect.fnUntraced(function* (registry: Registry, parent: Scope.Scope) {
  registry.isClosing = true
  yield* Scope.close(registry.scope, Exit.void)
  for (const [baseId, work] of Array.from(registry.works)) {
    work.queue.length = 0
    work.undelivered.length = 0
    Object.assign(work, { handle: undefined, isBegun: false, isCancelled: false })
    Log.leave(work.log)
    forget(registry, baseId, work)
  }
  registry.active.clear()
  registry.scope = yield* Scope.fork(parent)
  registry.isClosing = false
})
