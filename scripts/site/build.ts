/**
 * Builds the site into `site/`: the pages of docs/, the examples as pages, the API reference, `llms.txt`, and all pages as
 * one Markdown file. `npm run docs:site`
 */
import { spawnSync } from "node:child_process"
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { basename } from "node:path"

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
  SECURITY: "reporting-vulnerabilities",
  CHANGELOG: "changelog",
  CONTRIBUTING: "contributing",
  AGENTS: "for-coding-agents"
}

/** Links out of docs/ lead to pages of the site. */
const moved = (markdown: string, toExamples: string) =>
  markdown
    .replaceAll(/\]\(\.\.\/examples\/?([^)\s]*)\)/g, (_, path: string) =>
      // Examples of several files have no page.
      path.includes("/") ? `](${toExamples})` : `](${toExamples}${path.replace(/\.ts$/, "")})`
    )
    .replaceAll(/\]\((?:\.\.\/)?([A-Z]+)\.md\)/g, (link, name: string) =>
      beside[name] === undefined ? link : `](./${beside[name]})`
    )
    .replaceAll(/\]\(docs\/(README\.md)?/g, (_, readme?: string) => `](./${readme === undefined ? "" : "pages"}`)
    .replaceAll(/\]\(examples\/?(?:README\.md)?\)/g, "](./examples/)")
    .replaceAll(/\]\(README\.md\)/g, "](./pages)")
    .replaceAll(/\]\(\.\.\/README\.md(#[^)]*)?\)/g, (_, hash = "") => `](./${hash})`)
    .replaceAll("```ts run", "```ts")

const pages = globSync("docs/*.md").toSorted()
for (const page of pages) {
  const name = basename(page) === "README.md" ? "pages.md" : basename(page)
  writeFileSync(`.site/${name}`, moved(readFileSync(page, "utf8"), "./examples/"))
}
writeFileSync(".site/index.md", moved(readFileSync("README.md", "utf8"), "./examples/"))
for (const [file, name] of Object.entries(beside)) {
  writeFileSync(`.site/${name}.md`, moved(readFileSync(`${file}.md`, "utf8"), "./examples/"))
}

for (const image of globSync("docs/*.svg")) cpSync(image, `.site/${basename(image)}`)

for (const file of globSync("examples/*.ts")) {
  const name = basename(file, ".ts")
  const code = readFileSync(file, "utf8")
  writeFileSync(`.site/examples/${name}.md`, `# ${name.slice(3).replaceAll("-", " ")}\n\n\`\`\`\`ts\n${code}\`\`\`\`\n`)
}
const index = readFileSync("examples/README.md", "utf8").replaceAll(/\]\(([\w-]+)\.ts\)/g, "](./$1)")
writeFileSync(".site/examples/index.md", index.replaceAll(/\[(cluster|demo)\]\([^)]*\)/g, "$1"))

cpSync("llms.txt", ".site/public/llms.txt")
writeFileSync(
  ".site/public/llms-full.txt",
  ["README.md", ...pages].map((page) => readFileSync(page, "utf8")).join("\n\n")
)

run("scripts/site/node_modules/.bin/vitepress", "build", ".site")
run(
  process.execPath,
  "scripts/api/node_modules/typedoc/bin/typedoc",
  "--options",
  "scripts/api/typedoc.json",
  "--out",
  "site/api"
)
rmSync(".site", { recursive: true })
