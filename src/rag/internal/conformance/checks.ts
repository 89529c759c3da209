/** The checks of an index: documents, searches, filters, namespaces. */
import * as Effect from "effect/Effect"
import type { RagError } from "../../RagError.ts"
import type { Filter, Hit, RagIndex, Space } from "../../RagIndex.ts"
import { assert, documentsOf, entryOf, expect, expectFailure, model, type NotConformant, vectorOf } from "./assert.ts"

/** A check by its name. */
export type Rule = readonly [
  name: string,
  body: (index: RagIndex["Service"]) => Effect.Effect<void, RagError | NotConformant>
]

const towns = [
  {
    id: "ulm",
    text: "Ulm lies on the Danube. Its minster is high.",
    source: "south",
    at: 100,
    metadata: { size: 1, old: true }
  },
  {
    id: "köln",
    text: "Cologne lies on the Rhine. Its cathedral is old.",
    source: "west",
    at: 200,
    metadata: { size: 2, old: false }
  },
  { id: "東京", text: "東京は日本の首都です。人口が多い。", source: "far", at: 300, metadata: { size: "2", old: true } }
]

const fill = (space: Space) => space.put(towns.map((town) => entryOf(town)))

const storesWhole = Effect.fnUntraced(function* (index: RagIndex["Service"]) {
  const space = yield* index.space("a", model)
  yield* fill(space)
  yield* expect(
    [...(yield* space.hashes()).keys()].sort(),
    towns.map(({ id }) => id).sort(),
    "hashes has each document"
  )
  yield* expect([...(yield* space.hashes({ documents: ["ulm", "none"] }))], [["ulm", "1"]], "hashes reads a filter")
  const text = `A lone \uD800, a \0, an emoji 👩‍👩‍👧, "quotes", %, _ and \\. ${"Words follow. ".repeat(30)}`
  const document = { id: "odd", text, title: "An odd text", source: "odd", url: "https://example.com/odd", at: 5 }
  yield* space.put([entryOf(document, { hash: "2" })])
  const first = (yield* space.around("odd::0"))[0]
  yield* assert(first !== undefined, "around finds a stored chunk", first)
  if (first === undefined) return
  yield* expect(
    [first.title, first.source, first.url, first.at, first.metadata],
    [document.title, document.source, document.url, document.at, {}],
    "a hit has the fields of its document"
  )
  yield* expect(first.chunk.text.length, first.chunk.end - first.chunk.start, "a text keeps its length")
  const near = yield* space.around("odd::1", { above: 1, below: 1 })
  yield* expect(
    near.map(({ chunk: { index: place } }) => place),
    [0, 1, 2],
    "around gives neighbours in order"
  )
  yield* expect(
    (yield* space.around("odd::99", { above: 99 })).length,
    0,
    "a chunk that does not exist has no neighbours"
  )
  for (const id of ["odd", "odd::", "odd::-1", "::0", "odd::0 OR 1=1", "odd::1e3"]) {
    yield* expect((yield* space.around(id)).length, 0, `${JSON.stringify(id)} is no chunk`)
  }
})

const replaces = Effect.fnUntraced(function* (index: RagIndex["Service"]) {
  const space = yield* index.space("a", model)
  yield* space.put([entryOf({ id: "d", text: "The first version speaks of apples." })])
  yield* space.put([entryOf({ id: "d", text: "The second version speaks of pears." }, { hash: "2" })])
  yield* expect((yield* space.words("apples", { limit: 5 })).length, 0, "a replaced text is not found")
  yield* expect(documentsOf(yield* space.words("pears", { limit: 5 })), ["d"], "the new text is found")
  yield* expect(documentsOf(yield* space.nearest(vectorOf("apples"), { limit: 5 })), ["d"], "old vectors are gone")
  yield* expect(yield* space.remove(["d", "d", "none"]), 1, "remove counts the documents that existed")
  yield* expect((yield* space.words("pears", { limit: 5 })).length, 0, "a removed text is not found")
  yield* expect((yield* space.nearest(vectorOf("pears"), { limit: 5 })).length, 0, "a removed vector is not found")
  yield* expect([...(yield* space.hashes())], [], "a removed document has no hash")
})

const removesMany = Effect.fnUntraced(function* (index: RagIndex["Service"]) {
  const space = yield* index.space("a", model)
  const ids = Array.from({ length: 400 }, (_, at) => `hot${at}`)
  yield* space.put(ids.map((id) => entryOf({ id, text: "zebra" })))
  yield* expect((yield* space.nearest(vectorOf("zebra"), { limit: 3 })).length, 3, "stored vectors are found")
  yield* space.put([entryOf({ id: "cold", text: "Quite another text, about nothing of the kind." })])
  yield* space.remove(ids)
  // Removed documents that are nearer must not crowd out the others.
  yield* expect(documentsOf(yield* space.nearest(vectorOf("zebra"), { limit: 1 })), ["cold"], "the last one is found")
})

const findsWords = Effect.fnUntraced(function* (index: RagIndex["Service"]) {
  const space = yield* index.space("a", model)
  yield* fill(space)
  const first = (text: string) => Effect.map(space.words(text, { limit: 1 }), documentsOf)
  yield* expect(yield* first("danube"), ["ulm"], "words are found in any case")
  yield* expect(yield* first("cathedrals"), ["köln"], "English words are found by their stems")
  yield* expect(yield* first("首都"), ["東京"], "Chinese characters are words")
  yield* expect(yield* first("which town lies on the Rhine?"), ["köln"], "a question is found by some of its words")
  const hostile = [
    '"',
    "'",
    '" OR * NEAR(',
    "NEAR(a b, 2)",
    "text:ulm",
    "-",
    "^",
    "a AND",
    "(",
    "%",
    "\0",
    "\uD800",
    "",
    "   "
  ]
  for (const text of hostile) yield* space.words(text, { limit: 3 })
  yield* space.words("word ".repeat(50_000), { limit: 3 })
  const hits = yield* space.words("the", { limit: 10 })
  yield* assert(
    hits.every(({ score }, at) => at === 0 || score <= (hits[at - 1]?.score ?? 0)),
    "hits come by falling scores",
    hits.map(({ score }) => score)
  )
  for (const limit of [0, -1, 0.5, Number.NaN]) {
    yield* assert((yield* space.words("lies", { limit })).length <= 1, `a limit of ${limit} gives at most one`, limit)
  }
})

const findsNearest = Effect.fnUntraced(function* (index: RagIndex["Service"]) {
  const space = yield* index.space("a", model)
  const texts = Array.from({ length: 300 }, (_, at) => `number ${at} ${"abcdefghijklmnop".slice(at % 13)} ${at * 7919}`)
  yield* space.put(texts.map((text, at) => entryOf({ id: `d${at}`, text }, { tokens: 100 })))
  const unit = (vector: ReadonlyArray<number>) => {
    const length = Math.hypot(...vector)
    return vector.map((value) => value / length)
  }
  const wanted = unit(vectorOf("number 77 and some letters"))
  const exact = texts
    .map((text, at) => ({
      id: `d${at}`,
      score: unit(vectorOf(text)).reduce((sum, value, i) => sum + value * (wanted[i] ?? 0), 0)
    }))
    .sort((left, right) => right.score - left.score)
  const hits = yield* space.nearest(wanted, { limit: 10 })
  yield* expect(hits.length, 10, "as many hits come as were asked for")
  const worst = exact[9]?.score ?? 0
  yield* assert(
    hits.every(({ score }, at) => Math.abs(score - (exact[at]?.score ?? 0)) < 1e-4 && score >= worst - 1e-4),
    "the ten nearest of 300 are the exact ones, with their cosine",
    hits.map(({ score }) => score)
  )
})

const filters: ReadonlyArray<readonly [name: string, filter: Filter, ids: ReadonlyArray<string>]> = [
  ["documents", { documents: ["ulm"] }, ["ulm"]],
  ["sources", { sources: ["west", "far"] }, ["köln", "東京"]],
  ["no source", { sources: [] }, []],
  ["a number", { metadata: { size: 2 } }, ["köln"]],
  ["a text", { metadata: { size: "2" } }, ["東京"]],
  ["a boolean", { metadata: { old: true } }, ["ulm", "東京"]],
  ["two values", { metadata: { old: true, size: 1 } }, ["ulm"]],
  ["a key that nothing has", { metadata: { constructor: 1 } }, []],
  ["a hostile key", { metadata: { "' OR 1=1 --": 1 } }, []],
  ["time", { after: 200, before: 300 }, ["köln"]],
  ["all at once", { after: 0, sources: ["south"], metadata: { size: 1 }, documents: ["ulm", "köln"] }, ["ulm"]]
]

const narrows = Effect.fnUntraced(function* (index: RagIndex["Service"]) {
  const space = yield* index.space("a", model)
  yield* fill(space)
  for (const [name, filter, ids] of filters) {
    const check = (hits: ReadonlyArray<Hit>, what: string) =>
      expect([...new Set(documentsOf(hits))].sort(), ids.toSorted(), `the filter by ${name} narrows ${what}`)
    yield* check(yield* space.words("lies on the 日本 minster cathedral", { limit: 9, filter }), "words")
    yield* check(yield* space.nearest(vectorOf("lies"), { limit: 9, filter }), "nearest")
    yield* expect(
      [...(yield* space.hashes(filter)).keys()].sort(),
      ids.toSorted(),
      `the filter by ${name} narrows hashes`
    )
    const sum = (yield* space.sources(filter)).reduce((before, { documents }) => before + documents, 0)
    yield* expect(sum, ids.length, `the filter by ${name} narrows sources`)
    const around = yield* space.around("ulm::0", { filter })
    yield* expect(around.length > 0, ids.includes("ulm"), `the filter by ${name} narrows around`)
  }
})

const narrowsFirst = Effect.fnUntraced(function* (index: RagIndex["Service"]) {
  const space = yield* index.space("a", model)
  const all = Array.from({ length: 400 }, (_, at) =>
    entryOf({ id: `d${at}`, text: `zebra zebra zebra ${at}`, source: at % 40 === 39 ? "rare" : "common" })
  )
  yield* space.put(all)
  const filter = { sources: ["rare"] }
  yield* expect((yield* space.words("zebra", { limit: 10, filter })).length, 10, "words are narrowed before the limit")
  const near = yield* space.nearest(vectorOf("zebra zebra zebra 1"), { limit: 10, filter })
  yield* expect(near.length, 10, "nearest is narrowed before the limit")
})

const separates = Effect.fnUntraced(function* (index: RagIndex["Service"]) {
  const one = yield* index.space("tenant/a", model)
  const other = yield* index.space("tenant/b", model)
  yield* fill(one)
  const scores = Effect.map(one.words("Danube minster", { limit: 5 }), (hits) => hits.map(({ score }) => score))
  const before = yield* scores
  yield* other.put([
    entryOf({ id: "ulm", text: "The secret of Danube is 42.", source: "south" }),
    entryOf({ id: "own", text: "Danube minster ".repeat(20), source: "own" })
  ])
  yield* expect(yield* scores, before, "documents of another namespace change no score")
  const texts = ["secret", "Danube", "42", '" OR *', "tenant/b", "own"]
  for (const [, filter] of [...filters, ["none", {}] as const]) {
    for (const text of texts) {
      const hits = [
        ...(yield* one.words(text, { limit: 50, filter })),
        ...(yield* one.nearest(vectorOf(text), { limit: 50, filter })),
        ...(yield* one.around("ulm::0", { below: 9, filter })),
        ...(yield* one.around("own::0", { filter }))
      ]
      const foreign = hits.find(
        ({ chunk: { document, text: chunkText } }) => chunkText.includes("secret") || document === "own"
      )
      yield* assert(foreign === undefined, "no search finds another namespace's documents", foreign)
    }
  }
  yield* expect(
    (yield* one.sources()).map(({ source }) => source),
    ["far", "south", "west"],
    "sources are of one namespace"
  )
  yield* expect(yield* one.remove(["own"]), 0, "nothing of another namespace is removed")
  yield* index.drop("tenant/a")
  yield* expect([...(yield* (yield* index.space("tenant/a")).hashes())], [], "drop removes a namespace")
  yield* expect((yield* other.words("secret", { limit: 5 })).length, 1, "drop leaves other namespaces alone")
})

const refuses = Effect.fnUntraced(function* (index: RagIndex["Service"]) {
  for (const name of ["", "a\nb", "\uD800", "x".repeat(257)]) {
    yield* expectFailure(index.space(name), "InvalidName", `the namespace ${JSON.stringify(name.slice(0, 9))}`)
  }
  const space = yield* index.space("a", model)
  yield* fill(space)
  yield* expectFailure(index.space("a", { id: "other", dimensions: 16 }), "OtherModel", "another model")
  yield* expectFailure(index.space("a", { id: "toy", dimensions: 8 }), "OtherModel", "another number of dimensions")
  yield* expectFailure(space.nearest([1, 2], { limit: 1 }), "OtherModel", "a vector of another length")
  yield* expectFailure(space.nearest(Array(16).fill(0), { limit: 1 }), "InvalidValue", "a vector without a direction")
  yield* expectFailure(
    space.nearest(Array(16).fill(Number.NaN), { limit: 1 }),
    "InvalidValue",
    "a vector of no numbers"
  )
  const words = yield* index.space("a")
  yield* expectFailure(words.nearest(vectorOf("a"), { limit: 1 }), "InvalidValue", "vectors without a model")
  yield* expect((yield* words.words("danube", { limit: 1 })).length, 1, "words need no model")
  const good = entryOf({ id: "good", text: "A good text." })
  const wrong = [
    { ...good, document: { ...good.document, id: "" } },
    { ...good, vectors: [] },
    { ...good, vectors: [[1]] },
    { ...good, chunks: good.chunks.map((one) => ({ ...one, index: 7 })) },
    { ...good, chunks: good.chunks.map((one) => ({ ...one, document: "ulm" })) }
  ]
  for (const [at, entry] of wrong.entries()) {
    const attempt = space.put([entryOf({ id: `before${at}`, text: "Not stored." }), entry])
    yield* expectFailure(attempt, at === 2 ? "OtherModel" : "InvalidValue", `the wrong entry ${at}`)
  }
  yield* expect((yield* space.hashes()).size, towns.length, "a refused put stores nothing")
  yield* index.drop("a")
  const other = yield* index.space("a", { id: "other", dimensions: 4 })
  yield* other.put([{ ...good, chunks: good.chunks.slice(0, 1), vectors: [[1, 0, 0, 0]] }])
  yield* expect((yield* other.nearest([1, 0, 0, 0], { limit: 1 })).length, 1, "a dropped namespace takes another model")
  const first = yield* index.space("b", model)
  const second = yield* index.space("b", { id: "other", dimensions: 16 })
  yield* first.put([good])
  yield* expectFailure(second.put([good]), "OtherModel", "vectors of a model that came second")
  yield* expectFailure(
    second.nearest(vectorOf("a"), { limit: 1 }),
    "OtherModel",
    "a search by a model that came second"
  )
})

const refusesWrongFilters = Effect.fnUntraced(function* (index: RagIndex["Service"]) {
  const space = yield* index.space("a", model)
  yield* fill(space)
  const wrong: ReadonlyArray<object> = [
    { source: ["west"] },
    { sources: "west" },
    { documents: [1] },
    { metadata: { size: { $ne: 1 } } },
    { after: "200" }
  ]
  for (const filter of wrong) {
    const rule = `the filter ${JSON.stringify(filter)}`
    const all = [
      space.hashes(filter),
      space.words("lies", { limit: 9, filter }),
      space.nearest(vectorOf("lies"), { limit: 9, filter }),
      space.around("ulm::0", { filter }),
      space.sources(filter)
    ]
    yield* Effect.forEach(all, (one) => expectFailure<unknown, never>(one, "InvalidValue", rule), { discard: true })
  }
})

const writesAtOnce = Effect.fnUntraced(function* (index: RagIndex["Service"]) {
  const texts = (at: number) => entryOf({ id: `d${at % 10}`, text: `Version ${at} of a text with words. `.repeat(9) })
  yield* Effect.forEach(
    Array.from({ length: 40 }, (_, at) => at),
    (at) => Effect.flatMap(index.space("a", model), (space) => space.put([texts(at)])),
    { concurrency: 8, discard: true }
  )
  const space = yield* index.space("a", model)
  const hits = yield* space.words("version", { limit: 1000 })
  const near = yield* space.nearest(vectorOf("version"), { limit: 1000 })
  yield* expect(hits.length, near.length, "concurrent writers leave whole documents")
  const versions = new Map<string, string>()
  for (const { chunk } of hits) {
    const version = /Version \d+/.exec(chunk.text)?.[0] ?? ""
    const firstVersion = versions.get(chunk.document) ?? version
    yield* expect(version, firstVersion, "all chunks of a document are of one version")
    versions.set(chunk.document, firstVersion)
  }
  yield* expect(versions.size, 10, "each document is there")
})

/** The checks, by name. */
export const rules: ReadonlyArray<Rule> = [
  ["stores documents whole, and gives chunks with their neighbours", storesWhole],
  ["replaces and removes documents", replaces],
  ["finds documents behind removed ones", removesMany],
  ["finds words in any language, and reads no query language", findsWords],
  ["finds the nearest vectors, with their cosine", findsNearest],
  ["narrows every search by filters", narrows],
  ["narrows before the limit", narrowsFirst],
  ["refuses filters with a condition that it can't read", refusesWrongFilters],
  ["keeps namespaces apart", separates],
  ["refuses wrong names, entries, vectors and models", refuses],
  ["keeps documents whole under concurrent writers", writesAtOnce]
]
