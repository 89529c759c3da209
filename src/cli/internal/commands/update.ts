/** `deepagents update`: the newest version, and the changes since this one. */
import { gunzipSync } from "node:zlib"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import manifest from "../../../../package.json" with { type: "json" }
import { visible } from "../../../support/text/untrusted.ts"
import { fail } from "../failure.ts"
import { print, printJson } from "../output.ts"

/** The most bytes of an answer, of an unpacked package, and the most characters of notes that are shown. */
const most = { answer: 40_000_000, unpacked: 200_000_000, notes: 20_000 } as const

const timeout = "30 seconds"

type Version = readonly [major: number, minor: number, patch: number, before: string]

/** Parts of a version. A version before a release, such as `1.0.0-beta.1`, has a text at the end. */
const versionOf = (text: string): Version | undefined => {
  const match = /^(\d{1,6})\.(\d{1,6})\.(\d{1,6})(?:-([\w.-]{1,60}))?$/.exec(text)
  return match === null ? undefined : [Number(match[1]), Number(match[2]), Number(match[3]), match[4] ?? ""]
}

/** Tells whether a version is newer than another. A release is newer than its previews. */
export const isNewer = (text: string, than: string): boolean => {
  const [left, right] = [versionOf(text), versionOf(than)]
  if (left === undefined || right === undefined) return false
  for (const index of [0, 1, 2] as const) if (left[index] !== right[index]) return left[index] > right[index]
  if (left[3] === right[3]) return false
  if (left[3] === "" || right[3] === "") return left[3] === ""
  return left[3].localeCompare(right[3], "en", { numeric: true }) > 0
}

/** Finds a file of a tar archive. */
export const fileIn = (tar: Uint8Array, name: string): string | undefined => {
  const text = (from: number, length: number): string =>
    new TextDecoder().decode(tar.subarray(from, from + length)).replace(/\0[^]*$/, "")
  for (let at = 0; at + 512 <= tar.length;) {
    const size = Number.parseInt(text(at + 124, 12).trim() || "0", 8)
    if (!Number.isSafeInteger(size) || size < 0) return undefined
    const isFile = [0, 48].includes(tar[at + 156] ?? -1)
    if (isFile && text(at, 100) === name) return new TextDecoder().decode(tar.subarray(at + 512, at + 512 + size))
    at += 512 + Math.ceil(size / 512) * 512
  }
  return undefined
}

/** The parts of a change log for versions that are newer. */
export const notesSince = (changelog: string, current: string): string =>
  changelog
    .split(/^(?=## )/m)
    .filter((part) => isNewer(/^## \[?v?([\w.-]+)/.exec(part)?.[1] ?? "", current))
    .join("")
    .trim()
    .slice(0, most.notes)

/** Reads an answer of the registry. */
const get = (url: string, accept: string) =>
  Effect.tryPromise({
    try: async (signal) => {
      const response = await fetch(url, { signal, headers: { accept } })
      const pieces: Array<Uint8Array> = []
      let size = 0
      for await (const piece of response.body ?? []) {
        size += piece.length
        if (size > most.answer) return { status: response.status, bytes: undefined }
        pieces.push(piece)
      }
      return { status: response.status, bytes: Buffer.concat(pieces) }
    },
    catch: () => `${new URL(url).host} can't be reached`
  }).pipe(
    Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(`${new URL(url).host} does not answer`) }),
    Effect.flatMap(({ bytes, status }) =>
      status === 200 && bytes !== undefined
        ? Effect.succeed(bytes)
        : Effect.fail(
            status === 404 ? "it has no such package" : `it answered with ${status === 200 ? "too much" : status}`
          )
    )
  )

const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const at = (value: unknown, ...keys: ReadonlyArray<string>): unknown =>
  keys.reduce<unknown>((inner, key) => (isRecord(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined), value)

/** The newest version in the registry, and the address of its package. */
const findLatest = Effect.fnUntraced(function* (registry: string) {
  const bytes = yield* get(`${registry}/${manifest.name}`, "application/vnd.npm.install-v1+json")
  const json = Result.getOrUndefined(Result.try((): unknown => JSON.parse(bytes.toString("utf8"))))
  const latest = at(json, "dist-tags", "latest")
  if (typeof latest !== "string" || versionOf(latest) === undefined) return yield* Effect.fail("it names no version")
  const tarball = at(json, "versions", latest, "dist", "tarball")
  return { latest, tarball: typeof tarball === "string" && URL.canParse(tarball) ? tarball : undefined }
})

/** Reads the notes of a package. Without notes the version counts all the same. */
const readNotes = (tarball: string | undefined) =>
  tarball === undefined
    ? Effect.succeed("")
    : get(tarball, "*/*").pipe(
        Effect.flatMap((bytes) => Effect.try(() => gunzipSync(bytes, { maxOutputLength: most.unpacked }))),
        Effect.map((tar) => notesSince(fileIn(tar, "package/CHANGELOG.md") ?? "", manifest.version)),
        Effect.orElseSucceed(() => "")
      )

export const update = Effect.fnUntraced(function* (asJson: boolean) {
  const registry = (process.env["npm_config_registry"] ?? "https://registry.npmjs.org").replace(/\/+$/, "")
  const { version } = manifest
  if (!/^https?:/.test(registry) || !URL.canParse(registry)) {
    return yield* fail("usage", `npm_config_registry is no address: ${JSON.stringify(registry)}`)
  }
  const result = yield* Effect.result(findLatest(registry))
  if (Result.isFailure(result)) {
    return yield* fail("failed", `${registry} can't say what is new: ${result.failure}. This is version ${version}.`)
  }
  const { latest, tarball } = result.success
  const isNew = isNewer(latest, version)
  const notes = isNew ? yield* readNotes(tarball) : ""
  const command = `npm install --global ${manifest.name}@${latest}`
  if (asJson) return yield* printJson({ version, latest, isNew, notes, command: isNew ? command : null })
  if (!isNew) return yield* print(`deepagents ${version} is the newest version.`)
  return yield* print(
    `deepagents ${latest} is there; this is ${version}.`,
    "",
    ...(notes === "" ? ["Its notes can't be read."] : [visible(notes)]),
    "",
    `Install it: ${command}`
  )
})
