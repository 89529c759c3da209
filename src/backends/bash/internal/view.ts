/**
 * A backend as a file system with empty directories: those that a command makes are there until the command ends.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Backend from "../../../core/Backend.ts"
import * as Path from "../../internal/path.ts"
import { type Code, type Fault, faultOf } from "./errors.ts"

type Failing<A> = Effect.Effect<A, Fault>

/** What is at a path. */
export interface Node {
  readonly kind: Backend.Entry["kind"]
  readonly size: number
  readonly modifiedAt: number
}

/** The files of a backend, as a command sees them. Paths are normal. */
export interface View {
  readonly stat: (call: string, path: string) => Failing<Node>
  readonly find: (call: string, path: string) => Failing<Node | undefined>
  readonly names: (call: string, path: string) => Failing<ReadonlyMap<string, Backend.Entry["kind"]>>
  readonly makeDirectory: (path: string) => void
  /** Says that something was changed: what was a directory above it is one still. */
  readonly changed: (path: string) => void
  /** Forgets the directories that were made in a path, and gives them. */
  readonly forget: (path: string) => ReadonlyArray<string>
  /** Looks once whether there are folders of programs. */
  readonly look: Effect.Effect<void>
  /** Whether nothing is at a path, as far as is known without asking: a shell looks there for each command it runs. */
  readonly isAbsent: (path: string) => boolean
}

/** How long a listing is believed, in milliseconds: a command asks for each name in a directory on its own. */
const listingTime = 50

const devices = new Set(["/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"])

export const isDevice = (path: string): boolean => devices.has(path)

export const fail = (code: Code, call: string, path: string): Failing<never> => Effect.fail({ code, call, path })

type Entries = ReadonlyMap<string, Backend.Entry>

interface Listed {
  readonly entries: Entries
  readonly at: number
}

export const make = (backend: Backend.Service): View => {
  const made = new Set(["/", "/tmp", "/dev"])
  const listings = new Map<string, Listed>()
  let hasPrograms = true

  const isProgram = (path: string): boolean => Path.isWithin(path, "/bin") || Path.isWithin(path, "/usr")

  const makeDirectory = (path: string): void => {
    if (isProgram(path)) hasPrograms = true
    for (let at = path; at !== "/" && !made.has(at); at = Path.parent(at)) made.add(at)
  }

  /** What the backend has in a directory; nothing, if it has no such directory but a command made it. */
  const list = (call: string, path: string): Failing<Entries> =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const known = listings.get(path)
      if (known !== undefined && now - known.at < listingTime) return known.entries
      const listing = yield* backend.ls(path).pipe(
        Effect.catchReason("BackendError", "NotFound", (_, error) =>
          made.has(path) ? Effect.succeed({ entries: [] }) : Effect.fail(error)
        ),
        Effect.mapError(faultOf(call, path))
      )
      const entries = new Map(listing.entries.map((entry) => [Path.basename(entry.path), entry]))
      listings.set(path, { entries, at: now })
      return entries
    })

  const directory: Node = { kind: "directory", size: 0, modifiedAt: 0 }

  const find = (call: string, path: string): Failing<Node | undefined> =>
    Effect.gen(function* () {
      if (isDevice(path)) return { kind: "file", size: 0, modifiedAt: 0 } as const
      if (made.has(path)) return directory
      const entry = (yield* list(call, Path.parent(path)).pipe(
        Effect.catchIf(
          ({ code }) => code === "ENOENT" || code === "ENOTDIR",
          () => Effect.succeed<Entries>(new Map())
        )
      )).get(Path.basename(path))
      if (entry === undefined) return undefined
      const { kind, modifiedAt = 0, size } = entry
      if (kind !== "file" || size !== undefined) return { kind, modifiedAt, size: size ?? 0 }
      const file = yield* Effect.mapError(backend.read(path, { limit: 0 }), faultOf(call, path))
      return { kind, modifiedAt, size: file.size }
    })

  return {
    find,
    makeDirectory,
    stat: (call, path) =>
      Effect.flatMap(find(call, path), (node) =>
        node === undefined ? fail("ENOENT", call, path) : Effect.succeed(node)
      ),
    names: (call, path) =>
      Effect.map(list(call, path), (entries) => {
        const names = new Map([...entries].map(([name, { kind }]) => [name, kind]))
        for (const one of made) {
          const hidden = one === "/tmp" || one === "/dev" || one === "/"
          if (!hidden && Path.parent(one) === path) names.set(Path.basename(one), "directory")
        }
        return names
      }),
    look: list("scandir", "/").pipe(
      Effect.map((entries) => {
        hasPrograms = entries.has("bin") || entries.has("usr")
      }),
      Effect.ignore
    ),
    isAbsent: (path) => !hasPrograms && isProgram(path),
    changed: (path) => {
      if (isProgram(path)) hasPrograms = true
      makeDirectory(Path.parent(path))
      for (let at = path; ; at = Path.parent(at)) {
        listings.delete(at)
        if (at === "/") return
      }
    },
    forget: (path) => {
      const gone = [...made].filter((one) => Path.isWithin(one, path))
      for (const one of gone) made.delete(one)
      for (const one of listings.keys()) if (Path.isWithin(one, path)) listings.delete(one)
      return gone
    }
  }
}
