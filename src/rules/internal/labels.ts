/** Decisions of people on approvals, as labels. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Approval from "../../core/Approval.ts"
import type { Record } from "../Audit.ts"

/** A request that a person decided on. */
interface DecidedRequest {
  readonly request: Approval.Request
  readonly isYes: boolean
}

type Past = Pick<Record, "request" | "decision" | "isAsShown">

/** Requests that expire are rejected in the name of the inbox. */
const isByTime = ({ by, rule }: Approval.Decision): boolean =>
  rule === Approval.byTime || (by?.id === "inbox" && rule === "expired")

/** Reports whether a person decided on a request that a classifier may decide on. */
const isLabel = ({ decision, isAsShown, request }: Past): boolean =>
  decision !== undefined &&
  decision.byProgram !== true &&
  isAsShown !== false &&
  !isByTime(decision) &&
  request.answer === undefined &&
  request.byPerson !== true &&
  request.toolDigest !== undefined

const newest = (decisions: Iterable<DecidedRequest>, limit: number): ReadonlyArray<DecidedRequest> =>
  [...decisions].toSorted((left, right) => right.request.at - left.request.at).slice(0, limit)

/** Reads the newest decisions of people, each request once: forks of a thread repeat it. */
export const decisionsByPeople = <E, R>(
  records: Stream.Stream<Past, E, R>,
  most: number
): Effect.Effect<ReadonlyArray<DecidedRequest>, E, R> => {
  const limit = Math.max(0, Math.floor(most) || 0)
  return Effect.map(
    Stream.runFold(
      Stream.filter(records, isLabel),
      () => new Map<string, DecidedRequest>(),
      (byId, { decision, request }) => {
        byId.set(request.id, { request, isYes: decision?._tag === "Approve" })
        // A store may have millions of requests.
        return byId.size <= 2 * limit + 1_000
          ? byId
          : new Map(newest(byId.values(), limit).map((one) => [one.request.id, one]))
      }
    ),
    (byId) => newest(byId.values(), limit)
  )
}
