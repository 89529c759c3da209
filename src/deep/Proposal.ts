/**
 * Changes of memory files, skills and prompts that somebody has to approve: as diffs, applied all or none, revertible.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Proposal } from "effect-deepagents/deep"
 *
 * const proposal = Proposal.make([
 *   { path: "/memories/AGENTS.md", before: "Be brief.\n", after: "Be brief.\nUse metric units.\n", why: "Ada asked for it.", evidence: [] }
 * ])
 * const program = Effect.gen(function* () {
 *   yield* Proposal.apply(proposal)
 *   yield* Proposal.apply(Proposal.invert(proposal))
 * })
 * ```
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TextDiff from "effect/TextDiff"
import { Backend, type Service } from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import { canonical } from "../core/schema/jsonTree.ts"
import { sha256Sync } from "../support/store/sha256.ts"
import { oneLine, visible } from "../support/text/untrusted.ts"

/** A change of one file. `null` is a file that is not there. `evidence` are words of people that led to it. */
export const Change = Schema.Struct({
  path: Schema.String,
  before: Schema.NullOr(Schema.String),
  after: Schema.NullOr(Schema.String),
  why: Schema.String,
  evidence: Schema.Array(Schema.Struct({ threadId: Schema.String, quote: Schema.String }))
})
export interface Change extends Schema.Schema.Type<typeof Change> {}

/** Changes, and their digest: whoever approves a proposal approves this digest. */
export const Proposal = Schema.Struct({ changes: Schema.Array(Change), digest: Schema.String })
export interface Proposal extends Schema.Schema.Type<typeof Proposal> {}

/** A proposal was not applied, and no file has changed. */
export class ProposalError extends Schema.TaggedError<ProposalError>()("ProposalError", {
  problem: Schema.String
}) {
  override get message(): string {
    return `The proposal was not applied, and nothing has changed: ${this.problem}`
  }
}

const digestOf = (changes: ReadonlyArray<Change>): string =>
  sha256Sync(canonical(changes.map(({ after, before, path }) => [path, before, after])))

/** Makes a proposal. */
export const make = (changes: ReadonlyArray<Change>): Proposal => ({ changes, digest: digestOf(changes) })

/** The proposal that takes another one back. */
export const invert = ({ changes }: Proposal): Proposal =>
  make(changes.toReversed().map((change) => ({ ...change, before: change.after, after: change.before })))

/** Renders a proposal for a person: each change as a unified diff, its reason and its evidence. */
export const render = ({ changes }: Proposal): string =>
  changes
    .map(({ after, before, evidence, path, why }) =>
      [
        `${before === null ? "New: " : after === null ? "Deleted: " : ""}${oneLine(path)}`,
        oneLine(why),
        ...evidence.map(({ quote, threadId }) => `  "${oneLine(quote)}" (${oneLine(threadId)})`),
        visible(TextDiff.unified(TextDiff.lines(before ?? "", after ?? "", { maxEdits: 1_000 })))
      ].join("\n")
    )
    .join("\n\n")

/** Reads a file as text. `null` is a file that is not there. */
export const readText = Effect.fnUntraced(function* (
  path: string
): Effect.fn.Return<string | null, BackendError, Backend> {
  const backend = yield* Backend
  const [file] = yield* backend.download([path])
  if (file === undefined) return null
  if (file.ok) return new TextDecoder().decode(file.value)
  return file.error.reason._tag === "NotFound" ? null : yield* Effect.fail(file.error)
})

/** Writes the text of a file over another one; `null` deletes it. */
const write = (backend: Service, path: string, from: string | null, to: string | null) =>
  Effect.gen(function* () {
    if (to === null) return yield* backend.delete(path)
    if (from === null) return yield* Effect.asVoid(backend.write(path, to, { create: true }))
    const { version } = yield* backend.read(path, { limit: 0 })
    return yield* Effect.asVoid(backend.write(path, to, { version }))
  })

/**
 * Applies a proposal. Each file must be as it was when the proposal was made. All changes are made, or none: a change
 * that fails takes those before it back. Fails with {@link ProposalError} for another digest or another file.
 */
export const apply = Effect.fnUntraced(function* ({
  changes,
  digest
}: Proposal): Effect.fn.Return<void, ProposalError | BackendError, Backend> {
  if (digest !== digestOf(changes)) {
    return yield* new ProposalError({ problem: "its digest does not fit its changes; make it anew" })
  }
  const backend = yield* Backend
  for (const { before, path } of changes) {
    if ((yield* readText(path)) === before) continue
    return yield* new ProposalError({ problem: `${oneLine(path)} has changed since; make the proposal anew` })
  }
  const done: Array<Change> = []
  yield* Effect.forEach(
    changes,
    (change) =>
      Effect.andThen(
        write(backend, change.path, change.before, change.after),
        Effect.sync(() => done.push(change))
      ),
    { discard: true }
  ).pipe(
    Effect.onError(() =>
      Effect.forEach(
        done.toReversed(),
        ({ after, before, path }) => Effect.ignore(write(backend, path, after, before)),
        { discard: true }
      )
    )
  )
}, Effect.uninterruptible)
