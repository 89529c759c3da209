/**
 * Asks a person before an operation changes the files of a git repository, or files of the home that start programs.
 *
 * An operation runs once. If the protection refuses it, it asks, and runs again with the approved paths. It holds no
 * lock while the person decides.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Backend from "../../../core/Backend.ts"
import * as BackendError from "../../../core/BackendError.ts"
import { fromUnknown, type Json } from "../../../core/Json.ts"
import * as Ruling from "../../../core/Ruling.ts"
import { sha256 } from "../../../support/store/hash.ts"
import type { Action } from "../permissions/model.ts"
import * as Once from "../permissions/once.ts"
import { askAbout } from "../permissions/question.ts"
import * as Places from "./allowed.ts"

type Failing<A> = Effect.Effect<A, BackendError.BackendError>

/** A path that an operation changes: with `link` the link itself, with `tree` all that is in the folder. */
export interface Change {
  readonly path: string
  readonly link?: boolean
  readonly tree?: boolean
}

/** Finds the protected places that changes lead to. A path that can't be followed has none. */
export type Find = (changes: ReadonlyArray<Change>) => Effect.Effect<ReadonlyArray<Places.ProtectedPlace>>

const rulings = { git: Ruling.ask("/**/.git/**"), home: Ruling.ask("~/.*") }

const refusals = {
  git: ["this belongs to a git repository", "leave it alone, use git itself, or ask the person to change it"],
  home: ["this decides which programs start for the person", "leave it alone, or ask the person to change it"]
} as const

/** Asks about protected places. Fails if they are refused. */
const ask = Effect.fnUntraced(function* (
  action: Action,
  inputPath: string,
  places: ReadonlyArray<Places.ProtectedPlace>
) {
  const answer = yield* askAbout(
    action,
    places.map(({ kind, path }) => ({ operation: "write", path, ruling: rulings[kind] }))
  )
  if (answer._tag === "Allow") return
  const [what, advice] = refusals[places[0]?.kind ?? "git"]
  const detail = `${what}: ${answer.reason}; ${advice}`
  return yield* Effect.fail(BackendError.make(action.operation, inputPath, { _tag: "PermissionDenied" }, { detail }))
})

const allowing = <A, E, R>(
  places: ReadonlyArray<Places.ProtectedPlace>,
  work: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.updateService(work, Places.Allowed, (allowed) => new Set([...allowed, ...places.map(({ path }) => path)]))

const runOnce = Once.onceFor({ files: [], commands: rulings.git })

const changesOf = (change: Backend.PlannedChange): ReadonlyArray<Change> => {
  if (change.operation === "read") return []
  if (change.operation !== "move") return [{ path: change.path, link: change.operation === "delete" }]
  return [
    { path: change.from, link: true },
    { path: change.to, link: true }
  ]
}

/** Wraps files, so that changes of protected files ask a person. */
export const asking = <Files extends Backend.Service>(find: Find, files: Files): Files => {
  const retried = <A, I>(
    action: Action,
    changes: readonly [Change, ...ReadonlyArray<Change>],
    input: Json,
    schema: Schema.Codec<A, I>,
    work: Failing<A>
  ): Failing<A> =>
    Effect.catchIf(work, Places.isRefusal, () =>
      Effect.gen(function* () {
        const places = yield* find(changes)
        yield* ask(action, changes[0].path, places)
        return yield* runOnce(action.operation, input, schema, allowing(places, work))
      })
    )

  return {
    ...files,
    write: (path, content, options) =>
      retried(
        { operation: "write", path, content },
        [{ path }],
        [path, content, fromUnknown(options)],
        Once.Written,
        files.write(path, content, options)
      ),
    edit: (path, replacements, options) =>
      retried(
        { operation: "edit", path, replacements },
        [{ path }],
        [path, fromUnknown(replacements), fromUnknown(options)],
        Once.Edited,
        files.edit(path, replacements, options)
      ),
    delete: (path, options) =>
      retried(
        { operation: "delete", path, recursive: options?.recursive === true },
        [{ path, link: true, tree: options?.recursive === true }],
        [path, fromUnknown(options)],
        Schema.Void,
        files.delete(path, options)
      ),
    move: (from, to) =>
      retried(
        { operation: "move", from, to },
        [
          { path: from, link: true },
          { path: to, link: true }
        ],
        [from, to],
        Schema.Void,
        files.move(from, to)
      ),
    upload: Effect.fnUntraced(function* (all) {
      const outcomes = yield* files.upload(all)
      const refused = all.filter((_, index) => {
        const outcome = outcomes[index]
        return outcome?.ok === false && Places.isRefusal(outcome.error)
      })
      if (refused.length === 0) return outcomes
      const retry = Effect.gen(function* () {
        const places = yield* find(refused)
        yield* ask({ operation: "upload", files: refused }, refused[0]?.path ?? "/", places)
        const digests = yield* Effect.forEach(refused, ({ content, path }) =>
          Effect.map(sha256(Uint8Array.from(content)), (digest) => [path, digest])
        )
        return yield* runOnce("upload", digests, Once.Uploaded, allowing(places, files.upload(refused)))
      })
      const second = yield* Effect.catch(retry, ({ detail, reason }) =>
        Effect.succeed(
          refused.map(({ path }) => ({
            path,
            ok: false as const,
            error: BackendError.make("upload", path, reason, { detail })
          }))
        )
      )
      let next = 0
      return outcomes.map((outcome) =>
        !outcome.ok && Places.isRefusal(outcome.error) ? (second[next++] ?? outcome) : outcome
      )
    }),
    permit: (plan) =>
      Effect.gen(function* () {
        const places = yield* find(plan.changes.flatMap(changesOf))
        if (places.length > 0) yield* ask({ operation: "patch", plan }, places[0]?.path ?? "/", places)
        return (work) => (places.length === 0 ? work : allowing(places, work))
      })
  }
}
