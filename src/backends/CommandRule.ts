/**
 * Decides on command lines: by rules, by known programs that only read, and by approvals for good.
 *
 * ```ts
 * import { CommandRule } from "effect-deepagents/backends"
 *
 * const where = { cwd: "/home/ada/shop", folders: ["/home/ada/shop"] }
 * const rules: ReadonlyArray<CommandRule.CommandRule> = [
 *   { ruling: "allow", command: "npm test:*" },
 *   { ruling: "refuse", command: "git push:*", reason: "Ada publishes." }
 * ]
 * const decide = (line: string) => CommandRule.decide(line, where, rules)?._tag
 *
 * decide("git log -3 | head") // "Allow": it only reads, in the folder
 * decide("npm test -- --bail && ls") // "Allow": each command is allowed
 * decide("timeout 5 git -C . push") // "Refuse"
 * decide("npm test > ~/.bashrc") // undefined: nothing speaks of it
 * ```
 *
 * A rule names a command by its words: `npm test` is exactly this, `npm test:*` (or `npm test *`) lets anything follow,
 * `*` inside of a word stays in it. The order is: refuse, ask, reading commands, allow, approvals for good.
 *
 * - A rule that allows holds in a strict subset of the shell's language, for each command of a line, and for no option
 *   that is known to write a file or to run a program unless the rule names it.
 * - A rule that asks or refuses holds for any command of a line: behind `sudo`, `env` and the like, in substitutions and
 *   in scripts on the line. Commands that are built at run time go around it: use a sandbox against intent.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Ruling from "../core/Ruling.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { cut } from "../support/text/text.ts"
import { oneLine } from "../support/text/untrusted.ts"
import * as Alike from "./internal/rule/alike.ts"
import { allows, type Pattern, patternOf, restricts } from "./internal/rule/pattern.ts"
import type { Where } from "./internal/rule/places.ts"
import { everyCommand, isReadingCommand } from "./internal/rule/reading.ts"
import { parse } from "./internal/rule/strict.ts"

export type { Where } from "./internal/rule/places.ts"

/** A rule for commands, with the fields of every rule (see `Ruling.Rule`). */
export const CommandRule = Schema.Struct({
  ...Ruling.Rule.fields,
  /** The pattern of a command. Default: all commands. */
  command: Schema.optionalKey(Schema.String)
})
export interface CommandRule extends Schema.Schema.Type<typeof CommandRule> {}

/** An approval for good: of exactly this line (`same`), or of the actions of its commands (`alike`). */
export const LearnedRule = Schema.Struct({ kind: Schema.Literals(["same", "alike"]), line: Schema.String })
export interface LearnedRule extends Schema.Schema.Type<typeof LearnedRule> {}

/** The pattern of a command can't be read. */
export class InvalidCommandRule extends TaggedError<InvalidCommandRule>()("InvalidCommandRule", {
  command: Schema.String,
  problem: Schema.String
}) {
  override get message(): string {
    return `The pattern ${JSON.stringify(cut(oneLine(this.command), 100))} can't be used: ${this.problem}`
  }
}

/** Checks the pattern of a command. */
export const parsePattern = (command: string): Result.Result<void, InvalidCommandRule> => {
  const problem = patternOf(command)
  return typeof problem === "string" ? Result.fail(new InvalidCommandRule({ command, problem })) : Result.void
}

const everything: Pattern = { words: [], isOpen: true }

/** A pattern that can't be read restricts everything, and allows nothing. */
const compile = ({ command, ruling }: CommandRule): Pattern | undefined => {
  const pattern = command === undefined ? everything : patternOf(command)
  return typeof pattern !== "string" ? pattern : ruling === "allow" ? undefined : everything
}

const isFor = (rule: CommandRule, line: string): boolean => {
  const pattern = compile(rule)
  return pattern !== undefined && restricts(pattern, line)
}

const nameOf = ({ command = "*", name }: CommandRule): string => name ?? `execute(${command})`

/**
 * Tells whether rules of one ruling are for a line. Rules that allow must cover all of its commands; of others, one for
 * any of its commands is enough. Without `where`, files of redirections are not covered.
 */
export const matches = (rules: ReadonlyArray<CommandRule>, line: string, where?: Where): boolean => {
  if (rules.some((rule) => rule.ruling !== "allow" && isFor(rule, line))) return true
  const patterns = rules.flatMap((rule) => (rule.ruling === "allow" ? (compile(rule) ?? []) : []))
  if (patterns.length === 0) return false
  const commands = parse(line)
  const place = where ?? { cwd: "/", folders: [] }
  return (
    commands !== undefined &&
    everyCommand(commands, place, (command, { cwds }) =>
      patterns.some((pattern) => allows(pattern, command, where, cwds))
    )
  )
}

/** Tells whether a line only reads: known programs with known options, in the folders, and no secrets. */
export const isReading = (line: string, where: Where): boolean => {
  const commands = parse(line)
  return (
    commands !== undefined && everyCommand(commands, where, (command, going) => isReadingCommand(command, where, going))
  )
}

/** Learns from an approved line: the actions of known programs, else exactly the line. */
export const learn = (line: string, where: Where): LearnedRule => Alike.learn(line, where)

/** Describes an approval for good to a person. */
export const describe = (learned: LearnedRule, where: Where): string => oneLine(Alike.describe(learned, where))

/**
 * The ruling on a line; `undefined` if nothing speaks of it. The first rule of the strictest ruling is named. A question
 * is for a person alone.
 */
export const decide = (
  line: string,
  where: Where,
  rules: ReadonlyArray<CommandRule>,
  learned: ReadonlyArray<LearnedRule> = []
): Ruling.Ruling | undefined => {
  const refuseRule = rules.find((rule) => rule.ruling === "refuse" && isFor(rule, line))
  if (refuseRule !== undefined) {
    const why = refuseRule.reason === undefined ? "" : ` ${refuseRule.reason}`
    return Ruling.refuse(nameOf(refuseRule), `Not executed: a rule refuses it (${nameOf(refuseRule)}).${why}`)
  }
  const askRule = rules.find((rule) => rule.ruling === "ask" && isFor(rule, line))
  if (askRule !== undefined) {
    const { deciders, expiresIn, reason } = askRule
    return Ruling.ask(nameOf(askRule), { reason, deciders, expiresIn, byPerson: true })
  }
  if (isReading(line, where)) return Ruling.allow("reads")
  const anything = rules.find(({ command = "*", ruling }) => ruling === "allow" && command.trim() === "*")
  if (anything !== undefined) return Ruling.allow(nameOf(anything), { settles: true })
  const allowing = rules.flatMap((rule) => (rule.ruling === "allow" ? [{ rule, pattern: compile(rule) }] : []))
  const commands = parse(line)
  const used: Array<string> = []
  const isAllowed =
    commands !== undefined &&
    everyCommand(commands, where, (command, going) => {
      if (isReadingCommand(command, where, going)) return true
      const match = allowing.find(({ pattern }) => pattern !== undefined && allows(pattern, command, where, going.cwds))
      if (match !== undefined) used.push(nameOf(match.rule))
      return match !== undefined
    })
  if (isAllowed) return Ruling.allow([...new Set(used)].join(", "), { settles: true })
  return Alike.isCovered(learned, line, where) ? Ruling.allow("learned", { settles: true }) : undefined
}
