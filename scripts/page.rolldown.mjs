/** The page: one script and one style sheet, named by what is in them, and all that they need inside. */
import { createHash } from "node:crypto"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { defineConfig } from "rolldown"

/** The folder of what is built; tests build into one of their own. */
const dist = join(process.env["PAGE_DIST"] ?? "dist", "page")

/** The most bytes of the whole page, compressed. */
const most = 150_000

const hash = (text) => createHash("sha256").update(text).digest("hex").slice(0, 10)

/** Style sheets are short: comments and indents are what they can do without. */
const minify = (css) =>
  css
    .replaceAll(/\/\*[^]*?\*\//g, "")
    .replaceAll(/\s+/g, " ")
    .replaceAll(/ ?([{};,]) ?/g, "$1")
    .trim()

const document = {
  name: "document",
  writeBundle(_, bundle) {
    const [script] = Object.values(bundle)
    const style = minify(readFileSync("src/page/app.css", "utf8"))
    const styleName = `app-${hash(style)}.css`
    const html = readFileSync("src/page/index.html", "utf8")
      .replace("./app.css", `./${styleName}`)
      .replace("./app.js", `./${script.fileName}`)
    mkdirSync(dist, { recursive: true })
    writeFileSync(join(dist, styleName), style)
    writeFileSync(join(dist, "index.html"), html)
    const size = [script.code, style, html].reduce((sum, text) => sum + gzipSync(text).length, 0)
    if (size > most) throw new Error(`the page has ${size} bytes, compressed; at most ${most}`)
  }
}

rmSync(dist, { recursive: true, force: true })

export default defineConfig({
  plugins: [document],
  input: { app: "src/page/main.ts" },
  platform: "browser",
  output: { dir: dist, format: "esm", minify: true, entryFileNames: "app-[hash].js", codeSplitting: false },
  treeshake: { moduleSideEffects: false }
})
