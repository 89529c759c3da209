/** Writes the lists that are made of other files: `llms.txt` of the pages, `examples/README.md` of the examples. `npm run indexes` */
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { basename } from "node:path"

const pages = globSync("docs/*.md")
  .filter((file) => basename(file) !== "README.md")
  .toSorted((left, right) => left.localeCompare(right))
  .map((file) => `- [${/^# (.+)$/m.exec(readFileSync(file, "utf8"))?.[1] ?? file}](${file})`)

writeFileSync(
  "llms.txt",
  `# effect-deepagents

> Deep agents (plan, files, sub-agents, long context) as values on Effect 4, in TypeScript.

docs/coding-agents.md has the rules for coding agents. Pages are in docs/, examples in examples/, sources in src/.

## Pages

${pages.join("\n")}
`
)

/** The first sentence of a file's first comment. */
const shows = (file: string) => {
  const [, comment = ""] = /^\/\*\*([^]*?)\*\//.exec(readFileSync(file, "utf8")) ?? []
  const text = comment
    .replaceAll(/^\s*\*?\s?/gm, " ")
    .replaceAll(/\s+/g, " ")
    .trim()
  return /^.*?(?=[.:](\s|$))/.exec(text)?.[0] ?? text
}

const examples = globSync("examples/*.ts")
  .toSorted((left, right) => left.localeCompare(right))
  .map((file) => `| [${basename(file)}](${basename(file)}) | ${shows(file)} |`)

writeFileSync(
  "examples/README.md",
  `# Examples

Programs that run without a key: \`npm ci\`, then \`node examples/01-hello.ts\`. \`npm run examples\` runs them all.

| example | shows |
| --- | --- |
${examples.join("\n")}
`
)
