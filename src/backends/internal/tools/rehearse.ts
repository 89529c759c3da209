/**
 * Finds out whether an edit or a write can be applied, before a person is asked about it. In a rehearsal, calls change a
 * copy of the files.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import type { JsonObject } from "../../../core/Json.ts"
import * as ToolError from "../../../core/ToolError.ts"
import type { ToolOutput } from "../../../core/ToolOutput.ts"
import { decodeText } from "../files/mime.ts"
import * as Path from "../files/path.ts"
import { applyEdits } from "../text/edit.ts"
import { decodeOther } from "../text/encoding.ts"
import type { Kit } from "./kit.ts"
import { hold } from "./seen.ts"
import { showPath } from "./text.ts"

export const resolve = (operation: string, path: string, { paths }: Backend.Service) =>
  Effect.fromResult(Path.resolve(operation, path, paths))

export const mustRead = (kit: Kit, path: string, then: string): ToolError.ToolError =>
  ToolError.make(
    kit.offers("read_file")
      ? `${showPath(path)} exists, and you have not read it. Read it with read_file first, ${then}.`
      : `${showPath(path)} exists, and you can't read files here, so you can't replace it. Choose another path.`
  )

/**
 * The work of a tool that acts on files alone. When it is rehearsed on a copy of the files, it acts there; elsewhere it
 * is only checked.
 */
export const onFiles = <A, E, R>(
  execute: (args: A) => Effect.Effect<ToolOutput, E, R>,
  check: (args: A, earlier: ReadonlyArray<JsonObject>) => Effect.Effect<unknown, E, R> = () => Effect.void
) => ({
  execute,
  rehearse: (args: A, earlier: ReadonlyArray<JsonObject>): Effect.Effect<ToolOutput | void, E, R | Backend.Backend> =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      return (yield* Backend.Copy) === backend ? yield* execute(args) : yield* Effect.asVoid(check(args, earlier))
    })
})

/** The longest argument that may be a path, in characters. */
const longestPath = 4_096

/** Tells whether an earlier call of the round names the path: the effect of that call on the file is not known yet. */
const isNamed = (path: string, earlier: ReadonlyArray<JsonObject>, { paths }: Backend.Service): boolean =>
  earlier.some((args) =>
    Object.values(args).some((value) => {
      const named =
        typeof value === "string" && value.length <= longestPath ? Path.resolve("read", value, paths) : undefined
      return named !== undefined && Result.isSuccess(named) && named.success === path
    })
  )

/** The version of a file now; `undefined` if there is none. */
const versionNow = (backend: Backend.Service, path: string) =>
  Effect.map(backend.read(path, { limit: 0 }), ({ version }): string | undefined => version).pipe(
    Effect.catchReason("BackendError", "NotFound", () => Effect.undefined)
  )

type Check = (
  backend: Backend.Service,
  path: string,
  seen: string | undefined
) => Effect.Effect<unknown, BackendError.BackendError | ToolError.ToolError>

/** Checks a call on a file with the version of it that the agent has seen. */
const rehearse = (kit: Kit, operation: string, inputPath: string, earlier: ReadonlyArray<JsonObject>, check: Check) =>
  Effect.gen(function* () {
    const backend = yield* Backend.Backend
    const path = yield* resolve(operation, inputPath, backend)
    if (isNamed(path, earlier, backend)) return undefined
    return yield* hold([path], (seen) => Effect.flatMap(seen.get(path), (version) => check(backend, path, version)))
  }).pipe(kit.tell)

const conflict = (operation: string, path: string): BackendError.BackendError =>
  BackendError.make(operation, path, { _tag: "Conflict" })

export interface Write {
  readonly file_path: string
  readonly content: string
}

export const rehearseWrite =
  (kit: Kit) =>
  ({ file_path }: Write, earlier: ReadonlyArray<JsonObject>) =>
    rehearse(kit, "write", file_path, earlier, (backend, path, seenVersion) =>
      Effect.flatMap(versionNow(backend, path), (now) => {
        if (now === undefined || now === seenVersion) return Effect.void
        return Effect.fail(seenVersion === undefined ? mustRead(kit, path, "then write it") : conflict("write", path))
      })
    )

export interface Edit {
  readonly file_path: string
  readonly old_string: string
  readonly new_string: string
  readonly replace_all?: boolean | undefined
}

export const rehearseEdit =
  (kit: Kit) =>
  ({ file_path, new_string, old_string, replace_all }: Edit, earlier: ReadonlyArray<JsonObject>) =>
    rehearse(
      kit,
      "edit",
      file_path,
      earlier,
      Effect.fnUntraced(function* (backend, path, seenVersion) {
        // A file that can't be edited at all is reported first.
        const { version } = yield* backend.read(path, { limit: 0 })
        if (seenVersion === undefined) return yield* mustRead(kit, path, "then edit it")
        if (version !== seenVersion) return yield* conflict("edit", path)
        const [transfer] = yield* backend.download([path])
        // The edit itself may have other limits, and other ways to decode.
        if (transfer?.ok !== true) return undefined
        const text = Result.getOrElse(decodeText(path, transfer.value), () => decodeOther(path, transfer.value)?.text)
        if (text === undefined) return undefined
        const edited = applyEdits(text, [{ old: old_string, new: new_string, replaceAll: replace_all === true }])
        return Result.isFailure(edited) ? yield* BackendError.make("edit", path, edited.failure) : undefined
      })
    )
