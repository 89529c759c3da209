/**
 * The editor's files in front of a backend: open files with unsaved changes are read from the editor, and changes are
 * written to the editor or to the disk, never to both. Searches, and all else, see the disk.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import * as MemoryBackend from "../../backends/MemoryBackend.ts"
import type * as Backend from "../../core/Backend.ts"
import * as BackendError from "../../core/BackendError.ts"
import type { Service as Sandbox } from "../../core/Sandbox.ts"
import { sha256Sync } from "../../support/store/sha256.ts"
import type { Client } from "./client.ts"
import { isWithin, withFolder } from "./paths.ts"

const place = "/file"

const encoder = new TextEncoder()

/** The version of a text in the editor. */
const versionOf = (text: string): string => `editor:${sha256Sync(text)}`

/** A file in memory, with the text of the editor. */
const copyOf = (text: string) => MemoryBackend.make({ files: { [place]: text } })

const conflict = (operation: string, path: string) => BackendError.make(operation, path, { _tag: "Conflict" })

/** Puts the client's files, below the folders of the session, in front of a sandbox. */
export const withEditor = (
  sandbox: Sandbox,
  options: {
    readonly client: Client
    readonly sessionId: string
    readonly cwd: string
    readonly folders: ReadonlyArray<string>
  }
): Sandbox => {
  const { client, cwd, folders, sessionId } = options
  const { readTextFile: canRead, writeTextFile: canWrite } = client.can().fs ?? {}
  if (canRead !== true) return sandbox
  // Two edits of one file must not read the same text.
  const lock = Semaphore.makeUnsafe(1)

  /**
   * The text that the editor has for a file that the agent may read; `undefined` if the disk counts. `isNew` marks a file
   * that neither has.
   */
  const look = Effect.fnUntraced(function* (path: string) {
    const at = withFolder(path, cwd)
    const isHere = folders.some((folder) => isWithin(at, folder))
    if (!isHere) return { text: undefined, isNew: false }
    // The rules of the disk decide first. A file of the editor's may be missing there.
    const onDisk = yield* Effect.catchIf(
      sandbox.read(path, { limit: 0 }),
      ({ reason }) => reason._tag === "NotFound",
      () => Effect.undefined
    )
    if (onDisk !== undefined && onDisk.kind !== "text") return { text: undefined, isNew: false }
    const reply = yield* Effect.option(client.request("fs/read_text_file", { sessionId, path: at }))
    const text = reply._tag === "Some" ? reply.value.content : undefined
    return { text, isNew: text === undefined && onDisk === undefined }
  })

  const textOf = (path: string) => Effect.map(look(path), ({ text }) => text)

  /** Writes a text to the editor, which saves it. */
  const writeText = (operation: string, path: string, content: string) =>
    client
      .request("fs/write_text_file", { sessionId, path: withFolder(path, cwd), content })
      .pipe(
        Effect.mapError(({ message }) =>
          BackendError.make(operation, path, { _tag: "Unavailable" }, { detail: message })
        )
      )

  const read: Sandbox["read"] = Effect.fnUntraced(function* (path, window) {
    const text = yield* textOf(path)
    if (text === undefined) return yield* sandbox.read(path, window)
    const copy = yield* copyOf(text)
    const file = yield* Effect.mapError(copy.read(place, window), BackendError.at("read", path))
    // An edit on the disk needs the version there.
    const version = canWrite === true ? versionOf(text) : (yield* sandbox.read(path, { limit: 0 })).version
    return { ...file, path, version }
  })

  const write: Sandbox["write"] = (path, content, settings) =>
    lock.withPermit(
      Effect.gen(function* () {
        const { isNew, text } = yield* look(path)
        if (isNew && settings?.version === undefined) {
          yield* writeText("write", path, content)
          return { path, created: true, version: versionOf(content) } satisfies Backend.WriteResult
        }
        if (text === undefined) return yield* sandbox.write(path, content, settings)
        if (settings?.create === true) {
          return yield* BackendError.make("write", path, { _tag: "AlreadyExists" })
        }
        if (settings?.version !== undefined && settings.version !== versionOf(text)) {
          return yield* conflict("write", path)
        }
        yield* writeText("write", path, content)
        return { path, created: false, version: versionOf(content) } satisfies Backend.WriteResult
      })
    )

  const edit: Sandbox["edit"] = (path, replacements, settings) =>
    lock.withPermit(
      Effect.gen(function* () {
        const text = yield* textOf(path)
        if (text === undefined) return yield* sandbox.edit(path, replacements, settings)
        if (settings?.version !== undefined && settings.version !== versionOf(text)) {
          return yield* conflict("edit", path)
        }
        const copy = yield* copyOf(text)
        const edited = yield* Effect.mapError(copy.edit(place, replacements), BackendError.at("edit", path))
        const [after] = yield* copy.download([place])
        const content = after?.ok === true ? new TextDecoder().decode(after.value) : text
        yield* writeText("edit", path, content)
        return { ...edited, path, version: versionOf(content) }
      })
    )

  const withText = (one: Backend.Transfer<Uint8Array>): Effect.Effect<Backend.Transfer<Uint8Array>> =>
    one.ok
      ? Effect.match(textOf(one.path), {
          onFailure: () => one,
          onSuccess: (text) => (text === undefined ? one : { ...one, value: encoder.encode(text) })
        })
      : Effect.succeed(one)

  const download: Sandbox["download"] = (paths) =>
    Effect.flatMap(sandbox.download(paths), (files) => Effect.forEach(files, withText))

  return { ...sandbox, read, download, ...(canWrite === true ? { write, edit } : {}) }
}
