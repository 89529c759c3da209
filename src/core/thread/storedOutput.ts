/** Tool outputs as a thread stores them. */
import * as Schema from "effect/Schema"
import { defined } from "../../support/json/defined.ts"
import * as Content from "../Content.ts"
import { Json } from "../Json.ts"
import { CitedSource } from "../Sources.ts"
import type { ToolOutput } from "../ToolOutput.ts"

/** An output as JSON, to be given again later: without its updates of the state, which are made once, when it comes. */
export const Stored = Schema.TaggedStruct("Output", {
  content: Schema.Array(Content.Block),
  details: Schema.optionalKey(Json),
  isError: Schema.Boolean,
  returnDirect: Schema.Boolean,
  sources: Schema.optionalKey(Schema.Array(CitedSource))
})
export type Stored = typeof Stored.Type

export const toStored = ({ content, details, isError, returnDirect, sources }: ToolOutput): Stored => ({
  _tag: "Output",
  content,
  isError,
  returnDirect,
  ...defined({ details, sources })
})

export const fromStored = ({ _tag, ...output }: Stored): ToolOutput => ({ ...output, state: [] })
