import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Result, Stream } from "effect"
import { Backend, BackendError, Sandbox } from "effect-deepagents"
import { TestBackend } from "effect-deepagents/testing"
import { BackendConformance } from "effect-deepagents/testing/conformance"
import { TestClock } from "effect/testing"

const inMemory = BackendConformance.absent("files for tests are in memory")

/** What the test backend refuses at the moment: a plain value, for one check runs at a time. */
let refused: (request: TestBackend.Request) => BackendError.Reason | undefined = () => undefined

const refuse = (rule: typeof refused) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      refused = rule
    }),
    () =>
      Effect.sync(() => {
        refused = () => undefined
      })
  )

const isIn = (folder: string, path: string) => path === folder || path.startsWith(`${folder}/`)

const subject = {
  layer: TestBackend.layer({ fail: (request) => refused(request) }),
  host: inMemory,
  huge: inMemory,
  deny: (folder: string) =>
    refuse((request) =>
      isIn(folder, request.path) || (request.operation === "move" && isIn(folder, request.to))
        ? { _tag: "PermissionDenied" }
        : undefined
    ),
  fillDisk: () =>
    refuse(({ operation, path }) =>
      ["write", "edit", "upload"].includes(operation) && path.startsWith("/") && !path.includes("..")
        ? { _tag: "Unavailable" }
        : undefined
    ),
  maxFileSize: 10 * 1024 * 1024,
  manyFiles: { count: 2000 },
  atomicWrites: true as const,
  distinctNames: true as const
}

describe("the test backend conforms", () => {
  for (const check of BackendConformance.suite(subject))
    (check.absent === undefined ? it.live : it.live.skip)(check.name, () => check.run, 60_000)
})

describe("inapplicable checks", () => {
  it.effect("is in the list with its reason, and does nothing", () =>
    Effect.gen(function* () {
      const checks = BackendConformance.suite(subject)
      const absent = checks.filter((check) => check.absent !== undefined)
      assert.isAbove(absent.length, 5)
      assert.isTrue(absent.every((check) => check.absent === inMemory.reason))
      assert.strictEqual(new Set(checks.map(({ name }) => name)).size, checks.length)
      for (const check of absent) yield* check.run
    })
  )
})

type Break = (
  backend: Backend.Service,
  fail: (reason: BackendError.Reason) => Effect.Effect<never, BackendError.BackendError>
) => Partial<Backend.Service>

const inner = (path: string) => path.replaceAll("..", "dots").replaceAll("~", "home")

/** Backends that are wrong in one thing, and a check that must say so. */
const broken: ReadonlyArray<readonly [what: string, check: string, wrong: Break]> = [
  [
    "follows ..",
    "no operation leaves the root by .. or ~",
    (it) => ({ read: (path, window) => it.read(inner(path), window) })
  ],
  [
    "forgets .. in one of two paths",
    "no operation leaves the root by .. or ~",
    (it) => ({ move: (from, to) => it.move(from, inner(to)) })
  ],
  [
    "forgets .. in searches",
    "no operation leaves the root by .. or ~",
    (it) => ({ grep: (query) => it.grep({ ...query, path: inner(query.path ?? "/") }) })
  ],
  [
    "takes NUL",
    "no operation takes a path that can't be meant",
    (it) => ({ download: (paths) => it.download(paths.map((path) => path.replaceAll("\0", ""))) })
  ],
  [
    "decodes percents",
    "what only looks like .. or / is a name",
    (it) => ({
      upload: (files) => it.upload(files.map((file) => ({ ...file, path: file.path.replaceAll("%2f", "/") })))
    })
  ],
  [
    "trims names",
    "odd names are kept by listings, searches and transfers",
    (it) => ({ upload: (files) => it.upload(files.map((file) => ({ ...file, path: file.path.trimEnd() }))) })
  ],
  [
    "normalises Unicode",
    "NFC and NFD, upper and lower case are different names",
    (it) => ({ upload: (files) => it.upload(files.map((file) => ({ ...file, path: file.path.normalize("NFC") }))) })
  ],
  [
    "sorts by UTF-16",
    "results are sorted by the code points of names, folder by folder",
    (it) => ({
      glob: (query) =>
        Effect.map(it.glob(query), ({ entries }) => ({
          entries: entries.toSorted((a, b) => (a.path < b.path ? -1 : 1))
        }))
    })
  ],
  [
    "counts lines from 0",
    "read gives windows, with line numbers that are right",
    (it) => ({ read: (path, { offset = 0, ...rest } = {}) => it.read(path, { offset: offset + 1, ...rest }) })
  ],
  [
    "gives CRLF as it is",
    "read gives lines, whatever their endings",
    (it) => ({
      read: (path, window) =>
        Effect.map(it.read(path, window), (file) =>
          file.kind === "text" ? { ...file, text: file.text.replaceAll("\n", "\r\n") } : file
        )
    })
  ],
  [
    "gives keys without values",
    "random operations give what the reference gives (seed 1)",
    (it) => ({
      // Types forbid it; programs without them do it.
      read: (path, window) =>
        Effect.map(it.read(path, window), (file) => Object.assign({ nextColumn: undefined }, file))
    })
  ],
  [
    "gives windows without end",
    "no window has more than 256 KiB, and all windows together have all of the text",
    (it) => ({
      read: (path) =>
        Effect.map(it.download([path]), ([one]) => ({
          kind: "text",
          path,
          text: one?.ok === true ? new TextDecoder().decode(one.value) : "",
          startLine: 1,
          endLine: 1,
          totalLines: 1,
          size: 1,
          version: "1"
        }))
    })
  ],
  [
    "replaces by pattern",
    "edit: replacement patterns are text",
    (it) => ({
      edit: (path, edits, options) =>
        it.edit(
          path,
          edits.map((edit) => ({ ...edit, new: edit.old.replace(edit.old, edit.new) })),
          options
        )
    })
  ],
  [
    "edits by halves",
    "edit is all or nothing",
    (it) => ({
      edit: (path, edits) =>
        Effect.reduce(
          edits,
          (): Backend.EditResult => ({ path, replaced: 0, lines: [], version: "" }),
          (_, edit) => it.edit(path, [edit])
        )
    })
  ],
  [
    "replaces the first of many",
    "edit fails for what is there several times, with their lines",
    (it) => ({
      edit: (path, edits, options) =>
        it.edit(
          path,
          edits.map((edit) => ({ ...edit, replaceAll: true })),
          options
        )
    })
  ],
  [
    "ignores versions",
    "a version stands for a content, and a stale one is a Conflict",
    (it) => ({ write: (path, content) => it.write(path, content) })
  ],
  [
    "ignores versions of edits",
    "a version stands for a content, and a stale one is a Conflict",
    (it) => ({ edit: (path, edits) => it.edit(path, edits) })
  ],
  [
    "ignores create",
    "write with `create` overwrites nothing",
    (it) => ({
      write: (path, content, options) =>
        it.write(path, content, options?.version === undefined ? {} : { version: options.version })
    })
  ],
  [
    "always deletes recursively",
    "delete takes a file, and a folder only with all that is in it",
    (it) => ({ delete: (path) => it.delete(path, { recursive: true }) })
  ],
  [
    "deletes what begins alike",
    "delete takes what it is told, and no more",
    (it) => ({
      delete: (path, options) =>
        Effect.andThen(
          Effect.ignore(it.delete(path === "/a/b" ? "/ab" : path, { recursive: true })),
          path === "/a/b" ? it.delete(path, options) : Effect.void
        )
    })
  ],
  [
    "overwrites by a move",
    "move overwrites nothing, and fails where it can't be meant",
    (it) => ({
      move: (from, to) =>
        Effect.andThen(to === "/a/one" ? Effect.ignore(it.delete(to)) : Effect.void, it.move(from, to))
    })
  ],
  [
    "copies by a move",
    "move takes a file to a new place",
    (it) => ({
      move: (from, to) =>
        Effect.flatMap(it.download([from]), ([one]) =>
          one?.ok === true ? Effect.asVoid(it.upload([{ path: to, content: one.value }])) : it.move(from, to)
        )
    })
  ],
  [
    "takes text for expressions",
    "grep finds literal text, whatever it would mean as an expression or an option",
    (it) => ({ grep: (query) => it.grep({ ...query, regex: true }) })
  ],
  [
    "ignores case always",
    "grep finds literal text, whatever it would mean as an expression or an option",
    (it) => ({ grep: (query) => it.grep({ ...query, ignoreCase: true }) })
  ],
  [
    "gives a limit for each file",
    "grep gives as many as are asked for, the first ones by path, and says if there are more",
    (it) => ({ grep: ({ limit: _, ...query }) => it.grep(query) })
  ],
  [
    "says truncated too early",
    "grep gives as many as are asked for, the first ones by path, and says if there are more",
    (it) => ({
      grep: (query) =>
        Effect.map(it.grep(query), (found) => (found.files.length > 0 ? { ...found, truncated: "limit" } : found))
    })
  ],
  [
    "has no context",
    "grep gives lines around each match",
    (it) => ({ grep: (query) => it.grep({ ...query, context: 0 }) })
  ],
  [
    "takes a wrong expression for text",
    "grep says what is wrong with an expression",
    (it) => ({ grep: (query) => Effect.catch(it.grep(query), () => it.grep({ ...query, regex: false })) })
  ],
  [
    "does not look into ignore files",
    "ignore files are honoured from the root down, unless told otherwise",
    (it) => ({ glob: (query) => it.glob({ ...query, ignored: true }) })
  ],
  [
    "never finds dot files",
    "glob finds what the dialect says",
    (it) => ({
      glob: (query) =>
        Effect.map(it.glob(query), ({ entries }) => ({ entries: entries.filter(({ path }) => !path.includes("/.")) }))
    })
  ],
  [
    "decodes what it uploads",
    "bytes of any kind come back as they were",
    (it) => ({
      upload: (files) =>
        it.upload(
          files.map(({ content, path }) => ({
            path,
            content: new TextEncoder().encode(new TextDecoder().decode(content))
          }))
        )
    })
  ],
  [
    "stops at the first failure",
    "each file has its own outcome, in the order of the request",
    (it) => ({
      download: (paths) => Effect.map(it.download(paths), (all) => all.slice(0, all.findIndex(({ ok }) => !ok) + 1))
    })
  ],
  [
    "uploads in any order",
    "hundreds of files go in one request, in order",
    (it) => ({ upload: (files) => it.upload(files.toReversed()) })
  ],
  [
    "loses updates",
    "edits of one file at once are all there, in any spelling of its path",
    (it) => ({
      edit: (path, edits, options) =>
        Effect.gen(function* () {
          const [before] = yield* it.download([path])
          yield* Effect.yieldNow
          if (before?.ok === true) yield* it.upload([{ path, content: before.value }])
          return yield* it.edit(path, edits, options)
        })
    })
  ],
  [
    "writes by halves",
    "a reader sees the old file or the new one",
    (it) => ({
      write: (path, content, options) =>
        Effect.gen(function* () {
          yield* it.write(path, content.slice(0, content.length / 2))
          yield* Effect.yieldNow
          return yield* it.write(path, content, options)
        })
    })
  ],
  [
    "leaves something over",
    "an interrupted write or edit leaves the old file or the new one, and locks nothing",
    (it) => ({ write: (path, content) => Effect.andThen(it.write("/i/left-over", ""), it.write(path, content)) })
  ],
  [
    "says Unavailable for everything",
    "read fails for what is no file",
    (it, fail) => ({ read: (path, window) => Effect.catch(it.read(path, window), () => fail({ _tag: "Unavailable" })) })
  ],
  [
    "dies",
    "glob fails for what can't be meant, and never leaves the root",
    (it) => ({ glob: (query) => (query.pattern === "[" ? Effect.die("syntax") : it.glob(query)) })
  ],
  [
    "has another limit",
    "a file over the limit is refused by upload and download, and changes nothing",
    (it) => ({ upload: (files) => it.upload(files.map((file) => ({ ...file, content: file.content.slice(0, 1000) }))) })
  ],
  [
    "goes through folders that are closed",
    "what the system refuses is PermissionDenied, and no obstacle to what is beside it",
    (it, fail) => ({ ls: (path) => Effect.catch(it.ls(path), () => fail({ _tag: "NotFound" })) })
  ],
  [
    "forgets one file",
    "a folder of very many files is listed and searched in order",
    (it) => ({ ls: (path) => Effect.map(it.ls(path), ({ entries }) => ({ entries: entries.slice(1) })) })
  ],
  [
    "differs from the reference in one case",
    "random operations give what the reference gives (seed 2)",
    (it) => ({
      edit: (path, edits, options) =>
        Effect.map(it.edit(path, edits, options), (edited) => ({ ...edited, replaced: edited.replaced + 1 }))
    })
  ]
]

const checksOf = (wrong: Break) =>
  BackendConformance.suite({
    ...subject,
    layer: Layer.effect(
      Backend.Backend,
      Backend.Backend.use((backend) =>
        Effect.succeed({
          ...backend,
          ...wrong(backend, (reason) => Effect.fail(BackendError.make("any", "/", reason)))
        })
      )
    ).pipe(Layer.provide(subject.layer))
  })

describe("the suite finds the mistake: a backend that", () => {
  for (const [what, name, wrong] of broken)
    it.live(
      what,
      () =>
        Effect.gen(function* () {
          const check = checksOf(wrong).find((one) => one.name === name)
          assert.isDefined(check)
          const result = yield* Effect.exit(check.run)
          assert.isTrue(Exit.isFailure(result), `"${name}" does not find it`)
        }),
      60_000
    )

  it.effect("takes its time", () =>
    Effect.gen(function* () {
      const name = "grep ends in bounded time, whatever the expression"
      const slow = checksOf((it) => ({ grep: (query) => Effect.delay(it.grep(query), "11 seconds") }))
      const check = slow.find((one) => one.name === name)
      const running = yield* Effect.forkChild(Effect.exit(check?.run ?? Effect.void))
      yield* TestClock.adjust("10 minutes")
      assert.isTrue(Exit.isFailure(yield* Fiber.join(running)))
    })
  )
})

describe("the suite of commands finds mistakes", () => {
  it.live(
    "in a sandbox that does nothing",
    () =>
      Effect.gen(function* () {
        const layer = Sandbox.layer(
          Backend.Backend.use((backend) =>
            Effect.succeed({
              ...backend,
              id: "nothing",
              execute: () => Effect.succeed({ output: "", exitCode: 0, truncated: false }),
              executeStream: () => Stream.empty,
              reaches: () => true
            })
          )
        ).pipe(Layer.provide(TestBackend.layer()))
        const checks = BackendConformance.sandboxSuite({ layer, secret: "SECRET", processes: true, streams: true })
        const results = yield* Effect.forEach(checks, (check) => Effect.result(Effect.sandbox(check.run)), {
          concurrency: 8
        })
        const passed = checks.filter((_, index) => Result.isSuccess(results[index]!)).map(({ name }) => name)
        assert.deepStrictEqual(passed, [
          "it is a backend and a sandbox by one value",
          "an interruption ends a command",
          "a command sees little of the environment of this process"
        ])
      }),
    30_000
  )
})
