/**
 * Works until a judge shows by quotes that every criterion is met, and lets a critic send a draft back: what the judge
 * invents does not count, and the best draft is returned, not the last one.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { Agent } from "effect-deepagents"
import { Goal, Reflect } from "effect-deepagents/patterns"
import { TestChatModel } from "effect-deepagents/testing"

const writer = Agent.make({ name: "writer", prompt: "You write invitations." })

const verdicts = (...all: ReadonlyArray<readonly [met: boolean, quote: string]>) =>
  JSON.stringify({
    verdicts: all.map(([met, quote], index) => ({ criterion: index + 1, met, quote })),
    feedback: "Say when it is."
  })

const goal = Goal.make({ worker: writer, attempts: 3 })

const invitation = Effect.gen(function* () {
  const input = goal.input({ objective: "An invitation to a picnic", criteria: ["says where", "says when"] })
  const { output } = yield* Agent.run(goal, input)
  yield* Console.log(`${output.status} after ${output.attempts} attempts: ${output.text}`)
  for (const { criterion, quote } of output.verdicts) yield* Console.log(`- ${criterion}: "${quote}"`)
  assert.equal(output.status, "completed")
  assert.equal(output.attempts, 2)
}).pipe(
  Effect.provide(
    TestChatModel.script([
      "Come to the picnic by the lake!",
      // "on Sunday" is not in the work, so the second criterion is not met.
      verdicts([true, "by the lake"], [true, "on Sunday"]),
      "Come to the picnic by the lake, on Sunday at noon!",
      verdicts([true, "by the lake"], [true, "on Sunday at noon"])
    ])
  )
)

const critique = (quality: number, feedback = "") => JSON.stringify({ quality, feedback })

const careful = Reflect.make({ worker: writer, most: 2 })

const draft = Effect.gen(function* () {
  const { output } = yield* Agent.run(careful, "A toast")
  yield* Console.log(`${output.quality} of ${output.history.map(({ quality }) => quality).join(", ")}: ${output.text}`)
  assert.deepEqual([output.text, output.isGood], ["To Ada, who taught machines to sing.", false])
}).pipe(
  Effect.provide(
    TestChatModel.script([
      "To Ada.",
      critique(0.3, "Say why."),
      "To Ada, who taught machines to sing.",
      critique(0.7, "Shorter."),
      "Ada!",
      critique(0.2)
    ])
  )
)

NodeRuntime.runMain(Effect.andThen(invitation, draft))
