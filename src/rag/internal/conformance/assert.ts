/** Assertions of the checks of an index. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { TaggedError } from "../../../support/effect/taggedError.ts"
import type { Document } from "../../Chunk.ts"
import { chunk } from "../../Chunker.ts"
import type { RagError } from "../../RagError.ts"
import type { Entry, Hit, Model } from "../../RagIndex.ts"

/** An index broke a rule. */
export class NotConformant extends TaggedError<NotConformant>()("NotConformant", {
  rule: Schema.String,
  found: Schema.String
}) {
  override get message(): string {
    return `${this.rule}; found ${this.found}`
  }
}

/** Fails with the rule unless it holds. */
export const assert = (holds: boolean, rule: string, actual: unknown): Effect.Effect<void, NotConformant> =>
  holds
    ? Effect.void
    : Effect.fail(new NotConformant({ rule, found: (JSON.stringify(actual) ?? "nothing").slice(0, 600) }))

/** Fails with the rule unless both are the same as JSON. */
export const expect = (actual: unknown, expected: unknown, rule: string): Effect.Effect<void, NotConformant> =>
  assert(JSON.stringify(actual) === JSON.stringify(expected), `${rule}: it is ${JSON.stringify(expected)}`, actual)

/** Fails with the rule unless an operation fails with a reason. */
export const expectFailure = <A, R>(
  operation: Effect.Effect<A, RagError, R>,
  tag: RagError["reason"]["_tag"],
  rule: string
): Effect.Effect<void, NotConformant, R> =>
  Effect.matchEffect(operation, {
    onFailure: ({ reason }) => expect(reason._tag, tag, rule),
    onSuccess: () => assert(false, `${rule}: it fails with ${tag}`, "a success")
  })

/** The model of all checks. */
export const model: Model = { id: "toy", dimensions: 16 }

/** A vector of a text: the counts of its letters, so that texts with the same words are near. */
export const vectorOf = (text: string): ReadonlyArray<number> => {
  const vector = Array.from({ length: model.dimensions }, (_, index) => 0.01 * (index + 1))
  for (const character of text.toLowerCase()) {
    const bucket = (character.codePointAt(0) ?? 0) % model.dimensions
    vector[bucket] = (vector[bucket] ?? 0) + 1
  }
  return vector
}

/** An entry with chunks of about `tokens`, and their vectors. */
export const entryOf = (
  document: Document,
  options: { readonly tokens?: number; readonly hash?: string } = {}
): Entry => {
  const chunks = chunk(document, { tokens: options.tokens ?? 20, overlap: 0 })
  return { document, hash: options.hash ?? "1", chunks, vectors: chunks.map(({ text }) => vectorOf(text)) }
}

/** The ids of found documents, in their order. */
export const documentsOf = (hits: ReadonlyArray<Hit>): ReadonlyArray<string> =>
  hits.map(({ chunk: { document } }) => document)
