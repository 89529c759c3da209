/** The invariants of a snapshot of any sandbox. */
import { assert } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import type { BackendError, Sandbox } from "effect-deepagents"

interface Box extends Sandbox.Service {
  readonly snapshot: Effect.Effect<string, BackendError.BackendError>
}

type Opened<A, R> = Effect.Effect<A, BackendError.BackendError, Scope.Scope | R>

const outputOf = (box: Sandbox.Service, command: string) =>
  Effect.map(box.execute(command), ({ output }) => output.trim())

const state = "ls -A; cat kept.txt tools/run; readlink link; test -x tools/run && echo runs; ls -A empty; ls -A .hidden"

/**
 * A snapshot has all of the files: contents, modes, links as links, empty folders and hidden ones. It is of its moment, it
 * changes nothing in the sandbox, and it is the beginning of as many others as one likes, which share nothing.
 */
export const checkSnapshot = <R1, R2>(
  open: Opened<Box, R1>,
  openFrom: (snapshot: string) => Opened<Sandbox.Service, R2>
) =>
  Effect.gen(function* () {
    const box = yield* open
    yield* box.execute(
      "mkdir empty tools .hidden; echo one > kept.txt; echo 'echo ran' > tools/run; chmod 755 tools/run; ln -s kept.txt link; touch .hidden/x"
    )
    const before = yield* outputOf(box, state)
    const first = yield* box.snapshot
    assert.strictEqual(yield* outputOf(box, state), before)
    yield* box.execute("echo two > kept.txt; rm -r tools")
    const second = yield* box.snapshot
    assert.notStrictEqual(first, second)
    const [one, other, later] = yield* Effect.all([openFrom(first), openFrom(second), openFrom(second)])
    assert.strictEqual(yield* outputOf(one, state), before)
    assert.strictEqual(yield* outputOf(one, "./tools/run"), "ran")
    assert.strictEqual(yield* outputOf(other, "cat link; ls tools 2>/dev/null || echo gone"), "two\ngone")
    yield* one.execute("echo three > kept.txt")
    assert.strictEqual(yield* outputOf(box, "cat kept.txt"), "two")
    assert.strictEqual(yield* outputOf(later, "cat kept.txt"), "two")
  })
