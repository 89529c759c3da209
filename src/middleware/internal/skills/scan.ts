/** Looks for skills in the directories of a backend. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Backend, type Service } from "../../../core/Backend.ts"
import { type Manifest, limits as frontmatterLimits, parse } from "./frontmatter.ts"

/** Limits of a scan. */
export const limits = {
  /** Directories in one source. */
  directories: 200,
  /** Bytes of a `SKILL.md`. */
  fileBytes: 1024 * 1024
} as const

/** The file that makes a directory a skill. */
const fileName = "SKILL.md"

/** A usable skill. `path` is its `SKILL.md`; paths in its text are relative to `directory`. */
export interface Skill extends Manifest {
  readonly path: string
  readonly directory: string
}

/** A problem in a source. `field` is the part of the frontmatter, empty for the whole. */
export interface Problem {
  readonly path: string
  readonly field: string
  readonly problem: string
}

/** The skills by name, and the problems in the order of the sources. */
export interface ScanResult {
  readonly skills: ReadonlyArray<Skill>
  readonly problems: ReadonlyArray<Problem>
}

/** The result for one place. */
type One = { readonly skill?: Skill | undefined; readonly problems: ReadonlyArray<Problem> }

const nothing: One = { problems: [] }

const wrong = (path: string, problem: string): One => ({ problems: [{ path, field: "", problem }] })

const lastName = (path: string): string => path.split("/").findLast((part) => part !== "") ?? ""

const withoutSlash = (path: string): string => path.replace(/\/+$/, "")

/** Reports whether an entry of `allowed-tools` restricts a tool's arguments. */
export const isPattern = (entry: string): boolean => entry.includes("(")

/** Reads the beginning of a skill. A directory without a `SKILL.md` has no skill. */
const skillIn = Effect.fnUntraced(function* (backend: Service, directory: string): Effect.fn.Return<One> {
  const path = `${directory}/${fileName}`
  const result = yield* Effect.result(backend.read(path, { limit: frontmatterLimits.lines }))
  if (Result.isFailure(result)) {
    const { message, reason } = result.failure
    return reason._tag === "NotFound" || reason._tag === "NotDirectory" ? nothing : wrong(path, message)
  }
  const file = result.success
  if (file.kind === "binary") return wrong(path, "is not a text")
  if (file.size > limits.fileBytes) {
    return wrong(path, `has ${file.size} bytes, and should have at most ${limits.fileBytes}`)
  }
  return yield* Effect.match(parse(file.text, lastName(directory)), {
    onFailure: (problems): One => ({ problems: problems.map((one) => ({ path, ...one })) }),
    onSuccess: ({ manifest }): One => ({
      skill: { ...manifest, path, directory },
      problems: (manifest.allowedTools ?? []).filter(isPattern).map((entry) => ({
        path,
        field: "allowed-tools",
        problem: `${JSON.stringify(entry)} limits a tool by its arguments, which is not done here: the tool is not offered while the skill is in use. Name the tool alone to offer it`
      }))
    })
  })
})

/** Reads one source: the skills in its directories, or the source itself as a skill. */
const inSource = Effect.fnUntraced(function* (backend: Service, source: string): Effect.fn.Return<ReadonlyArray<One>> {
  const listed = yield* Effect.result(backend.ls(source))
  if (Result.isFailure(listed)) {
    return listed.failure.reason._tag === "NotFound" ? [] : [wrong(source, listed.failure.message)]
  }
  const { entries, truncated } = listed.success
  if (entries.some((entry) => entry.kind === "file" && lastName(entry.path) === fileName)) {
    return [yield* skillIn(backend, withoutSlash(source))]
  }
  const directories = entries
    .filter((entry) => entry.kind === "directory" && !lastName(entry.path).startsWith("."))
    .map((entry) => withoutSlash(entry.path))
    .toSorted()
  const results = yield* Effect.forEach(
    directories.slice(0, limits.directories),
    (directory) => skillIn(backend, directory),
    { concurrency: 8 }
  )
  const isAll = truncated === undefined && directories.length <= limits.directories
  return isAll
    ? results
    : [...results, wrong(source, `has more than can be looked at: the first ${limits.directories} directories at most`)]
})

/** Scans all sources. Later sources replace earlier ones' skills of the same name. */
export const scan = Effect.fnUntraced(function* (
  sources: ReadonlyArray<string>
): Effect.fn.Return<ScanResult, never, Backend> {
  const backend = yield* Backend
  const all = (yield* Effect.forEach(sources, (source) => inSource(backend, source))).flat()
  const byName = new Map(all.flatMap(({ skill }) => (skill === undefined ? [] : [[skill.name, skill] as const])))
  return {
    skills: [...byName.values()].toSorted((left, right) => (left.name < right.name ? -1 : 1)),
    problems: all.flatMap((one) => one.problems)
  }
})
