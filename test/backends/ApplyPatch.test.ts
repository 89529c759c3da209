import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Logger, Result, TextDiff } from "effect"
import { Backend, BackendError, Tool, type ToolOutput } from "effect-deepagents"
import { ApplyPatch } from "effect-deepagents/backends"
import { TestBackend } from "effect-deepagents/testing"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { print } from "../../src/backends/internal/patch/format.ts"
import type { Change, Hunk, HunkLine, Patch } from "../../src/backends/internal/patch/model.ts"
import { scaled } from "../scale.ts"
import { inRun } from "./run.ts"

const patch = (...lines: ReadonlyArray<string>) => ["*** Begin Patch", ...lines, "*** End Patch"].join("\n")

const tool = ApplyPatch.make()

const applyText = (input: string) => Tool.run(tool, { input })

const apply = (...lines: ReadonlyArray<string>) => applyText(patch(...lines))

const text = (output: ToolOutput.ToolOutput) =>
  output.content.map((block) => ("text" in block ? block.text : "")).join("")

/** Compares the files after a test. */
const withFiles = <A, E, R>(
  files: Readonly<Record<string, string | Uint8Array>>,
  test: Effect.Effect<A, E, R>,
  fail?: NonNullable<Parameters<typeof TestBackend.layer>[0]>["fail"]
) =>
  Effect.gen(function* () {
    const result = yield* Effect.result(test)
    return { result, files: yield* TestBackend.files, requests: yield* TestBackend.requests }
  }).pipe(inRun, Effect.provide(TestBackend.layer({ files, ...(fail === undefined ? {} : { fail }) })))

const message = <A>(result: Result.Result<A, { readonly message: string }>): string =>
  Result.isFailure(result) ? result.failure.message : "it did not fail"

/** A backend on which somebody does something to a file after it was downloaded for the first time. */
const meddle = (
  backend: Backend.Service,
  path: string,
  what: Effect.Effect<unknown, BackendError.BackendError>
): Backend.Service => {
  let done = false
  return {
    ...backend,
    download: (paths) =>
      Effect.tap(backend.download(paths), () => {
        if (done || !paths.includes(path)) return Effect.void
        done = true
        return Effect.orDie(what)
      })
  }
}

/** Applies a patch to one file. */
const becomes = (before: string, ...lines: ReadonlyArray<string>) =>
  Effect.map(withFiles({ "/a.txt": before }, apply("*** Update File: a.txt", ...lines)), ({ files, result }) => {
    assert.isTrue(Result.isSuccess(result), message(result))
    return files["/a.txt"]
  })

/** Why a patch of one file does not fit. */
const refusal = (before: string, ...lines: ReadonlyArray<string>) =>
  Effect.map(withFiles({ "/a.txt": before }, apply("*** Update File: a.txt", ...lines)), ({ files, result }) => {
    assert.strictEqual(files["/a.txt"], before)
    return message(result)
  })

const writes = (requests: ReadonlyArray<TestBackend.Request>) =>
  requests.filter(({ operation }) => !["read", "download"].includes(operation))

describe("ApplyPatch", () => {
  it.effect("adds, updates, moves and deletes in one go, and says so", () =>
    Effect.gen(function* () {
      const { files, result } = yield* withFiles(
        { "/old.txt": "one\ntwo\n", "/gone.txt": "x", "/here.txt": "a\nb\n" },
        apply(
          "*** Add File: sub/new.txt",
          "+hello",
          "",
          "+world",
          "*** Update File: old.txt",
          "@@",
          "-one",
          "+ONE",
          " two",
          "*** Delete File: gone.txt",
          "*** Update File: here.txt",
          "*** Move to: there.txt",
          "@@",
          " a",
          "+between",
          " b"
        )
      )
      assert.deepStrictEqual(files, {
        "/old.txt": "ONE\ntwo\n",
        "/sub/new.txt": "hello\n\nworld\n",
        "/there.txt": "a\nbetween\nb\n"
      })
      assert.isTrue(Result.isSuccess(result))
      if (Result.isFailure(result)) return
      const said = text(result.success)
      for (const part of [
        "added /sub/new.txt",
        "updated /old.txt",
        "moved /here.txt to /there.txt",
        "deleted /gone.txt"
      ])
        assert.include(said, part)
      assert.deepNestedInclude(result.success.details, {
        "files[0].change": "added",
        "files[0].diff": "@@ -0,0 +1,3 @@\n+hello\n+\n+world\n"
      })
    })
  )

  describe("the place of a change", () => {
    it.effect("lines that stay are the file's own, however the patch has them", () =>
      Effect.gen(function* () {
        assert.strictEqual(
          yield* becomes("  a \t\n b\u2019s\nc\n", "@@", " a", "-b's", "+B's", " c"),
          "  a \t\nB's\nc\n"
        )
      })
    )

    it.effect("an exact place later is preferred to a similar one before", () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* becomes(" x\ny\nx\n", "@@", "-x", "+z"), " x\ny\nz\n")
        assert.strictEqual(yield* becomes(" x\nx \n", "@@", "-x", "+z"), " x\nz\n")
        assert.strictEqual(yield* becomes('\u201cx\u201d\n "x"\n', "@@", '-"x"', "+z"), "\u201cx\u201d\nz\n")
      })
    )

    it.effect("dashes, spaces and quotes of other kinds are the same as the plain ones", () =>
      Effect.gen(function* () {
        assert.strictEqual(
          yield* becomes("a \u2014 b\u00a0\u201cc\u201d\u2026\nend\n", "@@", '-a - b "c"...', "+new"),
          "new\nend\n"
        )
      })
    )

    it.effect("headers lead to it, one after the other", () =>
      Effect.gen(function* () {
        const before = ["class A", "  def f", "    x", "class B", "  def e", "    x", "  def f", "    x", ""].join("\n")
        const after = ["class A", "  def f", "    x", "class B", "  def e", "    x", "  def f", "    y", ""].join("\n")
        assert.strictEqual(yield* becomes(before, "@@ class B", "@@ def f", "-    x", "+    y"), after)
        // The second hunk names the class again, which is above.
        assert.strictEqual(
          yield* becomes(before, "@@ class B", "-    x", "+    z", "@@ class B", "@@   def f", "-    x", "+    y"),
          after.replace("def e\n    x", "def e\n    z")
        )
      })
    )

    it.effect("a header may be the beginning of its line, or be the first line of the hunk again", () =>
      Effect.gen(function* () {
        const before = "f(a, b) {\n  x\n}\ng() {\n  x\n}\n"
        const after = "f(a, b) {\n  x\n}\ng() {\n  y\n}\n"
        assert.strictEqual(yield* becomes(before, "@@ g(", "-  x", "+  y"), after)
        assert.strictEqual(yield* becomes(before, "@@ g() {", " g() {", "-  x", "+  y"), after)
      })
    )

    it.effect("line numbers of other diffs are passed over", () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* becomes("a\nb\n", "@@ -10,2 +10,2 @@ nowhere", " a", "-b", "+c"), "a\nc\n")
        assert.strictEqual(yield* becomes("a\nb\n", "@@ a @@", "-b", "+c"), "a\nc\n")
      })
    )

    it.effect("lines alone are added after their header, or at the end", () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* becomes("a\nb\n", "@@ a", "+new"), "a\nnew\nb\n")
        assert.strictEqual(yield* becomes("a\nb\n", "@@", "+new"), "a\nb\nnew\n")
        assert.strictEqual(yield* becomes("", "@@", "+new"), "new\n")
      })
    )

    it.effect("means the end of the file only if the hunk says so", () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* becomes("x\na\nx\n", "@@", "-x", "+y", "*** End of File"), "x\na\ny\n")
        // Not at the end after all: the place that fits is better than none.
        assert.strictEqual(yield* becomes("a\nx\n\n", "@@", "-x", "+y", "*** End of File"), "a\ny\n\n")
      })
    )

    it.effect("the first section needs no @@, and blank lines between sections don't belong to the file", () =>
      Effect.gen(function* () {
        const { files } = yield* withFiles(
          { "/a.txt": "a\nb", "/b.txt": "c" },
          apply("", "*** Update File: a.txt", "-b", "+B", "", "*** Update File: b.txt", "", "@@", "-c", "+C", "")
        )
        assert.deepStrictEqual(files, { "/a.txt": "a\nB", "/b.txt": "C" })
      })
    )

    it.effect("an empty line is one of the file, whose space was lost", () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* becomes("a\n\nb\n", "@@", " a", "", "-b", "+c"), "a\n\nc\n")
      })
    )

    it.effect("several sections of one file are one", () =>
      Effect.gen(function* () {
        assert.strictEqual(
          yield* becomes("a\nb\n", "@@", "-b", "+B", "*** Update File: /a.txt", "@@", "-a", "+A"),
          "A\nB\n"
        )
      })
    )

    it.effect("a file that is deleted and added is replaced", () =>
      Effect.gen(function* () {
        const { files, requests } = yield* withFiles(
          { "/a.txt": "old" },
          apply("*** Delete File: a.txt", "*** Add File: a.txt", "+new")
        )
        assert.deepStrictEqual(files, { "/a.txt": "new\n" })
        assert.deepStrictEqual(
          writes(requests).map(({ operation }) => operation),
          ["write"]
        )
      })
    )
  })

  describe("kept parts of a file", () => {
    it.effect("line endings, also in lines that are new", () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* becomes("a\r\nb\r\n", "@@", " a", "+n", "-b", "+c"), "a\r\nn\r\nc\r\n")
        assert.strictEqual(yield* becomes("a\rb\r", "@@", " a", "-b", "+c"), "a\rc\r")
        assert.strictEqual(yield* becomes("a\r\nb\nc\r\n", "@@", "+n", " b"), "a\r\nn\r\nb\nc\r\n")
      })
    )

    it.effect("the end without a newline", () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* becomes("a\nb", "@@", "-b", "+c"), "a\nc")
        assert.strictEqual(yield* becomes("a\nb", "@@", " b", "+c"), "a\nb\nc")
        assert.strictEqual(yield* becomes("a\nb", "@@", "-b"), "a")
        assert.strictEqual(yield* becomes("a", "@@", "-a"), "")
        const remark = "\\ No newline at end of file"
        assert.strictEqual(yield* becomes("a\nb", "@@", " a", "-b", remark, "+c", remark), "a\nc")
        assert.strictEqual(yield* becomes("a\nb\n", "@@", "-b", "+c", remark), "a\nc\n")
      })
    )

    it.effect("the byte order mark", () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* becomes("\uFEFFa\nb\n", "@@", "-a", "+c"), "\uFEFFc\nb\n")
      })
    )
  })

  describe("wrappings", () => {
    it.effect("a fence, a here-document, blank lines and CRLF are taken off", () =>
      Effect.gen(function* () {
        const inner = patch("*** Add File: a", "+x")
        for (const wrapped of [
          `\n\n${inner}\n\n`,
          `\`\`\`patch\n${inner}\n\`\`\``,
          `apply_patch <<'EOF'\n${inner}\nEOF\n`,
          `\`\`\`bash\ncd x && apply_patch <<"PATCH"\n${inner}\nPATCH\n\`\`\`\n`,
          inner.replaceAll("\n", "\r\n"),
          `\uFEFF${inner}`
        ]) {
          const parsed = ApplyPatch.parse(wrapped)
          assert.deepStrictEqual(
            Result.map(parsed, ({ changes }) => changes.map((change) => ("lines" in change ? change.lines : []))),
            Result.succeed([["x"]]),
            wrapped
          )
        }
      })
    )
  })

  describe("refusals of invalid patches, with line, found and expected text", () => {
    const cases: ReadonlyArray<readonly [string, string, number, string]> = [
      ["nothing", "", 1, "the end of the patch"],
      ["no beginning", "hello", 1, '"hello"'],
      ["cut off", "*** Begin Patch\n*** Add File: a\n+x", 4, "the end of the patch"],
      ["cut off in a hunk", "*** Begin Patch\n*** Update File: a\n@@\n-x", 5, "the end of the patch"],
      ["no section", patch(), 2, '"*** End Patch"'],
      ["an unknown section", patch("*** Rename File: a"), 2, "Rename"],
      ["no path", patch("*** Add File:"), 2, "Add File"],
      ["no target", patch("*** Update File: a", "*** Move to: ", "@@", "-x"), 3, "Move to"],
      ["a line without a sign", patch("*** Update File: a", "@@", " x", "y", "-z"), 5, '"y"'],
      ["a new file without signs", patch("*** Add File: a", "+x", "y"), 4, '"y"'],
      ["an empty hunk", patch("*** Update File: a", "@@ x", "*** Delete File: b"), 4, "Delete"],
      [
        "an empty hunk after another",
        patch("*** Update File: a", "@@", "-x", "@@ y", "*** End of File"),
        7,
        "End Patch"
      ],
      ["nothing changed", patch("*** Update File: a", "@@", " x", "*** Delete File: b"), 5, "Delete"],
      ["something after it", `${patch("*** Delete File: a")}\nmore`, 4, '"more"']
    ]
    for (const [name, input, line, found] of cases) {
      it(name, () => {
        const parsed = ApplyPatch.parse(input)
        assert.isTrue(Result.isFailure(parsed))
        if (Result.isSuccess(parsed)) return
        assert.strictEqual(parsed.failure.line, line)
        assert.include(parsed.failure.found, found)
        assert.include(parsed.failure.message, `line ${line} of the patch: expected `)
        assert.include(parsed.failure.message, ", got ")
      })
    }

    it.effect("a hunk that does not fit names the first misfit, and the text there", () =>
      Effect.gen(function* () {
        const said = yield* refusal("a\nb\nc\n", "@@", " a", " b", "-x", "+y")
        assert.include(said, 'line 6 of the patch: expected "c", which is line 3 of /a.txt')
        assert.include(said, 'got "x"')
        assert.include(said, "Nothing was changed")
        assert.include(yield* refusal("a\nb\n", "@@", "-x", "+y"), "expected a line of /a.txt (read the file")
        assert.include(yield* refusal("a\nb", "@@", " b", "-c"), "nothing more of /a.txt")
        assert.include(yield* refusal("a\nb\n", "@@ class Q", "-b"), 'line 3 of the patch: expected "@@" and a line of')
        assert.include(
          yield* refusal("a\nb\n", "@@", "-b", "@@", "-a"),
          "hunks in the order of /a.txt; this one is at its line 1"
        )
      })
    )
  })

  describe("all or nothing", () => {
    const files = { "/a.txt": "a\n", "/b.txt": "b\n", "/c.txt": "c\n" }
    const all = apply(
      "*** Add File: new.txt",
      "+n",
      "*** Update File: a.txt",
      "@@",
      "-a",
      "+A",
      "*** Update File: b.txt",
      "*** Move to: moved.txt",
      "@@",
      "-b",
      "+B",
      "*** Delete File: c.txt"
    )

    it.effect("nothing is written before all of it is known to fit", () =>
      Effect.gen(function* () {
        for (const wrong of [
          ["*** Update File: b.txt", "@@", "-nowhere"],
          ["*** Update File: missing.txt", "@@", "-b"],
          ["*** Delete File: missing.txt"],
          ["*** Add File: b.txt", "+x"],
          ["*** Update File: b.txt", "*** Move to: c.txt", "@@", "-b"],
          ["*** Update File: b.txt", "*** Move to: a.txt", "@@", "-b"],
          ["*** Update File: b.txt", "*** Move to: m.txt", "@@", "-b", "*** Add File: m.txt", "+x"],
          ["*** Update File: b.txt", "*** Move to: m.txt", "*** Update File: c.txt", "*** Move to: m.txt"],
          ["*** Add File: m.txt", "+x", "*** Update File: b.txt", "*** Move to: m.txt", "@@", "-b"],
          ["*** Delete File: a.txt"],
          ["*** Add File: ../out", "+x"],
          ["*** Update File: b.txt", "*** Move to: ~/x", "@@", "-b"]
        ]) {
          const { requests, result } = yield* withFiles(
            files,
            apply("*** Update File: a.txt", "@@", "-a", "+A", ...wrong)
          )
          assert.include(message(result), "Nothing was changed.", wrong.join("\n"))
          assert.deepStrictEqual(writes(requests), [])
        }
      })
    )

    it.effect("any failing write takes back all earlier ones", () =>
      Effect.gen(function* () {
        const steps = ["/new.txt", "/a.txt", "/b.txt", "/b.txt", "/c.txt"]
        for (const failing of steps.keys()) {
          let count = 0
          const { result, files: after } = yield* withFiles(files, all, ({ operation }) =>
            ["write", "move", "delete"].includes(operation) && count++ === failing
              ? { _tag: "PermissionDenied" }
              : undefined
          )
          assert.deepStrictEqual(after, files, `step ${failing}`)
          assert.include(message(result), "Nothing was changed.")
          assert.include(message(result), "permission denied")
        }
      })
    )

    it.effect("takes back a finished step whose answer is lost, at any step", () =>
      Effect.gen(function* () {
        for (let failing = 0; failing < 5; failing++) {
          yield* Effect.gen(function* () {
            const backend = yield* Backend.Backend
            let count = 0
            const lost =
              (operation: string, path: string) =>
              <A>(effect: Effect.Effect<A, BackendError.BackendError>) =>
                Effect.suspend(() =>
                  count++ === failing
                    ? Effect.andThen(effect, BackendError.make(operation, path, { _tag: "TimedOut", limit: 1 }))
                    : effect
                )
            const lossy: Backend.Service = {
              ...backend,
              write: (path, ...rest) => lost("write", path)(backend.write(path, ...rest)),
              move: (from, to) => lost("move", from)(backend.move(from, to)),
              delete: (path, options) => lost("delete", path)(backend.delete(path, options))
            }
            const result = yield* inRun(Effect.result(all)).pipe(Effect.provideService(Backend.Backend, lossy))
            assert.include(message(result), "Nothing was changed.", `step ${failing}`)
            assert.deepStrictEqual(yield* TestBackend.files, files, `step ${failing}`)
          }).pipe(Effect.provide(TestBackend.layer({ files })))
        }
      })
    )

    it.effect("nothing is deleted before all else is done", () =>
      Effect.gen(function* () {
        const change = apply("*** Delete File: c.txt", "*** Update File: a.txt", "@@", "-a", "+A")
        const { requests } = yield* withFiles(files, change, ({ operation }) =>
          operation === "write" ? { _tag: "Unavailable" } : undefined
        )
        assert.deepStrictEqual(
          writes(requests).map(({ operation }) => operation),
          ["write"]
        )
      })
    )

    it.effect("names the path of a change that can't be taken back", () =>
      Effect.gen(function* () {
        let count = 0
        const { result, files: after } = yield* withFiles(files, all, ({ operation, path }) =>
          (operation === "move" && count++ === 0) || (operation === "write" && path === "/a.txt" && count > 0)
            ? { _tag: "Unavailable" }
            : undefined
        )
        assert.deepStrictEqual(after, { ...files, "/a.txt": "A\n" })
        assert.notInclude(message(result), "Nothing was changed")
        assert.match(
          message(result),
          /except for these files[^]*- \/a\.txt \(write \/a\.txt: the backend is not available/
        )
        assert.notInclude(message(result), "/new.txt")
      })
    )

    it.effect("does not overwrite changes made meanwhile, and keeps nothing of the patch", () =>
      Effect.gen(function* () {
        const backend = yield* Backend.Backend
        const meddling = meddle(backend, "/b.txt", backend.write("/b.txt", "theirs"))
        const change = apply("*** Update File: a.txt", "@@", "-a", "+A", "*** Update File: b.txt", "@@", "-b", "+B")
        const updated = yield* inRun(Effect.result(change)).pipe(Effect.provideService(Backend.Backend, meddling))
        assert.include(message(updated), "the file was changed since it was read")
        assert.deepStrictEqual(yield* TestBackend.files, { ...files, "/b.txt": "theirs" })
        // A deletion takes no version of its own.
        const again = meddle(backend, "/c.txt", backend.write("/c.txt", "theirs"))
        const removed = yield* inRun(
          Effect.result(apply("*** Update File: a.txt", "@@", "-a", "+A", "*** Delete File: c.txt"))
        ).pipe(Effect.provideService(Backend.Backend, again))
        assert.include(message(removed), "the file was changed since it was read")
        assert.deepStrictEqual(yield* TestBackend.files, { ...files, "/b.txt": "theirs", "/c.txt": "theirs" })
      }).pipe(Effect.provide(TestBackend.layer({ files })))
    )

    it.effect("does not take back over a change made after a write", () =>
      Effect.gen(function* () {
        const backend = yield* Backend.Backend
        const meddling: Backend.Service = {
          ...backend,
          move: (from) =>
            Effect.andThen(
              Effect.orDie(Effect.all([backend.write("/a.txt", "theirs"), backend.write("/new.txt", "theirs")])),
              Effect.fail(BackendError.make("move", from, { _tag: "PermissionDenied" }))
            )
        }
        const result = yield* inRun(Effect.result(all)).pipe(Effect.provideService(Backend.Backend, meddling))
        assert.deepStrictEqual(yield* TestBackend.files, { ...files, "/a.txt": "theirs", "/new.txt": "theirs" })
        for (const path of ["/a.txt", "/new.txt"])
          assert.include(message(result), `- ${path} (undo ${path}: the file was`)
      }).pipe(Effect.provide(TestBackend.layer({ files })))
    )

    it.effect("9: an interruption takes back all changes, also those in flight", () =>
      Effect.gen(function* () {
        for (const stuckOn of ["/new.txt", "/a.txt", "/b.txt", "/c.txt"]) {
          const backend = yield* Backend.Backend
          const reached = yield* Deferred.make<void>()
          // It acts, and never answers.
          const stuck = <A, E>(path: string, effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
            path === stuckOn
              ? Effect.andThen(effect, Effect.andThen(Deferred.succeed(reached, undefined), Effect.never))
              : effect
          let first = true
          const actOnce = <A, E>(path: string, effect: Effect.Effect<A, E>) => {
            const hold = first && path === stuckOn
            if (hold) first = false
            return hold ? stuck(path, effect) : effect
          }
          const slow: Backend.Service = {
            ...backend,
            write: (path, content, options) => actOnce(path, backend.write(path, content, options)),
            delete: (path, options) => actOnce(path, backend.delete(path, options))
          }
          const fiber = yield* Effect.forkChild(
            inRun(all).pipe(Effect.provideService(Backend.Backend, slow), Effect.ignore)
          )
          yield* Deferred.await(reached)
          yield* Fiber.interrupt(fiber)
          assert.deepStrictEqual(yield* TestBackend.files, files, stuckOn)
        }
      }).pipe(Effect.provide(TestBackend.layer({ files })))
    )

    it.effect("9: an interruption takes back only finished changes, and reports no problem", () =>
      Effect.gen(function* () {
        const backend = yield* Backend.Backend
        const logged: Array<unknown> = []
        const reached = yield* Deferred.make<void>()
        const stuck: Backend.Service = {
          ...backend,
          write: (path, content, options) =>
            path === "/b.txt" && content === "B\n"
              ? Effect.andThen(Deferred.succeed(reached, undefined), Effect.never)
              : backend.write(path, content, options)
        }
        const fiber = yield* Effect.forkChild(
          inRun(all).pipe(
            Effect.provideService(Backend.Backend, stuck),
            Effect.ignore,
            Effect.provide(Logger.layer([Logger.make((entry) => void logged.push(entry.message))]))
          )
        )
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(yield* TestBackend.files, files)
        assert.deepStrictEqual(logged, [])
      }).pipe(Effect.provide(TestBackend.layer({ files })))
    )

    it.effect("taking back does not wait forever", () =>
      Effect.gen(function* () {
        const backend = yield* Backend.Backend
        let failed = false
        const dead: Backend.Service = {
          ...backend,
          move: (from) =>
            Effect.suspend(() => {
              failed = true
              return Effect.fail(BackendError.make("move", from, { _tag: "Unavailable" }))
            }),
          read: (path, window) => (failed ? Effect.never : backend.read(path, window))
        }
        const fiber = yield* Effect.forkChild(
          inRun(Effect.result(all)).pipe(Effect.provideService(Backend.Backend, dead))
        )
        yield* TestClock.adjust("5 minutes")
        const said = message(yield* Fiber.join(fiber))
        for (const path of ["/new.txt", "/a.txt", "/b.txt"]) assert.include(said, `- ${path} (`)
      }).pipe(Effect.provide(TestBackend.layer({ files })))
    )

    it.effect("a deletion that has to be taken back gives bytes back", () =>
      Effect.gen(function* () {
        const bytes = new Uint8Array([0, 255, 1])
        let count = 0
        const { files: after } = yield* withFiles(
          { "/a.bin": bytes, "/b.txt": "b" },
          apply("*** Delete File: a.bin", "*** Delete File: b.txt"),
          ({ operation }) => (operation === "delete" && count++ === 1 ? { _tag: "PermissionDenied" } : undefined)
        )
        assert.deepStrictEqual(after, { "/a.bin": bytes, "/b.txt": "b" })
      })
    )

    it.effect("a binary file can be moved and deleted, and not be changed", () =>
      Effect.gen(function* () {
        const bytes = new Uint8Array([0, 255, 1])
        const moved = yield* withFiles({ "/a.bin": bytes }, apply("*** Update File: a.bin", "*** Move to: b.bin"))
        assert.deepStrictEqual(moved.files, { "/b.bin": bytes })
        const changed = yield* withFiles({ "/a.bin": bytes }, apply("*** Update File: a.bin", "@@", "+x"))
        assert.include(message(changed.result), "not a text file")
      })
    )
  })
})

const line = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom("", " ", "a", "b", "  a", "a ", "@@ a", "*** End Patch", "-a", "+b", "}") },
  { weight: 1, arbitrary: fc.string({ maxLength: 8 }).map((text) => text.replace(/[\r\n]/g, "")) }
)

const fileLines = fc.array(line, { maxLength: 24 })

/** A patch from one list of lines to another, with so much around each change. */
const hunksOf = (before: ReadonlyArray<string>, after: ReadonlyArray<string>): ReadonlyArray<Hunk> => {
  const lines = TextDiff.diff(before, after).flatMap((edit) =>
    edit.items.map((text): HunkLine => ({
      kind: edit._tag === "Equal" ? "keep" : edit._tag === "Insert" ? "add" : "remove",
      text
    }))
  )
  return lines.length === 0 ? [] : [{ headers: [], lines, endOfFile: false, line: 0 }]
}

const path = fc.stringMatching(/^[a-z]([a-z /.-]{0,6}[a-z])?$/)
const header = fc.stringMatching(/^[a-z(){}]([a-z (){}@]{0,6}[a-z(){}])?$/)
const hunkLine = fc.record({ kind: fc.constantFrom("keep" as const, "add" as const, "remove" as const), text: line })
const hunk = fc.record({
  headers: fc.array(header, { maxLength: 3 }),
  lines: fc
    .array(hunkLine, { minLength: 1, maxLength: 6 })
    .map((lines): ReadonlyArray<HunkLine> => [...lines, { kind: "add", text: "end" }]),
  endOfFile: fc.boolean(),
  line: fc.constant(0)
})
const change: fc.Arbitrary<Change> = fc.oneof(
  fc.record({ _tag: fc.constant("Add" as const), path, lines: fc.array(line, { maxLength: 5 }), line: fc.constant(0) }),
  fc.record({ _tag: fc.constant("Delete" as const), path, line: fc.constant(0) }),
  fc
    .record({ path, to: fc.option(path, { nil: undefined }), hunks: fc.array(hunk, { minLength: 1, maxLength: 3 }) })
    .map(({ hunks, path, to }) => ({
      _tag: "Update" as const,
      path,
      hunks,
      line: 0,
      ...(to === undefined ? {} : { moveTo: to })
    }))
)

const withoutLines = ({ changes }: Patch): unknown =>
  JSON.parse(JSON.stringify(changes, (key, value: unknown) => (key === "line" ? 0 : value)))

describe("ApplyPatch, properties", () => {
  it("parse reads the output of print", () => {
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
        const parsed = ApplyPatch.parse(print({ changes }))
        assert.deepStrictEqual(Result.map(parsed, withoutLines), Result.succeed(withoutLines({ changes })))
      }),
      { numRuns: scaled(500) }
    )
  })

  it.effect("the patch from one text to another makes the other of the one", () =>
    inRun(
      Effect.gen(function* () {
        const cases = fc.sample(
          fc.record({
            before: fileLines,
            after: fileLines,
            ending: fc.constantFrom("\n", "\r\n"),
            ends: fc.boolean()
          }),
          300
        )
        for (const { after, before, ending, ends } of cases) {
          const write = (lines: ReadonlyArray<string>) =>
            lines.map((line, index) => line + (ends || index < lines.length - 1 ? ending : "")).join("")
          const [old, wanted] = [write(before), write(after)]
          // An empty last line without an end is no line; an empty file has no known ending.
          if (old === wanted || (!ends && (before.at(-1) === "" || after.at(-1) === "")) || before.length === 0)
            continue
          if (before.length === 1 && !ends && ending === "\r\n") continue
          const input = print({
            changes: [{ _tag: "Update", path: "/a", hunks: hunksOf(before, after), line: 0 }]
          })
          const { files } = yield* Effect.gen(function* () {
            yield* applyText(input)
            return { files: yield* TestBackend.files }
          }).pipe(Effect.provide(TestBackend.layer({ files: { "/a": old } })))
          assert.strictEqual(files["/a"], wanted, input)
        }
      })
    )
  )

  it.effect("a hunk goes where its lines are for the first time, however they repeat", () =>
    inRun(
      Effect.gen(function* () {
        const letters = (maxLength: number) => fc.array(fc.constantFrom("a", "b"), { minLength: 1, maxLength })
        const cases = fc.sample(fc.record({ before: letters(14), wanted: letters(7) }), 400)
        // The matched text ends with a shorter beginning of the wanted text.
        const hard = { before: [..."aabaaabaaac"], wanted: [..."aabaaac"] }
        for (const { before, wanted } of [hard, ...cases]) {
          const index = before.findIndex((_, start) => wanted.every((line, offset) => before[start + offset] === line))
          const result = yield* Effect.gen(function* () {
            const done = yield* Effect.result(
              apply("*** Update File: a", "@@", ...wanted.map((line) => `-${line}`), "+X")
            )
            return Result.isSuccess(done) ? (yield* TestBackend.files)["/a"] : undefined
          }).pipe(Effect.provide(TestBackend.layer({ files: { "/a": before.join("\n") } })))
          const expected = [...before.slice(0, index), "X", ...before.slice(index + wanted.length)].join("\n")
          assert.strictEqual(result, index < 0 ? undefined : expected, `${before.join("")} ${wanted.join("")}`)
        }
      })
    )
  )

  it("garbage is a patch or an InvalidPatch, and nothing else", () => {
    const piece = fc.oneof(
      fc.constantFrom(
        "*** Begin Patch",
        "*** End Patch",
        "*** Add File: a",
        "*** Update File: a",
        "*** Move to: b",
        "*** Delete File: a",
        "*** End of File",
        "@@",
        "@@ x",
        "+a",
        "-a",
        " a",
        "",
        "```",
        "x <<EOF",
        "EOF"
      ),
      fc.string()
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.boolean(), (pieces, begun) => {
        const input = (begun ? ["*** Begin Patch", ...pieces] : pieces).join("\n")
        const parsed = ApplyPatch.parse(input)
        if (Result.isFailure(parsed)) {
          assert.instanceOf(parsed.failure, ApplyPatch.InvalidPatch)
          assert.isAtMost(parsed.failure.line, input.split("\n").length + 1)
        } else {
          assert.isTrue(Result.isSuccess(ApplyPatch.parse(print(parsed.success))))
        }
      }),
      { numRuns: scaled(2_000) }
    )
  })

  it.effect(
    "hunks that fit nowhere, lines that repeat and headers that are above take no time to speak of",
    Effect.fnUntraced(function* () {
      const before = `x\n${"a \n".repeat(200_000)}`
      const tooMuch = "send this change in smaller patches"
      for (const [hunks, expected] of [
        [Array.from({ length: 300 }, () => `@@\n${" a \n".repeat(2_000)}-b`), "(the 2000 before fit)"],
        [Array.from({ length: 20_000 }, () => "@@\n-a"), tooMuch],
        [Array.from({ length: 20_000 }, (_, index) => `@@ x\n+${index}`), tooMuch]
      ] as const) {
        const { result } = yield* withFiles({ "/a": before }, apply("*** Update File: a", ...hunks))
        assert.include(message(result), expected)
      }
    }),
    // Without a bound it would be hours.
    60_000
  )
})
