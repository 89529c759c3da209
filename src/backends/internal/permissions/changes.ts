/** Operations on single files behind rules: reading, changing, transfers and patches. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Backend from "../../../core/Backend.ts"
import type * as BackendError from "../../../core/BackendError.ts"
import { fromUnknown } from "../../../core/Json.ts"
import { sha256 } from "../../../support/store/hash.ts"
import * as Path from "../files/path.ts"
import { at, authoriseOne, type Failing, type Guard, type Need, needOf, type Operation } from "./guard.ts"
import type { Action, Rules } from "./model.ts"
import * as Once from "./once.ts"
import { Granted } from "./question.ts"
import { transfer } from "./transfer.ts"

const asking = (action: Action): Operation => ({ name: action.operation, action })

/** The needs of one change of a patch. */
const needsOf = (change: Backend.PlannedChange, paths: Backend.Paths | undefined): Failing<ReadonlyArray<Need>> =>
  Effect.gen(function* () {
    const normal = (path: string) => Effect.fromResult(Path.resolve("patch", path, paths))
    const entry = { entry: true }
    if (change.operation !== "move") {
      const path = yield* normal(change.path)
      const operation = change.operation === "read" ? "read" : "write"
      return [needOf(operation, change.path, path, change.operation === "delete" ? entry : undefined)]
    }
    const [from, to] = [yield* normal(change.from), yield* normal(change.to)]
    return movingNeeds(change.from, from, change.to, to)
  })

const movingNeeds = (from: string, source: string, to: string, target: string): ReadonlyArray<Need> => [
  needOf("read", from, source, { entry: true }),
  needOf("write", from, source, { entry: true }),
  needOf("write", to, target, { entry: true })
]

export const changesOf = (
  backend: Backend.Service,
  rules: Rules,
  guard: Guard
): Pick<Backend.Service, "read" | "write" | "edit" | "delete" | "move" | "upload" | "download" | "permit"> => {
  const runOnce = Once.onceFor(rules)

  const permit = Effect.fnUntraced(function* (
    plan: Backend.Plan
  ): Effect.fn.Return<Backend.Permit, BackendError.BackendError> {
    const needs = yield* Effect.forEach(plan.changes, (change) => needsOf(change, backend.paths))
    const operation = asking({ operation: "patch", plan })
    const accesses = yield* authoriseOne(guard, operation, { needs: needs.flat() }, Effect.succeed)
    const inner = backend.permit === undefined ? undefined : yield* backend.permit(plan)
    return (work) =>
      Effect.updateService(inner === undefined ? work : inner(work), Granted, (granted) => [
        ...granted,
        { rules, accesses }
      ])
  })

  return {
    permit,
    read: (inputPath, window) =>
      at(guard, "read", inputPath, (path) =>
        authoriseOne(
          guard,
          asking({ operation: "read", path, window }),
          { needs: [needOf("read", inputPath, path)] },
          () => backend.read(inputPath, window)
        )
      ),
    write: (inputPath, content, options) =>
      at(guard, "write", inputPath, (path) =>
        authoriseOne(
          guard,
          asking({ operation: "write", path, content }),
          { needs: [needOf("write", inputPath, path)] },
          () =>
            runOnce(
              "write",
              [path, content, fromUnknown(options)],
              Once.Written,
              backend.write(inputPath, content, options)
            )
        )
      ),
    edit: (inputPath, replacements, options) =>
      at(guard, "edit", inputPath, (path) =>
        authoriseOne(
          guard,
          asking({ operation: "edit", path, replacements }),
          { needs: [needOf("write", inputPath, path), needOf("read", inputPath, path)] },
          () =>
            runOnce(
              "edit",
              [path, fromUnknown(replacements), fromUnknown(options)],
              Once.Edited,
              backend.edit(inputPath, replacements, options)
            )
        )
      ),
    delete: (inputPath, options) =>
      at(guard, "delete", inputPath, (path) =>
        authoriseOne(
          guard,
          { ...asking({ operation: "delete", path, recursive: options?.recursive === true }), alone: true },
          { needs: [needOf("write", inputPath, path, { entry: true })], tree: path },
          () => runOnce("delete", [path, fromUnknown(options)], Schema.Void, backend.delete(inputPath, options))
        )
      ),
    move: (from, to) =>
      at(guard, "move", from, (source) =>
        at(guard, "move", to, (target) =>
          authoriseOne(
            guard,
            { ...asking({ operation: "move", from: source, to: target }), alone: true },
            { needs: movingNeeds(from, source, to, target), tree: source },
            () => runOnce("move", [source, target], Schema.Void, backend.move(from, to))
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
            (input) => runOnce("upload", input, Once.Uploaded, backend.upload(allowed))
          )
      ),
    download: (paths) =>
      transfer(guard, { operation: "download", paths }, "read", paths, (path) => path, backend.download)
  }
}
