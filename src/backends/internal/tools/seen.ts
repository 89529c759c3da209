/** The versions of files that an agent has seen: only such files can be edited or replaced. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as AgentState from "../../../core/AgentState.ts"
import type { Service } from "../../../core/Backend.ts"
import { ToolContext } from "../../../core/ToolContext.ts"
import * as Attached from "../../../support/effect/attached.ts"
import * as Locks from "../files/locks.ts"
import * as Path from "../files/path.ts"

const prefix = "files.seen:"

/**
 * The version of each file that an agent has seen, in a slot each: one small entry in a checkpoint for a file, and
 * nothing to copy when there are many. Not shared: a file that another agent has read counts as unread for this agent.
 */
const slot = AgentState.family(prefix, { schema: Schema.String, initial: "" })

/** An agent's knowledge of files. All paths are normalised. */
export interface SeenFiles {
  /** The version that the agent has seen, if any. */
  readonly get: (path: string) => Effect.Effect<string | undefined>
  readonly set: (path: string, version: string) => Effect.Effect<void>
  /** A file or a directory is at another path now. */
  readonly move: (from: string, to: string) => Effect.Effect<void>
}

const make = (state: AgentState.Store): SeenFiles => {
  const get = (path: string) => Effect.map(state.get(slot(path)), (version) => (version === "" ? undefined : version))
  const setVersion = (path: string, version: string) =>
    Effect.flatMap(state.get(slot(path)), (seenVersion) =>
      seenVersion === version ? Effect.void : state.set(slot(path), version)
    )
  const findPathsIn = (path: string) =>
    Effect.map(state.names(prefix + path), (names) =>
      names.map((name) => name.slice(prefix.length)).filter((one) => Path.isWithin(one, path))
    )
  return {
    get,
    set: setVersion,
    move: (from, to) =>
      Effect.flatMap(findPathsIn(from), (paths) =>
        Effect.forEach(
          paths,
          (path) =>
            Effect.flatMap(state.get(slot(path)), (version) =>
              Effect.andThen(setVersion(to + path.slice(from.length), version), setVersion(path, ""))
            ),
          { discard: true }
        )
      )
  }
}

/**
 * Moves by an effect, and takes the known state along. A version may change when a file is moved (one of a file system
 * does): the new one is asked for, if the agent knew the file as it was.
 */
export const moving = Effect.fnUntraced(function* <E>(
  seen: SeenFiles,
  backend: Service,
  from: string,
  to: string,
  move: Effect.Effect<void, E>
) {
  const versionAt = (path: string) =>
    backend.read(path, { limit: 0 }).pipe(
      Effect.map((file) => file.version),
      Effect.orElseSucceed(() => undefined)
    )
  const seenVersion = yield* seen.get(from)
  const isCurrent = seenVersion !== undefined && (yield* versionAt(from)) === seenVersion
  yield* move
  yield* seen.move(from, to)
  const version = isCurrent ? yield* versionAt(to) : undefined
  if (version !== undefined) yield* seen.set(to, version)
})

/** The locks of each run, which is known by its state. */
const runs = Attached.make<AgentState.Store, Locks.Locks>()

/** Runs work on normalised paths after other calls of the same run that work on them. */
export const hold = <A, E, R>(
  paths: ReadonlyArray<string>,
  work: (seen: SeenFiles) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R | ToolContext> =>
  Effect.flatMap(ToolContext, ({ state }) => {
    const locks = runs.get(state) ?? Locks.make()
    runs.set(state, locks)
    return locks.hold(paths.filter((path) => path !== "/"))(work(make(state)))
  })
