/** Uploads to OpenAI's Files API. */
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import { defined } from "../../../support/json/defined.ts"
import { type Session, makeUploads, type Upload, type Uploads } from "../turn/uploads.ts"
import type { Client } from "./client.ts"
import { isDocument, readsImage } from "./media.ts"

/** Seconds that OpenAI keeps a file. */
const lifetime = 30 * 86_400

/** Makes the part of a session that uploads. Without options, it uploads nothing. */
export const withUploads = (client: Client, options: Uploads | undefined): ((makeSession: Session) => Session) => {
  if (options === undefined) return identity
  const origin = client.originOf(undefined)
  const upload = ({ bytes, isImage, mimeType, name }: Upload) =>
    Effect.map(
      client.call(origin, (sdk, signal) =>
        sdk.files.create(
          {
            file: new File([bytes], name, { type: mimeType }),
            purpose: isImage ? "vision" : "user_data",
            expires_after: { anchor: "created_at", seconds: lifetime }
          },
          { signal }
        )
      ),
      ({ expires_at, id }) => ({ id, ...defined({ until: expires_at === undefined ? undefined : expires_at * 1000 }) })
    )
  const takes = (block: Parameters<typeof isDocument>[0] | Parameters<typeof readsImage>[0]): boolean =>
    block.type === "image" ? readsImage(block) : isDocument(block)
  return makeUploads({ ...origin, options, takes, upload })
}
