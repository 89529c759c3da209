/** The rule that decides about a path, and those that could decide about something below it. */
import * as Result from "effect/Result"
import type * as Sandbox from "../../../core/Sandbox.ts"
import * as Path from "../files/path.ts"
import * as PathGlob from "./glob.ts"
import {
  type CommandRule,
  type Compiled,
  type Decision,
  type FileOperation,
  type Options,
  type Policy,
  type Rule,
  InvalidPermissions
} from "./model.ts"

const modes: ReadonlySet<string> = new Set(["allow", "deny", "ask"])
const fileOperations: ReadonlySet<string> = new Set(["read", "write"])

const isCommandRule = (rule: Rule): rule is CommandRule => rule.operations.some((operation) => operation === "execute")

const coversAll = (globs: ReadonlyArray<PathGlob.PathGlob>, path: string): boolean => {
  const names = Path.segments(path)
  return globs.some((glob) => PathGlob.coverage(glob, names).all)
}

/** Reads one rule. Rules may come from a file: nothing is taken for granted that a wrong one would turn into a hole. */
const compileRule = (
  rule: Rule,
  index: number,
  earlier: ReadonlyArray<Compiled>
): Result.Result<Compiled | undefined, InvalidPermissions> =>
  Result.gen(function* () {
    const refuse = (field: InvalidPermissions["field"], problem: string) =>
      Result.fail(new InvalidPermissions({ rule: index, field, problem }))
    const operations: ReadonlyArray<string> = rule.operations
    if (!modes.has(rule.mode)) return yield* refuse("mode", `it must be "allow", "deny" or "ask"`)
    if (operations.length === 0) return yield* refuse("operations", `there is none; name "read", "write" or "execute"`)
    if (isCommandRule(rule)) {
      if (operations.length > 1) {
        return yield* refuse("operations", `"execute" must be alone; make a rule of its own for files`)
      }
      if (rule.paths !== undefined) {
        return yield* refuse("paths", `a rule for "execute" has none: a command can't be held to paths`)
      }
      return undefined
    }
    const unknown = operations.find((operation) => !fileOperations.has(operation))
    if (unknown !== undefined) {
      return yield* refuse("operations", `${JSON.stringify(unknown)} is none; name "read", "write" or "execute"`)
    }
    if (rule.paths.length === 0) return yield* refuse("paths", `there is none; "/**" means all`)
    const globs: Array<PathGlob.PathGlob> = []
    for (const path of rule.paths) {
      const glob = PathGlob.compile(path, rule.mode !== "allow")
      if (Result.isFailure(glob)) return yield* refuse("paths", `${JSON.stringify(path)}: ${glob.failure}`)
      globs.push(glob.success)
    }
    const liveFor = (operation: FileOperation) =>
      rule.operations.includes(operation)
        ? globs.filter(({ base }) => !earlier.some(({ live }) => coversAll(live[operation], base)))
        : []
    return { rule, index, globs, live: { read: liveFor("read"), write: liveFor("write") } }
  })

/** Reads rules. */
export const compile = (options: Options): Result.Result<Policy, InvalidPermissions> =>
  Result.gen(function* () {
    const fallback = options.default ?? "allow"
    const known: ReadonlyArray<string> = ["allow", "deny"]
    if (!known.includes(fallback)) {
      const problem = `it must be "allow" or "deny"`
      return yield* Result.fail(new InvalidPermissions({ rule: "default", field: "default", problem }))
    }
    const otherwise: Decision = { mode: fallback }
    const rules: Array<Compiled> = []
    for (const [index, rule] of options.rules.entries()) {
      const compiled = yield* compileRule(rule, index, rules)
      if (compiled !== undefined) rules.push(compiled)
    }
    const commands = options.rules.find(isCommandRule)
    return { rules, otherwise, commands: commands === undefined ? otherwise : { mode: commands.mode, rule: commands } }
  })

const decisionOf = ({ rule }: Compiled): Decision => ({ mode: rule.mode, rule })

/** Decides about a path (a normal one). */
export const decide = (policy: Policy, operation: FileOperation, path: string): Decision => {
  const names = Path.segments(path)
  const first = policy.rules.find(({ live }) => live[operation].some((glob) => PathGlob.coverage(glob, names).itself))
  return first === undefined ? policy.otherwise : decisionOf(first)
}

/** The rules that could decide about a path (a normal one) or something below it; the default last, if it could. */
const deciding = (policy: Policy, operation: FileOperation, path: string): ReadonlyArray<Compiled | undefined> => {
  const names = Path.segments(path)
  const found: Array<Compiled | undefined> = []
  for (const compiled of policy.rules) {
    const coverages = compiled.live[operation].map((glob) => PathGlob.coverage(glob, names))
    if (coverages.some(({ some }) => some)) found.push(compiled)
    // No later rule is asked about anything here.
    if (coverages.some(({ all }) => all)) return found
  }
  return [...found, undefined]
}

/** All that could be decided about a path (a normal one) or something below it. */
export const overlaps = (policy: Policy, operation: FileOperation, path: string): ReadonlyArray<Decision> =>
  deciding(policy, operation, path).map((compiled) =>
    compiled === undefined ? policy.otherwise : decisionOf(compiled)
  )

/** The strictest of some decisions. */
export const strictest = (decisions: ReadonlyArray<Decision>): Decision =>
  decisions.find(({ mode }) => mode === "deny") ??
  decisions.find(({ mode }) => mode === "ask") ??
  decisions[0] ?? { mode: "deny" }

const advice = "deny commands by a rule, or keep these files in a backend that commands can't reach"

/** The first rule that commands could go around, if there is one. */
export const unenforceable = (policy: Policy, sandbox: Sandbox.Service): InvalidPermissions | undefined => {
  for (const compiled of policy.rules) {
    const { globs, index, rule } = compiled
    if (rule.mode === "allow") continue
    for (const { base, source } of globs) {
      const decides = rule.operations.some((operation) => deciding(policy, operation, base).includes(compiled))
      if (!decides || !sandbox.reaches(base)) continue
      const problem = `a command can reach what ${JSON.stringify(source)} means (at or below ${base}); ${advice}`
      return new InvalidPermissions({ rule: index, field: "paths", problem })
    }
  }
  if (policy.otherwise.mode !== "deny" || !sandbox.reaches("/")) return undefined
  const operations: ReadonlyArray<FileOperation> = ["read", "write"]
  return operations.some((operation) => deciding(policy, operation, "/").includes(undefined))
    ? new InvalidPermissions({
        rule: "default",
        field: "default",
        problem: `a command can reach files that no rule allows; ${advice}`
      })
    : undefined
}
