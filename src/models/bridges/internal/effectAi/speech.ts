/** Text and reasoning of a turn as they are said: pieces in, blocks out. */
import type * as AiResponse from "effect/ai/Response"
import { isObject } from "../../../../core/Json.ts"
import { addBlock, reasoningBlock, type Sorted } from "./decode.ts"
import { isEmpty, mergeMetadata, providerDataOf } from "./metadata.ts"

type Metadata = AiResponse.ProviderMetadata

/** One block that is being said. */
export interface Speech {
  readonly kind: "text" | "reasoning"
  text: string
  metadata: Metadata
}

/** A part of a stream that says something, or says that it begins or ends. */
export type SpeechPart =
  | AiResponse.TextStartPart
  | AiResponse.TextDeltaPart
  | AiResponse.TextEndPart
  | AiResponse.ReasoningStartPart
  | AiResponse.ReasoningDeltaPart
  | AiResponse.ReasoningEndPart

/** Collects blocks: takes a part and gives the block that it begins, if it begins one. */
export const makeSpeeches = () => {
  const open = new Map<string, Speech>()
  return (part: SpeechPart): Speech | undefined => {
    const kind = part.type.startsWith("text") ? "text" : "reasoning"
    const key = `${kind} ${part.id}`
    const before = open.get(key)
    const speech: Speech = before ?? { kind, text: "", metadata: {} }
    speech.metadata = mergeMetadata(speech.metadata, part.metadata)
    if ("delta" in part) speech.text += part.delta
    if (part.type === "text-end" || part.type === "reasoning-end") open.delete(key)
    else if (before === undefined) open.set(key, speech)
    return before === undefined ? speech : undefined
  }
}

/** A block that says nothing and carries nothing is none. */
export const putSpeech = (to: Sorted, { kind, metadata, text }: Speech): void => {
  if (text === "" && isEmpty(metadata)) return
  addBlock(to, kind === "text" ? { type: "text", text, ...providerDataOf(metadata) } : reasoningBlock(text, metadata))
}

/** Reports whether a provider calls a text the refusal of an answer. */
export const isRefusal = (metadata: Metadata): boolean =>
  Object.values(metadata).some((own) => isObject(own) && typeof own["refusal"] === "string" && own["refusal"] !== "")
