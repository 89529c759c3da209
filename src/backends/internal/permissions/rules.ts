/** Finds the rule that decides about a path, and the rules that could decide about something below it. */
import * as Result from "effect/Result"
import * as Ruling from "../../../core/Ruling.ts"
import type * as Sandbox from "../../../core/Sandbox.ts"
import { check } from "../../../support/options/check.ts"
import * as Path from "../files/path.ts"
import * as shapes from "../shapes.ts"
import * as PathGlob from "./glob.ts"
import {
  type CommandRule,
  type CompiledRule,
  type FileOperation,
  type FileRule,
  InvalidPermissions,
  type Options,
  type Rules
} from "./model.ts"

/** The reason of a refusal whose rule gives none. */
export const noReason = "rules don't allow it"

const isCommandRule = (rule: FileRule | CommandRule): rule is CommandRule =>
  rule.operations.some((operation) => operation === "execute")

const rulingOf = (rule: FileRule | CommandRule): Ruling.Ruling => {
  const by = rule.name ?? rule.paths?.join(", ") ?? "execute"
  const { deciders, expiresIn, reason, ruling } = rule
  if (ruling === "allow") return Ruling.allow(by)
  return ruling === "ask" ? Ruling.ask(by, { deciders, expiresIn, reason }) : Ruling.refuse(by, reason ?? noReason)
}

const coversAll = (globs: ReadonlyArray<PathGlob.PathGlob>, path: string): boolean => {
  const names = Path.segments(path)
  return globs.some((glob) => PathGlob.coverage(glob, names).all)
}

/** Compiles one rule. Rules may come from a file, so a wrong one must not become a hole. */
const compileRule = (
  rule: FileRule | CommandRule,
  index: number,
  earlier: ReadonlyArray<CompiledRule>
): Result.Result<CompiledRule | undefined, InvalidPermissions> =>
  Result.gen(function* () {
    const fail = (field: InvalidPermissions["field"], problem: string) =>
      Result.fail(new InvalidPermissions({ rule: index, field, problem }))
    const { operations } = rule
    if (operations.length === 0) return yield* fail("operations", `there is none; name "read", "write" or "execute"`)
    if (isCommandRule(rule)) {
      if (operations.length > 1) {
        return yield* fail("operations", `"execute" must be alone; make a rule of its own for files`)
      }
      if (rule.paths !== undefined) {
        return yield* fail("paths", `a rule for "execute" has none: a command can't be held to paths`)
      }
      return undefined
    }
    if (rule.paths === undefined || rule.paths.length === 0)
      return yield* fail("paths", `there is none; "/**" means all`)
    const globs: Array<PathGlob.PathGlob> = []
    for (const path of rule.paths) {
      const glob = PathGlob.compile(path, rule.ruling !== "allow")
      if (Result.isFailure(glob)) return yield* fail("paths", `${JSON.stringify(path)}: ${glob.failure}`)
      globs.push(glob.success)
    }
    const liveFor = (operation: FileOperation) =>
      rule.operations.includes(operation)
        ? globs.filter(({ base }) => !earlier.some(({ live }) => coversAll(live[operation], base)))
        : []
    return { rule, ruling: rulingOf(rule), index, globs, live: { read: liveFor("read"), write: liveFor("write") } }
  })

const checkOptions = check(shapes.permissionsLayer)

export const compile = (options: Options): Result.Result<Rules, InvalidPermissions> =>
  Result.gen(function* () {
    const wrong = checkOptions(options)
    if (wrong !== undefined) {
      return yield* Result.fail(new InvalidPermissions({ rule: "default", field: "options", problem: wrong }))
    }
    const fallback = options.default ?? "allow"
    const otherwise = fallback === "allow" ? Ruling.allow("default") : Ruling.refuse("default", noReason)
    const files: Array<CompiledRule> = []
    for (const [index, rule] of options.rules.entries()) {
      const compiled = yield* compileRule(rule, index, files)
      if (compiled !== undefined) files.push(compiled)
    }
    const command = options.rules.find(isCommandRule)
    return { files, otherwise, commands: command === undefined ? otherwise : rulingOf(command) }
  })

/** Rules on a normal path. */
export const decide = (rules: Rules, operation: FileOperation, path: string): Ruling.Ruling => {
  const names = Path.segments(path)
  const first = rules.files.find(({ live }) => live[operation].some((glob) => PathGlob.coverage(glob, names).itself))
  return first === undefined ? rules.otherwise : first.ruling
}

/** The rules that could decide about a normal path or something below it. The default is last, as `undefined`. */
const deciding = (
  { files }: Rules,
  operation: FileOperation,
  path: string
): ReadonlyArray<CompiledRule | undefined> => {
  const names = Path.segments(path)
  const candidates: Array<CompiledRule | undefined> = []
  for (const compiled of files) {
    const coverages = compiled.live[operation].map((glob) => PathGlob.coverage(glob, names))
    if (coverages.some(({ some }) => some)) candidates.push(compiled)
    // No later rule decides about anything here.
    if (coverages.some(({ all }) => all)) return candidates
  }
  return [...candidates, undefined]
}

/** All rulings that are possible on a normal path or something below it, whether it exists or not. */
export const overlaps = (rules: Rules, operation: FileOperation, path: string): ReadonlyArray<Ruling.Ruling> =>
  deciding(rules, operation, path).map((compiled) => (compiled === undefined ? rules.otherwise : compiled.ruling))

export const isRefusal = ({ _tag }: Ruling.Ruling): boolean => _tag === "Refuse"

const advice = "refuse commands by a rule, or keep these files in a backend that commands can't reach"

/** The first rule that commands could go around. */
export const findUnenforceable = (rules: Rules, sandbox: Sandbox.Service): InvalidPermissions | undefined => {
  for (const compiled of rules.files) {
    const { globs, index, rule } = compiled
    if (rule.ruling === "allow") continue
    for (const { base, source } of globs) {
      const decides = rule.operations.some((operation) => deciding(rules, operation, base).includes(compiled))
      if (!decides || !sandbox.reaches(base)) continue
      const problem = `a command can reach what ${JSON.stringify(source)} means (at or below ${base}); ${advice}`
      return new InvalidPermissions({ rule: index, field: "paths", problem })
    }
  }
  if (!isRefusal(rules.otherwise) || !sandbox.reaches("/")) return undefined
  const operations: ReadonlyArray<FileOperation> = ["read", "write"]
  return operations.some((operation) => deciding(rules, operation, "/").includes(undefined))
    ? new InvalidPermissions({
        rule: "default",
        field: "default",
        problem: `a command can reach files that no rule allows; ${advice}`
      })
    : undefined
}
