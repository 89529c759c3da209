/** The schema of policies; public by `Policy`. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as CommandRule from "../../backends/CommandRule.ts"
import * as Permissions from "../../backends/Permissions.ts"
import * as Ruling from "../../core/Ruling.ts"
import * as Network from "../../net/Network.ts"

const Name = Schema.NonEmptyString

const Verb = Ruling.Rule.fields.ruling
export type Verb = typeof Verb.Type

const Scalar = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean])

/**
 * A pattern of an argument: a text with wildcards, a value, a list of alternatives, or bounds and exceptions.
 *
 * In a rule that allows, `*` in a word stays in that word. `*` between spaces (`git *`) takes words, but no line breaks
 * and no sign that begins another command in a shell. A text with a step up (`..`) fits neither. In a rule that
 * restricts, wildcards take everything, and case, width, white space and invisible characters make no difference.
 */
const Pattern = Schema.Union([
  Scalar,
  Schema.Array(Scalar),
  Schema.Struct({
    /** Numbers above this one fit. */
    above: Schema.optionalKey(Schema.Finite),
    /** Numbers below this one fit. */
    below: Schema.optionalKey(Schema.Finite),
    /** Values that fit none of these patterns fit. */
    not: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)]))
  })
])

/** The pattern of a command. One that can't be read is refused when the policy is made. */
const Command = Schema.String.check(
  Schema.makeFilter((command) => {
    const parsed = CommandRule.parsePattern(command)
    return Result.isSuccess(parsed) ? undefined : parsed.failure.message
  })
)

/** A rule for calls, with the fields of every rule (see `Ruling.Rule`). */
export const Rule = Schema.Struct({
  ...Ruling.Rule.fields,
  /** Patterns by the name of an argument (`options.force` is a name in an object). All must fit. Default: all calls. */
  arguments: Schema.optionalKey(Schema.Record(Name, Pattern)),
  /**
   * Patterns of the command line in the argument `command`, as in `CommandRule`: `npm test:*`. A rule that allows must
   * cover each command of a line; of others, one pattern for any command is enough. Default: all calls.
   */
  command: Schema.optionalKey(Schema.Union([Command, Schema.Array(Command)])),
  /**
   * The calls that an approval for good covers: with `"rule"`, all calls that the rule asks about. Default: calls with
   * the same values of the arguments in the patterns, or with the same arguments if there are no patterns.
   */
  always: Schema.optionalKey(Schema.Literal("rule"))
})
export interface Rule extends Schema.Schema.Type<typeof Rule> {}

/**
 * The rules for a tool: a verb, a rule, or a list, of which the first that fits decides. If none fits, the next level
 * decides: the server, then the annotations, then the default.
 */
const Rules = Schema.Union([Verb, Rule, Schema.Array(Schema.Union([Verb, Rule]))])
export type Rules = typeof Rules.Type

/** The rules for the tools of a server. */
const Server = Schema.Struct({
  /** The rules for tools without rules of their own. */
  default: Schema.optionalKey(Rules),
  /** Rules by the server's own name of a tool. */
  tools: Schema.optionalKey(Schema.Record(Name, Rules)),
  /** Whether rules for `annotations` may allow calls by the server's own annotations. Default: `false`. */
  trusted: Schema.optionalKey(Schema.Boolean)
})

const annotations = {
  readOnly: Schema.optionalKey(Rules),
  destructive: Schema.optionalKey(Rules),
  idempotent: Schema.optionalKey(Rules),
  openWorld: Schema.optionalKey(Rules)
}

/** The annotations with rules. */
export const annotated = ["readOnly", "destructive", "idempotent", "openWorld"] as const

const Files = Schema.Struct({
  rules: Schema.Array(Permissions.FileRule),
  default: Schema.optionalKey(Schema.Literals(["allow", "refuse"]))
})

/**
 * The reach of an agent on its machine, the narrowest first: it reads files; it changes files, but runs no commands; it
 * runs commands that a person approved; it runs commands.
 */
export const Sandbox = Schema.Literals(["readOnly", "noCommands", "askForCommands", "open"])
export type Sandbox = typeof Sandbox.Type

const Amount = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

/** Limits as of `Budget`; `time` is in milliseconds. */
export const Limits = Schema.Struct({
  tokens: Schema.optionalKey(Amount),
  cost: Schema.optionalKey(Amount),
  toolCalls: Schema.optionalKey(Amount),
  rounds: Schema.optionalKey(Amount),
  time: Schema.optionalKey(Amount),
  onExhausted: Schema.optionalKey(Schema.Literals(["finalAnswer", "fail"]))
})
export interface Limits extends Schema.Schema.Type<typeof Limits> {}

/** The parts of a policy that can be strict. */
const sections = ["tools", "files", "network", "sandbox", "budget"] as const
export type Section = (typeof sections)[number]

/** A policy. Every part is optional. */
export const Policy = Schema.Struct({
  /** Who set it (`organisation`). Explanations, requests and the audit show the name. */
  name: Schema.optionalKey(Name),
  /** Keeps later policies from loosening this one: all of it, or these parts (`tools` means all rules for calls). */
  strict: Schema.optionalKey(Schema.Union([Schema.Boolean, Schema.Array(Schema.Literals(sections))])),
  off: Schema.optionalKey(
    Schema.Struct({
      /** Tools that are neither offered nor run. Names may have wildcards. */
      tools: Schema.optionalKey(Schema.Array(Name)),
      /** Middleware that `Compiled.apply` removes. */
      middleware: Schema.optionalKey(Schema.Array(Name))
    })
  ),
  /** Rules by the name of a tool. Names with wildcards allow only tools without rules of their own. */
  tools: Schema.optionalKey(Schema.Record(Name, Rules)),
  /** Rules for the tools of MCP servers, by the name of the server. */
  servers: Schema.optionalKey(Schema.Record(Name, Server)),
  /** Rules by the annotations of tools. The annotations of a server allow nothing unless the server is `trusted`. */
  annotations: Schema.optionalKey(Schema.Struct(annotations)),
  /** Rules for all other calls. */
  default: Schema.optionalKey(Rules),
  /** Rules for files, as in `Permissions`. */
  files: Schema.optionalKey(Files),
  /** Rules for requests, as in `Network`. */
  network: Schema.optionalKey(Network.Rules),
  /** The reach on the machine. */
  sandbox: Schema.optionalKey(Sandbox),
  /** The limits of a run. */
  budget: Schema.optionalKey(Limits)
})
export interface Policy extends Schema.Schema.Type<typeof Policy> {}

/** The names of all fields in a policy. */
export const fieldNames: ReadonlySet<string> = new Set([
  ...[Policy, Rule, Server, Limits, Files, Permissions.FileRule, Network.Rules].flatMap((struct) =>
    Object.keys(struct.fields)
  ),
  ...annotated,
  "middleware",
  "above",
  "below",
  "not"
])

export const nameOf = ({ name }: Policy, index: number): string => name ?? `policy ${index + 1}`

/** Checks whether a policy is strict in a part. */
export const isStrict = ({ strict = false }: Policy, section: Section): boolean =>
  typeof strict === "boolean" ? strict : strict.includes(section)
