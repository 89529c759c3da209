/** An answer of a server that does not stream, as the events of a stream. */
import type { JsonObject } from "../../../core/Json.ts"
import { objectOf, objectsOf } from "../wire/read.ts"

/** The events of one block, which begins with all that others stream. */
const blockEvents = (block: JsonObject, index: number): ReadonlyArray<JsonObject> => [
  { type: "content_block_start", index, content_block: block },
  ...objectsOf(block["citations"]).map((citation) => ({
    type: "content_block_delta",
    index,
    delta: { type: "citations_delta", citation }
  })),
  { type: "content_block_stop", index }
]

/** Converts a whole message. `undefined` for anything else. */
export const eventsOf = (answer: unknown): ReadonlyArray<JsonObject> | undefined => {
  const body = objectOf(answer)
  if (body === undefined || body["type"] !== "message" || !Array.isArray(body["content"])) return undefined
  const { container = null, content, stop_details = null, stop_reason = null, stop_sequence = null, ...start } = body
  return [
    { type: "message_start", message: { ...start, content: [] } },
    ...objectsOf(content).flatMap(blockEvents),
    { type: "message_delta", delta: { container, stop_details, stop_reason, stop_sequence } },
    { type: "message_stop" }
  ]
}
