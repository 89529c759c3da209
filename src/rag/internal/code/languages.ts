/** The languages of files by their extensions. */
import { valueAt } from "../../../support/json/valueAt.ts"

const grammars: { readonly [extension: string]: string } = {
  ts: "typescript",
  mts: "typescript",
  cts: "typescript",
  tsx: "tsx",
  js: "javascript",
  mjs: "javascript",
  cjs: "javascript",
  jsx: "javascript",
  py: "python",
  pyi: "python",
  go: "go",
  rs: "rust",
  java: "java",
  c: "cpp",
  h: "cpp",
  cc: "cpp",
  cpp: "cpp",
  cxx: "cpp",
  hpp: "cpp",
  cs: "c-sharp",
  rb: "ruby",
  php: "php",
  sh: "bash",
  bash: "bash",
  ps1: "powershell",
  css: "css"
}

/** Extensions of code without a grammar. */
const others = new Set(
  "kt kts swift scala dart lua pl pm r jl ex exs erl hs ml mli fs clj zig nim d m mm vue svelte astro sql proto graphql tf gradle groovy vb asm s sol scss sass less".split(
    " "
  )
)

const extensionOf = (path: string): string => /\.([a-z\d]+)$/i.exec(path)?.[1]?.toLowerCase() ?? ""

/** The grammar of a file; `undefined` if there is none. */
export const grammarOf = (path: string): string | undefined => valueAt(grammars, extensionOf(path))

/** Reports whether a file has code. */
export const isCode = (path: string): boolean => grammarOf(path) !== undefined || others.has(extensionOf(path))
