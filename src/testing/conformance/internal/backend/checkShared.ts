/** Checks of the same files in several layers or processes. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Service } from "../../../../core/Backend.ts"
import type { BackendError } from "../../../../core/BackendError.ts"
import { assert, type NotConformant, expect } from "../assert.ts"
import { listFiles, readText, rule, type Rules, readWhole } from "./common.ts"
import type { Again, Counter } from "./subject.ts"

const atOnce = { concurrency: "unbounded" } as const

const slots = Array.from({ length: 50 }, (_, index) => `slot-${String(index).padStart(3, "0")}`)

const isConflict = (error: BackendError | NotConformant): boolean =>
  error._tag === "BackendError" && error.reason._tag === "Conflict"

const editsAtOnce = Effect.fnUntraced(function* (first: Service, second: Service) {
  yield* first.write("/shared.txt", `${slots.join(": open\n")}: open\n`)
  yield* Effect.forEach(
    slots,
    (slot, index) => (index % 2 === 0 ? first : second).edit("/shared.txt", [{ old: `${slot}: open`, new: slot }]),
    atOnce
  )
  yield* expect(
    yield* readWhole(second, "/shared.txt"),
    `${slots.join("\n")}\n`,
    "every edit of two layers at once is there"
  )
})

const oneWins = Effect.fnUntraced(function* (first: Service, second: Service) {
  const { version } = yield* first.write("/one.txt", "start")
  const outcomes = yield* Effect.forEach(
    slots.slice(0, 12),
    (slot, index) =>
      (index % 2 === 0 ? first : second).write("/one.txt", slot, { version }).pipe(
        Effect.as(slot),
        Effect.catchIf(isConflict, () => Effect.succeed(undefined))
      ),
    atOnce
  )
  const winners = outcomes.filter((outcome) => outcome !== undefined)
  yield* expect(winners.length, 1, "of writes by two layers that know the same version one succeeds")
  yield* expect(yield* readWhole(first, "/one.txt"), winners[0], "its text is there")
})

/** Checks an edit during a move: the edit moves along, or fails because the file has moved. */
const movedOrEdited = Effect.fnUntraced(function* (first: Service, second: Service) {
  for (let round = 0; round < 10; round++) {
    yield* first.write("/from.txt", "old")
    const [edited, moved] = yield* Effect.all(
      [
        Effect.result(first.edit("/from.txt", [{ old: "old", new: "new" }])),
        Effect.result(second.move("/from.txt", "/to.txt"))
      ],
      atOnce
    )
    yield* expect(moved._tag, "Success", "the move of a file that is edited")
    yield* expect(yield* listFiles(first), ["/to.txt"], "the file is in one place")
    const text = yield* readWhole(first, "/to.txt")
    yield* expect(text, edited._tag === "Success" ? "new" : "old", "what is in it")
    yield* second.delete("/to.txt")
  }
})

/** Checks of two layers over the same files. */
export const againRules = <H>(): Rules<Service, Again<H>, H | Scope.Scope> => [
  [
    "edits of one file by two layers at once are all there",
    (backend, reopen) => Effect.flatMap(reopen, (other) => editsAtOnce(backend, other))
  ],
  [
    "of two layers that write on the same version one wins, and the other is told",
    (backend, reopen) => Effect.flatMap(reopen, (other) => oneWins(backend, other))
  ],
  [
    "a file that one layer moves while another edits it is in one place",
    (backend, reopen) => Effect.flatMap(reopen, (other) => movedOrEdited(backend, other))
  ]
]

/** Checks of several processes over the same files. */
export const counterRules = <H>(): Rules<Service, Counter<H>, H | Scope.Scope> => [
  rule("what several processes count in one file is the sum", function* (backend, counter) {
    const times = 40
    yield* backend.write("/count.txt", "0")
    const here = Effect.gen(function* () {
      const { text, version } = yield* readText(backend, "/count.txt")
      yield* backend.write("/count.txt", String(Number(text) + 1), { version })
    }).pipe(Effect.retry({ while: isConflict }), Effect.repeat({ times: times - 1 }))
    yield* Effect.all([counter("/count.txt", times), counter("/count.txt", times), here], atOnce)
    yield* expect(yield* readWhole(backend, "/count.txt"), String(3 * times), "the count")
    const listing = yield* backend.ls("/")
    yield* assert(listing.entries.length === 1, "nothing is left beside the file", listing.entries)
  })
]
