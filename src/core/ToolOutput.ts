/**
 * What a tool gives back: content for the model, details for people, and what it wants of the run.
 */
import type { Update } from "./AgentState.ts"
import * as Content from "./Content.ts"
import type { Json } from "./Json.ts"

/**
 * `content` goes to the model. `details` go to events only (a diff, a chart's data), never to the model. `isError` marks
 * a result that the model should treat as a failure. `returnDirect` ends the run with this content as the answer.
 * `state` is applied when `execute` succeeded with it, `isError` or not.
 */
export interface ToolOutput {
  readonly content: ReadonlyArray<Content.Block>
  readonly details?: Json
  readonly isError: boolean
  readonly returnDirect: boolean
  readonly state: ReadonlyArray<Update>
}

/** Makes an output. */
export const make = (
  content: Content.Input,
  options?: {
    readonly details?: Json
    readonly isError?: boolean
    readonly returnDirect?: boolean
    readonly state?: ReadonlyArray<Update>
  }
): ToolOutput => ({
  content: Content.fromInput(content),
  isError: options?.isError ?? false,
  returnDirect: options?.returnDirect ?? false,
  state: options?.state ?? [],
  ...(options?.details === undefined ? {} : { details: options.details })
})

/** What `execute` may return: a string is an output of that text. */
export const fromResult = (result: ToolOutput | string): ToolOutput =>
  typeof result === "string" ? make(result) : result

/** The text of an output. */
export const text = (output: ToolOutput): string => Content.toText(output.content)

/**
 * Keeps the text of an output under a number of characters: head and tail stay, what was left out is said between them.
 * Blocks other than text come after it, as they are.
 */
export const truncate = (output: ToolOutput, limit: number): ToolOutput => {
  const whole = text(output)
  if (whole.length <= limit) return output
  const head = Math.ceil((limit * 2) / 3)
  const tail = limit - head
  const cut =
    whole.slice(0, head) +
    `\n[… ${whole.length - limit} of ${whole.length} characters left out …]\n` +
    (tail === 0 ? "" : whole.slice(-tail))
  return { ...output, content: [Content.text(cut), ...output.content.filter((block) => block.type !== "text")] }
}
