/** Routes of the files of a thread: lists, texts, and bytes that a browser never shows or runs. */
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { Service } from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import { defined } from "../../../support/json/defined.ts"
import type { ThreadRef } from "../tenant.ts"
import { type Failure, Problem } from "./problem.ts"
import { json, type Route, route, type TenantCall } from "./route.ts"

/** Gives the files of a thread. */
export type OpenFiles = (thread: ThreadRef) => Effect.Effect<Service, BackendError.BackendError>

const refusals: { readonly [Tag in BackendError.Reason["_tag"]]?: readonly [status: number, detail: string] } = {
  InvalidPath: [400, "This is no valid path."],
  IsDirectory: [400, "This is a folder; list it."],
  NotDirectory: [400, "This is a file; read it."],
  NotFound: [404, "There is no such file or folder."],
  OutsideRoot: [400, "This path leads out of the files of the thread."],
  PermissionDenied: [403, "This path may not be read."],
  TooLarge: [413, "This file is too large to be sent."],
  Unsupported: [400, "The files of the thread can't be read so."]
}

/** Makes a problem of a failure. Its own words may name folders of the server. */
const toProblem = ({ reason }: BackendError.BackendError): Problem => {
  const [status, detail] = refusals[reason._tag] ?? [503, "The files can't be read now; try again later."]
  return new Problem({ status, code: reason._tag, detail })
}

/** The most entries of a list, lines of a text, bytes of a file, and characters of a path. */
const most = { entries: 2_000, lines: 2_000, bytes: 10 << 20, path: 4_096 }

const whole = (text: string | undefined): number | undefined => {
  const value = Number(text ?? Number.NaN)
  return Number.isSafeInteger(value) && value > 0 ? value : undefined
}

/** Opens the files of a thread that is there, and reads the path of the request. */
const openPath = Effect.fnUntraced(function* (
  call: TenantCall,
  open: OpenFiles
): Effect.fn.Return<{ readonly files: Service; readonly path: string }, Failure> {
  const thread = yield* call.thread
  yield* call.tenant.store.info(thread.id)
  const files = yield* Effect.mapError(open(thread), toProblem)
  const path = call.query("path") ?? files.paths?.cwd ?? "/"
  if (path.length > most.path) {
    return yield* new Problem({
      status: 400,
      code: "InvalidPath",
      detail: `A path has at most ${most.path} characters.`
    })
  }
  return { files, path }
})

const path = { path: "The path of a file or a folder. Default: the working folder" }

const list = (open: OpenFiles) =>
  route({
    method: "GET",
    path: "/threads/:id/files",
    summary: "Lists a folder of the thread's files, by name.",
    query: path,
    handle: Effect.fnUntraced(function* (call: TenantCall) {
      const { files, path } = yield* openPath(call, open)
      const { entries, truncated } = yield* Effect.mapError(files.ls(path), toProblem)
      const isCut = truncated !== undefined || entries.length > most.entries
      return json({ path, entries: entries.slice(0, most.entries), ...(isCut ? { isCut } : {}) })
    })
  })

const text = (open: OpenFiles) =>
  route({
    method: "GET",
    path: "/threads/:id/files/text",
    summary: "Gives lines of a text, at most 2,000 or 256 KiB; of another file, its type and size.",
    query: {
      ...path,
      line: "The first line. Default: 1",
      column: "The characters of that line to leave out. Default: 0"
    },
    handle: Effect.fnUntraced(function* (call: TenantCall) {
      const { files, path } = yield* openPath(call, open)
      const window = { offset: whole(call.query("line")), column: whole(call.query("column")), limit: most.lines }
      const file = yield* Effect.mapError(files.read(path, window), toProblem)
      if (file.kind === "binary") {
        return json({ kind: file.kind, path: file.path, mimeType: file.mimeType, size: file.size })
      }
      const { endLine, kind, nextColumn, path: at, size, startLine, text, totalLines } = file
      return json({ kind, path: at, text, startLine, endLine, totalLines, size, ...defined({ nextColumn }) })
    })
  })

/** The name of a file as a header takes it (RFC 8187). */
const nameOf = (path: string): string =>
  encodeURIComponent((path.split("/").at(-1) ?? "").toWellFormed() || "file").replaceAll(
    /['()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`
  )

/** The bytes are an agent's: no browser may show, run or embed them, whatever they are. */
const headersOf = (path: string) => ({
  "content-disposition": `attachment; filename*=UTF-8''${nameOf(path)}`,
  "content-security-policy": "sandbox; default-src 'none'",
  "cross-origin-resource-policy": "same-origin",
  "x-content-type-options": "nosniff",
  "cache-control": "no-store"
})

const content = (open: OpenFiles) =>
  route({
    method: "GET",
    path: "/threads/:id/files/content",
    summary: "Gives the bytes of a file, at most 10 MiB, as an attachment.",
    query: { path: "The path of a file" },
    returns: "application/octet-stream",
    handle: Effect.fnUntraced(function* (call: TenantCall) {
      const { files, path } = yield* openPath(call, open)
      const [file] = yield* files.download([path])
      if (file === undefined) return yield* toProblem(BackendError.make("download", path, { _tag: "Unavailable" }))
      if (!file.ok) return yield* toProblem(file.error)
      if (file.value.length > most.bytes) {
        return yield* new Problem({ status: 413, code: "TooLarge", detail: "This file is too large to be sent." })
      }
      return HttpServerResponse.uint8Array(file.value, {
        contentType: "application/octet-stream",
        headers: headersOf(path)
      })
    })
  })

/** Makes the routes of files. */
export const makeFileRoutes = (open: OpenFiles): ReadonlyArray<Route> => [list(open), text(open), content(open)]
