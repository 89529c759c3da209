/**
 * Makes the tool `diff`, which compares two files.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { Diff } from "effect-deepagents/workspace"
 *
 * const editor = Agent.make({ name: "editor", prompt: "You compare drafts.", tools: [Diff.make()] })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TextDiff from "effect/TextDiff"
import { Backend } from "../core/Backend.ts"
import * as Tool from "../core/Tool.ts"
import * as ToolError from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import { escaped } from "../support/text/untrusted.ts"

/** Maximum bytes of a file, number of edits, and characters of a result. */
const maxBytes = 2_000_000
const maxEdits = 2_000
const maxLength = 30_000

const readText = Effect.fnUntraced(function* (path: string) {
  const backend = yield* Backend
  const [transfer] = yield* backend.download([path])
  if (transfer === undefined) return yield* ToolError.make(`${path} could not be had`)
  if (!transfer.ok) return yield* Effect.fail(transfer.error)
  if (transfer.value.length > maxBytes)
    return yield* ToolError.make(`${path} is too large: the limit is ${maxBytes} bytes`)
  if (transfer.value.subarray(0, 8_192).includes(0)) return yield* ToolError.make(`${path} is not text`)
  return new TextDecoder().decode(transfer.value)
})

/** Makes the tool. */
export const make = (): Tool.Tool<Backend> =>
  Tool.make("diff", {
    description: "Shows what differs between two text files, as a unified diff.",
    parameters: {
      before: Schema.String.annotate({ description: "The path of the one file" }),
      after: Schema.String.annotate({ description: "The path of the other" })
    },
    annotations: { readOnly: true, idempotent: true, addresses: [] },
    execute: Effect.fnUntraced(function* ({ after, before }) {
      const [left, right] = yield* Effect.all([readText(before), readText(after)])
      if (left === right) return "The files are the same."
      const diff = TextDiff.unified(TextDiff.lines(left, right, { maxEdits }))
      return `--- ${escaped(before)}\n+++ ${escaped(after)}\n${ToolOutput.truncateText(diff, maxLength)}`
    })
  })
