/** Uploads to Anthropic's Files API. */
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import type { FileBlock, ImageBlock } from "../../../core/Content.ts"
import { defined } from "../../../support/json/defined.ts"
import { inlineOf } from "../turn/inline.ts"
import { makeUploads, type Session, type Upload, type Uploads } from "../turn/uploads.ts"
import type { Origin } from "../wire/errors.ts"
import { isImageType } from "./content.ts"
import type { Transport } from "./transport.ts"

/** Seconds that Anthropic keeps a file. */
const lifetime = 30 * 86_400

const takes = (block: ImageBlock | FileBlock): boolean => {
  const { mimeType = "" } = inlineOf(block) ?? {}
  return block.type === "image" ? isImageType(mimeType) : mimeType === "application/pdf"
}

/** Makes the part of a session that uploads. Without options, it uploads nothing. */
export const withUploads = (
  client: Transport,
  origin: Origin,
  options: Uploads | undefined
): ((makeSession: Session) => Session) => {
  if (options === undefined) return identity
  const upload = ({ bytes, mimeType, name }: Upload) =>
    Effect.map(
      client.call((sdk, signal) =>
        sdk.beta.files.upload(
          { file: new File([bytes], name, { type: mimeType }), expires_in_seconds: lifetime },
          { signal }
        )
      ),
      ({ expires_at, id }) => {
        const until = Date.parse(expires_at ?? "")
        return { id, ...defined({ until: Number.isNaN(until) ? undefined : until }) }
      }
    )
  return makeUploads({ ...origin, options, takes, upload })
}
