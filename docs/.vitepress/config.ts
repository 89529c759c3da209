/**
 * The site of docs/: `npm run docs:site`. Search runs in the page, and nothing comes from another server. Pages are put
 * together in `.site/` by scripts/site/build.ts, with the examples beside them.
 */
import { readdirSync, readFileSync } from "node:fs"

const titleOf = (file: string) => /^# (.+)$/m.exec(readFileSync(file, "utf8"))?.[1] ?? file

const pages = (names: ReadonlyArray<string>) =>
  names.map((name) => ({ text: titleOf(`.site/${name}.md`), link: `/${name}` }))

const learn = ["getting-started", "effect-in-ten-minutes", "migration", "comparison", "glossary"]
const guides = [
  "cli",
  "chat",
  "approvals-cookbook",
  "http",
  "observability",
  "guardrails",
  "tool-selection",
  "mcp",
  "mcp-server",
  "web",
  "network",
  "documents",
  "git",
  "connectors",
  "oauth",
  "policy",
  "inbox",
  "troubleshooting",
  "runtimes",
  "security",
  "versions"
]
const measured = readdirSync(".site")
  .filter((file) => file.startsWith("performance") || ["cold-start.md", "effect-modules.md"].includes(file))
  .map((file) => file.replace(".md", ""))

const there = new Set(readdirSync(".site").map((file) => file.replace(".md", "")))
const rest = [...there]
  .filter((name) => ![...learn, ...guides, ...measured, "index", "architecture"].includes(name))
  .filter((name) => /^[a-z-]+$/.test(name) && !["examples", "public"].includes(name))
  .toSorted((left, right) => left.localeCompare(right))

export default {
  title: "effect-deepagents",
  description: "Deep agents as values on Effect",
  cleanUrls: true,
  base: process.env["SITE_BASE"] ?? "/",
  outDir: "../site",
  ignoreDeadLinks: [/^\/api\//],
  themeConfig: {
    search: { provider: "local" },
    nav: [
      { text: "Start", link: "/getting-started" },
      { text: "Examples", link: "/examples/" },
      { text: "API", link: "/api/index.html", target: "_self" }
    ],
    sidebar: [
      { text: "Learn", items: pages(learn) },
      { text: "Guides", items: pages(guides.filter((name) => there.has(name))) },
      { text: "Concepts", items: pages(["architecture", ...rest]) },
      { text: "Measurements", collapsed: true, items: pages(measured) }
    ],
    outline: [2, 3]
  }
}
