/**
 * Bounds the memory of all commands of a layer by a control group of the kernel (cgroup v2). Its user must be able to make
 * groups: systemd lets users do that, and most containers don't.
 */
import { randomBytes } from "node:crypto"
import { accessSync, constants, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { type BackendError, make as makeError } from "../../../core/BackendError.ts"
import * as System from "../local/system.ts"

/** The tree of groups, and the group of this process as the kernel names it. */
export interface Tree {
  readonly root: string
  readonly own: string
}

const readText = (path: string): string =>
  Result.getOrElse(
    System.attempt(() => readFileSync(path, "utf8")),
    () => ""
  )

/** Finds the tree of this machine. */
const findTree = (): Tree | undefined => {
  const root = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].find((path) => existsSync(join(path, "cgroup.controllers")))
  const own = /^0::(\/.*)$/m.exec(readText("/proc/self/cgroup"))?.[1]
  return root === undefined || own === undefined || own.includes("..") ? undefined : { root, own }
}

const canWrite = (path: string): boolean => Result.isSuccess(System.attempt(() => accessSync(path, constants.W_OK)))

/**
 * Finds the nearest group above this process in which this user may make groups with a limit of memory. The group of the
 * process itself has processes in it, so the kernel allows none below.
 */
export const findParent = ({ own, root }: Tree): string | undefined => {
  for (let path = own; path !== "/";) {
    path = dirname(path)
    const group = join(root, path)
    const controls = readText(join(group, "cgroup.subtree_control")).split(/\s+/)
    if (controls.includes("memory") && canWrite(group) && canWrite(join(group, "cgroup.procs"))) return group
  }
  return undefined
}

/** Finds the group of this machine in which limits of memory can be set. */
export const findPlace = (): string | undefined => {
  const tree = findTree()
  return tree === undefined ? undefined : findParent(tree)
}

/** Fails with the reason and a remedy. */
export const refuse = (why: string): Effect.Effect<never, BackendError> =>
  Effect.fail(
    makeError(
      "open",
      "/",
      { _tag: "Unsupported" },
      {
        detail: `limits.memoryBytes: memory can't be bounded here: ${why}. Start the program by \`systemd-run --user --scope\`, use DockerSandbox, or leave the limit out`
      }
    )
  )

const removeGroup = (group: string): Effect.Effect<void> =>
  Effect.try(() => rmdirSync(group)).pipe(
    // Its last processes may still be ending.
    Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 40 }),
    Effect.ignore
  )

/** Makes a group with a limit below another one, and gives the file by which a process joins it. */
export const make = (
  memoryBytes: number,
  parent: string | undefined = findPlace()
): Effect.Effect<string, BackendError, Scope.Scope> =>
  Effect.gen(function* () {
    if (parent === undefined) return yield* refuse("no control group (cgroup v2) of this user has a limit of memory")
    const group = join(parent, `deepagents-${process.pid}-${randomBytes(6).toString("hex")}`)
    yield* Effect.acquireRelease(
      Effect.catch(
        Effect.try(() => mkdirSync(group)),
        () => refuse(`${group} can't be made`)
      ),
      () => removeGroup(group)
    )
    const limited = System.attempt(() => {
      writeFileSync(join(group, "memory.max"), String(memoryBytes))
      // A kernel without swap has no such file.
      if (existsSync(join(group, "memory.swap.max"))) writeFileSync(join(group, "memory.swap.max"), "0")
    })
    return Result.isFailure(limited) ? yield* refuse(`${group} takes no limit`) : join(group, "cgroup.procs")
  })

/** Puts a program into a group: a command line that joins it, and then becomes the program. */
export const enter = (
  procs: string,
  file: string,
  args: ReadonlyArray<string>
): { readonly file: string; readonly args: ReadonlyArray<string> } => ({
  file: "/bin/sh",
  args: ["-c", 'echo $$ >"$0" && exec "$@"', procs, file, ...args]
})
