/** Compares random operations on a backend with the reference. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Backend from "../../../../core/Backend.ts"
import type { BackendError } from "../../../../core/BackendError.ts"
import type { Request } from "../../../TestBackend.ts"
import { assert, type NotConformant, expect } from "../assert.ts"
import { listFiles, readBytes, bytesOf, type Rules } from "./common.ts"
import { fakeOf, type Outcome } from "./fake.ts"
import { ancestors } from "./paths.ts"

/** A placeholder for the current version of a file. */
const currentVersion = "current"

type Fake = ReturnType<typeof fakeOf>

/** Removes versions, times and the start of an empty window from a result. */
const comparable = (value: unknown): unknown => {
  if (value instanceof Uint8Array) return [...value]
  if (Array.isArray(value)) return value.map(comparable)
  if (typeof value !== "object" || value === null) return value
  const fields: Record<string, unknown> = { ...value }
  delete fields["version"]
  delete fields["modifiedAt"]
  delete fields["mimeType"]
  if (fields["kind"] === "directory" || fields["kind"] === "file") delete fields["size"]
  if (Number(fields["endLine"]) < Number(fields["startLine"])) {
    delete fields["startLine"]
    delete fields["endLine"]
  }
  if (Array.isArray(fields["lines"])) fields["lines"] = [...new Set(fields["lines"])]
  return Object.fromEntries(Object.entries(fields).map(([key, inner]) => [key, comparable(inner)]))
}

/** Finds a key without a value in a result. Unknown values must be omitted. */
const emptyKey = (value: unknown, at = "it"): string | undefined => {
  if (typeof value !== "object" || value === null || value instanceof Uint8Array) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const path = inner === undefined ? `${at}.${key}` : emptyKey(inner, `${at}.${key}`)
    if (path !== undefined) return path
  }
  return undefined
}

/** Returns true for a glob inside of a file, whose result is unspecified. */
const isOpen = (fake: Fake, request: Request): boolean =>
  request.operation === "glob" && Result.isSuccess(fake.read(request.path, { limit: 0 }))

/** Returns true for an allowed reason, since a request may have several faults. */
const mayDiffer = (request: Request): boolean =>
  request.operation === "move" ||
  ((request.operation === "write" || request.operation === "edit") && Object.keys(request.options).length > 0)

const alike = (tag: string): string => (tag === "NotDirectory" ? "NotFound" : tag)

const onFake = (fake: Fake, request: Request): Outcome<unknown> => {
  switch (request.operation) {
    case "ls":
      return fake.ls(request.path)
    case "read":
      return fake.read(request.path, request.window)
    case "write":
      return fake.write(request.path, bytesOf(request.content), request.options)
    case "edit":
      return fake.edit(request.path, request.replacements, request.options)
    case "delete":
      return fake.remove(request.path, request.options.recursive === true)
    case "move":
      return fake.move(request.path, request.to)
    case "grep":
      return fake.grep({ ...request.query, path: request.path })
    case "glob":
      return fake.glob({ ...request.query, path: request.path })
    case "upload":
      return fake.upload(request.path, request.content)
    case "download":
      return fake.download(request.path)
  }
}

const onBackend = (backend: Backend.Service, request: Request): Effect.Effect<unknown, BackendError> => {
  switch (request.operation) {
    case "ls":
      return backend.ls(request.path)
    case "read":
      return backend.read(request.path, request.window)
    case "write":
      return backend.write(request.path, request.content, request.options)
    case "edit":
      return backend.edit(request.path, request.replacements, request.options)
    case "delete":
      return backend.delete(request.path, request.options)
    case "move":
      return backend.move(request.path, request.to)
    case "grep":
      return backend.grep({ ...request.query, path: request.path })
    case "glob":
      return backend.glob({ ...request.query, path: request.path })
    case "upload":
      return Effect.flatMap(backend.upload([{ path: request.path, content: request.content }]), ([one]) =>
        one?.ok === true ? Effect.succeed(one.value) : one === undefined ? Effect.void : Effect.fail(one.error)
      )
    case "download":
      return readBytes(backend, request.path)
  }
}

/** Replaces the placeholder by the current version of the file. */
const versioned = (request: Request, version: string | undefined): Request =>
  (request.operation === "write" || request.operation === "edit") && request.options.version === currentVersion
    ? { ...request, options: { ...request.options, version: version ?? currentVersion } }
    : request

const foldersOf = (paths: ReadonlyArray<string>): ReadonlySet<string> => new Set(paths.flatMap(ancestors))

const step = Effect.fnUntraced(function* (backend: Backend.Service, fake: Fake, request: Request, index: number) {
  const label = `operation ${index}, ${JSON.stringify(request).slice(0, 300)}`
  const before = foldersOf(Object.keys(fake.snapshot()))
  const fakeVersion = Result.getOrUndefined(fake.read(request.path, { limit: 0 }))?.version
  const expected = onFake(fake, versioned(request, fakeVersion))
  const current =
    "options" in request && "version" in request.options && request.options.version === currentVersion
      ? Result.getOrUndefined(yield* Effect.result(backend.read(request.path, { limit: 0 })))?.version
      : undefined
  const actual = yield* Effect.result(onBackend(backend, versioned(request, current)))
  const empty = Result.isSuccess(actual) ? emptyKey(actual.success) : undefined
  yield* assert(empty === undefined, `${label}: what is not known is left out of a result`, `${empty}: undefined`)
  if (isOpen(fake, request)) return
  if (Result.isSuccess(expected)) {
    const actualValue = Result.isSuccess(actual) ? comparable(actual.success) : actual.failure.message
    yield* expect(actualValue ?? "done", comparable(expected.success) ?? "done", label)
  } else if (Result.isSuccess(actual)) yield* expect(comparable(actual.success), expected.failure._tag, label)
  else if (!mayDiffer(request)) yield* expect(alike(actual.failure.reason._tag), alike(expected.failure._tag), label)
  // An empty folder may stay or vanish, so it is removed on both sides.
  const after = foldersOf(Object.keys(fake.snapshot()))
  for (const folder of [...before].filter((path) => !after.has(path))) {
    const deletion = yield* Effect.result(backend.delete(folder, { recursive: true }))
    const isGone = Result.isSuccess(deletion) || deletion.failure.reason._tag === "NotFound"
    yield* assert(isGone, `after ${label}, ${folder} is empty, or not there`, deletion)
  }
})

/** Runs operations on an empty backend and on the reference, and compares each result and the final files. */
export const agrees = (
  backend: Backend.Service,
  requests: ReadonlyArray<Request>
): Effect.Effect<void, BackendError | NotConformant> =>
  Effect.gen(function* () {
    const fake = fakeOf(10 * 1024 * 1024)
    for (const [index, request] of requests.entries()) yield* step(backend, fake, request, index)
    const expected = fake.snapshot()
    const paths = Object.keys(expected)
    yield* expect(yield* listFiles(backend), paths, "the files at the end")
    for (const path of paths) {
      const bytes = Result.getOrUndefined(fake.download(path))
      yield* expect([...(yield* readBytes(backend, path))], [...(bytes ?? [])], `${path} at the end`)
    }
    for (const folder of ["/", ...foldersOf(paths)]) {
      const names = Result.getOrUndefined(fake.ls(folder))?.entries.map(({ kind, path }) => [path, kind])
      const entries = (yield* backend.ls(folder)).entries.map(({ kind, path }) => [path, kind])
      yield* expect(entries, names, `ls of ${folder} at the end`)
    }
  })

const names = ["a", "b", "c.txt", ".d", "ü", "new\nline", "__proto__", "d.ts", "A", " "]
const texts = [
  "", "a", "a\nb\nc\n", "line one\nline two\r\nline three\n", "x\r\ny\r\n", "aaa\n", "\n\n", "é ü ß\n", "b a\n\nA b\n", "  a\n"
] // prettier-ignore
const rules = ["*.txt\n", "a/\n!b\n", "/b\n", "**/c.txt\n.d\n", "*\n!*.ts\n!a/\n"]
const olds = ["a", "b", "line", "a\nb", "\n", "", "é", "  a", "nowhere", "A"]
const expressions = ["a", "^b", "[ab]$", "^$", "l(i|o)ne", "\\w+ \\w+", "é|A", ".", "x*", "\\bb"]
const globs = ["*", "**", "*.txt", "a/**", "**/b", "{a,b}/*", "?", "[!a]*", "/*", "a*/**/*.t[sx]*", "new\nline"]
const odd = ["", "/", "..", "/a/../b", "~", "a/", "//a//b", "./c.txt", "/a/./b", "a\0", "\\", "/c.txt/d"]

/** Makes pseudo-random numbers below 1 from a seed. */
const numbersOf = (seed: number) => {
  let state = seed >>> 0
  return (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** Makes conflicting operations from a seed. */
export const randomRequests = (seed: number, count: number): ReadonlyArray<Request> => {
  const next = numbersOf(seed)
  const pick = <A>(items: readonly [A, ...ReadonlyArray<A>] | ReadonlyArray<A>, otherwise: A): A =>
    items[Math.floor(next() * items.length)] ?? otherwise
  const chance = (share: number) => next() < share
  /** Recent files, so that most operations find a file. */
  const recentFiles: Array<readonly [path: string, content: string]> = []
  const path = (): string => {
    if (chance(0.06)) return pick(odd, "/")
    if (chance(0.05)) return `${chance(0.5) ? "/a" : ""}/.gitignore`
    return `/${Array.from({ length: 1 + Math.floor(next() * 3) }, () => pick(chance(0.6) ? names.slice(0, 4) : names, "a")).join("/")}`
  }
  const existing = (): readonly [path: string, content: string] =>
    chance(0.8) ? pick(recentFiles.slice(-5), ["/a", ""]) : [path(), ""]
  const folderOf = (at: string): string => at.slice(0, at.lastIndexOf("/"))
  const content = (at: string): string => pick(at.endsWith(".gitignore") ? rules : texts, "")
  const versionOf = () => (chance(0.15) ? { version: currentVersion } : chance(0.05) ? { version: "stale" } : {})

  const edit = (): Request => {
    const [at, text] = existing()
    const oldOf = () => (chance(0.7) ? pick(text.split(/\r?\n/), "a") : pick(olds, "a"))
    const replacement = () => ({ old: oldOf(), new: pick(chance(0.5) ? olds : texts, "b"), replaceAll: chance(0.5) })
    return {
      operation: "edit",
      path: at,
      replacements: Array.from({ length: chance(0.8) ? 1 : 2 }, replacement),
      options: versionOf()
    }
  }

  const change = (): Request => {
    const dice = next()
    if (dice < 0.43) {
      const at = chance(0.3) ? existing()[0] : path()
      const options = { ...(chance(0.15) ? { create: true } : {}), ...versionOf() }
      return { operation: "write", path: at, content: content(at), options }
    }
    if (dice < 0.5) {
      const at = path()
      const bytes = chance(0.3) ? new Uint8Array([0, 255, 10]) : bytesOf(content(at))
      return { operation: "upload", path: at, content: bytes }
    }
    if (dice < 0.75) return edit()
    const [at] = existing()
    const from = chance(0.3) ? folderOf(at) : at
    return dice < 0.84
      ? { operation: "delete", path: from, options: chance(0.5) ? { recursive: true } : {} }
      : { operation: "move", path: from, to: path() }
  }

  const look = (): Request => {
    const dice = next()
    const [at] = existing()
    if (dice < 0.16) return { operation: "ls", path: chance(0.8) ? folderOf(at) : at }
    if (dice < 0.34) {
      const window = chance(0.5) ? {} : { offset: 1 + Math.floor(next() * 4), limit: Math.floor(next() * 3) }
      return { operation: "read", path: at, window }
    }
    if (dice < 0.43) return { operation: "download", path: at }
    const where = chance(0.7) ? "/" : at
    const more = {
      ...(chance(0.2) ? { ignored: true } : {}),
      ...(chance(0.3) ? { limit: 1 + Math.floor(next() * 4) } : {})
    }
    if (dice < 0.68) return { operation: "glob", path: where, query: { pattern: pick(globs, "*"), ...more } }
    const regex = chance(0.5)
    return {
      operation: "grep",
      path: where,
      query: {
        pattern: regex ? pick(expressions, "a") : pick(["a", "b", "line", "é", "A", "x"], "a"),
        regex,
        ignoreCase: chance(0.3),
        mode: pick(["content", "count", "files"] as const, "content"),
        context: Math.floor(next() * 3),
        ...(chance(0.3) ? { glob: pick(globs, "*") } : {}),
        ...more
      }
    }
  }
  return Array.from({ length: count }, () => {
    const request = chance(0.56) ? change() : look()
    if (request.operation === "write") recentFiles.push([request.path, request.content])
    if (request.operation === "move") recentFiles.push([request.to, ""])
    return request
  })
}

/** Checks with random operations. */
export const randomRules: Rules<Backend.Service> = [1, 2].map((seed) => [
  `random operations give what the reference gives (seed ${seed})`,
  (backend) => agrees(backend, randomRequests(seed, 40))
])
