/**
 * The pieces of one turn, in the order in which the model said them.
 *
 * A message of ours holds content and calls apart, and has no place for what the provider ran itself (a web search and
 * its result). Some providers want all of it back in the order in which it came: where that order can't be told from
 * the message, it is kept beside it.
 */
import * as AiPrompt from "effect/ai/Prompt"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Block } from "../../../core/Content.ts"
import { type Json, JsonObject } from "../../../core/Json.ts"
import { toJson } from "./metadata.ts"

const Place = Schema.Union([Schema.Literals(["content", "call"]), JsonObject])

/** `content` and `call` stand for the next block and the next call; an object is a part that the provider ran. */
type Place = typeof Place.Type

/** A piece of a turn. */
export type Piece =
  | { readonly _tag: "content"; readonly block: Block }
  | { readonly _tag: "call" }
  | { readonly _tag: "hosted"; readonly part: JsonObject }

/** A call that the provider ran itself, or its result, as it will be sent back. */
export const hosted = (
  part:
    | { readonly type: "tool-call"; readonly id: string; readonly name: string; readonly params: unknown }
    | {
        readonly type: "tool-result"
        readonly id: string
        readonly name: string
        readonly isFailure: boolean
        readonly result: unknown
      },
  options: { readonly [provider: string]: Json | null }
): Piece => {
  const { id, name, type } = part
  const own =
    part.type === "tool-call"
      ? { params: toJson(part.params) }
      : { isFailure: part.isFailure, result: toJson(part.result) }
  return { _tag: "hosted", part: { type, id, name, ...own, options } }
}

/** Blank text is never sent back, so it has no place. */
const placeOf = (piece: Piece): Place | undefined =>
  piece._tag === "hosted"
    ? piece.part
    : piece._tag === "content" && piece.block.type === "text" && piece.block.text.trim() === ""
      ? undefined
      : piece._tag

/** The order of a turn; `undefined` where it is content first and then calls. */
export const layoutOf = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Place> | undefined => {
  const places = pieces.map(placeOf).filter((place) => place !== undefined)
  const plain = places.every(
    (place, index) => typeof place === "string" && !(place === "content" && places[index - 1] === "call")
  )
  return plain ? undefined : places
}

const HostedPart = Schema.Union([AiPrompt.ToolCallPart, AiPrompt.ToolResultPart])

const decodeHosted = Schema.decodeUnknownOption(HostedPart)

const decodeData = Schema.decodeUnknownOption(Schema.Struct({ layout: Schema.Array(Place) }))

const revive = (place: JsonObject): ReadonlyArray<AiPrompt.ToolCallPart | AiPrompt.ToolResultPart> =>
  Option.match(decodeHosted(place), { onNone: () => [], onSome: (part) => [{ ...part, providerExecuted: true }] })

/**
 * Puts content and calls in the order of the layout in a message's data. Both are used up to the last one, whatever the
 * layout says: a middleware may have changed the message since.
 */
export const arrange = <Content, Call>(
  data: JsonObject | undefined,
  content: ReadonlyArray<Content>,
  calls: ReadonlyArray<Call>
): ReadonlyArray<Content | Call | AiPrompt.ToolCallPart | AiPrompt.ToolResultPart> => {
  const layout = data?.["layout"] === undefined ? Option.none() : decodeData(data)
  if (Option.isNone(layout)) return [...content, ...calls]
  const restOfContent = [...content]
  const restOfCalls = [...calls]
  const arranged: Array<Content | Call | AiPrompt.ToolCallPart | AiPrompt.ToolResultPart> = []
  for (const place of layout.value.layout) {
    if (place === "content") arranged.push(...restOfContent.splice(0, 1))
    else if (place === "call") arranged.push(...restOfCalls.splice(0, 1))
    else arranged.push(...revive(place))
  }
  return [...arranged, ...restOfContent, ...restOfCalls]
}
