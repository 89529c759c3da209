/** The operations of a backend behind rules: what is denied can't be told from what is not there. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Backend from "../../../core/Backend.ts"
import type * as BackendError from "../../../core/BackendError.ts"
import { fromUnknown } from "../../../core/Json.ts"
import { sha256 } from "../../../support/store/hash.ts"
import * as Search from "../composite/search.ts"
import * as Path from "../files/path.ts"
import { Granted } from "./approval.ts"
import * as Guard from "./guard.ts"
import type { Access, Action, Decision, FileOperation, Policy } from "./model.ts"
import * as Once from "./once.ts"
import * as Policies from "./policy.ts"
import { transfer } from "./transfer.ts"

type Failing<A> = Effect.Effect<A, BackendError.BackendError>

/** Reasons that tell what is at a path. */
const tellsWhatIsThere: ReadonlySet<string> = new Set(["NotFound", "NotDirectory", "OutsideRoot", "PermissionDenied"])

/** Of the files that a rule asks about, those that it was asked about by name can be seen. */
const isApproved = (approved: ReadonlyArray<Access>, decision: Decision): boolean =>
  approved.some(({ rule }) => rule === decision.rule)

/** Puts rules before the operations on files. */
export const backendOf = (backend: Backend.Service, policy: Policy): Backend.Service => {
  const guard = Guard.make(backend, policy)
  const once = Once.onceFor(policy)

  const need = (
    operation: FileOperation,
    given: string,
    path: string,
    more?: Pick<Guard.Need, "entry" | "looking">
  ): Guard.Need => ({ operation, given, path, ...more })

  const one = <A>(
    operation: Guard.Operation,
    subject: Guard.Subject,
    run: (approved: ReadonlyArray<Access>) => Failing<A>
  ): Failing<A> =>
    guard.authorise(operation, [subject], ({ approved, refusals: [refused] }) =>
      refused === undefined ? run(approved) : Effect.fail(refused)
    )

  const asking = (action: Action): Guard.Operation => ({ name: action.operation, action })

  const at = <A>(operation: string, given: string, run: (path: string) => Failing<A>): Failing<A> =>
    Effect.flatMap(Effect.fromResult(Path.normalize(operation, given)), run)

  /** Of some paths, those that can be seen as they are named and as they really are; and what they are, by that. */
  const visible = (
    operation: string,
    paths: ReadonlyArray<string>,
    isVisible: (path: string) => boolean
  ): Failing<ReadonlyMap<string, string>> => {
    const named = paths.filter(isVisible)
    return Effect.map(
      guard.real(operation, named),
      (real) =>
        new Map(
          named.flatMap((path, index) => {
            const target = real[index] ?? path
            return target === path || isVisible(target) ? [[path, target] as const] : []
          })
        )
    )
  }

  const keeping =
    (operation: string, isVisible: (path: string) => boolean): Search.Keep =>
    (paths) =>
      Effect.map(visible(operation, paths, isVisible), (seen) => new Set(seen.keys()))

  const mayBeNamed = (path: string): boolean => Policies.decide(policy, "read", path).mode !== "deny"

  /** Checks that a directory, or something that could be in it, can be seen. */
  const mayBePassed = (path: string): boolean =>
    Policies.overlaps(policy, "read", path).some(({ mode }) => mode !== "deny")

  const isAllSeen = (path: string): boolean =>
    Policies.overlaps(policy, "read", path).every(({ mode }) => mode !== "deny")

  /** At a path that is denied itself, whether there is anything must not show. */
  const orNothing =
    <A>(operation: string, path: string, nothing: A) =>
    (effect: Failing<A>): Failing<A> =>
      Effect.flatMap(visible(operation, [path], mayBeNamed), (named) =>
        named.has(path)
          ? effect
          : Effect.catch(effect, (error) =>
              tellsWhatIsThere.has(error.reason._tag) ? Effect.succeed(nothing) : Effect.fail(error)
            )
      )

  const looking = (given: string, path: string, at: Guard.Need["looking"] & {}): Guard.Subject => ({
    needs: [need("read", given, path, { looking: at })]
  })

  const ls = (given: string): Failing<Backend.Listing> =>
    at("ls", given, (path) =>
      one({ name: "ls" }, looking(given, path, "names"), () =>
        Effect.gen(function* () {
          const listing = yield* backend.ls(given)
          const pathsOf = (isFolder: boolean) =>
            listing.entries.flatMap((entry) => ((entry.kind === "directory") === isFolder ? [entry.path] : []))
          const named = yield* visible("ls", pathsOf(false), mayBeNamed)
          const passed = yield* visible("ls", pathsOf(true), mayBePassed)
          const entries = listing.entries.flatMap((entry): ReadonlyArray<Backend.Entry> => {
            if (entry.kind !== "directory") return named.has(entry.path) ? [entry] : []
            const target = passed.get(entry.path)
            if (target === undefined) return []
            // The size and time of a directory change with what is in it.
            return isAllSeen(entry.path) && isAllSeen(target) ? [entry] : [{ path: entry.path, kind: entry.kind }]
          })
          return { ...listing, entries }
        }).pipe(orNothing<Backend.Listing>("ls", path, { entries: [] }))
      )
    )

  const glob = (query: Backend.GlobQuery): Failing<Backend.Listing> =>
    at("glob", query.path ?? "/", (path) =>
      one({ name: "glob" }, looking(query.path ?? "/", path, "names"), () =>
        Search.glob(backend, query, keeping("glob", mayBeNamed)).pipe(
          orNothing<Backend.Listing>("glob", path, { entries: [] })
        )
      )
    )

  const grep = (query: Backend.GrepQuery): Failing<Backend.GrepResult> =>
    at("grep", query.path ?? "/", (path) =>
      one(asking({ operation: "grep", query }), looking(query.path ?? "/", path, "contents"), (approved) => {
        const mayBeRead = (file: string): boolean => {
          const decision = Policies.decide(policy, "read", file)
          return decision.mode === "allow" || (decision.mode === "ask" && isApproved(approved, decision))
        }
        return Search.grep(backend, query, keeping("grep", mayBeRead)).pipe(
          orNothing<Backend.GrepResult>("grep", path, { files: [] })
        )
      })
    )

  const realPaths = (paths: ReadonlyArray<string>): Failing<ReadonlyArray<string | undefined>> =>
    Effect.gen(function* () {
      const normal = paths.map((path) => Result.getOrUndefined(Path.normalize("realPaths", path)))
      const known = normal.filter((path) => path !== undefined)
      const named = known.filter(mayBePassed)
      const real = yield* guard.real("realPaths", named)
      const led = new Map(named.map((path, index) => [path, real[index]]))
      return normal.map((path) => {
        const target = path === undefined ? undefined : led.get(path)
        return target !== undefined && mayBePassed(target) ? target : undefined
      })
    })

  const needsOf = (change: Backend.PlannedChange): Failing<ReadonlyArray<Guard.Need>> =>
    Effect.gen(function* () {
      const normal = (path: string) => Effect.fromResult(Path.normalize("patch", path))
      const entry = { entry: true }
      if (change.operation !== "move") {
        const path = yield* normal(change.path)
        const operation = change.operation === "read" ? "read" : "write"
        return [need(operation, change.path, path, change.operation === "delete" ? entry : undefined)]
      }
      const [from, to] = [yield* normal(change.from), yield* normal(change.to)]
      return [
        need("read", change.from, from, entry),
        need("write", change.from, from, entry),
        need("write", change.to, to, entry)
      ]
    })

  const permit = Effect.fnUntraced(function* (
    plan: Backend.Plan
  ): Effect.fn.Return<Backend.Permit, BackendError.BackendError> {
    const needs = yield* Effect.forEach(plan.changes, needsOf)
    const accesses = yield* one(asking({ operation: "patch", plan }), { needs: needs.flat() }, Effect.succeed)
    const inner = backend.permit === undefined ? undefined : yield* backend.permit(plan)
    return (work) =>
      Effect.updateService(inner === undefined ? work : inner(work), Granted, (granted) => [
        ...granted,
        { policy, accesses }
      ])
  })

  return {
    ls,
    glob,
    grep,
    permit,
    read: (given, window) =>
      at("read", given, (path) =>
        one(asking({ operation: "read", path, window }), { needs: [need("read", given, path)] }, () =>
          backend.read(given, window)
        )
      ),
    write: (given, content, options) =>
      at("write", given, (path) =>
        one(asking({ operation: "write", path, content }), { needs: [need("write", given, path)] }, () =>
          once("write", [path, content, fromUnknown(options)], Once.Written, backend.write(given, content, options))
        )
      ),
    edit: (given, replacements, options) =>
      at("edit", given, (path) =>
        one(
          asking({ operation: "edit", path, replacements }),
          { needs: [need("write", given, path), need("read", given, path)] },
          () =>
            once(
              "edit",
              [path, fromUnknown(replacements), fromUnknown(options)],
              Once.Edited,
              backend.edit(given, replacements, options)
            )
        )
      ),
    delete: (given, options) =>
      at("delete", given, (path) =>
        one(
          { ...asking({ operation: "delete", path, recursive: options?.recursive === true }), alone: true },
          { needs: [need("write", given, path, { entry: true })], tree: path },
          () => once("delete", [path, fromUnknown(options)], Schema.Void, backend.delete(given, options))
        )
      ),
    move: (from, to) =>
      at("move", from, (source) =>
        at("move", to, (target) =>
          one(
            { ...asking({ operation: "move", from: source, to: target }), alone: true },
            {
              needs: [
                need("read", from, source, { entry: true }),
                need("write", from, source, { entry: true }),
                need("write", to, target, { entry: true })
              ],
              tree: source
            },
            () => once("move", [source, target], Schema.Void, backend.move(from, to))
          )
        )
      ),
    upload: (files) =>
      transfer(
        guard,
        { operation: "upload", files },
        "write",
        files,
        ({ path }) => path,
        (allowed) =>
          Effect.flatMap(
            Effect.forEach(allowed, ({ content, path }) =>
              Effect.map(sha256(Uint8Array.from(content)), (digest) => [path, digest])
            ),
            (given) => once("upload", given, Once.Uploaded, backend.upload(allowed))
          )
      ),
    download: (paths) =>
      transfer(guard, { operation: "download", paths }, "read", paths, (path) => path, backend.download),
    realPaths: backend.realPaths === undefined ? undefined : realPaths,
    onHost: backend.onHost
  }
}
