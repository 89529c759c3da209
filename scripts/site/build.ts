/**
 * Builds the site into `site/`: its home page, the pages of docs/, the examples as pages, the API reference as pages of the
 * same frame, and each page as Markdown for whoever copies it, with `llms.txt`. `npm run docs:site`
 */
import { spawnSync } from "node:child_process"
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { codeBlocks } from "../markdown.ts"

const run = (command: string, ...args: ReadonlyArray<string>) => {
  const { status } = spawnSync(command, args, { stdio: ["ignore", "inherit", "inherit"] })
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}`)
}

rmSync(".site", { recursive: true, force: true })
rmSync("site", { recursive: true, force: true })
mkdirSync(".site/examples", { recursive: true })
mkdirSync(".site/public")
cpSync("docs/.vitepress", ".site/.vitepress", { recursive: true })

/** Pages beside README.md, by their names on the site: docs/ has a page on security of its own. */
const beside: { readonly [file: string]: string } = {
  README: "overview",
  SECURITY: "reporting-vulnerabilities",
  CHANGELOG: "changelog",
  CONTRIBUTING: "contributing",
  AGENTS: "for-coding-agents"
}

/** A title without the marks of code. */
const titleOf = (markdown: string, otherwise: string) =>
  (/^# (.+)$/m.exec(markdown)?.[1] ?? otherwise).replaceAll("`", "")

const pages = globSync("docs/*.md").toSorted()
const titles = new Map(pages.map((page) => [basename(page), titleOf(readFileSync(page, "utf8"), page)]))

/** Links out of docs/ lead to pages of the site, and links that show the name of a file show its title. */
const moved = (markdown: string, toExamples: string) =>
  markdown
    .replaceAll(/\[([\w-]+\.md)\]\(/g, (_, file: string) => `[${titles.get(file) ?? file}](`)
    .replaceAll(/\]\(\.\.\/examples\/?([^)\s]*)\)/g, (_, path: string) =>
      // Examples of several files have no page.
      path.includes("/") ? `](${toExamples})` : `](${toExamples}${path.replace(/(?:\.ts|README\.md)$/, "")})`
    )
    .replaceAll(/\]\((?:\.\.\/)?([A-Z]+)\.md(#[^)]*)?\)/g, (link, name: string, hash = "") =>
      beside[name] === undefined ? link : `](./${beside[name]}${hash})`
    )
    .replaceAll(/\]\(docs\/(README\.md)?/g, (_, readme?: string) => `](./${readme === undefined ? "" : "pages"}`)
    .replaceAll(/\]\(examples\/?(?:README\.md)?\)/g, "](./examples/)")
    .replaceAll("```ts run", "```ts")

const write = (name: string, markdown: string) => writeFileSync(`.site/${name}.md`, markdown)

for (const page of pages) {
  const name = basename(page) === "README.md" ? "pages" : basename(page, ".md")
  // In docs/, README.md is the list of pages.
  write(name, moved(readFileSync(page, "utf8").replaceAll("](README.md)", "](./pages)"), "./examples/"))
}
for (const [file, name] of Object.entries(beside)) {
  write(name, moved(readFileSync(`${file}.md`, "utf8"), "./examples/"))
}
// The home page shows README's first program.
const quickStart = codeBlocks(readFileSync("README.md", "utf8")).find(({ heading }) => heading === "Quick start")
const home = readFileSync("docs/.vitepress/home.md", "utf8")
writeFileSync(".site/index.md", home.replace("<!-- quick start -->", `\`\`\`ts\n${quickStart?.code ?? ""}\`\`\``))

for (const image of globSync("docs/*.svg")) cpSync(image, `.site/${basename(image)}`)

for (const file of globSync("examples/*.ts")) {
  const name = basename(file, ".ts")
  const source = readFileSync(file, "utf8")
  const [comment = "", about = ""] = /^\/\*\*([^]*?)\*\/\n*/.exec(source) ?? []
  const text = about.replaceAll(/^\s*\*?\s?/gm, "").trim()
  const title = name.slice(3).replaceAll("-", " ")
  const heading = title.slice(0, 1).toUpperCase() + title.slice(1)
  write(`examples/${name}`, `# ${heading}\n\n${text}\n\n\`\`\`\`ts\n${source.slice(comment.length)}\`\`\`\`\n`)
}
const index = readFileSync("examples/README.md", "utf8").replaceAll(/\]\(([\w-]+)\.ts\)/g, "](./$1)")
write("examples/index", index.replaceAll(/\[(cluster|demo)\]\([^)]*\)/g, "$1"))

cpSync("llms.txt", ".site/public/llms.txt")
writeFileSync(
  ".site/public/llms-full.txt",
  ["README.md", ...pages].map((page) => readFileSync(page, "utf8")).join("\n\n")
)

run(
  process.execPath,
  "scripts/api/node_modules/typedoc/bin/typedoc",
  "--options",
  "scripts/api/typedoc.json",
  "--out",
  ".site/api"
)
run("scripts/site/node_modules/.bin/vitepress", "build", ".site")
// For whoever copies a page. In `public/`, the generator would take them for pages.
for (const file of globSync(".site/**/*.md")) {
  const target = join("site/markdown", file.slice(".site/".length))
  mkdirSync(dirname(target), { recursive: true })
  cpSync(file, target)
}
rmSync(".site", { recursive: true })
