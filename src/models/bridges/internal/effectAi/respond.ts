/** A turn of a model of ours as the response of an `effect/ai` model. */
import type * as AiResponse from "effect/ai/Response"
import type { TurnPart } from "../../../../core/ChatModel.ts"
import type { Block, FileBlock, ImageBlock, ReasoningBlock, TextBlock } from "../../../../core/Content.ts"
import type { AiMessage } from "../../../../core/Message.ts"
import { defined } from "../../../../support/json/defined.ts"
import { carry, mergeMetadata, type Metadata, optionsOf } from "./metadata.ts"
import { fromStop, fromUsage } from "./usage.ts"

type SpokenBlock = TextBlock | ReasoningBlock

const isSaid = (block: Block): block is SpokenBlock => block.type === "text" || block.type === "reasoning"

/** Media in a response are bytes; what is somewhere else is named. */
const mediaPart = (block: ImageBlock | FileBlock): AiResponse.FilePartEncoded | AiResponse.TextPartEncoded => {
  const { source } = block
  if (source.kind === "base64") {
    return { type: "file", mediaType: source.mimeType, data: source.data, metadata: optionsOf(block.providerData) }
  }
  const place = source.kind === "url" ? source.url : `file id ${source.fileId}`
  return { type: "text", text: `[${block.type === "image" ? "Image" : "File"}: ${place}]` }
}

const callParts = (message: AiMessage): ReadonlyArray<AiResponse.ToolCallPartEncoded> => [
  ...message.toolCalls.map((call) => ({
    type: "tool-call" as const,
    id: call.id,
    name: call.name,
    params: call.arguments,
    metadata: optionsOf(call.providerData)
  })),
  // The toolkit finds them not to decode, and says so in its own way.
  ...message.malformedToolCalls.map(({ id, name = "unknown", raw }) => ({
    type: "tool-call" as const,
    id,
    name,
    params: raw,
    metadata: {}
  }))
]

const endParts = (
  message: AiMessage
): readonly [AiResponse.ResponseMetadataPartEncoded, AiResponse.FinishPartEncoded] => [
  { type: "response-metadata", id: message.id, modelId: message.model },
  {
    type: "finish",
    reason: fromStop(message.stopReason),
    usage: fromUsage(message.usage),
    metadata: optionsOf(defined({ stopReason: message.stopReason, cost: message.usage?.cost }))
  }
]

const messageData = ({ providerData }: AiMessage) => carry(providerData === undefined ? {} : { message: providerData })

/** Adds the metadata of the whole message to its first part. */
const withData = <Part extends { readonly metadata?: Metadata | undefined }>(
  parts: ReadonlyArray<Part>,
  message: AiMessage
): ReadonlyArray<Part> =>
  parts.map((part, index) =>
    index === 0 ? { ...part, metadata: mergeMetadata(part.metadata ?? {}, messageData(message)) } : part
  )

/** A whole turn. */
export const toParts = (message: AiMessage): Array<AiResponse.PartEncoded> => {
  const content = message.content.map((block): AiResponse.PartEncoded => {
    if (!isSaid(block)) return mediaPart(block)
    return { type: block.type, text: block.text, metadata: optionsOf(block.providerData) }
  })
  const parts = [...content, ...callParts(message)]
  const [metadata, finish] = endParts(message)
  return [metadata, ...withData(parts, message), finish]
}

/** A run of deltas of one kind, which is one part of the response. */
interface Segment {
  readonly kind: SpokenBlock["type"]
  readonly id: string
  text: string
}

/** The blocks of which a segment is made. */
const takeBlocks = (blocks: Array<SpokenBlock>, { kind, text }: Segment): ReadonlyArray<SpokenBlock> => {
  const segmentBlocks: Array<SpokenBlock> = []
  let joined = ""
  for (let next = blocks[0]; next?.type === kind && text.startsWith(joined + next.text); next = blocks[0]) {
    joined += next.text
    segmentBlocks.push(next)
    blocks.shift()
  }
  return segmentBlocks
}

const segmentMetadata = (blocks: ReadonlyArray<SpokenBlock>, text: string): Metadata => {
  const [only, ...others] = blocks
  if (only === undefined) return {}
  return others.length === 0 && only.text === text ? optionsOf(only.providerData) : carry({ blocks })
}

const whole = (id: string, block: SpokenBlock): ReadonlyArray<AiResponse.StreamPartEncoded> => {
  const metadata = optionsOf(block.providerData)
  return block.type === "text"
    ? [
        { type: "text-start", id },
        { type: "text-delta", id, delta: block.text },
        { type: "text-end", id, metadata }
      ]
    : [
        { type: "reasoning-start", id },
        { type: "reasoning-delta", id, delta: block.text },
        { type: "reasoning-end", id, metadata }
      ]
}

/** Turns the parts of one turn, as they come, into parts of an `effect/ai` stream. */
export const makeStreamEncoder = () => {
  const segments: Array<Segment> = []
  const started = new Set<string>()

  const say = (kind: Segment["kind"], delta: string): ReadonlyArray<AiResponse.StreamPartEncoded> => {
    const last = segments.at(-1)
    if (last?.kind === kind) {
      last.text += delta
      return [{ type: `${kind}-delta`, id: last.id, delta }]
    }
    const id = String(segments.length)
    segments.push({ kind, id, text: delta })
    return [
      { type: `${kind}-start`, id },
      { type: `${kind}-delta`, id, delta }
    ]
  }

  const finish = (message: AiMessage): ReadonlyArray<AiResponse.StreamPartEncoded> => {
    const blocks = message.content.filter(isSaid)
    const ends = segments.map((segment): AiResponse.StreamPartEncoded => {
      const metadata = segmentMetadata(takeBlocks(blocks, segment), segment.text)
      return { type: `${segment.kind}-end`, id: segment.id, metadata }
    })
    // Blocks that were never streamed, as redacted reasoning is not, have not been said yet.
    const unsaid = blocks
      .filter((block) => block.text === "" || segments.every(({ kind }) => kind !== block.type))
      .flatMap((block, index) => whole(`rest-${index}`, block))
    const calls = callParts(message).flatMap((part): ReadonlyArray<AiResponse.StreamPartEncoded> =>
      started.has(part.id) ? [{ type: "tool-params-end", id: part.id }, part] : [part]
    )
    const media = message.content.flatMap((block) => {
      const part = isSaid(block) ? undefined : mediaPart(block)
      return part?.type === "file" ? [part] : []
    })
    const [metadata, end] = endParts(message)
    return [metadata, ...withData([...ends, ...unsaid, ...media, ...calls], message), end]
  }

  /** `undefined` when a turn is begun anew of which something was given away already. */
  const encode = (part: TurnPart): ReadonlyArray<AiResponse.StreamPartEncoded> | undefined => {
    switch (part._tag) {
      case "TextDelta":
        return say("text", part.text)
      case "ReasoningDelta":
        return say("reasoning", part.text)
      case "ToolCallStart": {
        started.add(part.id)
        const { id, name, providerExecuted } = part
        return [{ type: "tool-params-start", id, name, ...(providerExecuted ? { providerExecuted } : {}) }]
      }
      case "ToolCallDelta":
        return [{ type: "tool-params-delta", id: part.id, delta: part.delta }]
      case "TurnRestarted":
        return segments.length + started.size === 0 ? [] : undefined
      case "TurnAccepted":
      case "Warning":
        // effect/ai has no part for it.
        return []
      case "TurnDone":
        return finish(part.message)
    }
  }

  return encode
}
