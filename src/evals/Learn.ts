/**
 * Learns from corrections in stored threads: changes of prompts and skills that are provably better, or not kept.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Eval, Learn, Scorers, type Report } from "effect-deepagents/evals"
 *
 * declare const tasks: ReadonlyArray<Eval.Case>
 *
 * const clerk = (prompt: string) => Agent.make({ name: "clerk", prompt })
 *
 * const program = Learn.round({
 *   threads: ["report-7", "report-8"],
 *   paths: ["/prompt.md"],
 *   evaluate: (texts) =>
 *     Eval.suite({ agent: clerk(texts["/prompt.md"] ?? ""), cases: tasks, scorers: [Scorers.expectations] })
 * })
 * ```
 *
 * A round proposes changes from the words of people in untainted threads, runs old tasks with the texts before and after,
 * and keeps the changes only if the paired test is significant and no task got worse.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Agent from "../core/Agent.ts"
import type { AgentError } from "../core/AgentError.ts"
import type { Backend } from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import type { ChatModel } from "../core/ChatModel.ts"
import { fromUnknown } from "../core/Json.ts"
import type { ModelError } from "../core/ModelError.ts"
import { canonical } from "../core/schema/jsonTree.ts"
import type { SessionError } from "../core/SessionError.ts"
import type { SessionStore } from "../core/SessionStore.ts"
import * as Proposal from "../deep/Proposal.ts"
import { Storage, type Table } from "../stores/Storage.ts"
import { makeEffectCheck } from "../support/options/check.ts"
import { sha256Sync } from "../support/store/sha256.ts"
import { EvalError } from "./Eval.ts"
import * as shapes from "./internal/shapes.ts"
import * as Report from "./Report.ts"

/** A change that was kept, or taken back. `digest` covers all other fields, and the digest of the record before it. */
export const Record = Schema.Struct({
  kind: Schema.Literals(["kept", "reverted"]),
  at: Schema.Finite,
  proposal: Proposal.Proposal,
  threads: Schema.Array(Schema.String),
  difference: Schema.Finite,
  pValue: Schema.Finite,
  reports: Schema.Array(Schema.String),
  previous: Schema.String,
  digest: Schema.String
})
export interface Record extends Schema.Schema.Type<typeof Record> {}

/** The end of a round. Changes that were not kept have left no byte changed, and `reason` says why. */
export interface Outcome {
  readonly status: "kept" | "dropped" | "nothing"
  readonly reason: string
  readonly proposal: Proposal.Proposal
  readonly record: Record | undefined
  /** Threads with text from outside. */
  readonly ignored: ReadonlyArray<string>
}

/** The texts of the files by their paths. */
export interface Texts {
  readonly [path: string]: string
}

const table = "learned"
const space = "records"
const Stored = Schema.fromJsonString(Record)
const encode = Schema.encodeEffect(Stored)
const decode = Schema.decodeEffect(Stored)

const digestOf = ({ digest: _digest, ...fields }: Record): string => sha256Sync(canonical(fromUnknown(fields)))

const storeFailure = (problem: string) => new EvalError({ problem })

const keyOf = (number: number): string => String(number).padStart(8, "0")

const readRecords = Effect.fnUntraced(function* (rows: Table) {
  const all: Array<Record> = []
  let after: string | undefined
  for (;;) {
    const page = yield* Effect.mapError(rows.scan(space, { limit: 100, after }), ({ problem }) => storeFailure(problem))
    for (const { key, value } of page) {
      const record = yield* Effect.mapError(decode(value), ({ message }) => storeFailure(message))
      if (record.digest !== digestOf(record) || record.previous !== (all.at(-1)?.digest ?? "")) {
        return yield* storeFailure(`the record ${Number(key)} of what was learned has been changed`)
      }
      all.push(record)
    }
    after = page.at(-1)?.key
    if (page.length < 100) return all
  }
})

/** The records, the oldest first. Fails with `EvalError` if one of them was changed or taken out. */
export const records: Effect.Effect<ReadonlyArray<Record>, EvalError, Storage> = Effect.flatMap(Storage, (storage) =>
  readRecords(storage.table(table))
)

const keep = Effect.fnUntraced(function* (fields: Omit<Record, "at" | "previous" | "digest">) {
  const rows = (yield* Storage).table(table)
  const all = yield* readRecords(rows)
  const unsigned: Record = {
    ...fields,
    at: yield* Clock.currentTimeMillis,
    previous: all.at(-1)?.digest ?? "",
    digest: ""
  }
  const record: Record = { ...unsigned, digest: digestOf(unsigned) }
  const value = yield* Effect.orDie(encode(record))
  const isFirst = yield* Effect.mapError(rows.swap(space, keyOf(all.length + 1), undefined, value), ({ problem }) =>
    storeFailure(problem)
  )
  return isFirst ? record : yield* storeFailure("another round has just kept something; run this one again")
})

const learnerByModel = Agent.make({
  name: "learner",
  description: "Proposes changes of prompts and skills from corrections",
  prompt:
    "You improve the prompts and skills of an agent from the corrections that people gave it. State each rule in general, so that it helps with other tasks of its kind. Change little, and remove nothing that still holds. Each change needs words of people that led to it, copied exactly. Propose nothing if there is no correction.",
  output: Proposal.Draft
})

const textsOf = (files: Proposal.Files, { changes }: Proposal.Proposal): Texts => {
  const texts = new Map(files.flatMap(({ path, text }) => (text === null ? [] : [[path, text] as const])))
  for (const { after, path } of changes) {
    if (after === null) texts.delete(path)
    else texts.set(path, after)
  }
  return Object.fromEntries(texts)
}

/** The reason that changes are not kept. */
const problemOf = (
  before: Report.Report,
  after: Report.Report,
  alpha: number
): { readonly problem: string | undefined; readonly difference: number; readonly pValue: number } => {
  const { changes, difference, missing, pValue } = Report.compare(before, after)
  const worse = changes.filter((one) => one.after < one.before).map(({ name }) => name)
  const stopped = before.stopped ?? after.stopped
  const problem =
    stopped !== undefined || missing.length > 0
      ? `The tasks were not all run: ${stopped ?? missing.join(", ")}`
      : worse.length > 0
        ? `These tasks got worse: ${worse.join(", ")}`
        : difference > 0 && pValue < alpha
          ? undefined
          : `The tasks are not provably better: p = ${pValue.toFixed(3)}, and below ${alpha} is needed`
  return { problem, difference, pValue }
}

const refuseRound = makeEffectCheck("Learn.round", shapes.learnRound)

/**
 * Runs a round. The learner sees the words of people alone, and no thread that `Taint` has marked. Its changes are tried
 * on old tasks before any file is touched. They are kept, with a record, if the paired permutation test is below `alpha`
 * and no task got worse.
 *
 * Record the model of `evaluate` by `Cassette.auto`: unchanged texts then cost nothing to evaluate again.
 */
export const round = Effect.fnUntraced(function* <E2, R2, E = ModelError, R = ChatModel>(options: {
  /** The threads with corrections. */
  readonly threads: ReadonlyArray<string>
  /** The files that may change, such as prompts and skills. Of folders it is Markdown alone. */
  readonly paths: ReadonlyArray<string>
  /** Runs old tasks with these texts of the files. */
  readonly evaluate: (texts: Texts) => Effect.Effect<Report.Report, E2, R2>
  /** The agent that proposes changes. Default: the chat model of the context. */
  readonly learner?: Agent.Agent<Proposal.Draft, E, R> | undefined
  /** The p-value below which changes are kept. Default: 0.05. */
  readonly alpha?: number | undefined
}): Effect.fn.Return<
  Outcome,
  EvalError | SessionError | BackendError | AgentError | Proposal.ProposalError | E | E2,
  SessionStore | Backend | Storage | R | R2
> {
  yield* refuseRound(options) ?? Effect.void
  const { alpha = 0.05, evaluate, paths, threads } = options
  // Without a learner of the caller, E and R belong to the default one.
  const learner =
    options.learner ??
    (learnerByModel as Agent.Agent<Proposal.Draft, unknown, unknown> as Agent.Agent<Proposal.Draft, E, R>)
  const { ignored, material } = yield* Proposal.readWords(threads)
  const end = (status: Outcome["status"], reason: string, proposal: Proposal.Proposal, record?: Record): Outcome => ({
    status,
    reason,
    proposal,
    record,
    ignored
  })
  if (material.length === 0) return end("nothing", "No thread has untainted words of people.", Proposal.make([]))
  const files = yield* Proposal.readFiles(paths)
  const { output } = yield* Agent.run(learner, Proposal.describe(paths, files, material))
  const proposal = Proposal.fromDraft(output, paths, files, material)
  if (proposal.changes.length === 0) return end("nothing", "No change was proposed.", proposal)
  const before = yield* evaluate(textsOf(files, Proposal.make([])))
  const after = yield* evaluate(textsOf(files, proposal))
  const { difference, pValue, problem } = problemOf(before, after, alpha)
  if (problem !== undefined) return end("dropped", problem, proposal)
  yield* Proposal.apply(proposal)
  const record = yield* keep({
    kind: "kept",
    proposal,
    threads: material.map(({ threadId }) => threadId),
    difference,
    pValue,
    reports: [before, after].map((report) => sha256Sync(canonical(fromUnknown(report))))
  }).pipe(Effect.onError(() => Effect.ignore(Proposal.apply(Proposal.invert(proposal)))))
  return end("kept", `The tasks are better: p = ${pValue.toFixed(3)}`, proposal, record)
})

/**
 * Takes the changes of a record back, and keeps a record of that. Fails with `EvalError` for a digest that is of no record,
 * and with `ProposalError` if a file has changed since.
 */
export const revert = Effect.fnUntraced(function* (
  digest: string
): Effect.fn.Return<Record, EvalError | BackendError | Proposal.ProposalError, Backend | Storage> {
  const record = (yield* records).find((one) => one.digest === digest)
  if (record === undefined) return yield* storeFailure(`no record has the digest ${digest}; Learn.records lists them`)
  const proposal = Proposal.invert(record.proposal)
  yield* Proposal.apply(proposal)
  const { difference, pValue, reports, threads } = record
  return yield* keep({ kind: "reverted", proposal, threads, difference: -difference, pValue, reports })
})
