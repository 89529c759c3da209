/** The pieces of one turn of `effect/ai`, in the order in which the model said them. */
import * as AiPrompt from "effect/ai/Prompt"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Block } from "../../../../core/Content.ts"
import type { Json, JsonObject } from "../../../../core/Json.ts"
import * as layout from "../../../internal/turn/layout.ts"
import { toJson } from "./metadata.ts"

/** A piece of a turn. */
export type Piece =
  | { readonly _tag: "content"; readonly block: Block }
  | { readonly _tag: "call" }
  | { readonly _tag: "hosted"; readonly part: JsonObject }

/** A call that the provider ran itself, or its result, as it will be sent back. */
export const hostedPart = (
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
): JsonObject => {
  const { id, name, type } = part
  const own =
    part.type === "tool-call"
      ? { params: toJson(part.params) }
      : { isFailure: part.isFailure, result: toJson(part.result) }
  return { type, id, name, ...own, options }
}

/** Blank text is never sent back, so it has no place. */
const placeOf = (piece: Piece): layout.Place | undefined =>
  piece._tag === "hosted"
    ? piece.part
    : piece._tag === "content" && piece.block.type === "text" && piece.block.text.trim() === ""
      ? undefined
      : piece._tag

/** The order of a turn; `undefined` where it is content first and then calls. */
export const layoutOf = (pieces: ReadonlyArray<Piece>): ReadonlyArray<layout.Place> | undefined =>
  layout.layoutOf(pieces.map(placeOf).filter((place) => place !== undefined))

const HostedPart = Schema.Union([AiPrompt.ToolCallPart, AiPrompt.ToolResultPart])

const decodeHosted = Schema.decodeUnknownOption(HostedPart)

const revive = (place: JsonObject): ReadonlyArray<AiPrompt.ToolCallPart | AiPrompt.ToolResultPart> =>
  Option.match(decodeHosted(place), { onNone: () => [], onSome: (part) => [{ ...part, providerExecuted: true }] })

/** Puts content and calls in the order of the layout in a message's data. */
export const arrange = <Content, Call>(
  data: JsonObject | undefined,
  content: ReadonlyArray<Content>,
  calls: ReadonlyArray<Call>
) => layout.arrange(data, content, calls, revive)
