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
  "acp",
  "web",
  "network",
  "documents",
  "git",
  "connectors",
  "oauth",
  "policy",
  "inbox",
  "effect-ai",
  "troubleshooting",
  "invariants",
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

/** What is used of markdown-it, which is installed beside the generator alone. */
interface Markdown {
  readonly core: { readonly ruler: { readonly push: (name: string, rule: (state: State) => void) => void } }
  readonly renderer: { readonly rules: { code_inline?: (...args: Array<never>) => string } }
}
interface State {
  readonly tokens: ReadonlyArray<{ readonly type: string; readonly content: string; tag: string }>
}

export default {
  title: "effect-deepagents",
  description: "Deep agents as values on Effect",
  cleanUrls: true,
  base: process.env["SITE_BASE"] ?? "/",
  outDir: "../site",
  ignoreDeadLinks: [/^\/api\//],
  // The names of languages in the corners of code are too pale to be read by everybody; keys are no part of the name of a button.
  head: [
    [
      "style",
      {},
      "html:root { --vp-code-lang-color: var(--vp-c-text-1); } .DocSearch-Button-Keys { display: none !important; }"
    ]
  ],
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
    config: ({ core, renderer: { rules } }: Markdown) => {
      // `{{…}}` in code is no expression of Vue.
      const inline = rules.code_inline
      if (inline !== undefined) rules.code_inline = (...args) => inline(...args).replace(/^<code/, "<code v-pre")
      // A corner of a table without a text is no heading of anything.
      core.ruler.push("empty-headings", ({ tokens }) => {
        for (const [index, token] of tokens.entries()) {
          if (token.type === "th_open" && tokens[index + 1]?.content === "") {
            for (const one of [token, tokens[index + 2]]) if (one !== undefined) one.tag = "td"
          }
        }
      })
    }
  },
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
      // A group that can be closed would be a button with a button in it.
      { text: "Measurements", items: pages(measured) }
    ],
    outline: [2, 3]
  }
}
