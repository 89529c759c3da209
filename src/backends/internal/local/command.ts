/**
 * A running command and its output, read on demand.
 *
 * The command ends with its shell. The output in the pipes is still read then, but leftover background processes
 * that hold the pipes open are not awaited. Without a reader the pipes fill up and block the command.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { constants } from "node:os"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { type Fault, fault, fromSystem } from "./failure.ts"
import * as Group from "./group.ts"
import { attend, type Monitor, stdioOf } from "./monitor.ts"
import type { Reaper } from "./reaper.ts"

export type Channel = "stdout" | "stderr"

export interface Chunk {
  readonly channel: Channel
  readonly bytes: Uint8Array
}

export interface RunningCommand {
  /** Ends it before its time, with all that it started. */
  readonly end: Effect.Effect<void>
  /** Waits for output and takes it; `undefined` at the end. */
  readonly take: Effect.Effect<ReadonlyArray<Chunk> | undefined>
  /** As a shell would say: 128 + n if a signal ended it. Known when `take` gave `undefined`. */
  readonly exitCode: () => number
  /**
   * Names what the command left behind, once `take` gave `undefined`. It is being ended then. Fails if a monitor ended
   * before the command began.
   */
  readonly left: Effect.Effect<ReadonlyArray<string>, Fault>
}

export interface Spec {
  readonly file: string
  readonly args: ReadonlyArray<string>
  readonly cwd: string
  readonly env: { readonly [name: string]: string }
  readonly stdin: string | undefined
  /** Set for a program that keeps the command in a sandbox of its own. */
  readonly monitor?: Monitor | undefined
}

const bufferedBytes = 1024 * 1024
// More than a pipe can hold. Further output was written after the shell ended.
const drainedBytes = 4 * 1024 * 1024
// One turn of the event loop reads all available output. The first turn may be half over.
const quietTurns = 3

/** The most that Linux takes of one argument, or one variable, and of all together as a rule; in bytes. */
const maxText = 128 * 1024 - 1
const maxTexts = 2 * 1024 * 1024

const tooLarge = ({ args, env }: Spec): Fault => {
  const sizes = [...args, ...Object.entries(env).map(([name, value]) => `${name}=${value}`)].map((text) =>
    Buffer.byteLength(text)
  )
  const longest = sizes.reduce((most, size) => Math.max(most, size), 0)
  const all = sizes.reduce((sum, size) => sum + size, 0)
  return fault(
    longest > maxText
      ? { _tag: "TooLarge", size: longest, limit: maxText }
      : { _tag: "TooLarge", size: all, limit: Math.min(maxTexts, all) },
    "the system takes no command that is longer, with its variables; write the script to a file and run that"
  )
}

const startFault = (spec: Spec, cause: unknown): Fault => {
  if (!(cause instanceof Error)) return fault({ _tag: "Unavailable" })
  if ("code" in cause && cause.code === "E2BIG") return { ...tooLarge(spec), cause }
  return { ...fromSystem(cause), reason: { _tag: "Unavailable" } }
}

interface LaunchedCommand {
  readonly child: ChildProcess
  readonly group: number
}

/** Starts a process in a group of its own. */
const launch = (spec: Spec): Effect.Effect<LaunchedCommand, Fault> =>
  Effect.flatMap(
    Effect.try({
      try: () =>
        spawn(spec.file, spec.args, {
          cwd: spec.cwd,
          env: spec.env,
          detached: true,
          stdio: stdioOf(spec.stdin, spec.monitor)
        }),
      catch: (cause) => startFault(spec, cause)
    }),
    (child) =>
      Effect.callback<LaunchedCommand, Fault>((resume) => {
        child.on("error", (cause) => resume(Effect.fail(startFault(spec, cause))))
        child.once("spawn", () => {
          const group = child.pid
          resume(group === undefined ? Effect.fail(startFault(spec, undefined)) : Effect.succeed({ child, group }))
        })
      })
  )

/** Collects the output of a child. Uses plain callbacks, since thousands of pieces arrive each second. */
const listen = (child: ChildProcess, stdin: string | undefined) => {
  const sources = [
    { channel: "stdout", readable: child.stdout },
    { channel: "stderr", readable: child.stderr }
  ] as const
  let chunks: Array<Chunk> = []
  let buffered = 0
  let open: number = sources.length
  let exitCode: number | undefined
  let drained = 0
  let quiet = 0
  let isDraining = false
  let isDiscarding = false
  let isOver = false
  let waiting: (() => void) | undefined

  const wake = (): void => {
    const resume = waiting
    waiting = undefined
    resume?.()
  }

  /** Nothing is read any more. */
  const finish = (): void => {
    isOver = true
    for (const { readable } of sources) readable?.destroy()
    wake()
  }

  const isPaused = (): boolean => buffered > bufferedBytes

  /** Keeps reading without a consumer, since a command without readers would be killed. */
  const discard = (): void => {
    isDiscarding = true
    takeAll()
  }

  /** The shell has ended: reads on until a few turns of the event loop bring nothing. */
  const drain = (): void => {
    if (isOver || isDraining || isPaused()) return
    if (open === 0 || quiet === quietTurns || drained > drainedBytes) {
      finish()
      return
    }
    quiet++
    isDraining = true
    setImmediate(() => {
      isDraining = false
      drain()
    })
  }

  for (const { channel, readable } of sources) {
    readable?.on("data", (bytes: Buffer) => {
      if (isOver || isDiscarding) return
      chunks.push({ channel, bytes })
      buffered += bytes.byteLength
      quiet = 0
      if (exitCode !== undefined) drained += bytes.byteLength
      if (isPaused()) for (const source of sources) source.readable?.pause()
      wake()
    })
    readable?.on("error", () => undefined)
    readable?.once("close", () => {
      open--
    })
  }
  child.once("exit", (code, signal) => {
    exitCode = code ?? 128 + (signal === null ? 0 : constants.signals[signal])
    drain()
  })
  const hasExited = (): boolean => exitCode !== undefined
  const exited: Effect.Effect<void> = Effect.callback((resume) => {
    const tell = (): void => resume(Effect.void)
    if (hasExited()) tell()
    else child.once("exit", tell)
    return Effect.sync(() => child.off("exit", tell))
  })
  // A command need not read its stdin.
  child.stdin?.on("error", () => undefined)
  child.stdin?.end(stdin)

  const takeAll = (): ReadonlyArray<Chunk> => {
    const batch = chunks
    const wasPaused = isPaused()
    chunks = []
    buffered = 0
    if (wasPaused) {
      for (const { readable } of sources) readable?.resume()
      if (exitCode !== undefined) drain()
    }
    return batch
  }

  const take: RunningCommand["take"] = Effect.suspend(() => {
    if (chunks.length > 0) return Effect.succeed(takeAll())
    if (isOver) return Effect.undefined
    return Effect.flatMap(
      Effect.callback<void>((resume) => {
        waiting = () => resume(Effect.void)
        return Effect.sync(() => {
          waiting = undefined
        })
      }),
      () => take
    )
  })

  return { take, discard, finish, hasExited, exited, exitCode: () => exitCode ?? -1 }
}

/**
 * Runs a command for as long as the scope is open. When that closes, all of the command's group is asked to end and
 * gets killed after 2 seconds, and closing waits for that. If the shell ends by itself, its group is ended in the same
 * way, but nobody waits: that is over when the scope of `leftovers` is closed at the latest. Nobody is sent a signal
 * after that: the group's number may be somebody else's. A monitor ends with this process; other commands need a reaper for
 * that.
 */
export const start = (
  spec: Spec,
  leftovers: Scope.Scope,
  reaper?: Reaper
): Effect.Effect<RunningCommand, Fault, Scope.Scope> =>
  Effect.gen(function* () {
    const leftNames = yield* Deferred.make<ReadonlyArray<string>, Fault>()
    const { begin, end, findLeft, output } = yield* Effect.acquireRelease(
      Effect.map(launch(spec), ({ child, group }) => {
        const attended = spec.monitor === undefined ? undefined : attend(child, spec.monitor)
        if (attended === undefined) reaper?.watch(group)
        const endGroup =
          attended === undefined
            ? Effect.ensuring(
                Group.end(group),
                Effect.sync(() => reaper?.forget(group))
              )
            : Group.endMonitored(group, attended.hasBegun)
        let ending: Fiber.Fiber<void> | undefined
        const begin = Effect.suspend(() =>
          ending === undefined
            ? Effect.map(Effect.forkIn(endGroup, leftovers, { startImmediately: true }), (fiber) => {
                ending = fiber
                return fiber
              })
            : Effect.succeed(ending)
        )
        const end = Effect.asVoid(Effect.flatMap(begin, Fiber.await))
        return { output: listen(child, spec.stdin), begin, end, findLeft: attended?.left ?? Group.findLeft(group) }
      }),
      ({ begin, end, output }) =>
        Effect.suspend(() => {
          output.discard()
          return Effect.andThen(output.hasExited() ? begin : end, Effect.sync(output.finish))
        })
    )
    yield* output.exited.pipe(
      Effect.andThen(findLeft),
      Deferred.into(leftNames),
      Effect.ensuring(Effect.andThen(Deferred.succeed(leftNames, []), begin)),
      Effect.forkIn(leftovers, { startImmediately: true })
    )
    return { end, take: output.take, exitCode: output.exitCode, left: Deferred.await(leftNames) }
  })
