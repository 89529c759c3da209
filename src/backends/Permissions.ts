/**
 * Say which files an agent may read and write, and for which files it asks first.
 *
 * Rules stand in front of a backend, so no tool, middleware or sub-agent gets around them. The first rule that covers a
 * path decides. Globs match whole paths; `**` stands for any number of names, zero included: `/a/**` covers `/a`, all in
 * it, and dot files. A rule that refuses or asks also covers all below its paths.
 *
 * ```ts
 * import { Layer } from "effect"
 * import { MemoryBackend, Permissions } from "effect-deepagents/backends"
 *
 * const files = Permissions.layer({
 *   rules: [
 *     { operations: ["read", "write"], paths: ["/secrets", "/.env*"], ruling: "refuse" },
 *     { operations: ["write"], paths: ["/config/**"], ruling: "ask" },
 *     { operations: ["read", "write"], paths: ["/**"], ruling: "allow" }
 *   ],
 *   default: "refuse"
 * }).pipe(Layer.provide(MemoryBackend.layer()))
 * ```
 *
 * - `ls`, `read`, `grep`, `glob` and `download` need to read; `write`, `upload` and `delete` need to write.
 * - `edit` needs both, as its failures quote the file. `move` needs to write both paths, and to read the first.
 * - To delete or move a directory, an agent needs all paths that could be in it.
 * - A refused path fails with `PermissionDenied`, whether something is there or not. Listings and searches go on as if it
 *   did not exist, limits included. They pass through a refused directory if something in it could be allowed.
 * - A link needs its own path and its target. A hard link is a file like any other.
 * - Names are compared byte for byte. A backend whose file system folds case says how names are stored (`realPaths`), and
 *   rules hold for those names too.
 *
 * A rule that asks, asks the run whose tool does the operation: with the tool's name, the operation with all of its
 * effects, and every path that a rule asks about. Outside of a run it asks the `Approval.Approvals` in context. Where
 * nobody can be asked, it refuses.
 */
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Backend from "../core/Backend.ts"
import * as Ruling from "../core/Ruling.ts"
import * as Sandbox from "../core/Sandbox.ts"
import * as Path from "./internal/files/path.ts"
import { backendOf } from "./internal/permissions/backend.ts"
import { InvalidPermissions, type Options, type Rules } from "./internal/permissions/model.ts"
import * as Compiled from "./internal/permissions/rules.ts"
import { sandboxOf } from "./internal/permissions/sandbox.ts"

export { FileRule, InvalidPermissions, type Options } from "./internal/permissions/model.ts"

/**
 * Checks rules, and returns the function that rules on a path, or on commands. It answers without a backend, so it knows
 * no links. It refuses a text that can't be a path.
 */
export const compile = (
  options: Options
): Result.Result<(operation: "read" | "write" | "execute", path?: string) => Ruling.Ruling, InvalidPermissions> =>
  Result.map(Compiled.compile(options), (rules) => (operation, path = "/") => {
    if (operation === "execute") return rules.commands
    const normal = Path.normalize(operation, path)
    return Result.isSuccess(normal)
      ? Compiled.decide(rules, operation, normal.success)
      : Ruling.refuse("default", normal.failure.message)
  })

const compileEffect = (options: Options): Effect.Effect<Rules, InvalidPermissions> =>
  Effect.fromResult(Compiled.compile(options))

/** Puts rules before a sandbox. Commands go around rules for the files that they reach, so such rules fail. */
const enforce = (sandbox: Sandbox.Service, rules: Rules): Effect.Effect<Sandbox.Service, InvalidPermissions> => {
  const problem = Compiled.findUnenforceable(rules, sandbox)
  return problem === undefined ? Effect.succeed(sandboxOf(sandbox, rules)) : Effect.fail(problem)
}

/**
 * Puts rules before a backend. A sandbox stays a sandbox unless the rules refuse all commands. Then a rule that refuses or
 * asks about files that a command reaches fails, as nothing could enforce it.
 */
export const wrap: {
  (options: Options): (backend: Backend.Service) => Effect.Effect<Backend.Service, InvalidPermissions>
  (backend: Backend.Service, options: Options): Effect.Effect<Backend.Service, InvalidPermissions>
} = dual(2, (backend: Backend.Service, options: Options): Effect.Effect<Backend.Service, InvalidPermissions> =>
  Effect.flatMap(compileEffect(options), (rules): Effect.Effect<Backend.Service, InvalidPermissions> =>
    Sandbox.isSandbox(backend) && !Compiled.isRefusal(rules.commands)
      ? enforce(backend, rules)
      : Effect.succeed(backendOf(backend, rules))
  )
)

/** Puts rules before a sandbox. Fails if they refuse all commands: then {@link wrap} returns a backend. */
export const wrapSandbox: {
  (options: Options): (sandbox: Sandbox.Service) => Effect.Effect<Sandbox.Service, InvalidPermissions>
  (sandbox: Sandbox.Service, options: Options): Effect.Effect<Sandbox.Service, InvalidPermissions>
} = dual(2, (sandbox: Sandbox.Service, options: Options): Effect.Effect<Sandbox.Service, InvalidPermissions> =>
  Effect.flatMap(compileEffect(options), (rules) => {
    if (!Compiled.isRefusal(rules.commands)) return enforce(sandbox, rules)
    const problem = "commands are refused, so this is no sandbox; use Permissions.layer or Permissions.wrap"
    const rule = options.rules.findIndex(({ operations }) => operations[0] === "execute")
    return Effect.fail(
      rule < 0
        ? new InvalidPermissions({ rule: "default", field: "default", problem })
        : new InvalidPermissions({ rule, field: "ruling", problem })
    )
  })
)

/** Makes a layer that puts rules before the backend in context. `Layer.provide` that backend, so that nothing else sees it. */
export const layer = (options: Options): Layer.Layer<Backend.Backend, InvalidPermissions, Backend.Backend> =>
  Backend.layer(Backend.Backend.use((backend) => wrap(backend, options)))

/** Like {@link layer}, for a sandbox that keeps its commands: provides both services. */
export const layerSandbox = (
  options: Options
): Layer.Layer<Sandbox.Sandbox | Backend.Backend, InvalidPermissions, Sandbox.Sandbox> =>
  Sandbox.layer(Sandbox.Sandbox.use((sandbox) => wrapSandbox(sandbox, options)))
