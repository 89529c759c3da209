// Measures code_search beside grep on the same questions over src/, from the sources:
//   node --conditions=@effect-deepagents/source test/bench/code-search.mjs
// grep is the best that a script makes of it: the files with the most different words of the question, then the most lines
// with one. Both answer with five files; the numbers count the questions whose file is the first one, or one of the five.
import { spawnSync } from "node:child_process"
import { Effect, Layer, Stream } from "effect"
import * as FilesystemBackend from "../../src/backends/FilesystemBackend.ts"
import * as CodeSplitter from "../../src/rag/CodeSplitter.ts"
import { Indexer, MemoryIndex, RagIndex, Retriever } from "../../src/rag/index.ts"

const questions = [
  ["join the ranks of two result lists by reciprocal rank fusion", "rag/Retriever.ts"],
  ["split a Markdown text into sections by headings", "rag/internal/splitters.ts"],
  ["Porter stemming of English words", "rag/internal/stem.ts"],
  ["one bit signatures of vectors and Hamming distance", "support/store/signs.ts"],
  ["refuse a private or loopback address before connecting", "net/"],
  ["escape invisible and control characters for a prompt", "support/text/untrusted.ts"],
  ["estimate the number of tokens of a text", "support/text/tokens.ts"],
  ["suggest the nearest names for a misspelt one", "support/text/names.ts"],
  ["keep the tail of a conversation when it is compacted", "compact"],
  ["apply a patch of several files", "patch"],
  ["parse the risk of a shell command", "risk"],
  ["run commands isolated by bubblewrap", "backends/OsSandbox.ts"],
  ["read the text of slides of a presentation", "documents/"],
  ["write rows in a transaction and turn lost connections into failures", "support/store/sql.ts"],
  ["decode server-sent events", "sse"],
  ["retry a model call after a rate limit", "etry"],
  ["load an optional package at its first use", "support/effect/peer.ts"],
  ["sign requests of OAuth with DPoP proofs", "oauth"],
  ["number the sources of a run once", "core/Sources.ts"],
  ["cap what a tenant spends in a day", "edger"]
]

const wordsOf = (text) => [...new Set(text.toLowerCase().match(/[a-z]{3,}/g))]

const grep = (question) => {
  const found = new Map()
  for (const word of wordsOf(question)) {
    const { stdout } = spawnSync("grep", ["-rciw", "--include=*.ts", word, "src"], { encoding: "utf8", maxBuffer: 1e8 })
    for (const line of stdout.split("\n")) {
      const [, file, count] = /^(.+):(\d+)$/.exec(line) ?? []
      if (file === undefined || count === "0") continue
      const known = found.get(file) ?? { words: 0, lines: 0 }
      found.set(file, { words: known.words + 1, lines: known.lines + Number(count) })
    }
  }
  const best = [...found].sort(([, a], [, b]) => b.words - a.words || b.lines - a.lines).slice(0, 5)
  return best.map(([file]) => file.slice(4))
}

const report = (name, answers, times) => {
  const ranks = questions.map(([, part], at) => answers[at].findIndex((file) => file.includes(part)))
  const first = ranks.filter((rank) => rank === 0).length
  const five = ranks.filter((rank) => rank >= 0).length
  const time = times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]
  console.log(`${name}: first ${first}, of five ${five}, of ${questions.length}; p50 ${time.toFixed(1)} ms`)
  return ranks
}

const program = Effect.gen(function* () {
  const times = { grep: [], ours: [], plain: [] }
  const answers = { grep: [], ours: [], plain: [] }
  for (const [question] of questions) {
    const began = performance.now()
    answers.grep.push(grep(question))
    times.grep.push(performance.now() - began)
  }
  const code = yield* CodeSplitter.load
  for (const [name, options] of [
    ["plain", {}],
    ["ours", { code }]
  ]) {
    const space = yield* RagIndex.RagIndex.use((index) => index.space(name))
    const began = performance.now()
    yield* Stream.runDrain(Indexer.folder(space, "/", { glob: "**/*.ts", ...options }))
    const [source] = yield* space.sources()
    console.log(name, source, `${Math.round(performance.now() - began)} ms to index`)
    for (const [question] of questions) {
      const start = performance.now()
      const hits = yield* Retriever.search(space, question, { limit: 20 })
      times[name].push(performance.now() - start)
      answers[name].push([...new Set(hits.map(({ chunk }) => chunk.document.slice(1)))].slice(0, 5))
    }
  }
  const ranks = ["grep", "plain", "ours"].map((name) => report(name, answers[name], times[name]))
  for (const [at, [question]] of questions.entries())
    console.log(ranks.map((one) => one[at]).join("\t"), question, answers.ours[at][0])
})

await Effect.runPromise(
  Effect.provide(program, Layer.merge(MemoryIndex.layer, FilesystemBackend.layer({ root: "src" })))
)
