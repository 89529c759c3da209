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
import * as AgentState from "../core/AgentState.ts"
import { Backend, type Service } from "../core/Backend.ts"
import type { BackendError } from "../core/BackendError.ts"
import * as Message from "../core/Message.ts"
import { canonical } from "../core/schema/jsonTree.ts"
import type { SessionError } from "../core/SessionError.ts"
import { SessionStore } from "../core/SessionStore.ts"
import * as Taint from "../middleware/Taint.ts"
import { loadThread } from "../sessions/journal.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { sha256Sync } from "../support/store/sha256.ts"
import { isQuoteOf, markText } from "../support/text/marked.ts"
import { cut } from "../support/text/text.ts"
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

/** Changes, and their digest. An approval of the digest is an approval of exactly these changes. */
export const Proposal = Schema.Struct({ changes: Schema.Array(Change), digest: Schema.String })
export interface Proposal extends Schema.Schema.Type<typeof Proposal> {}

/** A proposal was not applied, and no file has changed. */
export class ProposalError extends TaggedError<ProposalError>()("ProposalError", {
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
  const appliedChanges: Array<Change> = []
  yield* Effect.forEach(
    changes,
    (change) =>
      Effect.andThen(
        write(backend, change.path, change.before, change.after),
        Effect.sync(() => appliedChanges.push(change))
      ),
    { discard: true }
  ).pipe(
    Effect.onError(() =>
      Effect.forEach(
        appliedChanges.toReversed(),
        ({ after, before, path }) => Effect.ignore(write(backend, path, after, before)),
        { discard: true }
      )
    )
  )
}, Effect.uninterruptible)

/** The changes that the author of a proposal wants: the whole text of each file. */
export const Draft = Schema.Struct({
  changes: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      text: Schema.String.annotate({ description: "The whole new text of the file" }),
      why: Schema.String.annotate({ description: "The reason, in one sentence" }),
      quotes: Schema.Array(Schema.String).annotate({
        description: "The words of people that led to the change, copied exactly"
      })
    })
  )
})
export type Draft = typeof Draft.Type

/** The words of people in threads, and the threads that are ignored, since they have text from outside. */
export const Words = Schema.Struct({
  material: Schema.Array(Schema.Struct({ threadId: Schema.String, words: Schema.String })),
  ignored: Schema.Array(Schema.String)
})
export type Words = typeof Words.Type

/** Files with their texts. `null` is a file that is not there. */
export const Files = Schema.Array(Schema.Struct({ path: Schema.String, text: Schema.NullOr(Schema.String) }))
export type Files = typeof Files.Type

const mostWords = 20_000
const mostFiles = 100
const longestFile = 32_768

/** Reads the words of people. A state that can't be read may have been marked. */
const readThread = Effect.fnUntraced(function* (threadId: string) {
  const { checkpoint } = yield* loadThread(yield* SessionStore, threadId)
  const labels = AgentState.read(checkpoint?.state ?? {}, Taint.labels)
  const isMarked = labels._tag === "Failure" || labels.success.arrivals > 0 || labels.success.secrets.length > 0
  const texts = (checkpoint?.messages ?? []).flatMap((message) =>
    message.role === "human" && message.source === undefined ? [Message.text(message)] : []
  )
  return { threadId, isMarked, words: cut(texts.join("\n\n"), mostWords) }
})

/** Reads the words of people in threads. Threads that `Taint` has ever marked are ignored, cleared ones too. */
export const readWords = (threads: ReadonlyArray<string>): Effect.Effect<Words, SessionError, SessionStore> =>
  Effect.map(Effect.forEach([...new Set(threads)], readThread), (threadWords) => ({
    material: threadWords.flatMap(({ isMarked, threadId, words }) =>
      isMarked || words.trim() === "" ? [] : [{ threadId, words }]
    ),
    ignored: threadWords.flatMap(({ isMarked, threadId }) => (isMarked ? [threadId] : []))
  }))

/** A path whose last part has a dot is a file, also if it is not there yet. */
const isFile = (path: string): boolean => path.slice(path.lastIndexOf("/") + 1).includes(".")

/** Reads the files at the paths. Of a folder it reads Markdown, at any depth: 100 files in all. */
export const readFiles = Effect.fnUntraced(function* (
  paths: ReadonlyArray<string>
): Effect.fn.Return<Files, BackendError, Backend> {
  const backend = yield* Backend
  const pathLists = yield* Effect.forEach(paths, (path) =>
    isFile(path)
      ? Effect.succeed([path])
      : backend.glob({ path, pattern: "**/*.md", limit: mostFiles }).pipe(
          Effect.map(({ entries }) => entries.filter(({ kind }) => kind === "file").map((entry) => entry.path)),
          Effect.catchIf(
            ({ reason }) => reason._tag === "NotFound",
            () => Effect.succeed([])
          )
        )
  )
  return yield* Effect.forEach([...new Set(pathLists.flat())].slice(0, mostFiles), (path) =>
    Effect.map(readText(path), (text) => ({ path, text }))
  )
})

/** Describes the files and the words of people to the author of a draft. Both are marked as data. */
export const describe = (paths: ReadonlyArray<string>, files: Files, material: Words["material"]): string =>
  [
    `Files that you may change or add to: ${paths.map(oneLine).join(", ")}`,
    ...files.map(
      ({ path, text }) =>
        `${oneLine(path)}${text === null ? " is not there yet." : `:\n${markText(cut(text, longestFile))}`}`
    ),
    `Words of people:\n${markText(material.map(({ words }) => words).join("\n\n---\n\n"))}`
  ].join("\n\n")

/** True for a path that a draft may change: Markdown at or below the paths, written plainly. */
const isAllowed = (path: string, paths: ReadonlyArray<string>): boolean =>
  path.split("/").every((part, index) => (part === "" ? index === 0 : part !== "." && part !== "..")) &&
  !/[\\\p{C}]/u.test(path) &&
  paths.some((one) =>
    isFile(one) ? path === one : path.startsWith(`${one.replace(/\/$/, "")}/`) && path.endsWith(".md")
  )

/**
 * Makes the proposal of a draft. A change is left out if its path is not allowed, if none of its quotes are words of
 * people, if it changes nothing, or if its text has over 32,768 characters.
 */
export const fromDraft = (
  { changes }: Draft,
  paths: ReadonlyArray<string>,
  files: Files,
  material: Words["material"]
): Proposal => {
  const byPath = new Map<string, Change>()
  for (const { path, quotes, text, why } of changes) {
    const before = files.find((file) => file.path === path)?.text ?? null
    const evidence = quotes.flatMap((quote) => {
      const source = material.find(({ words }) => isQuoteOf(quote, words))
      return source === undefined ? [] : [{ threadId: source.threadId, quote }]
    })
    if (evidence.length === 0 || before === text || text.length > longestFile || !isAllowed(path, paths)) continue
    byPath.set(path, { path, before, after: text, why, evidence })
  }
  return make([...byPath.values()])
}
