/** Takes inputs and decisions for threads. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Scope } from "effect/Scope"
import { type Decision, problemOf } from "../../core/Approval.ts"
import { type HumanMessage, makeId, type Message } from "../../core/Message.ts"
import { canonical } from "../../core/schema/jsonTree.ts"
import { make as failure, type SessionError } from "../../core/SessionError.ts"
import type { Page } from "../../core/SessionStore.ts"
import { orNothing, pendingOf, toMessage } from "../../durable/planning.ts"
import { loadThread } from "../../sessions/journal.ts"
import { defined } from "../../support/json/defined.ts"
import { didYouMean, nameProblem } from "../../support/text/names.ts"
import { sourceOf } from "./apps/calls.ts"
import { choicesIn, keepChoices } from "./choices.ts"
import * as Log from "./log.ts"
import type { Mail } from "./mailbox.ts"
import * as Owner from "./owner.ts"
import { checkInput } from "./packets/input.ts"
import * as Position from "./position.ts"
import type { Runs, RunsError, Acceptance } from "./service.ts"
import { type NamedThread, namedBy, type ThreadRef } from "./tenant.ts"
import {
  count,
  decidedIn,
  enqueue,
  forget,
  isBusy,
  isFull,
  isQueued,
  nowhere,
  refuse,
  type Registry,
  resume,
  workOf
} from "./works.ts"

const isSame = (left: Message, right: Message): boolean =>
  canonical(JSON.parse(JSON.stringify(left.content))) === canonical(JSON.parse(JSON.stringify(right.content)))

/** Resolves the name of a thread. */
export const openThread = (thread: ThreadRef): Effect.Effect<NamedThread, RunsError> =>
  Effect.suspend(() => {
    const named = namedBy(thread)
    return named === undefined ? Effect.fail(refuse("NotFound", "", "there is no such thread")) : Effect.succeed(named)
  })

/** Reads the pending requests of a thread. */
export const readPending = ({ store }: NamedThread, id: string) =>
  Effect.mapError(pendingOf(store, id), (error) =>
    error._tag === "SessionError" ? error : refuse("InvalidInput", id, error.message)
  )

/** The end of the events of a thread so far. */
export const endOf = Effect.fnUntraced(function* ({ works }: Registry, { baseId, store }: NamedThread, id: string) {
  const work = works.get(baseId)
  if (work?.isBegun === true) return Log.endOf(work.log)
  const { id: leaf, step } = yield* orNothing(store.leaf(id), nowhere)
  const epoch = work?.log.epoch ?? Position.storeEpoch
  return { step, leaf: Position.markOf(leaf), epoch, told: work?.log.next ?? 0, isOver: true }
})

/** The place before the message of an input; `undefined` if the thread does not have it. */
export const placeBefore = Effect.fnUntraced(function* ({ store }: NamedThread, id: string, messageId: string) {
  const leaf = yield* store.leaf(id)
  let [from, step] = [leaf.id, leaf.step]
  let isFound = false
  while (from !== null) {
    const page: Page = yield* store.load(id, { from })
    for (const { entry, id: entryId } of page.entries.toReversed()) {
      // The entries of a step are stored at once: it is the place behind the step before.
      if (isFound && entry._tag === "Step") {
        return { step, leaf: Position.markOf(entryId), epoch: Position.storeEpoch, told: 0, isOver: true }
      }
      if (entry._tag === "Message" && entry.message.id === messageId) isFound = true
      step--
    }
    from = page.next
  }
  return isFound ? Position.start : undefined
})

/** Puts stored mail to work that is in no queue: its write was done, and failed for the caller. */
const resumeStored = (registry: Registry, mail: Mail): Effect.Effect<void> =>
  Effect.uninterruptible(
    Effect.gen(function* () {
      const isComing = registry.works.get(mail.threadId)?.coming.has(mail.id) === true
      if (!isComing && (yield* registry.owner.isOwn)) yield* resume(registry, [mail])
    })
  )

/**
 * Stores mail, and puts it to work. `isDone` looks whether the same mail was taken, run and dropped since the thread was
 * looked at: then it is not new.
 */
const take = Effect.fnUntraced(function* (
  registry: Registry,
  { id, principal }: ThreadRef,
  named: NamedThread,
  mail: Pick<Mail, "agent" | "call" | "id" | "mode" | "push">,
  isDone: Effect.Effect<boolean, RunsError | SessionError>
): Effect.fn.Return<Acceptance, RunsError | SessionError, Scope> {
  yield* Owner.check(registry.owner, id)
  if (isFull(registry, principal.tenant)) {
    return yield* refuse("TooMany", id, "as many runs are at work or wait as the server takes; try again later")
  }
  // It is counted before anything is waited for, so that requests at once don't pass the limit.
  let isTaken = false
  yield* Effect.acquireRelease(
    Effect.sync(() => count(registry, principal.tenant, 1)),
    () =>
      Effect.sync(() => {
        if (!isTaken) count(registry, principal.tenant, -1)
      })
  )
  const position = Position.write(yield* endOf(registry, named, id))
  registry.seq = Math.max(registry.seq + 1, (yield* Clock.currentTimeMillis) * 1_000)
  const whole: Mail = { v: 1, seq: registry.seq, threadId: named.baseId, principal, position, ...mail }
  // From here on it is taken, also if the caller is interrupted.
  return yield* Effect.uninterruptible(
    Effect.gen(function* () {
      if (!(yield* registry.mailbox.put(whole))) {
        const other = yield* registry.mailbox.get(named.baseId, mail.id)
        if (other !== undefined) yield* resumeStored(registry, other)
        return { id: mail.id, position: other?.position ?? position, isNew: false }
      }
      if (yield* Effect.catchCause(isDone, () => Effect.succeed(false))) {
        yield* Effect.ignore(registry.mailbox.drop(whole))
        return { id: mail.id, position, isNew: false }
      }
      // A process that was paused may have lost its right unnoticed. Whoever has it now did not see this mail.
      const { confirm, isOwn, refuse } = registry.owner
      if (!((yield* confirm) && (yield* isOwn))) {
        yield* Effect.ignore(registry.mailbox.drop(whole))
        return yield* Effect.flatMap(refuse(id), Effect.fail)
      }
      // A repetition at the same time may have put it to work.
      if (!isQueued(registry, whole)) {
        yield* enqueue(registry, whole)
        isTaken = true
      }
      return { id: mail.id, position, isNew: true }
    })
  )
}, Effect.scoped)

const checkSame = (storedMessage: Message, message: HumanMessage, { id }: ThreadRef) =>
  isSame(storedMessage, message)
    ? Effect.void
    : Effect.fail(refuse("Conflict", id, "another input had this id; give the new one an id of its own"))

/** Refuses a choice that the server does not offer. */
const checkChoice = (
  what: string,
  name: string | null | undefined,
  offered: ReadonlyArray<string>,
  { id }: ThreadRef
) => {
  if (name === undefined || name === null || offered.includes(name)) return Effect.void
  const offers = offered.length === 0 ? "This server offers no choice" : `Take one of ${offered.join(", ")}`
  return Effect.fail(refuse("InvalidInput", id, `there is no such ${what}.${didYouMean(name, offered)} ${offers}`))
}

/** Announces an input, so that inputs at the same time know of it. Fails if the thread is busy and the input does not wait. */
const announce = (
  registry: Registry,
  { baseId }: NamedThread,
  thread: ThreadRef,
  { busy, id }: { readonly id: string; readonly busy: "queue" | "refuse" | undefined }
) =>
  Effect.suspend(() => {
    const work = workOf(registry, baseId)
    const isFirst = !isBusy(work) && [...work.coming].every((other) => other === id)
    if (busy === "refuse" && !isFirst) {
      forget(registry, baseId, work)
      return Effect.fail(refuse("Busy", thread.id, "a run is at work on the thread; wait for its end, or steer it"))
    }
    work.coming.add(id)
    return Effect.succeed(work)
  })

/** Finds the message of an input that was taken: in the mail, or in the thread. */
const findMessage = Effect.fnUntraced(function* (
  { mailbox }: Registry,
  { baseId, store }: NamedThread,
  threadId: string,
  id: string
) {
  const mail = yield* mailbox.get(baseId, id)
  if (mail?.push._tag === "Input") return mail.push.message
  const { checkpoint } = yield* loadThread(store, threadId)
  return checkpoint?.messages.find((one) => one.id === `input:${id}`)
})

/** Takes inputs. */
export const makeStart = (registry: Registry): Runs["Service"]["start"] =>
  Effect.fnUntraced(function* (thread, { agent, busy, call, id = makeId(), input, mode, model, thinking }) {
    const named = yield* openThread(thread)
    if (!Object.hasOwn(registry.agents, agent)) {
      return yield* refuse(
        "InvalidInput",
        thread.id,
        `there is no such agent.${didYouMean(agent, Object.keys(registry.agents))} Take one of ${Object.keys(registry.agents).join(", ")}`
      )
    }
    yield* checkChoice("model", model, Object.keys(registry.models), thread)
    yield* checkChoice("mode", mode, registry.modes, thread)
    yield* checkChoice("level of thinking", thinking, registry.thinking, thread)
    const problem = nameProblem(id, 255)
    if (problem !== undefined) return yield* refuse("InvalidInput", thread.id, `the id of the input: ${problem}`)
    const message = { ...toMessage(input, id), ...defined({ source: call === undefined ? undefined : sourceOf(call) }) }
    yield* checkInput(message.content)
    const before = yield* orNothing(named.store.leaf(thread.id), nowhere)
    const mail = yield* registry.mailbox.get(named.baseId, id)
    if (mail?.push._tag === "Input") {
      yield* checkSame(mail.push.message, message, thread)
      yield* resumeStored(registry, mail)
      return { id, position: mail.position, isNew: false }
    }
    const info = yield* orNothing(Effect.asSome(named.store.info(thread.id)), Option.none())
    if (Option.isSome(info)) {
      if (info.value.archived) return yield* failure("start", thread.id, { _tag: "Archived" })
      const { checkpoint } = yield* loadThread(named.store, thread.id)
      const storedMessage = checkpoint?.messages.find((one) => one.id === message.id)
      if (storedMessage !== undefined) {
        yield* checkSame(storedMessage, message, thread)
        return {
          id,
          position: Position.write((yield* placeBefore(named, thread.id, message.id)) ?? Position.start),
          isNew: false
        }
      }
    }
    const modeName = mode === undefined && Option.isSome(info) ? choicesIn(info.value.metadata).mode : mode
    const isDone = Effect.gen(function* () {
      const now = yield* orNothing(named.store.leaf(thread.id), nowhere)
      if (now.id === before.id) return false
      const { checkpoint } = yield* loadThread(named.store, thread.id)
      return checkpoint?.messages.some((one) => one.id === message.id) === true
    })
    const push = { _tag: "Input", message } as const
    const mailbag = { agent, id, push, ...defined({ call, mode: modeName ?? undefined }) }
    const takeInput = Effect.gen(function* () {
      yield* keepChoices(named.store, thread.id, { model, mode, thinking })
      return yield* take(registry, thread, named, mailbag, isDone)
    })
    const receipt = yield* Effect.acquireUseRelease(
      announce(registry, named, thread, { id, busy }),
      () => takeInput,
      (work) =>
        Effect.sync(() => {
          work.coming.delete(id)
          forget(registry, named.baseId, work)
        })
    )
    if (receipt.isNew) return receipt
    // Another input with this id came at the same time.
    const other = yield* findMessage(registry, named, thread.id, id)
    if (other !== undefined) yield* checkSame(other, message, thread)
    return receipt
  })

/** The agent of the last run of a thread, by its name in the layer. */
const lastAgent = Effect.fnUntraced(function* ({ agents }: Registry, { store }: NamedThread, id: string) {
  for (let from: string | undefined; ;) {
    const page: Page = yield* store.load(id, from === undefined ? {} : { from })
    const run = page.entries.findLast(({ entry }) => entry._tag === "RunStarted")?.entry
    if (run?._tag === "RunStarted") return Object.keys(agents).find((key) => agents[key]?.name === run.agent)
    if (page.next === null) return undefined
    from = page.next
  }
})

/** Reports whether a decision is on a request that the thread never had. */
const hasUnknown = Effect.fnUntraced(function* (
  { store }: NamedThread,
  id: string,
  decisions: ReadonlyArray<Decision>
) {
  const missing = new Set(decisions.map((decision) => decision.id))
  for (let from: string | undefined; missing.size > 0;) {
    const page: Page = yield* store.load(id, from === undefined ? {} : { from })
    for (const { entry } of page.entries) if (entry._tag === "Request") missing.delete(entry.request.id)
    if (page.next === null) break
    from = page.next
  }
  return missing.size > 0
})

/** Names the mail of decisions by their requests. */
const nameDecisions = (decisions: ReadonlyArray<Decision>): string =>
  `decision:${decisions
    .map(({ id }) => id)
    .toSorted()
    .join(",")}`

/** Takes decisions. */
export const makeDecide = (registry: Registry): Runs["Service"]["decide"] =>
  Effect.fnUntraced(function* (thread, decisions) {
    const named = yield* openThread(thread)
    const { id: by, roles } = thread.principal
    // The principal decides. A name in the decision does not count, nor a second decision on the same request.
    const decided = new Set<string>()
    const isFirst = ({ id }: Decision): boolean => !decided.has(id) && decided.add(id).has(id)
    const signed = decisions
      .filter(isFirst)
      .map(({ at: _, by: __, byProgram: ___, rule: ____, ...decision }): Decision => ({
        ...decision,
        by: { id: by, roles }
      }))
    const pending = yield* readPending(named, thread.id)
    for (const decision of signed) {
      const request = pending.find(({ id }) => id === decision.id)
      const problem = request === undefined ? undefined : problemOf(request, decision)
      if (problem !== undefined) return yield* refuse("InvalidInput", thread.id, problem)
    }
    const agent = yield* lastAgent(registry, named, thread.id)
    if (agent === undefined) return yield* refuse("NotFound", thread.id, "there is nothing to resume in this thread")
    const mailByRequest = decidedIn(registry.works.get(named.baseId))
    const due = signed.filter(({ id }) => !mailByRequest.has(id) && pending.some((request) => request.id === id))
    const earlierMail =
      due.length > 0 ? undefined : signed.map((one) => mailByRequest.get(one.id)).find((mail) => mail !== undefined)
    if (earlierMail !== undefined) return { id: earlierMail.id, position: earlierMail.position, isNew: false }
    if (due.length === 0 && (signed.length > 0 || isBusy(registry.works.get(named.baseId)))) {
      const unknown = yield* hasUnknown(named, thread.id, signed)
      if (unknown) return yield* refuse("NotFound", thread.id, "there is no such request in this thread")
      return {
        id: nameDecisions(signed),
        position: Position.write(yield* endOf(registry, named, thread.id)),
        isNew: false
      }
    }
    const isDone = Effect.map(
      readPending(named, thread.id),
      (open) => due.length > 0 && !due.some((decision) => open.some((request) => request.id === decision.id))
    )
    return yield* take(
      registry,
      thread,
      named,
      { agent, id: nameDecisions(due), push: { _tag: "Decisions", decisions: due } },
      isDone
    )
  })
