/**
 * Puts each command into a sandbox of its own by bubblewrap: own processes, own mounts, the shared network of the layer,
 * no capabilities, a filter of system calls. All processes of a command end with it.
 */
import { constants, readFileSync, readdirSync } from "node:fs"
import { mkdir, mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { type BackendError, make as makeError } from "../../../core/BackendError.ts"
import type { Shell } from "../local/execute.ts"
import { beginning } from "../local/monitor.ts"
import * as System from "../local/system.ts"
import * as ControlGroup from "./controlGroup.ts"
import * as Holder from "./holder.ts"
import { findSystem, makeMounts } from "./mounts.ts"
import type { Bind, Isolation, Limits } from "./options.ts"
import { makeFinder } from "./repositories.ts"
import * as Seatbelt from "./seatbelt.ts"
import { makeFilter } from "./seccomp.ts"

/** The home of commands, in the temporary folder of the layer. */
const home = "/tmp/home"

/** The sandbox of all commands of a layer. */
export interface Enclosure {
  /** Variables that commands need there. */
  readonly env: { readonly [name: string]: string }
  readonly enclose: NonNullable<Shell["enclose"]>
}

/** Makes a folder that is `/tmp` of all commands of a layer. */
const makeTemporary: Effect.Effect<string, BackendError, Scope.Scope> = Effect.acquireRelease(
  Effect.tryPromise({
    try: async () => {
      const folder = await mkdtemp(join(tmpdir(), "deepagents-box-"))
      await mkdir(join(folder, "tmp/home"), { recursive: true })
      return folder
    },
    catch: (cause) =>
      makeError("open", tmpdir(), { _tag: "Unavailable" }, { detail: "the temporary folder can't be made", cause })
  }),
  (folder) => Effect.ignore(Effect.tryPromise(() => rm(folder, { recursive: true, force: true })))
)

/** Runs the command in the sandbox. It ends when the command ends, and names the processes that are left then. */
const keeper = [
  `echo ${beginning} >&5 || exit 1`,
  // The shell says on its own stderr that a signal ended a command.
  "exec 6>&2 2>/dev/null",
  // The end of this program ends the input. Bubblewrap misses it while it sets the sandbox up.
  "( exec 0<&- 1>&- 6>&-; read -r end <&5; kill -s KILL -- -1 ) & w=$!",
  "trap : TERM INT HUP",
  '"$@" 2>&6 6>&- 5>&-',
  "c=$?",
  'look() { l=; for p in /proc/[0-9]*; do p=${p#/proc/}; case $p in 1|$$|$w) ;; *) l="$l $p";; esac; done; }',
  "look",
  // A pipeline may end a moment after its shell.
  '[ -z "$l" ] || { sleep 0.1; look; }',
  "for p in $l; do head -c 400 /proc/$p/cmdline | tr '\\0' '\\n' | head -n 1; done >&5",
  "exit $c"
].join("\n")

/** The superuser of the machine could set the kernel's settings by files there. */
const lockedProc = ["--proc", "/proc", "--remount-ro", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]

const limitArgs = ({ fileBytes = 2 ** 32, openFiles = 4096, processes = 2048 }: Limits): ReadonlyArray<string> => [
  Holder.findTool("prlimit") ?? "prlimit",
  "--core=0",
  `--nproc=${processes}`,
  `--fsize=${fileBytes}`,
  `--nofile=${openFiles}`,
  "--"
]

/** Descriptors that this process inherited open for its children, as some terminals and build tools leave. */
const findInherited = (): ReadonlyArray<number> => {
  const names = Result.getOrElse(
    System.attempt(() => readdirSync("/proc/self/fdinfo")),
    () => []
  )
  return names.flatMap((name) => {
    const info = Result.getOrElse(
      System.attempt(() => readFileSync(`/proc/self/fdinfo/${name}`, "utf8")),
      () => ""
    )
    const flags = /^flags:\s*(\d+)/m.exec(info)?.[1]
    const staysOpen = flags !== undefined && (Number.parseInt(flags, 8) & 0o2000000) === 0
    return staysOpen && Number(name) > 2 ? [Number(name)] : []
  })
}

/** Puts the empty device in the places of inherited descriptors, since nothing but a start closes them. */
const sealInherited: Effect.Effect<ReadonlyMap<number, number>, never, Scope.Scope> = Effect.suspend(() => {
  const inherited = findInherited()
  if (inherited.length === 0) return Effect.succeed(new Map())
  return Effect.acquireRelease(Effect.orDie(System.open("/dev/null", constants.O_RDONLY)), System.close).pipe(
    Effect.map((empty) => new Map(inherited.map((descriptor) => [descriptor, empty])))
  )
})

/** Makes the sandbox. `binds` are the folders of the layer, looked up for each command. */
export const make = <R>(
  isolation: Isolation<R>,
  binds: () => ReadonlyArray<Bind>
): Effect.Effect<Enclosure, BackendError, R | Scope.Scope> =>
  process.platform === "darwin" ? Seatbelt.make(isolation, binds) : makeBubblewrap(isolation, binds)

const makeBubblewrap = <R>(
  isolation: Isolation<R>,
  binds: () => ReadonlyArray<Bind>
): Effect.Effect<Enclosure, BackendError, R | Scope.Scope> =>
  Effect.gen(function* () {
    const system = yield* findSystem
    const folder = yield* makeTemporary
    const memoryBytes = isolation.limits?.memoryBytes
    const group = memoryBytes === undefined ? undefined : yield* ControlGroup.make(memoryBytes)
    const { listener, pid } = yield* Holder.hold(system, isolation.egress !== undefined)
    const way = listener === undefined ? undefined : yield* isolation.egress?.(listener) ?? Effect.undefined
    const filter = makeFilter(process.arch)
    const more: ReadonlyArray<Bind> = [
      ...(isolation.readable ?? []).map((path) => ({ path, access: "read" }) as const),
      ...(isolation.writable ?? []).map((path) => ({ path, access: "write" }) as const)
    ]
    const first = [
      "--unshare-user",
      "--unshare-pid",
      "--unshare-ipc",
      "--unshare-uts",
      "--unshare-cgroup-try",
      "--die-with-parent",
      "--cap-drop",
      "ALL",
      "--hostname",
      "sandbox",
      // The node of this program may be below it.
      "--bind",
      join(folder, "tmp"),
      "/tmp",
      ...system,
      ...lockedProc,
      "--dev",
      "/dev"
    ]
    const last = [...(filter === undefined ? [] : ["--seccomp", "3"]), "--clearenv"]
    const enter = ["-t", String(pid), "-U", "-n", "--preserve-credentials", "--", "bwrap"]
    const limits = limitArgs(isolation.limits ?? {})
    const seals = yield* sealInherited
    const findRepositories = makeFinder()
    const mount = makeMounts()
    return {
      env: { HOME: home, TMPDIR: "/tmp", NODE_USE_ENV_PROXY: "1", ...way?.env },
      enclose: ({ args, env, file }) => {
        const reached = [...more, ...binds()]
        const mounting = Effect.flatMap(findRepositories(reached), (found) => mount(reached, found))
        return Effect.map(mounting, (mounts) => {
          const variables = Object.entries(env).flatMap(([name, value]) => ["--setenv", name, value])
          const all = [...first, ...mounts, ...last, ...variables]
          const line = [...enter, "--args", "4", "--", ...limits, "/bin/sh", "-c", keeper, "keeper", file, ...args]
          return {
            ...(group === undefined ? { file: "nsenter", args: line } : ControlGroup.enter(group, "nsenter", line)),
            // Variables of a command would be obeyed by the programs that isolate it.
            env: { PATH: Holder.toolPath },
            monitor: { feeds: [filter ?? new Uint8Array(0), Buffer.from(all.map((arg) => `${arg}\0`).join(""))], seals }
          }
        })
      }
    }
  })
