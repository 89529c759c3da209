/**
 * Locks between processes of one machine, which the system releases when a process ends.
 *
 * On Linux a lock is a socket in the abstract namespace: it is exclusive, leaves no file and ends with its process.
 * Other network namespaces (containers that only share a folder) don't see it. Elsewhere a lock is one of a few
 * hundred files in the user's temporary folder, opened exclusively. Systems without either have no locks.
 */
import { createHash } from "node:crypto"
import { constants, mkdirSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { type Fault, fault } from "./failure.ts"
import * as System from "./system.ts"

const waitMillis = 10_000
const firstLookMillis = 1
const longestLookMillis = 16

/** Gives a lock back. `undefined`: somebody else has it. */
type ReleaseLock = Effect.Effect<void> | undefined

/** Reports whether a lock may succeed later: it is held, or the system is out of locks. */
const isForNow = (cause: unknown): boolean =>
  cause instanceof Error &&
  "code" in cause &&
  ["EADDRINUSE", "EAGAIN", "EMFILE", "ENFILE", "ENOBUFS", "ENOMEM"].some((code) => code === cause.code)

const bindSocket = (name: string): Effect.Effect<ReleaseLock> =>
  Effect.callback((resume) => {
    const server = createServer((socket) => socket.destroy())
    server.once("error", (cause) => {
      resume(Effect.succeed(isForNow(cause) ? undefined : Effect.void))
    })
    // Exclusive: workers of a cluster would share it.
    server.listen({ path: `\0effect-deepagents/${name}`, exclusive: true }, () => {
      server.unref()
      resume(Effect.succeed(Effect.sync(() => void server.close())))
    })
  })

// Node has no name for it: the BSDs, macOS among them, lock a file as they open it.
const exclusiveLock = 0x20
const opening = constants.O_RDWR | constants.O_CREAT | constants.O_NONBLOCK | constants.O_NOFOLLOW | exclusiveLock

const lockedFile = (name: string): Effect.Effect<ReleaseLock> =>
  Effect.suspend(() => {
    const folder = join(tmpdir(), `effect-deepagents-locks-${process.getuid?.() ?? 0}`)
    System.attempt(() => mkdirSync(folder, { recursive: true, mode: 0o700 }))
    return Effect.match(System.open(join(folder, name), opening, 0o600), {
      onSuccess: (fd): ReleaseLock => System.close(fd),
      onFailure: ({ cause }): ReleaseLock => (isForNow(cause) ? undefined : Effect.void)
    })
  })

const byFile = process.platform === "darwin" || process.platform.endsWith("bsd")

const take: (name: string) => Effect.Effect<ReleaseLock> =
  process.platform === "linux" ? bindSocket : byFile ? lockedFile : () => Effect.succeed(Effect.void)

/** The file of a lock. Files would stay, so there are not many. */
const nameOf = (what: string): string =>
  createHash("sha256")
    .update(what)
    .digest("hex")
    .slice(0, byFile ? 2 : 40)

const busy = fault(
  { _tag: "Unavailable" },
  `another process has been changing this file for ${waitMillis / 1000} seconds; try again`
)

/** Takes a lock as soon as it is free, and says whether it was not at first. */
const acquire = (name: string): Effect.Effect<boolean, Fault, Scope.Scope> => {
  const attempt = Effect.uninterruptible(
    Effect.flatMap(take(name), (giveBack) =>
      giveBack === undefined
        ? Effect.succeed(false)
        : Effect.as(
            Effect.addFinalizer(() => giveBack),
            true
          )
    )
  )
  return Effect.gen(function* () {
    const until = performance.now() + waitMillis
    let next = firstLookMillis
    let waited = false
    while (!(yield* attempt)) {
      waited = true
      if (performance.now() > until) return yield* Effect.fail(busy)
      yield* System.pause(next * (0.5 + Math.random()))
      next = Math.min(longestLookMillis, next * 2)
    }
    return waited
  })
}

/**
 * Takes the locks of some things for as long as the scope is open, and says whether it had to wait for one.
 *
 * Whoever wants a lock stands in a door before it, which only one can, until it has the lock: so a process that has
 * much to do with one thing lets others have their turn.
 */
export const locking = (things: ReadonlyArray<string>): Effect.Effect<boolean, Fault, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    let waited = false
    // All take them in one order: no two wait for each other.
    for (const name of [...new Set(things.map(nameOf))].sort()) {
      const inTurn = Effect.scoped(
        Effect.zipWith(acquire(`${name}-door`), Scope.provide(acquire(name), scope), (door, lock) => door || lock)
      )
      waited = (yield* inTurn) || waited
    }
    return waited
  })
