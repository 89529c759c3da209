/** The property of every index: a search gives chunks of its own namespace that hold the filter, and nothing else. */
import assert from "node:assert/strict"
import { Effect } from "effect"
import { Chunker, type RagError, RagIndex } from "effect-deepagents/rag"
import * as fc from "fast-check"

const model = { id: "toy", dimensions: 3 }

const words = ["danube", "rhine", "secret", "42", "首都", "minster"]
const value = fc.constantFrom("a", 1, "1", true, "true", "\0", "' OR 1=1 --")

const document = fc.record({
  id: fc.constantFrom("a", "b", "c", "d::0", "é"),
  text: fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 8 }).map((some) => some.join(" ")),
  source: fc.constantFrom("one", "two", "' OR ''='"),
  at: fc.integer({ min: 0, max: 3 }),
  metadata: fc.record({ kind: value })
})

const tenant = fc.uniqueArray(document, { selector: ({ id }) => id, minLength: 1, maxLength: 5 })

const filter = fc.record(
  {
    documents: fc.array(fc.constantFrom<string>("a", "b", "d::0", "\0", "none"), { maxLength: 3 }),
    sources: fc.array(fc.constantFrom<string>("one", "' OR ''='", "\0"), { maxLength: 2 }),
    metadata: fc.record({ kind: value }, { requiredKeys: [] }),
    after: fc.integer({ min: 0, max: 3 }),
    before: fc.integer({ min: 0, max: 4 })
  },
  { requiredKeys: [] }
)

const query = fc.oneof(
  fc.constantFrom(...words),
  fc.constantFrom('" OR * NEAR(', "' | '", "tenant/1", "\0", "danube & !rhine:*"),
  fc.string({ unit: "binary", maxLength: 20 })
)

const vectorOf = (text: string) => [1, text.length % 7, (text.codePointAt(0) ?? 0) % 5]

type Stored = typeof document extends fc.Arbitrary<infer A> ? A : never
type Narrowed = typeof filter extends fc.Arbitrary<infer A> ? A : never

const isAllowed = (one: Stored, { after, before, documents, metadata, sources }: Narrowed) =>
  (documents === undefined || documents.includes(one.id)) &&
  (sources === undefined || sources.includes(one.source)) &&
  (metadata?.kind === undefined || metadata.kind === one.metadata.kind) &&
  (after === undefined || one.at >= after) &&
  (before === undefined || one.at < before)

const fill = (space: RagIndex.Space, documents: ReadonlyArray<Stored>) =>
  space.put(
    documents.map((one) => {
      const chunks = Chunker.chunk(one)
      return { document: one, hash: "1", chunks, vectors: chunks.map(({ text }) => vectorOf(text)) }
    })
  )

let runs = 0

const check = Effect.fnUntraced(function* (
  own: ReadonlyArray<Stored>,
  other: ReadonlyArray<Stored>,
  filter: Narrowed,
  text: string,
  limit: number
) {
  const run = runs++
  const index = yield* RagIndex.RagIndex
  const mine = yield* index.space(`tenant/${run}`, model)
  const others = yield* index.space(`tenant/${run}'`, model)
  yield* fill(mine, own)
  const search = Effect.gen(function* () {
    const options = { limit, filter }
    return { words: yield* mine.words(text, options), near: yield* mine.nearest(vectorOf(text), options) }
  })
  const before = yield* search
  yield* fill(others, other)
  const after = yield* search
  // Another tenant changes no hit, no score and no order.
  assert.deepEqual(after, before)
  const allowed = own.filter((one) => isAllowed(one, filter))
  for (const hit of [...after.words, ...after.near]) {
    const found = allowed.find(({ id, text }) => id === hit.chunk.document && text === hit.chunk.text)
    assert.ok(found, `${hit.chunk.id} is no chunk of this tenant that holds the filter`)
  }
  // Filters act before the limit.
  assert.equal(after.near.length, Math.min(limit, allowed.length))
  assert.deepEqual([...(yield* mine.hashes(filter)).keys()].sort(), allowed.map(({ id }) => id).sort())
  yield* index.drop(`tenant/${run}`)
  assert.equal((yield* others.hashes()).size, other.length)
})

/** Runs the property on an index. */
export const holdsApart = (numRuns: number): Effect.Effect<void, RagError.RagError, RagIndex.RagIndex> =>
  Effect.flatMap(Effect.context<RagIndex.RagIndex>(), (services) =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          tenant,
          tenant,
          filter,
          query,
          fc.integer({ min: 1, max: 6 }),
          (own, other, filter, text, limit) => Effect.runPromiseWith(services)(check(own, other, filter, text, limit))
        ),
        { numRuns }
      )
    )
  )
