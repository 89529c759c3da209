/** The values of reports. */
import * as Schema from "effect/Schema"
import { Usage } from "../../core/Usage.ts"

/** A finding of a scorer. A `reported` score fails no trial. */
export const Score = Schema.Struct({
  name: Schema.String,
  kind: Schema.Literals(["correctness", "reported"]),
  passed: Schema.Boolean,
  evidence: Schema.String
})
export interface Score extends Schema.Schema.Type<typeof Score> {}

/**
 * One run of a case. `problem` is the failure of the run, `judging` the usage of its scorers. `time` is in milliseconds.
 */
export const TrialReport = Schema.Struct({
  passed: Schema.Boolean,
  scores: Schema.Array(Score),
  text: Schema.String,
  problem: Schema.optionalKey(Schema.String),
  usage: Usage,
  judging: Schema.optionalKey(Usage),
  rounds: Schema.Finite,
  time: Schema.Finite
})
export interface TrialReport extends Schema.Schema.Type<typeof TrialReport> {}

const CaseReport = Schema.Struct({
  name: Schema.String,
  group: Schema.optionalKey(Schema.String),
  /** The number of trials that were asked for. A suite that stopped has fewer. */
  expected: Schema.Int,
  trials: Schema.Array(TrialReport)
})

/** The report of a suite, as JSON. `stopped` is the reason that trials are missing. */
export const Report = Schema.Struct({
  agent: Schema.String,
  k: Schema.Int,
  cases: Schema.Array(CaseReport),
  stopped: Schema.optionalKey(Schema.String)
})
export interface Report extends Schema.Schema.Type<typeof Report> {}

/**
 * The numbers of a report. `share` is the share of trials that passed, with its interval at 95 %; `passAll` and `passAny`
 * are pass^k and pass@k, without bias, as means over the cases that have `k` trials. A trial that did not run has not
 * passed: `isPassed` asks for all trials of all cases.
 */
export interface Summary {
  readonly passed: number
  readonly trials: number
  readonly share: number
  readonly interval: readonly [low: number, high: number]
  readonly passAll: number
  readonly passAny: number
  readonly usage: Usage
  /** The usage of scorers, such as judges. It is not in `usage`, and it counts in the limits of a suite. */
  readonly judging: Usage
  /** Milliseconds of all runs together. */
  readonly time: number
  readonly isPassed: boolean
}
