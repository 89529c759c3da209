/**
 * Extensions as files: extensions that the user added, and extensions of a trusted project. Each is used as it was
 * trusted.
 */
import { createHash } from "node:crypto"
import { basename, extname, join, relative } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Result from "effect/Result"
import { fail } from "../failure.ts"
import { freeze } from "./frozen.ts"
import { itemsOf, type Project, type SkillFile } from "./items.ts"
import type { Places } from "./places.ts"
import { readRecord } from "./settings.ts"
import { writePrivate } from "./trust.ts"

/** Limits of an extension: files and bytes. */
const limits = { files: 10_000, bytes: 50_000_000 } as const

type Files = ReadonlyMap<string, SkillFile>

/** An extension that the user added. `source` is a path, or a package of npm. */
export interface AddedExtension {
  readonly source: string
  /** The file or the folder with its code. */
  readonly place: string
  readonly hash: string
}

/** The file to load, with the folder whose packages it may import. */
export interface Entry {
  readonly file: string
  /** The folder of the copy, or of the package. */
  readonly folder: string
  readonly packages: string | undefined
  readonly source: string
  readonly origin: "user" | "project"
}

const listFile = ({ config }: Places): string => join(config, "extensions.json")

/** The folder of the packages of npm. */
export const packagesOf = ({ data }: Places): string => join(data, "extensions")

const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isAdded = (value: unknown): value is AddedExtension =>
  isRecord(value) && [value["source"], value["place"], value["hash"]].every((part) => typeof part === "string")

/** Lists the extensions that the user added. */
export const readAdded = Effect.fnUntraced(function* (places: Places) {
  const { extensions } = yield* readRecord(listFile(places))
  return Array.isArray(extensions) ? extensions.filter(isAdded) : []
})

export const writeAdded = (places: Places, extensions: ReadonlyArray<AddedExtension>) =>
  writePrivate(listFile(places), `${JSON.stringify({ extensions }, null, 2)}\n`)

/** Reads a file, or a folder with all below it. Packages of a folder are left out, unless it is one itself. */
export const readCode = Effect.fnUntraced(function* (place: string, isPackage: boolean) {
  const fs = yield* FileSystem.FileSystem
  const files = new Map<string, SkillFile>()
  let bytes = 0
  const add = Effect.fnUntraced(function* (path: string, name: string) {
    const content = yield* fs.readFile(path)
    bytes += content.length
    files.set(name, { bytes: content, isProgram: false })
  })
  const walk = (folder: string): Effect.Effect<void, { readonly message: string }> =>
    Effect.gen(function* () {
      for (const name of (yield* fs.readDirectory(folder)).toSorted()) {
        if (name === ".git" || (name === "node_modules" && !isPackage)) continue
        const path = join(folder, name)
        const real = yield* fs.realPath(path)
        const { type } = yield* fs.stat(path)
        // Links lead to untrusted files.
        if (real !== path) continue
        if (type === "Directory") yield* walk(path)
        else if (type === "File") yield* add(path, relative(place, path))
        if (files.size > limits.files || bytes > limits.bytes) {
          return yield* fail("usage", `${place} has more than ${limits.files} files, or more than 50 MB`)
        }
      }
    })
  const { type } = yield* fs.stat(place)
  yield* type === "Directory" ? walk(place) : add(place, basename(place))
  return files
})

export const hashOf = (files: Files): string => {
  const hash = createHash("sha256")
  for (const [name, { bytes }] of files) hash.update(JSON.stringify([name, bytes.length])).update(bytes)
  return hash.digest("hex")
}

const indexes = ["index.ts", "index.mts", "index.js", "index.mjs"]

const textIn = (files: Files, name: string): string => new TextDecoder().decode(files.get(name)?.bytes)

/** The condition of a package's `exports` that the program uses. */
const targetOf = (value: unknown): string | undefined => {
  if (typeof value === "string") return value
  if (!isRecord(value)) return undefined
  return targetOf(value["."] ?? value["import"] ?? value["default"])
}

/** Finds the file of an extension that is loaded: the only one, that of `package.json`, or an index. */
const mainOf = (files: Files, at = ""): string | undefined => {
  const [only] = files.keys()
  if (at === "" && files.size === 1 && only !== undefined && /^\.[mc]?[jt]s$/.test(extname(only))) return only
  const json = Result.getOrUndefined(
    Result.try((): unknown => JSON.parse(textIn(files, join(at, "package.json")) || "{}"))
  )
  const named = isRecord(json) ? (targetOf(json["exports"]) ?? json["main"]) : undefined
  return [...(typeof named === "string" ? [named] : []), ...indexes]
    .map((name) => join(at, name))
    .find((name) => files.has(name))
}

/** The package that the user asked for: the only dependency of the folder. */
const packageOf = (files: Files): string | undefined => {
  const json = Result.getOrUndefined(Result.try((): unknown => JSON.parse(textIn(files, "package.json") || "{}")))
  const dependencies = isRecord(json) ? json["dependencies"] : undefined
  return isRecord(dependencies) ? Object.keys(dependencies)[0] : undefined
}

const noMain = "it has no index file, and names no main file"

/** A copy of code, named by its content, and the file of it that is loaded. */
const frozenEntry = Effect.fnUntraced(function* (places: Places, files: Files, of: Omit<Entry, "file" | "folder">) {
  const main = mainOf(files)
  if (main === undefined) return Result.fail(noMain)
  const folder = join(yield* freeze(places, [{ path: "extension", files }]), "extension")
  return Result.succeed({ ...of, file: join(folder, main), folder } satisfies Entry)
})

/** Loads an extension that the user added: a package at its place, all other code as a copy. */
export const entryOf = Effect.fnUntraced(function* (places: Places, { place, source }: AddedExtension, files: Files) {
  if (!isPackageOf(places, place)) {
    const packages = files.size === 1 ? place : join(place, "index.js")
    return yield* frozenEntry(places, files, { source, origin: "user", packages })
  }
  const name = packageOf(files)
  const main = name === undefined ? undefined : mainOf(files, join("node_modules", name))
  if (main === undefined) return Result.fail(noMain)
  return Result.succeed<Entry>({
    file: join(place, main),
    folder: place,
    packages: join(place, main),
    source,
    origin: "user"
  })
})

const isPackageOf = (places: Places, place: string): boolean => place.startsWith(`${packagesOf(places)}/`)

/** Finds the extensions that count: of the user if they are as they were added, and the trusted ones of the project. */
export const findExtensions = Effect.fnUntraced(function* (places: Places, project: Project) {
  const entries: Array<Entry> = []
  const problems: Array<string> = []
  const take = (source: string, found: Result.Result<Entry, string>): void => {
    if (Result.isSuccess(found)) entries.push(found.success)
    else problems.push(`the extension ${source} is left out: ${found.failure}`)
  }
  for (const added of yield* readAdded(places)) {
    const { hash, place, source } = added
    const code = yield* Effect.result(readCode(place, isPackageOf(places, place)))
    if (Result.isFailure(code)) take(source, Result.fail(code.failure.message))
    else if (hashOf(code.success) === hash) take(source, yield* entryOf(places, added, code.success))
    else take(source, Result.fail(`it has changed; deepagents extensions add ${source} trusts it as it is now`))
  }
  for (const { file, files } of itemsOf(project, "extension")) {
    if (files === undefined) continue
    take(file, yield* frozenEntry(places, files, { source: file, origin: "project", packages: undefined }))
  }
  return { entries, problems }
})
