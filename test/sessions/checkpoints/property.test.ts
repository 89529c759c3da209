/** Random turns by tools, commands and the person: taken back exactly, and made again exactly. */
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Backend, Sandbox } from "effect-deepagents"
import { SessionStore } from "effect-deepagents/sessions"
import * as FileCheckpoints from "effect-deepagents/sessions/FileCheckpoints"
import * as fc from "fast-check"
import { scaled } from "../../scale.ts"
import { type Edit, edit, git, make, shapeOf } from "./edits.ts"
import { aFolder, layers, sandboxIn } from "./places.ts"

/** Runs a property for random values. */
const holds = <T extends Record<string, fc.Arbitrary<unknown>>>(
  values: T,
  numRuns: number,
  body: (values: { [K in keyof T]: T[K] extends fc.Arbitrary<infer A> ? A : never }) => Effect.Effect<void, unknown>
) =>
  Effect.promise(() =>
    fc.assert(
      // The record has the types of its values.
      fc.asyncProperty(fc.record(values), (found) => Effect.runPromise(body(found as never))),
      { numRuns }
    )
  )

/** A part of a turn: a call of a tool, or a command that makes several edits. */
type Work =
  | { readonly _tag: "tool"; readonly edit: Edit }
  | { readonly _tag: "command"; readonly edits: ReadonlyArray<Edit> }

const commit: Edit = { _tag: "commit" }

const work: fc.Arbitrary<Work> = fc.oneof(
  fc.record({ _tag: fc.constant("tool" as const), edit }),
  fc.record({
    _tag: fc.constant("command" as const),
    edits: fc.array(fc.oneof({ weight: 12, arbitrary: edit }, { weight: 1, arbitrary: fc.constant(commit) }), {
      minLength: 1,
      maxLength: 6
    })
  })
)

const byTool = (backend: Backend.Service, one: Edit): Effect.Effect<unknown, unknown> => {
  if (one._tag === "commit") return Effect.void
  const path = `/${one.path}`
  if (one._tag === "write") return backend.write(path, one.text)
  if (one._tag === "append") return backend.upload([{ path, content: new Uint8Array([0, 1, 255]) }])
  if (one._tag === "remove") return backend.delete(path, { recursive: true })
  return one._tag === "move" ? backend.move(path, `/${one.to}`) : Effect.void
}

const run = (sandbox: Sandbox.Service, one: Work): Effect.Effect<unknown> =>
  Effect.ignore(one._tag === "tool" ? byTool(sandbox, one.edit) : sandbox.execute(JSON.stringify(one.edits)))

describe("turns of random edits", { timeout: 180_000 }, () => {
  it.effect("undo is the state before, and redo the state after", () =>
    holds(
      {
        first: fc.array(edit, { maxLength: 25 }),
        turns: fc.array(
          fc.record({
            works: fc.array(work, { minLength: 1, maxLength: 6 }),
            person: fc.array(edit, { maxLength: 2 })
          }),
          {
            minLength: 1,
            maxLength: 3
          }
        ),
        isGit: fc.boolean()
      },
      scaled(64),
      ({ first, isGit, turns }) =>
        Effect.gen(function* () {
          const root = yield* aFolder
          const place = yield* aFolder
          make(root, first)
          if (isGit) {
            git(root, "init", "-q")
            make(root, [commit])
          }
          const shapes: Array<readonly [before: string, after: string]> = []
          yield* Effect.gen(function* () {
            const checkpoints = yield* FileCheckpoints.FileCheckpoints
            const store = yield* SessionStore.SessionStore
            yield* store.create({ threadId: "t" })
            const sandbox = yield* sandboxIn(root)
            for (const { person, works } of turns) {
              make(root, person)
              const before = shapeOf(root)
              yield* Effect.scoped(
                Effect.gen(function* () {
                  const recording = yield* checkpoints.begin({
                    threadId: "t",
                    leaf: null,
                    onProblem: (message) => assert.fail(message)
                  })
                  const watched = recording.watch(sandbox)
                  for (const one of works) yield* run(watched, one)
                  yield* recording.end(null)
                })
              )
              shapes.push([before, shapeOf(root)])
            }
          }).pipe(Effect.provide(layers(root, join(place, "c.db"))))
          // After a restart.
          yield* Effect.gen(function* () {
            const checkpoints = yield* FileCheckpoints.FileCheckpoints
            const store = yield* SessionStore.SessionStore
            yield* store.create({ threadId: "t" })
            const all = yield* checkpoints.turns("t")
            assert.lengthOf(all, turns.length)
            // A person's change between two turns is a conflict if the later turn did not touch it.
            const isAlone = turns.every(({ person }, index) => index === 0 || person.length === 0)
            for (const turn of isAlone ? all.toReversed() : all.slice(-1)) {
              const [before, after] = shapes[all.indexOf(turn)] ?? assert.fail("no shape")
              for (const [to, shape] of [
                ["before", before],
                ["after", after],
                ["before", before]
              ] as const) {
                const outcome = yield* checkpoints.restore({ threadId: "t", turns: [turn], to, leaf: null })
                assert.strictEqual(outcome._tag, "Restored", JSON.stringify(outcome))
                assert.strictEqual(shapeOf(root), shape)
              }
            }
            const [begin] = shapes[0] ?? assert.fail("no shape")
            const [, end] = shapes.at(-1) ?? assert.fail("no shape")
            if (!isAlone) return
            yield* checkpoints.restore({ threadId: "t", turns: all, to: "after", leaf: null })
            assert.strictEqual(shapeOf(root), end)
            yield* checkpoints.restore({ threadId: "t", turns: all, to: "before", leaf: null })
            assert.strictEqual(shapeOf(root), begin)
          }).pipe(Effect.provide(layers(root, join(place, "c.db"))))
        }).pipe(Effect.scoped)
    )
  )

  it.effect("a later edit of the person is never lost", () =>
    holds(
      {
        first: fc.array(edit, { minLength: 8, maxLength: 25 }),
        works: fc.array(work, { minLength: 1, maxLength: 6 }),
        later: fc.array(edit, { minLength: 1, maxLength: 3 })
      },
      scaled(160),
      ({ first, later, works }) =>
        Effect.gen(function* () {
          const root = yield* aFolder
          make(root, first)
          yield* Effect.gen(function* () {
            const checkpoints = yield* FileCheckpoints.FileCheckpoints
            const sandbox = yield* sandboxIn(root)
            const store = yield* SessionStore.SessionStore
            yield* store.create({ threadId: "t" })
            const recording = yield* checkpoints.begin({ threadId: "t", leaf: null })
            for (const one of works) yield* run(recording.watch(sandbox), one)
            yield* recording.end(null)
            const left = new Map(
              shapeOf(root)
                .split("\n")
                .map((line) => [line, true])
            )
            make(root, later)
            const now = shapeOf(root).split("\n")
            const turn = (yield* checkpoints.turns("t"))[0] ?? assert.fail("no turn")
            const outcome = yield* checkpoints.restore({
              threadId: "t",
              turns: [turn],
              to: "before",
              leaf: null
            })
            const after = new Set(shapeOf(root).split("\n"))
            if (outcome._tag === "Refused") assert.deepStrictEqual([...after], now)
            // All files that the person made or changed are there, with the bytes of the person.
            else if (outcome._tag === "Restored") {
              for (const line of now) {
                if (left.has(line) || line.includes("/ ")) continue
                const isOfTurn = (yield* checkpoints.plan([turn], "before")).some(({ path }) =>
                  line.startsWith(path.slice(root.length))
                )
                assert.isTrue(after.has(line) || isOfTurn, line)
              }
            }
          }).pipe(Effect.provide(layers(root, ":memory:")))
        }).pipe(Effect.scoped)
    )
  )
})
