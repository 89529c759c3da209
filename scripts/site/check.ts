/**
 * Opens every page of `site/` in Chromium, as on a phone and on a desk: nothing may be wider than the screen, fail, or come
 * from another server; axe must find nothing, in the light and in the dark theme; every link must lead somewhere.
 * `npm run docs:site:check`
 */
import assert from "node:assert/strict"
import { once } from "node:events"
import { existsSync, globSync, readFileSync, statSync } from "node:fs"
import { createServer } from "node:http"
import { extname, join } from "node:path"
import chromium from "@sparticuz/chromium"
import { chromium as playwright } from "playwright-core"

const types: { readonly [extension: string]: string } = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".svg": "image/svg+xml",
  ".txt": "text/plain"
}

const fileOf = (path: string) =>
  [path, `${path}.html`, join(path, "index.html")]
    .map((candidate) => join("site", candidate))
    .find((candidate) => existsSync(candidate) && statSync(candidate).isFile())

const server = createServer((request, response) => {
  const file = fileOf(decodeURIComponent(new URL(request.url ?? "/", "http://site").pathname))
  response.writeHead(file === undefined ? 404 : 200, { "content-type": types[extname(file ?? "")] ?? "font/woff2" })
  response.end(file === undefined ? "" : readFileSync(file))
}).listen(0, "127.0.0.1")
await once(server, "listening")
const address = server.address()
assert.ok(address !== null && typeof address === "object")
const origin = `http://127.0.0.1:${address.port}`

const browser = await playwright.launch({
  executablePath: await chromium.executablePath(),
  args: ["--no-sandbox", "--disable-gpu"]
})
const axe = readFileSync("scripts/site/node_modules/axe-core/axe.min.js", "utf8")
const names = globSync("site/{*,examples/*,api/index,api/core/*,api/middleware/*}.html").map((file) =>
  file.replace(/^site\//, "").replace(/\.html$/, "")
)
assert.ok(names.length > 0, "site/ has no page: run `npm run docs:site` first")
/** Each problem, with the pages that have it. */
const problems = new Map<string, Array<string>>()

for (const { height, width } of [
  { width: 390, height: 844 },
  { width: 1280, height: 900 }
]) {
  const context = await browser.newContext({ viewport: { width, height }, reducedMotion: "reduce" })
  const page = await context.newPage()
  let at = ""
  let theme: "light" | "dark" = "light"
  const report = (problem: string) =>
    problems.set(problem, [...(problems.get(problem) ?? []), `${at} (${width}, ${theme})`])
  page.on("pageerror", (error) => report(error.message))
  page.on("request", (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith("data:")) report(`asks ${request.url()}`)
  })
  for (const name of names.filter((one) => one !== "404")) {
    at = name
    theme = "light"
    await page.emulateMedia({ colorScheme: theme })
    await page.goto(`${origin}/${name}`, { waitUntil: "load" })
    const { links, wide } = await page.evaluate<{ readonly wide: boolean; readonly links: ReadonlyArray<string> }>(`({
      wide: document.documentElement.scrollWidth > window.innerWidth,
      links: [...document.querySelectorAll("a[href]")].map((link) => link.href)
    })`)
    if (wide) report("is wider than the screen")
    for (const link of new Set(links)) {
      const url = new URL(link)
      if (url.origin !== origin) continue
      const file = fileOf(decodeURIComponent(url.pathname))
      if (file === undefined) report(`links to ${url.pathname}`)
    }
    await page.evaluate(axe)
    for (theme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme: theme })
      await page.waitForFunction(`document.documentElement.classList.contains("dark") === ${theme === "dark"}`)
      const violations = await page.evaluate<ReadonlyArray<string>>(`axe.run().then(({ violations }) =>
        violations.flatMap(({ id, nodes }) => [...new Set(nodes.slice(0, 1).map(({ html }) => id + ": " + html.slice(0, 120)))])
      )`)
      violations.forEach(report)
    }
  }
  await context.close()
}

await browser.close()
server.close()
if (problems.size > 0) {
  const list = [...problems].map(
    ([problem, pages]) => `${problem}\n  on ${pages.length}: ${pages.slice(0, 5).join(", ")}`
  )
  throw new Error(`${problems.size} problems:\n${list.join("\n")}`)
}
console.log(`site: ${names.length} pages at two widths, light and dark, without a problem`)
