/**
 * Reads content from the objects of git. Git runs no program of the repository: no hook, filter or file monitor, and it
 * fetches nothing.
 */
import { execFile } from "node:child_process"
import * as Crypto from "node:crypto"
import * as Effect from "effect/Effect"

const settings = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false"]

const environment = (): Record<string, string> => ({
  PATH: process.env["PATH"] ?? "",
  HOME: process.env["HOME"] ?? "",
  LANG: "C",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  // An object that a partial clone lacks stays missing.
  GIT_NO_LAZY_FETCH: "1",
  GIT_ALLOW_PROTOCOL: "",
  GIT_NO_REPLACE_OBJECTS: "1"
})

/** The most bytes of an answer. */
const most = 256 * 1024 * 1024

/** Runs git in a folder. `undefined` if it fails; exit code 1 is an answer of `check-ignore`. */
const run = (folder: string, args: ReadonlyArray<string>, input: string): Effect.Effect<Buffer | undefined> =>
  Effect.callback((resume) => {
    const child = execFile(
      "git",
      [...settings, ...args],
      { cwd: folder, env: environment(), encoding: "buffer", maxBuffer: most, timeout: 20_000 },
      (error, stdout) => resume(Effect.succeed(error === null || error.code === 1 ? stdout : undefined))
    )
    child.stdin?.on("error", () => {})
    child.stdin?.end(input)
    return Effect.sync(() => child.kill())
  })

/** Reads the sizes of objects. An object that git lacks has none. */
export const objectSizes = (folder: string, oids: ReadonlyArray<string>): Effect.Effect<ReadonlyMap<string, number>> =>
  oids.length === 0
    ? Effect.succeed(new Map<string, number>())
    : Effect.map(
        run(
          folder,
          ["cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", "--buffer"],
          `${oids.join("\n")}\n`
        ),
        (answer) =>
          new Map(
            (answer?.toString("latin1") ?? "").split("\n").flatMap((line) => {
              const [oid, type, size] = line.split(" ")
              return oid !== undefined && type === "blob" ? [[oid, Number(size)] as const] : []
            })
          )
      )

/** The id that git gives to a content. */
const objectId = (data: Uint8Array, length: number): string =>
  Crypto.createHash(length === 64 ? "sha256" : "sha1")
    .update(`blob ${data.length}\0`)
    .update(data)
    .digest("hex")

/** Reads objects, and checks each by its id. An object that git lacks is left out. */
export const readObjects = (
  folder: string,
  oids: ReadonlyArray<string>
): Effect.Effect<ReadonlyMap<string, Uint8Array>> =>
  Effect.map(run(folder, ["cat-file", "--batch", "--buffer"], `${oids.join("\n")}\n`), (answer) => {
    const contents = new Map<string, Uint8Array>()
    for (let at = 0; answer !== undefined && at < answer.length;) {
      const end = answer.indexOf(10, at)
      if (end < 0) break
      const [oid = "", type, size] = answer.toString("latin1", at, end).split(" ")
      at = end + 1
      if (size === undefined) continue
      const data = answer.subarray(at, at + Number(size))
      at += Number(size) + 1
      if (type === "blob" && objectId(data, oid.length) === oid) contents.set(oid, data)
    }
    return contents
  })

/** Finds the folders that git ignores. `undefined` outside of a repository. */
export const ignoredFolders = (
  folder: string,
  folders: ReadonlyArray<string>
): Effect.Effect<ReadonlySet<string> | undefined> =>
  Effect.map(run(folder, ["check-ignore", "--stdin", "-z"], `${folders.join("\0")}\0`), (answer) =>
    answer === undefined
      ? undefined
      : new Set(
          answer
            .toString()
            .split("\0")
            .filter((path) => path !== "")
        )
  )
