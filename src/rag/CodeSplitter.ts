/**
 * Splits code by its syntax, so that a chunk is a function, a class or some small ones of a file.
 *
 * It needs the packages `web-tree-sitter` and `@vscode/tree-sitter-wasm`. Code of other languages, and code that can't be
 * parsed, is split by lines. Chunks are labelled with their lines.
 *
 * ```ts
 * import { Effect, Stream } from "effect"
 * import { Indexer, type RagIndex } from "effect-deepagents/rag"
 * import * as CodeSplitter from "effect-deepagents/rag/CodeSplitter"
 *
 * const index = Effect.fnUntraced(function* (space: RagIndex.Space<undefined>) {
 *   const code = yield* CodeSplitter.load
 *   yield* Stream.runDrain(Indexer.folder(space, "/src", { code }))
 * })
 * ```
 */
import { readFileSync } from "node:fs"
import * as NodeModule from "node:module"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { loadPeer } from "../support/effect/peer.ts"
import type { Splitter } from "./Chunker.ts"
import { grammarOf } from "./internal/code/languages.ts"
import { type Atom, joinAtoms, linesOf, type SyntaxNode, syntaxOf } from "./internal/code/spans.ts"
import { RagError } from "./RagError.ts"

/** The longest text that is parsed, in characters, and the longest time for it, in milliseconds. */
const most = { length: 1_000_000, time: 1_000 }

const grammars = "@vscode/tree-sitter-wasm"

const unavailable = (problem: string, cause: unknown) =>
  new RagError({ operation: "load", namespace: "", reason: { _tag: "Unavailable", problem }, cause })

/** Makes a `WebAssembly.Module`. The types of Node do not have it. */
const compile = (bytes: Uint8Array) =>
  Reflect.construct(Reflect.get(Reflect.get(globalThis, "WebAssembly"), "Module"), [bytes])

/**
 * Loads the parser, and gives the splitter. A grammar loads with the first file of its language. It fails with a
 * `RagError` (`Unavailable`) that names a missing package.
 */
export const load: Effect.Effect<Splitter, RagError> = Effect.gen(function* () {
  const { Language, Parser } = yield* loadPeer("web-tree-sitter", () => import("web-tree-sitter"), unavailable)
  yield* Effect.tryPromise({
    try: () => Parser.init(),
    catch: (cause) => unavailable("the parser of web-tree-sitter does not start; install the package again", cause)
  })
  const { resolve } = NodeModule.createRequire(import.meta.url)
  const folder = yield* loadPeer(grammars, async () => resolve(`${grammars}/package.json`), unavailable)
  const parsers = new Map<string, Option.Option<InstanceType<typeof Parser>>>()

  /** The parser of a language, made at its first use; none if its grammar can't be loaded. */
  const parserOf = (grammar: string) => {
    const parser = parsers.get(grammar)
    if (parser !== undefined) return parser
    const path = folder.replace(/package\.json$/, `wasm/tree-sitter-${grammar}.wasm`)
    const newParser = Result.getSuccess(
      Result.try(() => new Parser().setLanguage(Language.loadSync(compile(readFileSync(path)))))
    )
    parsers.set(grammar, newParser)
    return newParser
  }

  const parse = (grammar: string, text: string, read: (root: SyntaxNode) => ReadonlyArray<Atom>) => {
    const end = performance.now() + most.time
    return Option.flatMap(parserOf(grammar), (parser) =>
      Result.getSuccess(
        Result.try(() => {
          // A parse that was stopped would go on in the next one.
          parser.reset()
          const tree = parser.parse(text, null, { progressCallback: () => performance.now() > end })
          const root = tree?.rootNode
          const atoms = root === undefined || root.type === "ERROR" ? undefined : read(root)
          tree?.delete()
          return atoms
        })
      )
    )
  }

  return function code(document) {
    const { id, text } = document
    const grammar = text.length > most.length ? undefined : grammarOf(id)
    const atoms = grammar === undefined ? undefined : Option.getOrUndefined(parse(grammar, text, syntaxOf))
    return joinAtoms(text, atoms ?? linesOf(text))
  }
})
