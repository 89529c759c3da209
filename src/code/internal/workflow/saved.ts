/** Finds workflows that are saved as files. The files are of others: nothing in them is run to list them. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Backend, type Entry, type Service } from "../../../core/Backend.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import { readMeta } from "./meta.ts"

/** A workflow in a file. */
export interface SavedWorkflow {
  readonly name: string
  readonly description: string
  /** The titles of its phases. */
  readonly phases: ReadonlyArray<string>
  readonly path: string
  readonly script: string
}

/** A file that is no workflow, and why. */
export interface Problem {
  readonly path: string
  readonly problem: string
}

export interface SavedList {
  readonly workflows: ReadonlyArray<SavedWorkflow>
  readonly problems: ReadonlyArray<Problem>
}

const limits = { files: 200, bytes: 256 * 1024, phases: 50 } as const

const extension = /\.(?:ts|mts|js|mjs)$/

const isName = (name: string): boolean => /^[\p{L}\p{N}][\p{L}\p{N}._-]{0,63}$/u.test(name)

const stem = (path: string): string => (path.split("/").at(-1) ?? path).replace(extension, "")

/** Reads a workflow from the text of its file. */
export const parseSaved = (script: string, path: string): Result.Result<SavedWorkflow, Problem> =>
  Result.flatMap(
    Result.mapError(readMeta(script), (problem) => ({ path, problem })),
    ({ description, name = stem(path), phases }) =>
      isName(name)
        ? Result.succeed({
            name,
            description: cut(oneLine(description), 300),
            phases: phases.slice(0, limits.phases).map((title) => cut(oneLine(title), 100)),
            path,
            script
          })
        : Result.fail({
            path,
            problem: `its name ${JSON.stringify(cut(oneLine(name), 80))} has other characters than letters, digits, ".", "_" and "-"`
          })
  )

const decode = (bytes: Uint8Array): Result.Result<string, string> =>
  Result.try({
    try: () => new TextDecoder("utf-8", { fatal: true }).decode(bytes),
    catch: () => "it is not a text in UTF-8"
  })

/** The files of a folder that may be workflows. A folder that is not there has none. */
const filesIn = (backend: Service, folder: string): Effect.Effect<ReadonlyArray<Entry>> =>
  Effect.match(backend.ls(folder), {
    onSuccess: ({ entries }) =>
      entries
        .filter(({ kind, path }) => kind === "file" && extension.test(path) && !path.endsWith(".d.ts"))
        .slice(0, limits.files),
    onFailure: () => []
  })

/** Reads the workflows of folders. Of two with one name, the first folder has the one that counts. */
export const findSaved = Effect.fnUntraced(function* (folders: ReadonlyArray<string>) {
  const backend = yield* Backend
  const workflows = new Map<string, SavedWorkflow>()
  const problems: Array<Problem> = []
  for (const folder of folders) {
    const small: Array<string> = []
    for (const { path, size = 0 } of yield* filesIn(backend, folder)) {
      if (size <= limits.bytes) small.push(path)
      else problems.push({ path, problem: `it has ${size} bytes, and at most ${limits.bytes} are read` })
    }
    const files = yield* backend.download(small)
    for (const file of files) {
      const { path } = file
      const parsed = file.ok
        ? Result.flatMap(
            Result.mapError(decode(file.value), (problem) => ({ path, problem })),
            (script) => parseSaved(script, path)
          )
        : Result.fail({ path, problem: file.error.message })
      if (Result.isFailure(parsed)) problems.push(parsed.failure)
      else if (!workflows.has(parsed.success.name)) workflows.set(parsed.success.name, parsed.success)
    }
  }
  return { workflows: [...workflows.values()], problems } satisfies SavedList
})
