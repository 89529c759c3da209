/** The files of the machine that commands reach, as arguments of bubblewrap. */
import { homedir } from "node:os"
import { dirname } from "node:path"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Path from "../files/path.ts"
import * as System from "../local/system.ts"
import type { Bind } from "./options.ts"
import { bindRepositories, isReal } from "./repositories.ts"

/** Folders of programs and libraries. */
const folders = ["/usr", "/opt", "/nix/store"]

/** On most systems they are links into `/usr`. */
const linked = ["/bin", "/sbin", "/lib", "/lib64", "/lib32"]

/** Files that programs look up. Settings of the machine that may have passwords in them are not there. */
const lookedUp = [
  "/etc/passwd",
  "/etc/group",
  "/etc/nsswitch.conf",
  "/etc/hosts",
  "/etc/services",
  "/etc/protocols",
  "/etc/shells",
  "/etc/mime.types",
  "/etc/os-release",
  "/etc/debian_version",
  "/etc/localtime",
  "/etc/timezone",
  "/etc/ssl/certs",
  "/etc/ssl/cert.pem",
  "/etc/ssl/openssl.cnf",
  "/etc/ca-certificates",
  "/etc/pki/ca-trust",
  "/etc/pki/tls/certs",
  "/etc/pki/tls/cert.pem",
  "/etc/alternatives",
  "/etc/ld.so.cache",
  "/etc/ld.so.conf",
  "/etc/ld.so.conf.d",
  "/etc/fonts",
  "/etc/perl"
]

const ofPrefix = ["bin", "lib", "include", "share"]

/** The paths of the Node that runs this program: its folders, or the program alone if they are somebody's home. */
const nodePaths = (node: string): ReadonlyArray<string> => {
  const prefix = dirname(dirname(node))
  return Path.isWithin(homedir(), prefix) ? [node] : [node, ...ofPrefix.map((name) => `${prefix}/${name}`)]
}

const bindSystem = (path: string): ReadonlyArray<string> => ["--ro-bind-try", path, path]

/** Finds the arguments that make the system readable: programs, libraries and their files of settings. Nothing of a home. */
export const findSystem: Effect.Effect<ReadonlyArray<string>> = Effect.gen(function* () {
  const links = yield* Effect.forEach(linked, (path) =>
    Effect.map(Effect.option(System.readlink(path)), (target) =>
      Option.match(target, { onNone: () => bindSystem(path), onSome: (to) => ["--symlink", to, path] })
    )
  )
  const node = process.execPath
  const own = folders.some((folder) => Path.isWithin(node, folder)) ? [] : nodePaths(node)
  return [...links.flat(), ...[...folders, ...lookedUp, ...own].flatMap(bindSystem)]
})

/** The folders between two: `/a/b` and `/a/b/c` for `/a` and `/a/b/c/d`. */
const foldersBetween = (outer: string, inner: string): ReadonlyArray<string> => {
  const names = inner.slice(outer.length + 1).split("/")
  return names.slice(0, -1).map((_, index) => `${outer}/${names.slice(0, index + 1).join("/")}`)
}

/**
 * The arguments for paths of the user. The deepest one decides. Commands could put a link in the place of a folder inside
 * of a folder that they may change: a link is left out, and the folders on the way are mounts, which no command can move.
 */
const bindAll = (binds: ReadonlyArray<Bind>): ReadonlyArray<string> => {
  const sorted = binds.toSorted((left, right) => left.path.length - right.path.length)
  const accessOf = (path: string) => sorted.findLast((one) => Path.isWithin(path, one.path))?.access ?? "read"
  const mounts = sorted.flatMap((bind): ReadonlyArray<Bind> => {
    const around = sorted.filter(
      ({ access, path }) => access === "write" && path !== bind.path && Path.isWithin(bind.path, path)
    )
    if (around.length > 0 && !isReal(bind.path)) return []
    const between = around.flatMap(({ path }) => foldersBetween(path, bind.path))
    return [...between.map((path) => ({ path, access: accessOf(path) })), bind]
  })
  return [...new Map(mounts.map((mount) => [mount.path, mount])).values()]
    .toSorted((left, right) => left.path.length - right.path.length)
    .flatMap(({ access, path }) => [access === "write" ? "--bind" : "--ro-bind", path, path])
}

/** Makes the arguments for the folders of a command and the repositories that were found below them. */
type MakeMounts = (
  given: ReadonlyArray<Bind>,
  found: ReadonlyArray<string>
) => Effect.Effect<ReadonlyArray<string>, never, Scope.Scope>

/**
 * Mounts the folders of commands. The hooks and settings of repositories are read-only.
 *
 * Bubblewrap follows links. A command could put one in the place of a path that another command mounts a moment later. So
 * while commands run, a path in a folder that they may change is mounted only if it is a mount for all of them.
 */
export const makeMounts = (): MakeMounts => {
  let running = 0
  let shared: ReadonlyArray<Bind> = []
  const isFixed = ({ path }: Bind): boolean =>
    shared.some((one) => one.path === path) ||
    shared.every((one) => one.access === "read" || !Path.isWithin(path, one.path))
  return (given, found) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        const isStill = running === 0
        const all = [...bindRepositories(given, found, isStill), ...given]
        shared = isStill ? all : all.filter(isFixed)
        running++
        return bindAll(shared)
      }),
      () =>
        Effect.sync(() => {
          running--
        })
    )
}
