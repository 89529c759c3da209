/** The processes that a command starts: one group, which is ended as a whole. */
import * as NodeFs from "node:fs"
import * as Effect from "effect/Effect"
import { oneLine } from "../../../support/text/untrusted.ts"
import { each } from "./many.ts"
import { pause } from "./system.ts"

const graceMillis = 2000
const firstLookMillis = 5
const longestLookMillis = 100
const readAtOnce = 32

/** Sends a signal to all of a group; 0 only asks. Says whether somebody is in it. */
const signal = (group: number, name: NodeJS.Signals | 0): Effect.Effect<boolean> =>
  Effect.match(
    Effect.try({
      try: () => process.kill(-group, name),
      // A group without permission to signal it exists.
      catch: (cause) => cause instanceof Error && "code" in cause && cause.code === "EPERM"
    }),
    { onSuccess: () => true, onFailure: (isThere) => isThere }
  )

/** Tells whether a process, as `/proc/7/stat` describes it, is in the group and runs. */
const runsIn = (group: number, stat: string): boolean => {
  // Before the last bracket is its name, which may be anything.
  const [state, , itsGroup] = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  return Number(itsGroup) === group && state !== "Z" && state !== "X"
}

/** Those of some processes that run in a group. */
const running = (group: number, ids: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<string>> =>
  Effect.callback((resume) => {
    const members: Array<string> = []
    each(
      ids.length,
      readAtOnce,
      (index, done) => {
        const id = ids[index] ?? ""
        NodeFs.readFile(`/proc/${id}/stat`, "latin1", (error, stat) => {
          if (!error && runsIn(group, stat)) members.push(id)
          done()
        })
      },
      () => resume(Effect.succeed(members))
    )
  })

/** All processes of the machine. Without this list, zombies look alive. */
const processes: Effect.Effect<ReadonlyArray<string> | undefined> = Effect.callback((resume) => {
  NodeFs.readdir("/proc", (error, names) => {
    const ids = (names ?? []).filter((name) => /^\d+$/.test(name))
    resume(Effect.succeed(!error && ids.length > 0 ? ids : undefined))
  })
})

/**
 * Waits until no process of the group runs, by polling. Zombies stay in the group until they are reaped, perhaps
 * forever, so this finds the running processes first and then polls only those.
 */
const waitForExit = Effect.fnUntraced(function* (group: number) {
  let members: ReadonlyArray<string> = []
  for (let wait = firstLookMillis; ; wait = Math.min(2 * wait, longestLookMillis)) {
    yield* pause(wait)
    if (!(yield* signal(group, 0))) return
    members = yield* running(group, members)
    if (members.length > 0) continue
    const all = yield* processes
    if (all === undefined) continue
    members = yield* running(group, all)
    if (members.length === 0) return
  }
})

const kill = (group: number): Effect.Effect<void> => Effect.asVoid(signal(group, "SIGKILL"))

/** A pipeline or a substitution may end a moment after its shell. */
const lateMillis = 100
const shownMembers = 5

/** The name of a program by its path, as one short line. */
export const shortName = (path: string): string =>
  oneLine(path.slice(path.lastIndexOf("/") + 1)).slice(0, 50) || "a process"

/** The name of the program of a process. A thread may rename the process, so its command line comes first. */
const nameOf = (id: string): Effect.Effect<string> =>
  Effect.callback((resume) => {
    NodeFs.readFile(`/proc/${id}/cmdline`, "utf8", (error, line) => {
      const [program = ""] = error === null ? line.split("\0") : []
      resume(Effect.succeed(shortName(program)))
    })
  })

const describeMembers = (ids: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(
    Effect.forEach(ids.slice(0, shownMembers), (id) => Effect.map(nameOf(id), (name) => `${name} (pid ${id})`)),
    (named) => [...named, ...(ids.length > shownMembers ? [`${ids.length - shownMembers} more`] : [])]
  )

/** Names the processes of a group that still run a moment after its shell has exited. */
export const findLeft = (group: number): Effect.Effect<ReadonlyArray<string>> =>
  Effect.gen(function* () {
    let waited = 0
    for (let wait = firstLookMillis; ; wait *= 2) {
      if (!(yield* signal(group, 0))) return []
      const all = yield* processes
      // Without a list of the machine's processes, zombies look alive.
      if (all === undefined) return []
      const members = yield* running(group, all)
      if (members.length === 0) return []
      if (waited >= lateMillis) return yield* describeMembers(members)
      yield* pause(wait)
      waited += wait
    }
  }).pipe(Effect.onInterrupt(() => kill(group)))

const awaitEnd = (group: number): Effect.Effect<void> =>
  Effect.raceFirst(waitForExit(group), Effect.sleep(graceMillis)).pipe(
    Effect.andThen(kill(group)),
    Effect.onInterrupt(() => kill(group))
  )

/** Sends SIGTERM to a group, waits for its end, and sends SIGKILL after 2 seconds or on an interruption. */
export const end = (group: number): Effect.Effect<void> =>
  Effect.flatMap(signal(group, "SIGTERM"), (isThere) => (isThere ? awaitEnd(group) : Effect.void))

/**
 * Asks all of a group to end but its first process, the monitor, whose end would kill the others. The group stands still
 * meanwhile: a shell whose child has ended would go on to its next command.
 */
const askMembers = (group: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* signal(group, "SIGSTOP")
    const all = (yield* processes) ?? []
    for (const id of yield* running(group, all)) {
      if (id !== String(group)) yield* Effect.ignore(Effect.try(() => process.kill(Number(id), "SIGTERM")))
    }
    yield* signal(group, "SIGCONT")
  })

/** The report that a command has begun may be a moment late. */
const awaitBegin = (hasBegun: () => boolean): Effect.Effect<boolean> =>
  Effect.suspend(() => (hasBegun() ? Effect.succeed(true) : Effect.andThen(pause(lateMillis), Effect.sync(hasBegun))))

/** Like {@link end}, for the group of a monitor. It is killed if the command has not begun. */
export const endMonitored = (group: number, hasBegun: () => boolean): Effect.Effect<void> =>
  Effect.flatMap(signal(group, 0), (isThere) => {
    if (!isThere) return Effect.void
    return Effect.flatMap(awaitBegin(hasBegun), (isBegun) =>
      isBegun ? Effect.andThen(askMembers(group), awaitEnd(group)) : Effect.andThen(kill(group), waitForExit(group))
    ).pipe(Effect.onInterrupt(() => kill(group)))
  })
