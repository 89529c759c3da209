/**
 * The program `deepagents`, with all that it needs inside: whoever runs it installs nothing else, and whoever uses the
 * library installs nothing more. What is asked for later (a provider's SDK, the chat) is a file of its own.
 */
import { cpSync, existsSync, rmSync } from "node:fs"
import { dirname, relative, resolve } from "node:path"
import { defineConfig } from "rolldown"
import { makeCuts } from "./program/cuts.mjs"

/** The folder of what is built; tests build into one of their own. */
const dist = process.env["PROGRAM_DIST"] ?? "dist"

/** What the program reads: skills, templates of projects, and the engine of scripts. */
const assets = {
  name: "assets",
  writeBundle() {
    for (const [from, to] of [
      ["src/cli/skills", `${dist}/cli/skills`],
      ["examples/templates", `${dist}/cli/templates`]
    ]) {
      rmSync(to, { recursive: true, force: true })
      if (existsSync(from)) cpSync(from, to, { recursive: true })
    }
    const engine = "emscripten-module.wasm"
    cpSync(`node_modules/@jitl/quickjs-wasmfile-release-sync/dist/${engine}`, `${dist}/cli/program/${engine}`)
  }
}

/**
 * A segmenter takes as long to make as a third of `--help`, and libraries make one each when they are loaded: here it is
 * made when it is asked first, once of a kind, and not for graphemes of printable ASCII.
 */
const segmenters = {
  name: "segmenters",
  resolveId: (id) => (id === "lazy-segmenter" ? "\0lazy-segmenter" : undefined),
  load: (id) =>
    id === "\0lazy-segmenter"
      ? String.raw`
          const made = new Map()
          export const segmenter = (locale, { granularity = "grapheme" } = {}) => ({
            segment(input) {
              if (granularity === "grapheme" && /^[\x20-\x7e]*$/.test(input))
                return Array.from(input, (segment, index) => ({ segment, index, input }))
              const kind = granularity + " " + locale
              if (!made.has(kind)) made.set(kind, new Intl.Segmenter(locale, { granularity }))
              return made.get(kind).segment(input)
            }
          })`
      : undefined,
  transform(code) {
    if (!/^(?:export )?const \w+ = (?:[/][*]#__PURE__[*][/])?\s*new Intl\.Segmenter\(/m.test(code)) return undefined
    return `import { segmenter as lazySegmenter } from "lazy-segmenter"\n${code.replaceAll("new Intl.Segmenter(", "lazySegmenter(")}`
  }
}

/** Programs that are run in threads, as files of their own beside the program. */
const threads = {
  "web-reader": "src/web/internal/pages/worker.ts",
  "pdf-reader": "src/documents/internal/pdf/pdfWorker.ts",
  "script-runner": "src/code/internal/scriptWorker.ts"
}

const inThreads = {
  name: "threads",
  transform(code, id) {
    if (!/[/]src[/](code|documents|web)[/]/.test(id)) return undefined
    const folder = dirname(id)
    return Object.entries(threads).reduce((changed, [name, file]) => {
      const path = relative(folder, resolve(file)).replaceAll("\\", "/")
      return changed.replaceAll(`new URL("./${path}"`, `new URL("./${name}.js"`)
    }, code)
  }
}

rmSync(`${dist}/cli/program`, { recursive: true, force: true })

const output = {
  dir: `${dist}/cli/program`,
  format: "esm",
  minify: true,
  entryFileNames: "[name].js",
  chunkFileNames: "[name]-[hash].js"
}

/** What commands do is not in the file that has only their help. */
const noCommands = {
  name: "no-commands",
  resolveDynamicImport: (name) => ({ id: name, external: true })
}

export default defineConfig([
  {
    plugins: [makeCuts(), segmenters, assets, inThreads],
    input: { deepagents: "src/cli/bin.ts", ...threads },
    external: [
      /[/]cli[/]internal[/]about\.ts$/,
      // Hundreds of megabytes of binaries, or the credentials of a cloud: who wants them installs them.
      /^node-llama-cpp/,
      /^@anthropic-ai[/]bedrock-sdk/,
      /^@aws-sdk[/]client-bedrock-runtime/,
      "playwright-core",
      // Megabytes of grammars.
      "web-tree-sitter",
      // Every installation of the package has it.
      "re2js"
    ],
    platform: "node",
    // undici leaves its second parser out, as in Node.
    transform: { define: { esbuildDetection: "true" } },
    output: { ...output, paths: (id) => (id.endsWith("/cli/internal/about.ts") ? "./about.js" : id) }
  },
  // One file, and nothing that only commands need: each file more, and each function more, takes time to be read.
  { plugins: [segmenters, noCommands], input: { about: "src/cli/internal/about.ts" }, platform: "node", output }
])
