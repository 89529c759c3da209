import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { fromPull, transformPull } from "../../src/support/effect/pulled.ts"

describe("a stream of pulls", () => {
  it.effect("begins anew each time, and closes its scope with its exit", () =>
    Effect.gen(function* () {
      const closed: Array<string> = []
      const stream = fromPull((scope) =>
        Effect.gen(function* () {
          yield* Scope.addFinalizerExit(scope, (exit) => Effect.sync(() => closed.push(exit._tag)))
          const left = [[1, 2] as const, [3] as const]
          return Effect.suspend(() => {
            const next = left.shift()
            return next === undefined ? Cause.done() : Effect.succeed(next)
          })
        })
      )
      assert.deepStrictEqual(yield* Stream.runCollect(stream), [1, 2, 3])
      assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(stream, 1)), [1])
      const failed = transformPull(stream, (pull) => Effect.andThen(pull, Effect.fail("no")))
      assert.deepStrictEqual(yield* Effect.exit(Stream.runDrain(failed)), Exit.fail("no"))
      assert.deepStrictEqual(closed, ["Success", "Success", "Failure"])
    })
  )

  it.effect("fails like others when its start breaks", () =>
    Effect.gen(function* () {
      const broken = fromPull<never, never, never, never>(() => Effect.die("broken"))
      const caught = Stream.catchCause(broken, (cause) => Stream.succeed(Cause.squash(cause)))
      assert.deepStrictEqual(yield* Stream.runCollect(caught), ["broken"])
    })
  )

  it("has a channel that is no other than Effect's own but for where its function came from", () => {
    const [ours, own] = [fromPull(() => Effect.never).channel, Channel.fromTransform(() => Effect.never)]
    assert.isTrue(Channel.isChannel(ours))
    assert.deepStrictEqual(Object.keys(ours), Object.keys(own))
    assert.strictEqual(Object.getPrototypeOf(ours), Object.getPrototypeOf(own))
  })
})
