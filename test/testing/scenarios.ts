/** The scenarios of the conformance suite, as turns of a scripted model. */
import { Duration } from "effect"
import type { ModelError } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import { type ChatModelConformance } from "effect-deepagents/testing/conformance"

const reasonOf = (status: number, retryAfter: number | undefined): ModelError.Reason => {
  if (status === 401) return { _tag: "Authentication" }
  if (status === 403) return { _tag: "Permission" }
  if (status === 400) return { _tag: "InvalidRequest" }
  if (status === 429) return { _tag: "RateLimited", retryAfter: Duration.seconds(retryAfter ?? 0) }
  return { _tag: "Overloaded" }
}

export const toTurn = (scenario: ChatModelConformance.Scenario): TestChatModel.Turn => {
  switch (scenario._tag) {
    case "Text":
      return TestChatModel.text(scenario.pieces)
    case "ToolCalls":
      return TestChatModel.calls(scenario.calls, { chunkSize: 1000 })
    case "LengthInArguments":
      return TestChatModel.malformed(scenario.partial, { name: scenario.name, stopReason: "length" })
    case "Empty":
      return TestChatModel.text("")
    case "Cut":
      return TestChatModel.parts([{ _tag: "TextDelta", text: scenario.text }])
    case "Hang":
      return TestChatModel.hangAfter(scenario.text)
    case "Status":
      return TestChatModel.fail(reasonOf(scenario.status, scenario.retryAfter))
  }
}
