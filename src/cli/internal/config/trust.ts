/** Trust of a project's items, by the hash of their content. */
import { createHash, randomUUID } from "node:crypto"
import { dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { orFail } from "../failure.ts"
import { idOf, type Item, type Project } from "./items.ts"
import { type Places, textOf, trustFile } from "./places.ts"
import { readRecord } from "./settings.ts"

/** The answer of a person about an item, or that nobody decided on its present content. */
export type State = "trusted" | "refused" | "new" | "changed"

/** An item with its state. `before` is the last content that was trusted. */
export interface TrustedItem {
  readonly item: Item
  readonly state: State
  readonly before: string | undefined
}

/** The answer of a person about an item. A refused item keeps the hash of the content that was trusted before. */
interface Answer {
  readonly hash: string
  readonly isTrusted: boolean
  readonly before?: string | undefined
}

const hashOf = ({ text }: Item): string => createHash("sha256").update(text).digest("hex")

/** The real path of the folder, so that a link is the same folder. */
const real = Effect.fnUntraced(function* ({ project }: Places) {
  const fs = yield* FileSystem.FileSystem
  return yield* orFail("usage")(fs.realPath(project))
})

const isRecord = (value: unknown): value is { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Reads an answer. Ignores one without a hash. */
const answerOf = (value: unknown): Answer | undefined => {
  if (!isRecord(value) || typeof value["hash"] !== "string") return undefined
  const { before, hash, isTrusted } = value
  return { hash, isTrusted: isTrusted === true, ...(typeof before === "string" ? { before } : {}) }
}

/** The hash of the content that was trusted last. */
const trustedHash = ({ before, hash, isTrusted }: Answer): string | undefined => (isTrusted ? hash : before)

const answersOf = Effect.fnUntraced(function* (places: Places) {
  const folders = yield* readRecord(trustFile(places))
  const folder = yield* real(places)
  const record = Object.hasOwn(folders, folder) ? folders[folder] : undefined
  return new Map(
    Object.entries(isRecord(record) ? record : {}).flatMap(([id, value]) => {
      const answer = answerOf(value)
      return answer === undefined ? [] : [[id, answer] as const]
    })
  )
})

/** The file with a content that was trusted, for the next diff. */
const contentFile = ({ data }: Places, hash: string): string => join(data, "trusted", hash)

/** Gives the state of each item. */
export const statesOf = Effect.fnUntraced(function* (places: Places, items: ReadonlyArray<Item>) {
  if (items.length === 0) return []
  const answers = yield* answersOf(places)
  return yield* Effect.forEach(
    items,
    Effect.fnUntraced(function* (item) {
      const answer = answers.get(idOf(item))
      const isSame = answer?.hash === hashOf(item)
      const last = answer === undefined ? undefined : trustedHash(answer)
      const state: State =
        isSame && item.problem === undefined
          ? answer.isTrusted
            ? "trusted"
            : "refused"
          : last === undefined
            ? "new"
            : "changed"
      const before = state === "trusted" || last === undefined ? undefined : yield* textOf(contentFile(places, last))
      return { item, state, before } satisfies TrustedItem
    })
  )
})

/** Stores the answer of the person about items. `undefined` forgets an earlier one. */
export const answer = Effect.fnUntraced(function* (
  places: Places,
  items: ReadonlyArray<Item>,
  isTrusted: boolean | undefined
) {
  if (items.length === 0) return
  const folder = yield* real(places)
  if (isTrusted === true) {
    yield* Effect.forEach(items, (item) => makePrivate(contentFile(places, hashOf(item)), item.text), { discard: true })
  }
  const answers = new Map(yield* answersOf(places))
  for (const item of items) {
    const earlier = answers.get(idOf(item))
    if (isTrusted === undefined) answers.delete(idOf(item))
    else {
      const before = isTrusted || earlier === undefined ? undefined : trustedHash(earlier)
      answers.set(idOf(item), { hash: hashOf(item), isTrusted, before })
    }
  }
  const file = trustFile(places)
  const folders = { ...(yield* readRecord(file)), [folder]: Object.fromEntries(answers) }
  yield* writePrivate(file, `${JSON.stringify(folders, null, 2)}\n`)
})

/** Kinds that only restrict: a change that nobody trusts leaves the trusted content in force. */
const restricting: ReadonlySet<string> = new Set(["policy"])

/** What counts of a project by these states. */
export const projectOf = (known: ReadonlyArray<TrustedItem>): Project => ({
  items: known.flatMap(({ before, item, state }) =>
    state === "trusted" ? [item] : before !== undefined && restricting.has(item.kind) ? [{ ...item, text: before }] : []
  ),
  left: known.flatMap(({ item, state }) => (state === "trusted" ? [] : [item]))
})

/** Writes a private temporary file, and moves it into place. */
const writeBeside = Effect.fnUntraced(function* <E extends { readonly message: string }, R>(
  file: string,
  text: string,
  place: (beside: string) => Effect.Effect<void, E, R>
) {
  const fs = yield* FileSystem.FileSystem
  const beside = `${file}.${randomUUID()}.tmp`
  yield* fs.makeDirectory(dirname(file), { recursive: true, mode: 0o700 })
  yield* fs
    .writeFileString(beside, text, { mode: 0o600 })
    .pipe(Effect.andThen(place(beside)), Effect.ensuring(Effect.ignore(fs.remove(beside, { force: true }))))
}, orFail("failed"))

/** Writes a private file atomically. */
export const writePrivate = (file: string, text: string) =>
  writeBeside(file, text, (beside) => FileSystem.FileSystem.use((fs) => fs.rename(beside, file)))

/** Creates a private file. An existing file stays, also among processes that race. */
export const makePrivate = (file: string, text: string) =>
  writeBeside(file, text, (beside) =>
    FileSystem.FileSystem.use((fs) =>
      Effect.catchIf(
        fs.link(beside, file),
        ({ reason }) => reason._tag === "AlreadyExists",
        () => Effect.void
      )
    )
  )
