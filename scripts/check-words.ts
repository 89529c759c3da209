/**
 * Checks the words of `src/`: comments have subject, verb and object, and functions are named by a verb and a noun.
 * `npm run words` checks all of it, `npm run words src/core` one folder or file. `npm run english` checks the pages.
 */
import { globSync, readFileSync, statSync } from "node:fs"

/** At most so many of the `riddles` in 1,000 words of the comments of a file. One is free. */
const most = 3

/** The same for a page, and for all pages together. Lower them with each page that is rewritten; the aim is 8 and 3. */
const mostOfPage = 20
const mostOfPages = 8

const riddles = [
  // "what it is given", "how it was had"; not "what to do", "how many".
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

const problemsOf = (file: string): ReadonlyArray<string> => {
  const source = readFileSync(file, "utf8")
  const lineOf = (index: number) => source.slice(0, index).split("\n").length
  const comments = [...source.matchAll(/\/\*\*[^]*?\*\/|(?<=^|\s)\/\/ [^\n]*/gm)]
  const words = comments.reduce((sum, [text]) => sum + textOf(text).trim().split(/\s+/).length, 0)
  const found = comments.flatMap((comment) =>
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
  return [...(found.length > Math.max(1, (most * words) / 1000) ? found : []), ...names]
}

/** The prose of a page. Lines keep their numbers. */
const proseOf = (page: string): string =>
  readFileSync(page, "utf8")
    .replaceAll(/^(`{3,}).*$[^]*?^\1$/gm, (block) => block.replaceAll(/[^\n]/g, ""))
    .replaceAll(/`[^`\n]*`/g, "X")
    .replaceAll(/\]\([^)]*\)/g, "]")

const checkPages = (pages: ReadonlyArray<string>): void => {
  const all = pages.map((page) => {
    const text = proseOf(page)
    const hits = riddles.flatMap((riddle) =>
      [...text.matchAll(riddle)].map(
        (match) => `${page}:${text.slice(0, match.index).split("\n").length} "${match[0].trim()}"`
      )
    )
    return { hits, words: (text.match(/[\p{L}\p{N}]+/gu) ?? []).length }
  })
  const rateOf = (hits: number, words: number) => (1000 * hits) / Math.max(1, words)
  const total = rateOf(
    all.reduce((sum, { hits }) => sum + hits.length, 0),
    all.reduce((sum, { words }) => sum + words, 0)
  )
  const bad = all.filter(({ hits, words }) => rateOf(hits.length, words) > mostOfPage).flatMap(({ hits }) => hits)
  if (bad.length > 0) {
    throw new Error(`Say it with subject, verb and object (more than ${mostOfPage} in 1,000 words):\n${bad.join("\n")}`)
  }
  if (pages.length > 1 && total > mostOfPages) {
    throw new Error(
      `The pages have ${total.toFixed(1)} riddles in 1,000 words, and ${mostOfPages} is the most. Name a page to see them.`
    )
  }
  if (pages.length === 1) console.log(all.flatMap(({ hits }) => hits).join("\n"))
  console.log(`english: ${pages.length} pages, ${total.toFixed(1)} riddles in 1,000 words`)
}

const paths = process.argv.length > 2 ? process.argv.slice(2) : ["src"]
const pages = paths.flatMap((path) =>
  statSync(path).isDirectory() ? globSync(`${path}/*.md`) : path.endsWith(".md") ? [path] : []
)
if (pages.length > 0) checkPages(pages)
const files = paths.flatMap((path) =>
  statSync(path).isDirectory() ? globSync(`${path}/**/*.ts`) : path.endsWith(".md") ? [] : [path]
)
const problems = files.flatMap(problemsOf)
if (problems.length > 0) {
  throw new Error(
    `Say it with subject, verb and object (more than ${most} in 1,000 words, or a bare name):\n${problems.join("\n")}\n${problems.length} problems`
  )
}
if (files.length > 0) console.log(`words: ${files.length} files are in plain English`)
