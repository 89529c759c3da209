/** Checks decisions, and delivers them: to waiting runs, to background tasks, and to threads. */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Approval from "../../core/Approval.ts"
import { fromUnknown } from "../../core/Json.ts"
import { canonical } from "../../core/schema/jsonTree.ts"
import type { BackgroundTasks } from "../../middleware/BackgroundTasks.ts"
import type { Claim } from "./book.ts"
import { type Deliver, InboxError, type Reason, type Service } from "./inboxModel.ts"
import type { Place } from "./places.ts"

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : typeof error === "string" ? error : "it failed"

const undeliverable = (id: string) => (error: unknown) =>
  new InboxError({ id, reason: { _tag: "Undeliverable", problem: messageOf(error) } })

export const failWith = (id: string, reason: Reason) => Effect.fail(new InboxError({ id, reason }))

/** The reason of a failure if somebody else holds the claim. */
export const claimedByOther = (claim: Claim | undefined, by: Approval.Principal, now: number): Reason | undefined =>
  claim !== undefined && claim.until > now && claim.by.id !== by.id
    ? { _tag: "Claimed", by: claim.by.id, until: claim.until }
    : undefined

export const placeOf = (id: string, among: ReadonlyMap<string, Place>): Effect.Effect<Place, InboxError> => {
  const place = among.get(id)
  return place === undefined ? failWith(id, { _tag: "NotFound" }) : Effect.succeed(place)
}

/** The parts of an inbox that a delivery needs. */
interface Delivery {
  readonly find: (ids: Iterable<string>) => Effect.Effect<ReadonlyMap<string, Place>, InboxError>
  readonly forget: (ids: ReadonlyArray<string>) => Effect.Effect<void, InboxError>
  readonly tasks: Option.Option<BackgroundTasks["Service"]>
  readonly deliver: Deliver<unknown, never>
}

/** Drops repeated decisions. Two different decisions on one request fail. */
const uniqueDecisions = Effect.fnUntraced(function* (decisions: ReadonlyArray<Approval.Decision>) {
  const contents = new Map<string, string>()
  const unique: Array<Approval.Decision> = []
  for (const decision of decisions) {
    const content = canonical(fromUnknown(decision))
    const before = contents.get(decision.id)
    if (before === content) continue
    if (before !== undefined) {
      return yield* failWith(decision.id, { _tag: "Refused", problem: "there are two decisions on it; give one" })
    }
    contents.set(decision.id, content)
    unique.push(decision)
  }
  return unique
})

/** Checks one decision, and adds its principal and time. */
const checkDecision = Effect.fnUntraced(function* (
  rawDecision: Approval.Decision,
  { item }: Place,
  { by, now, rule }: { readonly by: Approval.Principal; readonly now: number; readonly rule: string | undefined }
) {
  const { id, request } = item
  const other = claimedByOther(item.claim, by, now)
  if (other !== undefined) return yield* failWith(id, other)
  const decision = Approval.decidedBy(rawDecision, request, { by, at: now, rule })
  const problem =
    Approval.problemOf(
      request,
      rawDecision.digest === undefined ? decision : { ...decision, digest: rawDecision.digest }
    ) ?? (item.isExpired ? "a decision on it counts no more; its thread asks again when it is resumed" : undefined)
  return problem === undefined ? decision : yield* failWith(id, { _tag: "Refused", problem })
})

/** Makes `decide`: it delivers nothing before it has checked all decisions. */
export const decideBy = ({ deliver, find, forget, tasks }: Delivery): Service["decide"] =>
  Effect.fnUntraced(function* (decisions, { by, rule }) {
    const among = yield* find(decisions.map(({ id }) => id))
    const now = yield* Clock.currentTimeMillis
    const threads = new Map<string, { readonly agent: string; readonly decisions: Array<Approval.Decision> }>()
    const deliveries: Array<Effect.Effect<void, InboxError>> = []
    for (const rawDecision of yield* uniqueDecisions(decisions)) {
      const place = yield* placeOf(rawDecision.id, among)
      const decision = yield* checkDecision(rawDecision, place, { by, now, rule })
      const { id, request, task, threadId } = place.item
      if (place.waiting !== undefined) {
        deliveries.push(Effect.asVoid(Deferred.succeed(place.waiting.decided, decision)))
      } else if (task !== undefined && Option.isSome(tasks)) {
        deliveries.push(Effect.asVoid(Effect.mapError(tasks.value.decide(task, [decision]), undeliverable(id))))
      } else if (threadId !== undefined) {
        const thread = threads.get(threadId) ?? { agent: request.path[0] ?? "", decisions: [] }
        threads.set(threadId, thread)
        thread.decisions.push(decision)
      }
    }
    yield* Effect.all(deliveries, { discard: true })
    yield* Effect.forEach(
      threads,
      ([threadId, { agent, decisions: own }]) =>
        Effect.mapError(deliver(threadId, own, agent), undeliverable(own[0]?.id ?? "")),
      { concurrency: 8, discard: true }
    )
    yield* forget(decisions.map(({ id }) => id))
  })
