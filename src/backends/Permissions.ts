/**
 * Say which files an agent may read and write, and which it has to ask for.
 *
 * Rules stand in front of a backend, so no tool, middleware or sub-agent gets around them. The first rule that covers a
 * path decides. Globs are of whole paths; `**` stands for any number of names, none too: `/a/**` covers `/a`, all in
 * it, and dot files like any others. A rule that denies or asks covers all that is below what it names, too.
 *
 * ```ts
 * import { Layer } from "effect"
 * import { MemoryBackend, Permissions } from "effect-deepagents/backends"
 *
 * const files = Permissions.layer({
 *   rules: [
 *     { operations: ["read", "write"], paths: ["/secrets", "/.env*"], mode: "deny" },
 *     { operations: ["write"], paths: ["/config/**"], mode: "ask" },
 *     { operations: ["read", "write"], paths: ["/**"], mode: "allow" }
 *   ],
 *   default: "deny"
 * }).pipe(Layer.provide(MemoryBackend.layer()))
 * ```
 *
 * Operations need: `ls`, `read`, `grep`, `glob` and `download` to read; `write`, `upload` and `delete` to write;
 * `edit` both, as its failures quote the file; `move` to write both paths, and to read the first. To delete or move a
 * directory, all that could be in it must be allowed. A path that is denied answers `PermissionDenied`, whatever is
 * there; listings and searches go on as if it were not there, limits included. A directory that is not allowed can be
 * gone through if something in it could be.
 *
 * Links: the path as it is given and the path where it really leads must be allowed. Hard links are files like any
 * others. Names are compared byte for byte; a backend whose file system folds case says how names are stored (see
 * `realPaths`), and those are held against the rules too.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import type * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Backend from "../core/Backend.ts"
import * as Sandbox from "../core/Sandbox.ts"
import * as Path from "./internal/files/path.ts"
import { Approver as Asked } from "./internal/permissions/approval.ts"
import { backendOf } from "./internal/permissions/backend.ts"
import {
  type Answer,
  type Decision,
  type FileOperation,
  InvalidPermissions,
  type Operation,
  type Options,
  type Policy,
  type Service
} from "./internal/permissions/model.ts"
import * as Policies from "./internal/permissions/policy.ts"
import { sandboxOf } from "./internal/permissions/sandbox.ts"

export {
  type Access,
  type Action,
  type Answer,
  type CommandRule,
  type Decision,
  type FileOperation,
  type FileRule,
  InvalidPermissions,
  type Mode,
  type Operation,
  type Options,
  type Policy,
  type Request,
  type Rule,
  type Service
} from "./internal/permissions/model.ts"

/** Checks rules and makes them ready to decide. */
export const compile: (options: Options) => Result.Result<Policy, InvalidPermissions> = Policies.compile

/** Decides about a path, or about commands. A path that can't be one is denied. */
export const decide: {
  (operation: FileOperation, path: string): (policy: Policy) => Decision
  (operation: "execute"): (policy: Policy) => Decision
  (policy: Policy, operation: FileOperation, path: string): Decision
  (policy: Policy, operation: "execute"): Decision
} = dual(
  ([first]) => typeof first !== "string",
  (policy: Policy, operation: Operation, path?: string): Decision => {
    if (operation === "execute") return policy.commands
    const normal = Path.normalize(operation, path ?? "/")
    return Result.isSuccess(normal) ? Policies.decide(policy, operation, normal.success) : { mode: "deny" }
  }
)

/**
 * All that could be decided about a path or something below it, whether it is there or not: for what changes a
 * directory as a whole.
 */
export const overlaps: {
  (operation: FileOperation, path: string): (policy: Policy) => ReadonlyArray<Decision>
  (policy: Policy, operation: FileOperation, path: string): ReadonlyArray<Decision>
} = dual(3, (policy: Policy, operation: FileOperation, path: string): ReadonlyArray<Decision> => {
  const normal = Path.normalize(operation, path)
  return Result.isSuccess(normal) ? Policies.overlaps(policy, operation, normal.success) : [{ mode: "deny" }]
})

/** It may be done. */
export const approve: Answer = { _tag: "Approved" }

/** It may not be done, and why. */
export const refuse = (message: string): Answer => ({ _tag: "Refused", message })

/**
 * The one who is asked about what rules leave to be asked, looked up each time. By default these are the
 * `Approval.Approvals` of the run whose tool does it: with the tool's call, the operation with all that it would do,
 * and every path that is asked about; they approve or reject. Without them, and outside of tools, everything is
 * refused, as nobody is there to ask. An approver of your own decides in code, in their place.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Permissions } from "effect-deepagents/backends"
 *
 * const onlyReads = Layer.succeed(Permissions.Approver, {
 *   ask: ({ accesses }) =>
 *     Effect.succeed(
 *       accesses.every(({ operation }) => operation === "read") ? Permissions.approve : Permissions.refuse("read only")
 *     )
 * })
 * ```
 */
export const Approver: Context.Reference<Service> = Asked

const compiled = (options: Options): Effect.Effect<Policy, InvalidPermissions> => Effect.fromResult(compile(options))

/** Commands go around rules for files that they can reach. */
const enforced = (sandbox: Sandbox.Service, policy: Policy): Effect.Effect<Sandbox.Service, InvalidPermissions> => {
  const problem = Policies.unenforceable(policy, sandbox)
  return problem === undefined ? Effect.succeed(sandboxOf(sandbox, policy)) : Effect.fail(problem)
}

/**
 * Puts rules before a backend. Before a sandbox it gives a sandbox, if rules don't deny all commands: then a rule that
 * denies or asks about files at which a command could get is refused, as it could not be enforced.
 */
export const wrap: {
  (options: Options): (backend: Backend.Service) => Effect.Effect<Backend.Service, InvalidPermissions>
  (backend: Backend.Service, options: Options): Effect.Effect<Backend.Service, InvalidPermissions>
} = dual(2, (backend: Backend.Service, options: Options): Effect.Effect<Backend.Service, InvalidPermissions> =>
  Effect.flatMap(compiled(options), (policy): Effect.Effect<Backend.Service, InvalidPermissions> =>
    Sandbox.isSandbox(backend) && policy.commands.mode !== "deny"
      ? enforced(backend, policy)
      : Effect.succeed(backendOf(backend, policy))
  )
)

/**
 * Puts rules before a sandbox. Fails if they deny all commands, too: then {@link wrap} gives what is left, a backend.
 */
export const wrapSandbox: {
  (options: Options): (sandbox: Sandbox.Service) => Effect.Effect<Sandbox.Service, InvalidPermissions>
  (sandbox: Sandbox.Service, options: Options): Effect.Effect<Sandbox.Service, InvalidPermissions>
} = dual(2, (sandbox: Sandbox.Service, options: Options): Effect.Effect<Sandbox.Service, InvalidPermissions> =>
  Effect.flatMap(compiled(options), (policy) => {
    const { mode, rule } = policy.commands
    if (mode !== "deny") return enforced(sandbox, policy)
    const problem = "commands are denied, so this is no sandbox; use Permissions.layer or Permissions.wrap"
    return Effect.fail(
      rule === undefined
        ? new InvalidPermissions({ rule: "default", field: "default", problem })
        : new InvalidPermissions({ rule: options.rules.indexOf(rule), field: "mode", problem })
    )
  })
)

/** Makes a layer that puts rules before the backend that it is given. Give it by `Layer.provide`, and it is hidden. */
export const layer = (options: Options): Layer.Layer<Backend.Backend, InvalidPermissions, Backend.Backend> =>
  Backend.layer(Backend.Backend.use((backend) => wrap(backend, options)))

/** Like {@link layer}, for a sandbox whose commands go on: provides both services. */
export const layerSandbox = (
  options: Options
): Layer.Layer<Sandbox.Sandbox | Backend.Backend, InvalidPermissions, Sandbox.Sandbox> =>
  Sandbox.layer(Sandbox.Sandbox.use((sandbox) => wrapSandbox(sandbox, options)))
