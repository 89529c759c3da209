/** The output of a tool: content for the model, details for people, and changes of the run. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { defined } from "../support/json/defined.ts"
import { cutMiddle } from "../support/text/text.ts"
import type { Update } from "./AgentState.ts"
import * as Content from "./Content.ts"
import { fromUnknown, isObject, type Json } from "./Json.ts"
import { CitedSource } from "./Sources.ts"

/**
 * `content` goes to the model. `details` go to events only (a diff, a chart's data), never to the model. `isError`
 * marks a result that the model should treat as a failure. `returnDirect` ends the run with this content as the answer.
 * `state` is applied when `execute` succeeded with it, `isError` or not. `sources` are numbered over the run, and the
 * model is shown their list behind the content.
 */
export interface ToolOutput {
  readonly content: ReadonlyArray<Content.Block>
  readonly details?: Json | undefined
  readonly isError: boolean
  readonly returnDirect: boolean
  readonly state: ReadonlyArray<Update>
  readonly sources?: ReadonlyArray<CitedSource> | undefined
}

/** Makes an output. */
export const make = (
  content: Content.Input,
  options?: {
    /** Data for interfaces and logs. The model never reads it. */
    readonly details?: Json | undefined
    /** True for a failed call. Default: `false`. */
    readonly isError?: boolean | undefined
    /** Ends the run with this output as its answer. Default: `false`. */
    readonly returnDirect?: boolean | undefined
    /** Changes to state slots. Default: none. */
    readonly state?: ReadonlyArray<Update> | undefined
    /** Sources that the output cites. Default: none. */
    readonly sources?: ReadonlyArray<CitedSource> | undefined
  }
): ToolOutput => ({
  content: Content.fromInput(content),
  isError: options?.isError ?? false,
  returnDirect: options?.returnDirect ?? false,
  state: options?.state ?? [],
  ...defined({ details: options?.details, sources: options?.sources })
})

const isAnyBlock = Schema.is(Content.Block)

const isCited = Schema.is(CitedSource)

const isBlock = (block: unknown): boolean =>
  (isObject(block) && block["type"] === "text" && typeof block["text"] === "string") || isAnyBlock(block)

/** Tells whether a value is an output: types say so, programs without them do not. */
const isOutput = (value: unknown): value is ToolOutput =>
  isObject(value) &&
  Array.isArray(value["content"]) &&
  value["content"].every(isBlock) &&
  typeof value["isError"] === "boolean" &&
  typeof value["returnDirect"] === "boolean" &&
  Array.isArray(value["state"]) &&
  (value["sources"] === undefined || (Array.isArray(value["sources"]) && value["sources"].every((one) => isCited(one))))

/** True for objects that look like an output with something missing. As data, their failures would be lost. */
const isBrokenOutput = (value: unknown): boolean =>
  isObject(value) && "content" in value && ["isError", "returnDirect", "state"].some((key) => Object.hasOwn(value, key))

const decodeExactly = Schema.decodeUnknownOption(Content.Block, { onExcessProperty: "error" })

/**
 * True for a list of content blocks. As JSON, a model would read the bytes of an image as text. Items with further
 * properties are data: a model reads only the text of a block.
 */
const isContent = (value: unknown): value is ReadonlyArray<Content.Block> =>
  Array.isArray(value) && value.length > 0 && value.every((block) => Option.isSome(decodeExactly(block)))

/**
 * Reads the result of `execute`: a string is an output of that text, a list of content blocks an output of them, data an
 * output of its JSON. `details` become JSON. `undefined` for values that are no data, and for broken outputs.
 */
export const fromResult = (result: unknown): ToolOutput | undefined => {
  if (typeof result === "string" || isContent(result)) return make(result)
  if (!isOutput(result)) {
    const isData =
      result !== undefined &&
      typeof result !== "function" &&
      typeof result !== "symbol" &&
      !Effect.isEffect(result) &&
      !Predicate.isPromiseLike(result)
    return isData && !isBrokenOutput(result) ? make(JSON.stringify(fromUnknown(result))) : undefined
  }
  const { details } = result
  if (details === undefined) return result
  return { ...result, details: fromUnknown(details) }
}

/** The text of an output. */
export const text = (output: ToolOutput): string => Content.toText(output.content)

/**
 * The number of characters of text (100,000) that a model is shown of a result or a failure of a tool that has no
 * `outputLimit`.
 */
export const defaultLimit = 100_000

/** Cuts a text to `limit` characters: keeps head and tail, and marks the gap. */
export const truncateText = (whole: string, limit: number): string =>
  cutMiddle(whole, limit, (left) => `\n[… ${left} of ${whole.length} characters left out …]\n`)

/**
 * Cuts the text of an output to a number of characters: keeps head and tail, and marks the gap. Other blocks follow the
 * text.
 */
export const truncate = (output: ToolOutput, limit: number): ToolOutput => {
  let length = 0
  for (const block of output.content) if (block.type === "text") length += block.text.length
  if (length <= limit) return output
  const cut = truncateText(text(output), limit)
  return { ...output, content: [Content.text(cut), ...output.content.filter((block) => block.type !== "text")] }
}
