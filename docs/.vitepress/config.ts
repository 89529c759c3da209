/**
 * The site of docs/: `npm run docs:site`. Search runs in the page, and nothing comes from another server. Pages are put
 * together in `.site/` by scripts/site/build.ts, with the examples beside them.
 */
import { readdirSync, readFileSync } from "node:fs"

const titleOf = (file: string) => (/^# (.+)$/m.exec(readFileSync(file, "utf8"))?.[1] ?? file).replaceAll("`", "")

const pages = (names: ReadonlyArray<string>) =>
  names.map((name) => ({ text: titleOf(`.site/${name}.md`), link: `/${name}` }))

const learn = [
  "overview",
  "getting-started",
  "cookbook",
  "promises",
  "effect-in-ten-minutes",
  "migration",
  "comparison",
  "glossary"
]
const guides = [
  "cli",
  "chat",
  "approvals-cookbook",
  "http",
  "page",
  "nextjs",
  "hono",
  "edge",
  "schedules",
  "observability",
  "guardrails",
  "tool-selection",
  "code-mode",
  "evals",
  "workflows",
  "patterns",
  "mcp",
  "mcp-server",
  "web",
  "network",
  "documents",
  "retrieval",
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
  .filter((name) => /^[a-z-]+$/.test(name) && !["api", "examples", "public"].includes(name))
  .toSorted((left, right) => left.localeCompare(right))

/** The modules of the API reference, by folder. */
const modules = readdirSync(".site/api", { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => ({
    text: name,
    items: readdirSync(`.site/api/${name}`, { recursive: true })
      .map((file) => String(file).replaceAll("\\", "/"))
      .filter((file) => file.endsWith(".md"))
      .toSorted((left, right) => left.localeCompare(right))
      .map((file) => ({ text: file.replace(".md", ""), link: `/api/${name}/${file.replace(".md", "")}` }))
  }))

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
  // The names of languages in the corners of code are too pale to be read by everybody; keys are no part of the name of a button.
  head: [
    [
      "style",
      {},
      [
        "html:root { --vp-code-lang-color: var(--vp-c-text-1); --vp-layout-max-width: 1680px; --vp-button-brand-bg: #3451b2; --vp-button-brand-text: #ffffff; }",
        ".DocSearch-Button-Keys { display: none !important; }",
        // Import paths are long.
        ".VPDoc .container .content .content-container { max-width: 920px !important; }",
        ".copy-page { border: 1px solid var(--vp-c-divider); border-radius: 8px; padding: 4px 12px; font-size: 13px; display: block; margin: 0 0 8px auto; }"
      ].join(" ")
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
      { text: "Cookbook", link: "/cookbook" },
      { text: "Examples", link: "/examples/" },
      { text: "API", link: "/api/" }
    ],
    sidebar: {
      "/api/": [{ text: "API reference", link: "/api/" }, ...modules],
      "/": [
        { text: "Learn", items: pages(learn.filter((name) => there.has(name))) },
        { text: "Guides", items: pages(guides.filter((name) => there.has(name))) },
        { text: "Concepts", items: pages(["architecture", ...rest]) },
        // A group that can be closed would be a button with a button in it.
        { text: "Measurements", items: pages(measured) }
      ]
    },
    outline: [2, 3]
  }
}
