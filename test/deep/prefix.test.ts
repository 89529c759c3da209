/** Requests begin with the bytes of the request before, through all changes of tools: providers cache such beginnings. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { isFull, scaled } from "../scale.ts"
import { comers, converse, comparePrefixes, long, type Name, type Op } from "./prefix.ts"

for (const name of ["anthropic", "responses", "chat"] satisfies ReadonlyArray<Name>) {
  describe(name, () => {
    it.live.runIf(isFull || name === "anthropic")(
      "200 rounds, with tools, skills and sub-agents that come and go, and three processes: no byte changes",
      () =>
        Effect.gen(function* () {
          const sent = yield* converse(name, long, true)
          assert.isAbove(sent.length, 200)
          for (const [index, { after, before, length, same }] of comparePrefixes(sent).entries()) {
            assert.isTrue(same === length, `request ${index + 1}: ${before}\nbecame\n${after}`)
          }
        }),
      120_000
    )

    it.live(
      "whatever comes and goes, and without stable tools all but the tools themselves",
      () => {
        const op: fc.Arbitrary<Op> = fc.oneof(
          fc.constantFrom<Op>(
            { op: "step" },
            { op: "picture" },
            { op: "todo" },
            { op: "file" },
            { op: "task" },
            { op: "use" },
            { op: "leave" },
            { op: "input" },
            { op: "input", long: true },
            { op: "restart", long: true },
            { op: "restart" },
            { op: "crash" }
          ),
          fc.subarray(comers).map((there): Op => ({ op: "tools", there })),
          fc.constantFrom(...comers, "none").map((late): Op => ({ op: "late", name: late }))
        )
        const declared = new Set(["tools", "use", "leave", "input", "restart"])
        const hold = Effect.fnUntraced(function* (ops: ReadonlyArray<Op>, stable: boolean) {
          // A run that must end says so at the end of its last request, and nowhere else: the model went in circles.
          const requests = (yield* converse(name, ops, stable)).filter(
            ({ history }) => !history.includes("no more tools")
          )
          let changes = 0
          for (const [index, { after, before, length, same }] of comparePrefixes(
            stable ? requests : requests.map((one) => ({ ...one, tools: "" }))
          ).entries()) {
            assert.isTrue(same === length, `request ${index + 1}: ${before}\nbecame\n${after}`)
            if (!stable && requests[index]!.tools !== requests[index + 1]!.tools) changes++
          }
          assert.isAtMost(changes, ops.filter((one) => declared.has(one.op)).length)
        })
        return Effect.promise(() =>
          fc.assert(
            fc.asyncProperty(fc.array(op, { minLength: 5, maxLength: 25 }), fc.boolean(), (ops, stable) =>
              Effect.runPromise(hold(ops, stable))
            ),
            { numRuns: scaled(40) }
          )
        )
      },
      120_000
    )
  })
}
