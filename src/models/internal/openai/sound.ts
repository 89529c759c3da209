/** Sound of OpenAI's models: the answer that is spoken, and its id, by which it goes back. */
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import { type Block, file } from "../../../core/Content.ts"
import type { JsonObject } from "../../../core/Json.ts"
import { defined } from "../../../support/json/defined.ts"
import { joinBytes } from "../../../support/store/joinBytes.ts"
import { dataOf } from "../turn/dialect.ts"
import type { AiTurn } from "../turn/normalize.ts"
import { countOf, stringOf } from "../wire/read.ts"

/** The pieces of a recording, while it is streamed. */
export interface Sound {
  readonly pieces: Array<Uint8Array>
  id: string | undefined
  /** The second from which on the id is not known any more. */
  until: number | undefined
}

/** The one form of sound that OpenAI streams: 16 bits, little-endian. */
const streamedType = "audio/pcm;rate=24000"

/** Adds a piece of a recording, and gives the words in it. */
export const addSound = (sound: Sound, piece: JsonObject): string => {
  const data = Result.getOrElse(Base64.decode(stringOf(piece["data"]) ?? ""), () => new Uint8Array())
  if (data.length > 0) sound.pieces.push(data)
  sound.id = stringOf(piece["id"]) ?? sound.id
  sound.until = countOf(piece["expires_at"]) ?? sound.until
  return stringOf(piece["transcript"]) ?? ""
}

/** Makes a block of a recording, if there was one. */
export const soundBlock = ({ id, pieces, until }: Sound, provider: string): Block | undefined => {
  if (pieces.length === 0) return undefined
  const block = file({ base64: Base64.encode(joinBytes(pieces)), mimeType: streamedType })
  return id === undefined ? block : { ...block, providerData: { [provider]: defined({ sound: id, until }) } }
}

/** Finds the id of a spoken turn, while the server knows it. A turn with further texts is written in words. */
export const soundIn = (turn: AiTurn, settings: { readonly provider: string }): string | undefined => {
  const soundBlocks = turn.content.filter((block) => block.type === "text" && block.media !== undefined)
  const data = dataOf(soundBlocks[0]?.providerData, settings)
  const isWhole = soundBlocks.length === 1 && turn.content.filter(({ type }) => type === "text").length <= 2
  const until = countOf(data?.["until"]) ?? 0
  return isWhole && until * 1_000 > Date.now() + margin ? stringOf(data?.["sound"]) : undefined
}

/** Time that a request may take to be read, in milliseconds. */
const margin = 60_000
