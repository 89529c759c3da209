import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeWorks } from "../../src/cli/internal/chat/works.ts"

const makeRecorder = () => {
  const seen: Array<string> = []
  const works = makeWorks({
    ui: {
      note: (level, text) => seen.push(`${level}: ${text}`),
      setBusy: (doing) => seen.push(`busy: ${doing ?? "no"}`)
    },
    onOver: () => seen.push("over")
  })
  return { seen, works }
}

describe("things that go on in a chat", () => {
  it.effect("an interruption in the first moment has its end, and the chat is idle", () =>
    Effect.gen(function* () {
      const { seen, works } = makeRecorder()
      let isTurning = true
      const turn = Effect.ensuring(
        Effect.never,
        Effect.sync(() => {
          isTurning = false
        })
      )
      yield* works.begin(undefined, turn)
      yield* works.interrupt
      assert.isTrue(works.isIdle())
      assert.isFalse(isTurning)
      assert.deepStrictEqual(seen, ["busy: no", "busy: no", "over"])
    }).pipe(Effect.scoped)
  )

  it.effect("the end of one job tells the state of the other; a failure is reported, and is over", () =>
    Effect.gen(function* () {
      const { seen, works } = makeRecorder()
      yield* works.begin("writes a summary", Effect.as(Effect.sleep("2 seconds"), undefined))
      yield* works.begin(undefined, Effect.fail({ message: "no such server" }))
      assert.deepStrictEqual(seen, [
        "busy: writes a summary",
        "busy: writes a summary",
        "error: no such server",
        "busy: writes a summary",
        "over"
      ])
      assert.isFalse(works.isIdle())
      yield* works.interrupt
      assert.strictEqual(seen.at(-2), "busy: no")
      assert.isTrue(works.isIdle())
    }).pipe(Effect.scoped)
  )
})
