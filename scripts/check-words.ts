/**
 * Checks the words of comments and pages: sentences have subject, verb and object. Functions are named by a verb and a
 * noun. `npm run english` checks all pages and sources, `npm run words src/core docs/mcp.md` folders and files.
 */
import { globSync, readFileSync, statSync } from "node:fs"

/** At most so many of the `riddles` in 1,000 words: in the comments of a file, in a page, and over all. One is free. */
const mostOfComments = 3
const mostOfPage = 8
const mostOverAll = 3
/** At most this share of the titles of a file of tests may be riddles. One is free. */
const mostOfTitles = 0.03

const riddles = [
  // "what waits", "whoever asks"; not "what to do".
  /\b(?:what|whatever|whoever|whichever) (?!(?:to|is|are|was|were|has|have|had|it|they|he|she|the|an?|one|each|came|comes?|goes|there|this|that)\b)\w+/gi,
  // "what it is given", "how it was had"; not "how many".
  /\b(?:what|how|where|who|whoever|whatever|whichever) (?:is|are|was|were|has|have|had|it|they|he|she|the|an?|one|each|came|comes?|goes|there|this|that) (?!\?)/gi,
  // "one that", "those of which", "nothing that"
  /\b(?:(?:one|ones|those|that|nothing|something|everything) (?:that|of which|whom?|who|from|with)|those of)\b/gi,
  // "there is none"
  /\b(?:is|are|was|were) (?:none|nothing)\b/gi
]

/** Participles and adverbs that say no type and can't be searched for. */
const bare = new Set(
  "again alone apart added allowed asked away before begun beside between checked closed counted cut done else ended far found given gone had held here joined kept known laid late left listed made marked meant merged named near now once opened ours owed past put read refused said seen sent set shared shown split started still taken theirs then there together told tried used wanted within without written yet".split(
    " "
  )
)

/** Helpers of this library's first day, whose verb is its own participle. Don't add to them. */
const exempt = new Set(["src/support/text/text.ts cut", "src/support/effect/once.ts once"])

const textOf = (comment: string): string =>
  comment
    .replaceAll(/```[^]*?```/g, " ")
    .replaceAll(/^\s*\*?\s*@.*$/gm, " ")
    .replaceAll(/\/\*\*|\*\/|^\s*\* ?|^\s*\/\/ /gm, " ")
    .replaceAll(/`[^`]*`/g, "X")
    .replaceAll(/\{@link ([^}]*)\}/g, "X")

const declared =
  /(?:const|let) ([a-z]\w*)(?:: [^=\n]+)? = (?:async )?(?:<[^>]*>)?\(|(?<=^\s*(?:export )?)function\*? ([a-z]\w*)|const ([a-z]\w*) = Effect\.fn\w*\(|const ([a-z]\w*) = (?:async )?\w+ =>/gm

/** Titles of tests and of their groups, in quotes of any kind. */
const titled = /\b(?:it|describe|test)(?:[.]\w+)*(?:\([^"'`(]{0,80}\))?\(\s*(["'`])((?:\\.|(?!\1)[^\n\\])+)\1/g

/** The words of a file or page, its riddles with their places, and the problems that it has apart from them. */
interface Count {
  readonly words: number
  readonly hits: ReadonlyArray<string>
  readonly problems: ReadonlyArray<string>
}

const rateOf = (hits: number, words: number): number => (1000 * hits) / Math.max(1, words)

const countTitles = (file: string, source: string): Count => {
  const titles = [...source.matchAll(titled)].map(({ 2: title = "", index }) => ({ title, index }))
  const hits = titles.flatMap(({ index, title }) =>
    riddles.some((riddle) => title.search(riddle) !== -1)
      ? [`${file}:${source.slice(0, index).split("\n").length} title "${title}"`]
      : []
  )
  const isClear = hits.length <= Math.max(1, titles.length * mostOfTitles)
  const words = titles.reduce((sum, { title }) => sum + title.split(/\s+/).length, 0)
  return { words, hits, problems: isClear ? [] : hits }
}

const countComments = (file: string): Count => {
  const source = readFileSync(file, "utf8")
  const lineOf = (index: number) => source.slice(0, index).split("\n").length
  const comments = [...source.matchAll(/(?<=^\s*)\/\*\*\s[^]*?\*\/|(?<=^|\s)\/\/ [^\n]*/gm)]
  const words = comments.reduce((sum, [text]) => sum + textOf(text).trim().split(/\s+/).length, 0)
  const hits = comments.flatMap((comment) =>
    riddles.flatMap((riddle) =>
      [...textOf(comment[0]).matchAll(riddle)].map(([text]) => `${file}:${lineOf(comment.index)} "${text.trim()}"`)
    )
  )
  const names = [...source.matchAll(declared)].flatMap((match) => {
    const name = match.slice(1).find((one) => one !== undefined) ?? ""
    return bare.has(name) && !exempt.has(`${file} ${name}`)
      ? [`${file}:${lineOf(match.index)} function "${name}": name it by a verb and a noun`]
      : []
  })
  const titles = file.endsWith(".test.ts") ? countTitles(file, source) : { words: 0, hits: [], problems: [] }
  const isClear = hits.length <= Math.max(1, (mostOfComments * words) / 1000)
  return {
    words: words + titles.words,
    hits: [...hits, ...titles.hits],
    problems: [...(isClear ? [] : hits), ...names, ...titles.problems]
  }
}

/** The prose of a page. Lines keep their numbers. */
const proseOf = (page: string): string =>
  readFileSync(page, "utf8")
    .replaceAll(/^(`{3,}).*$[^]*?^\1$/gm, (block) => block.replaceAll(/[^\n]/g, ""))
    .replaceAll(/`[^`\n]*`/g, "X")
    .replaceAll(/\]\([^)]*\)/g, "]")

const countPage = (page: string): Count => {
  const text = proseOf(page)
  const words = (text.match(/[\p{L}\p{N}]+/gu) ?? []).length
  const hits = riddles.flatMap((riddle) =>
    [...text.matchAll(riddle)].map(
      (match) => `${page}:${text.slice(0, match.index).split("\n").length} "${match[0].trim()}"`
    )
  )
  return { words, hits, problems: hits.length <= Math.max(1, (mostOfPage * words) / 1000) ? [] : hits }
}

const paths = process.argv.length > 2 ? process.argv.slice(2) : ["src"]
const files = paths.flatMap((path) =>
  statSync(path).isDirectory()
    ? [...globSync(`${path}/*.md`), ...globSync(`${path}/**/*.ts`, { exclude: ["**/node_modules/**"] })]
    : [path]
)
const counts = files.map((file) => (file.endsWith(".md") ? countPage(file) : countComments(file)))
const problems = counts.flatMap((count) => count.problems)
if (problems.length > 0) {
  throw new Error(
    `Say it with subject, verb and object (at most ${mostOfComments} riddles in 1,000 words of comments, ${mostOfPage} of a page), and name functions by a verb and a noun:\n${problems.join("\n")}\n${problems.length} problems`
  )
}
const total = rateOf(
  counts.reduce((sum, { hits }) => sum + hits.length, 0),
  counts.reduce((sum, { words }) => sum + words, 0)
)
if (files.length > 1 && total > mostOverAll) {
  throw new Error(
    `These files have ${total.toFixed(1)} riddles in 1,000 words, and ${mostOverAll} is the most. Name a page to see its own.`
  )
}
if (files.length === 1) console.log(counts.flatMap(({ hits }) => hits).join("\n"))
console.log(`words: ${files.length} files, ${total.toFixed(1)} riddles in 1,000 words`)
