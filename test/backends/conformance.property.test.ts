/** Any operations on a layer: it answers like the reference, and stays in its root. */
import * as fs from "node:fs"
import * as path from "node:path"
import { describe, it } from "@effect/vitest"
import { rgPath } from "@vscode/ripgrep"
import { Effect, Layer } from "effect"
import { Backend } from "effect-deepagents"
import { CompositeBackend, MemoryBackend, StoreBackend } from "effect-deepagents/backends"
import { TestBackend } from "effect-deepagents/testing"
import { BackendConformance } from "effect-deepagents/testing/conformance"
import { KeyValueStore } from "effect/persistence"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"
import { folder, inFolder } from "./conformance.ts"
import * as subjects from "./subjects.ts"

/** Without the keys that are left out. */
const record = <T>(model: { readonly [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(model, { requiredKeys: [] })

const name = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("a", "b", "c.txt", ".d", "a") },
  fc.constantFrom(
    "é",
    "e\u0301",
    "new\nline",
    "__proto__",
    " ",
    "a b",
    "[a]",
    "{a}",
    "*",
    "-r",
    "\u{1F600}",
    "$&",
    "a:1:"
  ),
  fc.string({ unit: "binary", minLength: 1, maxLength: 4 }).filter((text) => !/[/\\\0]|^~|^\.{1,2}$/.test(text))
)

const filePath = fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => `/${names.join("/")}`)
const anyPath = fc.oneof(
  { weight: 12, arbitrary: filePath },
  fc.constantFrom("/", "", "..", "/a/../b", "~", "a/", "//a//b", "./c.txt", "a\0", "\\", "/c.txt/d", "/.gitignore")
)

/** Lines in which case, words and spaces matter. No lone `\r`, no byte order mark. */
const line = fc.oneof(
  fc.string({
    unit: fc.constantFrom("a", "b", "A", "é", "É", "ß", "k", "\u212a", "s", "\u017f", "_", "1", " ", "\t", "-", "."),
    maxLength: 8
  }),
  fc.constantFrom("", "a", "foo bar", "FOO", "x = 1", "日本語", "\u{1F600}a")
)
const text = fc
  .tuple(fc.array(line, { maxLength: 6 }), fc.constantFrom("\n", "\n", "\r\n"), fc.boolean())
  .map(([lines, ending, ended]) => lines.join(ending) + (ended && lines.length > 0 ? ending : ""))
const rules = fc
  .array(
    fc.constantFrom("*.txt", "a/", "!b", "/b", "**/a", "a/**", "*", "!*/", "# x", "", "b/a", "?", "[ab]", "!/a/b"),
    { maxLength: 4 }
  )
  .map((lines) => `${lines.join("\n")}\n`)

const glob = fc.oneof(
  fc.constantFrom(
    "*",
    "**",
    "*.txt",
    "a/**",
    "**/b",
    "{a,b}/*",
    "?",
    "[!a]*",
    "/*",
    "a/",
    "**/a/**/b",
    "{a,b/{a,c.txt}}",
    "[[]a]"
  ),
  fc
    .array(fc.constantFrom("a", "b", "*", "**", "?", "/", ".txt", "{a,b}", "[a-c]", "{b,/}"), {
      minLength: 1,
      maxLength: 6
    })
    .map((parts) => parts.join(""))
)

/** Expressions that are valid wherever RE2 is. */
const expression = fc
  .array(
    fc.constantFrom(
      "a",
      "A",
      "b",
      "é",
      "É",
      "k",
      "s",
      "ß",
      ".",
      "\\w",
      "\\W",
      "\\d",
      "\\s",
      "\\S",
      "\\b",
      "^",
      "$",
      "[ab]",
      "[^a]",
      "[a-z]",
      "(a|b)",
      "(?:é|1)",
      "[[:upper:]]",
      "\\.",
      "a?",
      "b*",
      ".+",
      "a{2}",
      "\\pL",
      "(?i)k"
    ),
    { minLength: 1, maxLength: 4 }
  )
  .map((parts) => parts.join(""))

const limit = fc.integer({ min: 1, max: 5 })
const write = fc.record({ path: anyPath, content: text }).chain(({ content, path: at }) =>
  record<{ create: boolean; version: string }>({
    create: fc.boolean(),
    version: fc.constantFrom("current", "stale")
  }).map((options): TestBackend.Request => ({
    operation: "write",
    path: at,
    content,
    options: content.length % 3 === 0 ? options : {}
  }))
)

const search = fc
  .record({ path: fc.oneof({ weight: 3, arbitrary: fc.constant("/") }, anyPath), regex: fc.boolean() })
  .chain(({ path: at, regex }) =>
    fc
      .tuple(
        regex ? expression : line.filter((one) => one !== ""),
        record<Omit<Backend.GrepQuery, "pattern">>({
          ignoreCase: fc.boolean(),
          glob,
          mode: fc.constantFrom("content", "count", "files"),
          context: fc.integer({ min: 0, max: 3 }),
          limit,
          ignored: fc.boolean()
        })
      )
      .map(([pattern, query]): TestBackend.Request => ({
        operation: "grep",
        path: at,
        query: { ...query, pattern, regex }
      }))
  )

const isUtf8 = (bytes: Uint8Array): boolean => Buffer.from(new TextDecoder().decode(bytes)).equals(bytes)

/** UTF-8, or binary: the reference knows no other encodings. */
const bytes = fc
  .uint8Array({ maxLength: 6 })
  .map((content) => (isUtf8(content) ? content : new Uint8Array([0, ...content])))

const request: fc.Arbitrary<TestBackend.Request> = fc.oneof(
  { weight: 5, arbitrary: write },
  filePath.chain((at) =>
    rules.map((content): TestBackend.Request => ({
      operation: "write",
      path: `${path.posix.dirname(at)}/.gitignore`,
      content,
      options: {}
    }))
  ),
  fc.record({ operation: fc.constant("upload" as const), path: anyPath, content: bytes }),
  fc.record({
    operation: fc.constant("edit" as const),
    path: anyPath,
    replacements: fc.array(fc.record({ old: line, new: fc.oneof(line, text), replaceAll: fc.boolean() }), {
      minLength: 1,
      maxLength: 2
    }),
    options: fc.constant({})
  }),
  fc.record({
    operation: fc.constant("delete" as const),
    path: anyPath,
    options: record<{ recursive: boolean }>({ recursive: fc.boolean() })
  }),
  fc.record({ operation: fc.constant("move" as const), path: anyPath, to: anyPath }),
  fc.record({ operation: fc.constant("ls" as const), path: anyPath }),
  fc.record({
    operation: fc.constant("read" as const),
    path: anyPath,
    window: record<Backend.Window>({ offset: fc.integer({ min: 1, max: 6 }), limit: fc.integer({ min: 0, max: 4 }) })
  }),
  fc.record({ operation: fc.constant("download" as const), path: anyPath }),
  fc
    .tuple(anyPath, glob, record<{ limit: number; ignored: boolean }>({ limit, ignored: fc.boolean() }))
    .map(([at, pattern, query]): TestBackend.Request => ({
      operation: "glob",
      path: at,
      query: { ...query, pattern }
    })),
  { weight: 3, arbitrary: search }
)

const stored = StoreBackend.layer({ namespace: "one" }).pipe(Layer.provide(KeyValueStore.layerMemory))

const layers: ReadonlyArray<readonly [name: string, layer: Layer.Layer<Backend.Backend, unknown>, runs: number]> = [
  ["the test backend", TestBackend.layer(), 60],
  ["memory", MemoryBackend.layer(), 300],
  ["a store", stored, 150],
  ["a composite", CompositeBackend.layer({ default: MemoryBackend.layer(), routes: {} }), 60],
  ["a folder, with ripgrep", inFolder(folder(rgPath)), 40],
  ["a folder, without ripgrep", inFolder(folder(false)), 80],
  ["a sandbox of three functions", inFolder((root) => subjects.shellSandbox(root, false)), 4]
]

const holds = <A>(arbitrary: fc.Arbitrary<A>, numRuns: number, run: (value: A) => Effect.Effect<unknown, unknown>) =>
  Effect.promise(() =>
    fc.assert(
      fc.asyncProperty(arbitrary, (value) => Effect.runPromise(Effect.asVoid(run(value)))),
      {
        numRuns: scaled(numRuns),
        includeErrorInReport: true,
        ...(process.env["SEED"] === undefined ? {} : { seed: Number(process.env["SEED"]) })
      }
    )
  )

describe("gives the same as the reference for any operations", () => {
  for (const [name, layer, runs] of layers)
    it.live(
      name,
      () =>
        holds(fc.array(request, { maxLength: 12 }), runs, (requests) =>
          Effect.provide(BackendConformance.agrees(requests), Layer.fresh(layer))
        ),
      60_000
    )
})

describe("a search gives the same with ripgrep and without", () => {
  const files = fc.array(
    fc.tuple(
      fc.constantFrom("/a", "/b", "/a.txt", "/d/a", "/d/.gitignore", "/.gitignore", "/d/e/b"),
      fc.oneof(text, rules)
    ),
    { minLength: 1, maxLength: 5 }
  )
  for (const [name, ripgrep, runs] of [
    ["with", rgPath, 60],
    ["without", false, 120]
  ] as const)
    it.live(
      name,
      () =>
        holds(fc.tuple(files, fc.array(search, { minLength: 1, maxLength: 4 })), runs, ([written, searches]) =>
          Effect.provide(
            BackendConformance.agrees([
              ...written.map(([at, content]): TestBackend.Request => ({
                operation: "write",
                path: at,
                content,
                options: {}
              })),
              ...searches
            ]),
            Layer.fresh(inFolder(folder(ripgrep)))
          )
        ),
      60_000
    )
})

/** Pieces of paths that lead out, or look as if they did. */
const piece = fc.oneof(
  fc.constantFrom(
    "..",
    ".",
    "",
    "~",
    "out",
    "up",
    "in",
    "secret.txt",
    "outside",
    "root",
    "\\",
    "%2e%2e",
    "\0",
    "C:",
    "loop",
    "etc",
    "proc",
    "self",
    "cwd",
    "/",
    "//",
    "..\\..",
    "\uff0e\uff0e",
    "-rf",
    "$(cat ../outside/secret.txt)",
    "*",
    "\n"
  ),
  fc.string({ unit: "binary", maxLength: 3 })
)
const hostile = fc
  .tuple(fc.constantFrom("", "/", "./", "//", "../", "~/"), fc.array(piece, { maxLength: 6 }))
  .map(([begin, pieces]) => begin + pieces.join("/"))

const isNormal = (at: string) =>
  at === "/" ||
  (at.startsWith("/") &&
    at
      .slice(1)
      .split("/")
      .every((one) => one !== "" && one !== "." && one !== ".."))

const everything = (backend: Backend.Service, at: string, to: string) =>
  Effect.all(
    [
      backend.ls(at),
      backend.read(at),
      backend.write(at, "written"),
      backend.edit(at, [{ old: "e", new: "E", replaceAll: true }]),
      backend.glob({ pattern: "**", path: at, ignored: true }),
      backend.glob({ pattern: at, ignored: true }),
      backend.grep({ pattern: "secret", path: at, ignored: true }),
      backend.grep({ pattern: "secret", glob: at, ignored: true }),
      backend.move(at, to),
      backend.upload([{ path: at, content: new Uint8Array([1]) }]),
      backend.download([at, to]),
      backend.delete(at, { recursive: true })
    ].map((run) => Effect.result(run as Effect.Effect<unknown, unknown>))
  )

describe("no path leaves the root", () => {
  const jails: ReadonlyArray<
    readonly [name: string, layer: Layer.Layer<Backend.Backend | subjects.Folder, unknown>, runs: number]
  > = [
    ["a folder, with ripgrep", inFolder(folder(rgPath)), 60],
    ["a folder, without ripgrep", inFolder(folder(false)), 200],
    ["a sandbox of three functions", inFolder((root) => subjects.shellSandbox(root, false)), 6]
  ]
  for (const [name, layer, runs] of jails)
    it.live(
      name,
      () =>
        holds(fc.array(fc.tuple(hostile, hostile), { minLength: 1, maxLength: 3 }), runs, (pairs) =>
          Effect.gen(function* () {
            const backend = yield* Backend.Backend
            const { outside, root } = yield* subjects.Folder
            fs.writeFileSync(path.join(outside, "secret.txt"), "secret")
            fs.mkdirSync(path.join(root, "in"))
            fs.symlinkSync("../outside", path.join(root, "out"))
            fs.symlinkSync("../..", path.join(root, "in", "up"))
            fs.symlinkSync("/", path.join(root, "proc"))
            fs.symlinkSync("loop", path.join(root, "loop"))
            for (const [at, to] of pairs) {
              const results = yield* everything(backend, at, to)
              const shown = JSON.stringify(results)
              if (/"(text|value)":"secret/.test(shown) || shown.includes('"0":115,"1":101,"2":99'))
                return yield* Effect.die(`${at} shows what is outside: ${shown}`)
              for (const [, found] of shown.matchAll(/"path":("(?:[^"\\]|\\.)*"),"kind"/g))
                if (!isNormal(String(JSON.parse(found ?? '""'))))
                  return yield* Effect.die(`${at} gives the path ${found}`)
            }
            const left = fs.readdirSync(outside)
            if (left.join() !== "secret.txt" || fs.readFileSync(path.join(outside, "secret.txt"), "utf8") !== "secret")
              return yield* Effect.die(`outside is changed: ${left.join()}`)
            if (fs.readdirSync(path.dirname(root)).toSorted().join() !== "outside,root")
              return yield* Effect.die("something is beside the root")
          }).pipe(Effect.provide(Layer.fresh(layer)), Effect.scoped)
        ),
      60_000
    )
})
