/** A valid history is returned as it is, and equals its mended form. */
import { assert, describe, it } from "@effect/vitest"
import { Message } from "effect-deepagents"
import * as fc from "fast-check"
import { mend } from "../../src/core/thread/history.ts"

const ids = fc.constantFrom("1", "2", "3")
const messages = fc.oneof(
  fc.constant(Message.human("go")),
  fc.array(ids, { maxLength: 2 }).map((calls) =>
    Message.ai("", {
      toolCalls: calls.map((id) => ({ id, name: "look", arguments: {} })),
      malformedToolCalls: []
    })
  ),
  fc
    .tuple(ids, fc.boolean())
    .map(([id, isLate]) =>
      Message.tool("there", { toolCallId: id, toolName: "look", ...(isLate ? {} : { source: "recovery" }) })
    )
)
/** Turns with and without their answers in place. */
const histories = fc
  .array(
    fc.oneof(
      { weight: 1, arbitrary: fc.array(messages, { maxLength: 1 }) },
      {
        weight: 4,
        arbitrary: fc
          .uniqueArray(ids, { maxLength: 2 })
          .map((calls) => [
            Message.ai("", { toolCalls: calls.map((id) => ({ id, name: "look", arguments: {} })) }),
            ...calls.map((id) => Message.tool("there", { toolCallId: id, toolName: "look" }))
          ])
      }
    ),
    { maxLength: 6 }
  )
  .map((parts) => parts.flat())

/** The answers that stand in for others have ids of their own. */
const showHistory = ({ messages, missing }: ReturnType<typeof mend>) =>
  JSON.stringify([messages, missing], (key, value: unknown) => (key === "id" ? "" : value))

/** An answer to no call is left out, and can't be overlooked. */
const stray = Message.tool("nobody asked", { toolCallId: "none", toolName: "look" })

describe("a history", () => {
  it("is mended in the same way whether or not it could be taken as it is", () => {
    fc.assert(
      fc.property(histories, (history) => {
        assert.strictEqual(showHistory(mend(history, null)), showHistory(mend([...history, stray], null)))
      }),
      { numRuns: 5_000 }
    )
  })

  it("is a copy", () => {
    const history = [Message.human("go"), Message.ai("done")]
    const { messages } = mend(history, null)
    assert.deepStrictEqual(messages, history)
    assert.notStrictEqual(messages, history)
  })
})
