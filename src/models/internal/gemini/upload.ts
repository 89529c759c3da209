/** Uploads to the Gemini API. A request names the file, a second has its bytes, and further ones wait until it is ready. */
import type { JsonObject } from "../../../core/Json.ts"
import { defined } from "../../../support/json/defined.ts"
import type { Upload, UploadedFile } from "../turn/uploads.ts"
import { badResponse, type Origin } from "../wire/errors.ts"
import { objectOf, stringOf } from "../wire/read.ts"

interface Uploader {
  /** The address of the API, its version included. */
  readonly root: string
  readonly headers: Readonly<Record<string, string>>
  readonly origin: Origin
  readonly fetch: typeof globalThis.fetch
  readonly refuse: (origin: Origin, response: Response) => Promise<never>
}

/** Milliseconds between two looks at a file that Google still prepares, such as a video. */
const pause = 1_000

const wait = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, pause)
    signal.addEventListener("abort", () => {
      clearTimeout(timer)
      resolve()
    })
  })

const fileIn = (body: unknown): JsonObject | undefined => objectOf(objectOf(body)?.["file"]) ?? objectOf(body)

/** The name of a file, such as `files/abc`: it becomes a part of an address. */
const isName = (name: string | undefined): name is string => name !== undefined && /^files\/[\w-]{1,100}$/.test(name)

/** Makes the function that uploads a file. */
export const makeUpload =
  ({ fetch, headers, origin, refuse, root }: Uploader) =>
  async ({ bytes, mimeType, name }: Upload, signal: AbortSignal): Promise<UploadedFile> => {
    const address = new URL(root)
    const readFile = async (response: Response): Promise<JsonObject> => {
      if (!response.ok) return refuse(origin, response)
      const body: unknown = await response.json()
      return fileIn(body) ?? Promise.reject(badResponse(origin, "the upload has no file in its answer"))
    }
    const begun = await fetch(new URL(`/upload${address.pathname}/files`, address).href, {
      method: "POST",
      headers: {
        ...headers,
        "x-goog-upload-protocol": "resumable",
        "x-goog-upload-command": "start",
        "x-goog-upload-header-content-length": String(bytes.length),
        "x-goog-upload-header-content-type": mimeType
      },
      body: JSON.stringify({ file: { display_name: name } }),
      signal
    })
    if (!begun.ok) return refuse(origin, begun)
    await begun.body?.cancel()
    const target = URL.parse(begun.headers.get("x-goog-upload-url") ?? "")
    // The content goes only to the server that has the conversation.
    if (target === null || target.origin !== address.origin) {
      return Promise.reject(badResponse(origin, "the address for the upload is missing, or leads to another server"))
    }
    let file = await readFile(
      await fetch(target.href, {
        method: "POST",
        headers: { "x-goog-upload-offset": "0", "x-goog-upload-command": "upload, finalize" },
        body: bytes,
        signal
      })
    )
    const id = stringOf(file["name"])
    if (!isName(id)) return Promise.reject(badResponse(origin, "the uploaded file has no name"))
    while (file["state"] === "PROCESSING" && !signal.aborted) {
      await wait(signal)
      file = await readFile(await fetch(`${root}/${id}`, { headers, signal }))
    }
    if (file["state"] === "FAILED") return Promise.reject(badResponse(origin, "the uploaded file can't be read"))
    const until = Date.parse(stringOf(file["expirationTime"]) ?? "")
    return { id, ...defined({ until: Number.isNaN(until) ? undefined : until }) }
  }
