/** The schema of policies; public by `Policy`. */
import * as Schema from "effect/Schema"
import * as Network from "../../net/Network.ts"

const Name = Schema.NonEmptyString

/** The word of a rule: the call runs, a person is asked, or it does not run. */
export const Mode = Schema.Literals(["allow", "ask", "deny"])
export type Mode = typeof Mode.Type

const Scalar = Schema.Union([Schema.String, Schema.Finite, Schema.Boolean])

/**
 * A pattern of an argument. A text has wildcards: `*` is any text, `?` one character, `**` any text at all. Where a rule
 * allows, a `*` in a word stays in that word, and one between spaces (`git *`) takes words, but no line breaks and nothing
 * by which a shell goes on to another command (`; & | < > $ ( ) { }` and backticks); a text with a step up (`..`) fits
 * neither. `**` takes everything. Where a rule restricts, wildcards take everything, and all forms of a text are the same:
 * case, width, white space, characters that nobody sees. A list is one of several patterns. `above` and `below` are bounds
 * of a number, `not` what it must not fit.
 */
export const Pattern = Schema.Union([
  Scalar,
  Schema.Array(Scalar),
  Schema.Struct({
    above: Schema.optionalKey(Schema.Finite),
    below: Schema.optionalKey(Schema.Finite),
    not: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)]))
  })
])

/**
 * A rule for calls. `arguments` are patterns by the name of an argument (`options.force` is a name in an object); all of
 * them must fit. `reason` is what the person who is asked reads, and the model whose call is refused. `deciders` may
 * decide, and nobody else (see `Approval.Request`). A decision counts for `expiresIn` milliseconds. An approval with
 * `always` covers the calls with the same values of the arguments that the rule is about, or with all the same arguments
 * where it is about none; with `always: "rule"`, every call that the rule asks about.
 */
export const Rule = Schema.Struct({
  mode: Mode,
  arguments: Schema.optionalKey(Schema.Record(Name, Pattern)),
  reason: Schema.optionalKey(Schema.String),
  deciders: Schema.optionalKey(Schema.Array(Name)),
  expiresIn: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0))),
  always: Schema.optionalKey(Schema.Literal("rule"))
})
export interface Rule extends Schema.Schema.Type<typeof Rule> {}

/**
 * The rules for a tool: a word, a rule, or several, of which the first that fits decides. If none fits, what is less
 * exact decides: the server, then the annotations, then the default.
 */
export const Rules = Schema.Union([Mode, Rule, Schema.Array(Schema.Union([Mode, Rule]))])
export type Rules = typeof Rules.Type

/**
 * The rules for the tools of a server: by their own names there, and for all others. With `trusted`, what the server says
 * of its tools counts where a rule for `annotations` allows, too.
 */
export const Server = Schema.Struct({
  default: Schema.optionalKey(Rules),
  tools: Schema.optionalKey(Schema.Record(Name, Rules)),
  trusted: Schema.optionalKey(Schema.Boolean)
})
export interface Server extends Schema.Schema.Type<typeof Server> {}

const annotations = {
  readOnly: Schema.optionalKey(Rules),
  destructive: Schema.optionalKey(Rules),
  idempotent: Schema.optionalKey(Rules),
  openWorld: Schema.optionalKey(Rules)
}

/** The annotations that rules can be for. */
export const annotated = ["readOnly", "destructive", "idempotent", "openWorld"] as const

const FileRule = Schema.Struct({
  operations: Schema.Array(Schema.Literals(["read", "write"])),
  paths: Schema.Array(Schema.String),
  mode: Mode
})

const Files = Schema.Struct({
  rules: Schema.Array(FileRule),
  default: Schema.optionalKey(Schema.Literals(["allow", "deny"]))
})

/**
 * The reach of an agent on its machine, the narrowest first: it only reads files; it changes files and runs no commands;
 * it runs commands that a person has seen; it runs commands.
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

/** The parts of a policy in which it can be strict. */
export const sections = ["tools", "files", "network", "sandbox", "budget"] as const
export type Section = (typeof sections)[number]

/**
 * A policy. Every part may be left out.
 *
 * - `name`: who set it (`organisation`); explanations name it
 * - `strict`: what comes after it can't loosen it: at all, or in these parts (`tools` are all rules for calls)
 * - `off`: tools (wildcards allowed) that are neither offered nor run, and middleware that is taken out (`Policy.apply`)
 * - `tools`: rules by the name of a tool. A name with wildcards is for all that fit, and allows those that have no rule of
 *   their own; of several, the strictest counts
 * - `servers`: rules for the tools of MCP servers, by the name of the server
 * - `annotations`: rules by what tools say of themselves; of several that apply, the strictest. What a server says of its
 *   tools allows nothing, unless the policy trusts the server
 * - `default`: rules for all other calls
 * - `files`: permissions as of `Permissions`
 * - `network`: rules as of `Network`
 * - `sandbox`: see {@link Sandbox}
 * - `budget`: see {@link Limits}
 */
export const Policy = Schema.Struct({
  name: Schema.optionalKey(Name),
  strict: Schema.optionalKey(Schema.Union([Schema.Boolean, Schema.Array(Schema.Literals(sections))])),
  off: Schema.optionalKey(
    Schema.Struct({
      tools: Schema.optionalKey(Schema.Array(Name)),
      middleware: Schema.optionalKey(Schema.Array(Name))
    })
  ),
  tools: Schema.optionalKey(Schema.Record(Name, Rules)),
  servers: Schema.optionalKey(Schema.Record(Name, Server)),
  annotations: Schema.optionalKey(Schema.Struct(annotations)),
  default: Schema.optionalKey(Rules),
  files: Schema.optionalKey(Files),
  network: Schema.optionalKey(Network.Rules),
  sandbox: Schema.optionalKey(Sandbox),
  budget: Schema.optionalKey(Limits)
})
export interface Policy extends Schema.Schema.Type<typeof Policy> {}

/** The names of all fields that there are in a policy. */
export const fieldNames: ReadonlySet<string> = new Set([
  ...[Policy, Rule, Server, Limits, Files, FileRule, Network.Rules].flatMap((struct) => Object.keys(struct.fields)),
  ...annotated,
  "middleware",
  "above",
  "below",
  "not"
])

/** Tells whether a policy is strict in a part. */
export const isStrict = ({ strict = false }: Policy, section: Section): boolean =>
  typeof strict === "boolean" ? strict : strict.includes(section)
