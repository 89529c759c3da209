/**
 * Isolates commands on macOS by `sandbox-exec`: a profile allows the folders of the layer and the system, and the kernel
 * refuses all else. It is written by its documents and the profiles of browsers, and nobody has run it on a Mac.
 */
import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises"
import { createServer, type Server } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type BackendError, make as makeError } from "../../../core/BackendError.ts"
import type { Shell } from "../local/execute.ts"
import * as ControlGroup from "./controlGroup.ts"
import type { Bind, Isolation, Limits } from "./options.ts"
import { bindRepositories, makeFinder } from "./repositories.ts"

/** The program that applies a profile. */
export const program = "/usr/bin/sandbox-exec"

/** Folders of the system that commands read: programs, libraries and settings without secrets. */
const system = [
  "/bin",
  "/sbin",
  "/usr",
  "/opt",
  "/System",
  "/Library/Apple",
  "/Library/Developer/CommandLineTools",
  "/Applications/Xcode.app",
  "/private/var/db/dyld",
  "/private/var/db/timezone",
  "/private/var/select",
  "/private/etc/hosts",
  "/private/etc/localtime",
  "/private/etc/passwd",
  "/private/etc/protocols",
  "/private/etc/services",
  "/private/etc/shells",
  "/private/etc/ssl"
]

/** Rules that programs need before they do anything. */
const basics = `(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.logger"))
(allow ipc-posix-sem)
(allow file-read-metadata)
(allow file-read* (literal "/"))
(allow file-read* file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/dtracehelper"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom") (subpath "/dev/fd"))
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl (literal "/dev/tty") (literal "/dev/ptmx") (regex #"^/dev/ttys[0-9]+$"))`

/** A path as a text of the profile. A control character ends no line of it. */
const quote = (path: string): string => `"${path.replaceAll(/["\\]/g, (one) => `\\${one}`)}"`

const isPlain = (path: string): boolean => path.startsWith("/") && !/\p{Cc}/u.test(path)

/** Allows a path. Of two rules on one path the last one counts, so deeper paths come later. */
const allowBind = ({ access, path }: Bind): ReadonlyArray<string> =>
  access === "write"
    ? [`(allow file-read* file-write* (subpath ${quote(path)}))`]
    : [`(allow file-read* (subpath ${quote(path)}))`, `(deny file-write* (subpath ${quote(path)}))`]

/**
 * Makes the profile of commands. `temporary` is the folder for `TMPDIR` and the home, and `port` the one port of this
 * machine that they reach. Paths are real ones: the kernel compares them after links. A path with control characters is
 * not reached, nor is a folder that has one of the paths in it.
 */
export const makeProfile = ({
  binds,
  found = [],
  node,
  port,
  temporary
}: {
  readonly binds: ReadonlyArray<Bind>
  /** The repositories below the folders. */
  readonly found?: ReadonlyArray<string>
  readonly node: string
  readonly port: number | undefined
  readonly temporary: string
}): string => {
  const repositories = bindRepositories(binds, found)
  const named = [...repositories, ...binds]
  const odd = named.filter(({ path }) => !isPlain(path))
  const all = named.filter(({ path }) => isPlain(path) && !odd.some((one) => one.path.startsWith(`${path}/`)))
  const sorted = all.toSorted((left, right) => left.path.length - right.path.length)
  // A command that moved the folder could make another one in its place.
  const writable = repositories.filter(({ access, path }) => access === "write" && isPlain(path))
  return [
    basics,
    `(allow file-read* ${[...system, node]
      .filter(isPlain)
      .map((path) => `(subpath ${quote(path)})`)
      .join(" ")})`,
    `(allow file-read* file-write* (subpath ${quote(temporary)}))`,
    ...sorted.flatMap(allowBind),
    ...writable.map(({ path }) => `(deny file-write-unlink (literal ${quote(path)}))`),
    ...(port === undefined ? [] : [`(allow network-outbound (remote ip "localhost:${port}"))`]),
    ""
  ].join("\n")
}

/** Bounds a program, and then becomes it. */
const bounded = ({ fileBytes = 2 ** 32, openFiles = 4096, processes = 2048 }: Limits): string =>
  `ulimit -c 0; ulimit -u ${processes} 2>/dev/null; ulimit -n ${openFiles} 2>/dev/null; ulimit -f ${Math.ceil(fileBytes / 512)}; exec "$@"`

const unavailable = (detail: string) => (cause: unknown) =>
  makeError("open", "/", { _tag: "Unavailable" }, { detail, cause })

/** Makes the folder of `TMPDIR` and the home, for a layer. */
const makeTemporary: Effect.Effect<string, BackendError, Scope.Scope> = Effect.acquireRelease(
  Effect.tryPromise({
    try: async () => {
      const folder = await realpath(await mkdtemp(join(tmpdir(), "deepagents-box-")))
      await mkdir(join(folder, "home"))
      return folder
    },
    catch: unavailable("the temporary folder can't be made")
  }),
  (folder) => Effect.ignore(Effect.tryPromise(() => rm(folder, { recursive: true, force: true })))
)

/** Listens on a free port of the loopback, for the way to the network. */
const listen: Effect.Effect<Server, BackendError, Scope.Scope> = Effect.acquireRelease(
  Effect.callback<Server, BackendError>((resume) => {
    const server = createServer()
    server.once("error", (cause) => resume(Effect.fail(unavailable("no port of the loopback is free")(cause))))
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.sync(() => void server.close())
)

const portOf = (server: Server): number | undefined => {
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : undefined
}

/** The sandbox of all commands of a layer, as an `Enclosure` is. */
interface SharedSandbox {
  readonly env: { readonly [name: string]: string }
  readonly enclose: NonNullable<Shell["enclose"]>
}

/** Makes the sandbox. `binds` are the folders of the layer, looked up for each command. */
export const make = <R>(
  isolation: Isolation<R>,
  binds: () => ReadonlyArray<Bind>
): Effect.Effect<SharedSandbox, BackendError, R | Scope.Scope> =>
  Effect.gen(function* () {
    const temporary = yield* makeTemporary
    const { egress } = isolation
    const server = egress === undefined ? undefined : yield* listen
    const way = egress === undefined || server === undefined ? undefined : yield* egress(server)
    const more: ReadonlyArray<Bind> = [
      ...(isolation.readable ?? []).map((path) => ({ path, access: "read" }) as const),
      ...(isolation.writable ?? []).map((path) => ({ path, access: "write" }) as const)
    ]
    const port = server === undefined ? undefined : portOf(server)
    if (isolation.limits?.memoryBytes !== undefined) return yield* ControlGroup.refuse("macOS has no control groups")
    const limits = bounded(isolation.limits ?? {})
    const findRepositories = makeFinder()
    return {
      env: { HOME: join(temporary, "home"), TMPDIR: temporary, NODE_USE_ENV_PROXY: "1", ...way?.env },
      enclose: ({ args, env, file }) => {
        const reached = [...more, ...binds()]
        return Effect.map(findRepositories(reached), (found) => {
          const profile = makeProfile({ binds: reached, found, node: process.execPath, port, temporary })
          return { file: program, args: ["-p", profile, "/bin/sh", "-c", limits, "limits", file, ...args], env }
        })
      }
    }
  })
