/** Removes the additions of strict mode from a structured answer. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Block } from "../../../core/Content.ts"
import type { Json } from "../../../core/Json.ts"
import type { TurnStop } from "../../../core/Message.ts"
import { isTooDeep } from "../schema/nesting.ts"
import { parse } from "../wire/read.ts"

const isJson = Schema.is(Schema.Json)

/** Rewrites the last text of an answer (others are said on the way to it); an incomplete answer stays as it is. */
export const restored = (
  content: ReadonlyArray<Block>,
  stopReason: TurnStop,
  restore: ((answer: Json) => Json) | undefined
): ReadonlyArray<Block> => {
  if (restore === undefined || stopReason !== "stop") return content
  const last = content.findLast((block) => block.type === "text")
  return content.map((block) => {
    if (block.type !== "text" || block !== last) return block
    const answer = parse(block.text)
    if (Result.isFailure(answer) || isTooDeep(answer.success) || !isJson(answer.success)) return block
    const own = restore(answer.success)
    return JSON.stringify(own) === JSON.stringify(answer.success) ? block : { ...block, text: JSON.stringify(own) }
  })
}
