/** The index of open requests in Redis. */
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { WaitingRequest } from "../../../core/SessionStore.ts"
import { key } from "../ids.ts"
import { firstWaits } from "../memory/order.ts"
import type { Fault, Tables, Waits } from "../tables.ts"
import { type Backlog, makeCatchUp, toRequest } from "../waits.ts"
import { texts, unmark } from "./records.ts"
import * as scripts from "./scripts.ts"

/** Encodes open requests for scripts. */
export const toList = (waits: Waits): string =>
  JSON.stringify(waits.map((request) => [request.id, String(request.at), JSON.stringify(request)]))

/** The threads of one step through the backlog. */
const page = 200

const nameOf = (requestId: string, threadId: string): string => `${requestId}\n${threadId}`

const toWaiting = (name: string, body: string): Result.Result<WaitingRequest, string> => {
  const end = name.indexOf("\n")
  return Result.map(toRequest(name.slice(0, end), body), (request) => ({ threadId: name.slice(end + 1), request }))
}

const toWaits = (reply: unknown): Effect.Effect<ReadonlyArray<WaitingRequest>, Fault> => {
  const waits = Arr.chunksOf(texts(reply), 2).map(([name, body = ""]) => toWaiting(name, body))
  return Effect.mapError(Effect.fromResult(Result.all(waits)), (problem) => ({ reason: { _tag: "Corrupt", problem } }))
}

/** Makes the queries of the index. */
export const makeWaits = (run: scripts.Run, path: Tables["path"]): Pick<Tables, "waiting" | "waitingFor"> => {
  let upto = ""
  const backlog: Backlog = {
    next: Effect.map(run(scripts.unindexed, page), (reply) => {
      const [next, ...leaves] = texts(reply)
      if (next === undefined) return undefined
      upto = next
      return Arr.chunksOf(leaves, 2).map(([threadId, leaf]) => ({ threadId, leaf: unmark(leaf) ?? "" }))
    }),
    put: (results) =>
      run(
        scripts.index,
        upto,
        ...results
          .filter(({ waits }) => waits.length > 0)
          .flatMap(({ leaf, threadId, waits }) => [threadId, `+${leaf}`, toList(waits)])
      )
  }
  const caughtUp = makeCatchUp(path, backlog)
  return {
    waiting: Effect.fnUntraced(function* (query) {
      yield* caughtUp
      const { after, limit, threadId } = query
      if (threadId !== undefined) {
        return firstWaits(yield* toWaits(yield* run(scripts.waitsOf, key(threadId))), query)
      }
      const [score, member] =
        after === undefined ? ["-inf", ""] : [String(after.at), nameOf(after.requestId, after.threadId)]
      return yield* toWaits(yield* run(scripts.waiting, score, member, limit))
    }),
    waitingFor: Effect.fnUntraced(function* (requestId) {
      yield* caughtUp
      const [waiting] = yield* toWaits(yield* run(scripts.waitingFor, key(requestId)))
      return waiting
    })
  }
}
