/** The changes that requests of a server would make. They are known by its files, or else by the call alone. */
import * as Effect from "effect/Effect"
import * as FiberSet from "effect/FiberSet"
import type { Request } from "../../../core/Approval.ts"
import * as BackendError from "../../../core/BackendError.ts"
import type { ServerClient } from "../../../server/ServerClient.ts"
import { diffOf, type Preview, previewOf } from "../approvals/preview.ts"

/** The time that the server has to give a file. A person is asked without it then. */
const patience = "3 seconds"

/** The change of an edit without the rest of its file. A write without the file before it has no change to show. */
const previewOfCall = ({ arguments: args, editsFiles }: Request): Preview | undefined => {
  const { file_path: path, new_string: after, old_string: before } = args
  // Both may end within a line, and the file does not.
  const isEdit = typeof path === "string" && typeof before === "string" && typeof after === "string"
  return editsFiles === true && isEdit ? diffOf({ path, before: `${before}\n`, after: `${after}\n` }) : undefined
}

const load = Effect.fnUntraced(function* (client: ServerClient, thread: string, request: Request) {
  const { file_path: path } = request.arguments
  if (typeof path !== "string") return undefined
  const value = yield* client.file(thread, path)
  const missing = BackendError.make("download", path, { _tag: "NotFound" })
  const file = value === undefined ? { path, ok: false as const, error: missing } : { path, ok: true as const, value }
  return yield* previewOf({ download: () => Effect.succeed([file]) }, request)
})

/** Previews of the requests of a thread. */
export interface Previews {
  readonly of: (id: string) => Preview | undefined
  /** Reports whether a request may be shown: its change is not loading any more. */
  readonly isReady: (id: string) => boolean
  /** Begins to load the changes of new requests, and forgets requests that are gone. */
  readonly follow: (thread: string | undefined, requests: ReadonlyMap<string, Request>) => void
}

/** Makes the previews of a look. `onChange` is called when a request may be shown. */
export const makePreviews = Effect.fnUntraced(function* (
  client: ServerClient,
  hasFiles: boolean,
  onChange: () => void
) {
  const run = yield* FiberSet.makeRuntime()
  const loading = new Set<string>()
  const previews = new Map<string, Preview | undefined>()
  const begin = (thread: string, request: Request): void => {
    const { id } = request
    const own = previewOfCall(request)
    previews.set(id, own)
    if (!hasFiles || request.editsFiles !== true) return
    loading.add(id)
    run(
      load(client, thread, request).pipe(
        Effect.timeout(patience),
        Effect.orElseSucceed(() => own),
        Effect.map((preview) => {
          if (!loading.delete(id)) return
          previews.set(id, preview ?? own)
          onChange()
        })
      )
    )
  }
  const previewsOf: Previews = {
    of: (id) => previews.get(id),
    isReady: (id) => !loading.has(id),
    follow: (thread, requests) => {
      for (const id of previews.keys()) {
        if (requests.has(id)) continue
        previews.delete(id)
        loading.delete(id)
      }
      for (const request of requests.values()) {
        if (thread !== undefined && !previews.has(request.id)) begin(thread, request)
      }
    }
  }
  return previewsOf
})
