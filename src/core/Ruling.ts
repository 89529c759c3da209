/**
 * Rulings on tool calls: a call may run, a person is asked first, or the call does not run.
 *
 * Every rule of this library (approvals, policies, guardrails, taint, budgets, permissions) gives rulings. All sources
 * rule on all calls of a round before anybody is asked. The strictest ruling wins: refuse, then ask, then allow. Two that
 * ask become one question, whose answer satisfies both.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Middleware, Ruling } from "effect-deepagents"
 *
 * const careful = Middleware.make({
 *   name: "careful",
 *   asks: true,
 *   rulings: (_run, calls) =>
 *     Effect.succeed(
 *       calls.map(({ annotations, name }) => {
 *         if (name === "drop_table") return Ruling.refuse("careful", "Tables stay.")
 *         return annotations.destructive === true ? Ruling.ask("careful", { byPerson: true }) : undefined
 *       })
 *     )
 * })
 * ```
 */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Choice, Decision } from "./Approval.ts"

/** The fields that all rules share, in code and in files. */
export const Rule = Schema.Struct({
  /** What happens: the call runs, somebody is asked first, or it does not run. */
  ruling: Schema.Literals(["allow", "ask", "refuse"]),
  /** The name of the rule, which requests and explanations show. Default: its place, or its paths. */
  name: Schema.optionalKey(Schema.NonEmptyString),
  /** The reason. The person reads it with the question, and the model with the refusal. */
  reason: Schema.optionalKey(Schema.String),
  /** Who may decide: ids of principals, or `role:` and a role. Default: anybody. */
  deciders: Schema.optionalKey(Schema.Array(Schema.NonEmptyString)),
  /** Milliseconds after which a decision no longer counts. Default: it always counts. */
  expiresIn: Schema.optionalKey(Schema.Finite.check(Schema.isGreaterThan(0)))
})
export interface Rule extends Schema.Schema.Type<typeof Rule> {}

/** The terms of a question to a person. */
export interface Terms {
  /** The description of the call for the person. Default: the tool's own, else its name and arguments. */
  readonly description?: string | undefined
  /** Why the person is asked: lines below the description. */
  readonly reason?: string | undefined
  /** The possible decisions. Default: all. */
  readonly choices?: ReadonlyArray<Choice> | undefined
  /** Who may decide: ids of principals, or `role:` and a role. Default: anybody. */
  readonly deciders?: ReadonlyArray<string> | undefined
  /** Milliseconds after which a decision no longer counts. Default: it always counts. */
  readonly expiresIn?: number | undefined
  /** True when no program may decide in a person's place. */
  readonly byPerson?: boolean | undefined
  /** An approval with `always` covers later calls of the tool with the same text here. Default: it covers none. */
  readonly likeness?: string | undefined
  /** True when an approval with `always` also answers the tool's own question, as {@link Allow} with `settles` does. */
  readonly settles?: boolean | undefined
  /** Runs when somebody has decided. */
  readonly onDecision?: ((decision: Decision) => Effect.Effect<void>) | undefined
}

/** The call may run. With `settles` it may run although its tool has `needsApproval`. */
export interface Allow {
  readonly _tag: "Allow"
  readonly by: string
  readonly settles?: boolean | undefined
}

/** The call waits until somebody has decided. */
export interface Ask {
  readonly _tag: "Ask"
  readonly by: string
  readonly terms: Terms
}

/** The call does not run. The model reads the reason. */
export interface Refuse {
  readonly _tag: "Refuse"
  readonly by: string
  readonly reason: string
}

/** A ruling. `by` names the source or rule that gave it. */
export type Ruling = Allow | Ask | Refuse

/** Lets a call run, as far as this source goes. */
export const allow = (
  by: string,
  options?: {
    /** Settles the call: later sources are not asked. Default: `false`. */
    readonly settles?: boolean | undefined
  }
): Allow => ({
  _tag: "Allow",
  by,
  ...options
})

/** Has a person asked before the call runs. */
export const ask = (by: string, terms: Terms = {}): Ask => ({ _tag: "Ask", by, terms })

/** Keeps a call from running. */
export const refuse = (by: string, reason: string): Refuse => ({ _tag: "Refuse", by, reason })

/** The ruling that counts for a call, and all that it was composed from. */
export interface Verdict {
  readonly ruling: Ruling
  readonly rulings: ReadonlyArray<Ruling>
}

const intersect = <A>(left: ReadonlyArray<A> | undefined, right: ReadonlyArray<A> | undefined) =>
  left === undefined ? right : right === undefined ? left : left.filter((one) => right.includes(one))

const lines = (texts: ReadonlyArray<string | undefined>): string | undefined => {
  const uniqueTexts = [...new Set(texts.filter((text) => text !== undefined))]
  return uniqueTexts.length === 0 ? undefined : uniqueTexts.join("\n")
}

/** Joins two questions into a single question that satisfies both. Refuses if no decider or no choice is left. */
const joinQuestions = (left: Ask, right: Ask): Ask | Refuse => {
  const [a, b] = [left.terms, right.terms]
  const by = left.by === right.by ? left.by : `${left.by}, ${right.by}`
  const deciders = intersect(a.deciders, b.deciders)
  const choices = intersect(a.choices, b.choices)
  if (deciders?.length === 0) {
    return refuse(by, `Not executed: the rules that ask about this call (${by}) have no decider in common.`)
  }
  if (choices?.length === 0) {
    return refuse(by, `Not executed: the rules that ask about this call (${by}) have no choice in common.`)
  }
  const expiresIn = Math.min(a.expiresIn ?? Infinity, b.expiresIn ?? Infinity)
  return ask(by, {
    description: lines([a.description, b.description]),
    reason: lines([a.reason, b.reason]),
    choices,
    deciders,
    expiresIn: expiresIn === Infinity ? undefined : expiresIn,
    byPerson: a.byPerson === true || b.byPerson === true,
    // A later call must be like this one to both rules.
    likeness:
      a.likeness === undefined || b.likeness === undefined ? undefined : JSON.stringify([a.likeness, b.likeness]),
    settles: a.settles === true && b.settles === true
  })
}

/**
 * Composes the rulings of all sources on a call, in their order. The strictest wins; of two equally strict, the first.
 * `own` is the question of the tool itself: it counts unless a source settled it.
 */
export const compose = (rulings: ReadonlyArray<Ruling | undefined>, own?: Ask): Verdict => {
  const isSettled = rulings.some((one) => one?._tag === "Allow" && one.settles === true)
  const all = [...rulings, isSettled ? undefined : own].filter((one) => one !== undefined)
  const [first, ...asks] = all.filter((one) => one._tag === "Ask")
  const joinedAsk = asks.reduce<Ask | Refuse | undefined>(
    (joined, one) => (joined?._tag === "Ask" ? joinQuestions(joined, one) : joined),
    first
  )
  return { ruling: all.find((one) => one._tag === "Refuse") ?? joinedAsk ?? all[0] ?? allow("default"), rulings: all }
}

const effects = { Allow: "Allowed", Ask: "Asks a person", Refuse: "Refused" } as const

/** Describes in one sentence which ruling decides on a call, its source, and the other rulings. */
export const explain = ({ ruling, rulings }: Verdict): string => {
  const reason = ruling._tag === "Refuse" ? ruling.reason : ruling._tag === "Ask" ? ruling.terms.reason : undefined
  const others = rulings.filter((one) => one !== ruling).map((one) => `${one.by}: ${one._tag.toLowerCase()}`)
  const why = reason === undefined ? "" : ` (${reason})`
  return `${effects[ruling._tag]} by ${ruling.by}${why}${others.length === 0 ? "" : `; composed from ${others.join(", ")}`}.`
}
