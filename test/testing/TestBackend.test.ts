import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Layer } from "effect"
import { Backend, type BackendError } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { TestBackend } from "effect-deepagents/testing"

describe("TestBackend", () => {
  it.effect("fails in the words of a real backend", () =>
    Effect.gen(function* () {
      const files = { "/a.ts": "if (x) {\n\treturn 1\n}\n", "/two.txt": "ab ab\n" }
      const answers = (backend: Backend.Service) =>
        Effect.forEach(
          [
            backend.edit("/a.ts", [{ old: "    return 1", new: "return 2" }]),
            backend.edit("/two.txt", [{ old: "ab", new: "x" }]),
            backend.edit("/none", [{ old: "a", new: "b" }]),
            backend.grep({ pattern: "" }),
            backend.grep({ pattern: "a\nb" }),
            backend.glob({ pattern: "" }),
            backend.glob({ pattern: "file{1..3}.txt" }),
            backend.ls("/a.ts"),
            backend.read("../x")
          ],
          (operation: Effect.Effect<unknown, BackendError.BackendError>) =>
            Effect.map(Effect.flip(operation), ({ message }) => message)
        )
      const here = yield* Effect.provide(Backend.Backend.use(answers), TestBackend.layer({ files }))
      assert.deepStrictEqual(here, yield* answers(yield* MemoryBackend.make({ files })))
      assert.include(here[0], "line 2 has it but for indentation")
      assert.include(here[1], "there 2 times (line 1)")
      assert.include(here[6], "name each of them: {1,2,3}")
    })
  )

  it.effect("starts with the given files, and shows their final content in order, texts as texts", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      yield* backend.write("b/new.md", "new")
      yield* backend.edit("/a.txt", [{ old: "one", new: "1" }])
      yield* backend.delete("/gone")
      const files = yield* TestBackend.files
      assert.deepStrictEqual(Object.entries(files), [
        ["/a.txt", "\uFEFF1\r\n"],
        ["/b/bytes", new Uint8Array([0, 255])],
        ["/b/new.md", "new"]
      ])
    }).pipe(
      Effect.provide(
        TestBackend.layer({ files: { "/b/bytes": new Uint8Array([0, 255]), "/a.txt": "\uFEFFone\r\n", "/gone": "x" } })
      )
    )
  )

  it.effect("records its operations in order, with failures and single transfers, by normal paths", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      yield* backend.write("a//b.txt", "x", { create: true })
      yield* Effect.ignore(backend.read("../secret"))
      yield* backend.download(["a/b.txt", "/none"])
      yield* backend.move("a/b.txt", "c")
      yield* backend.grep({ pattern: "x" })
      assert.deepStrictEqual(yield* TestBackend.requests, [
        { operation: "write", path: "/a/b.txt", content: "x", options: { create: true } },
        { operation: "read", path: "../secret", window: {} },
        { operation: "download", path: "/a/b.txt" },
        { operation: "download", path: "/none" },
        { operation: "move", path: "/a/b.txt", to: "c" },
        { operation: "grep", path: "/", query: { pattern: "x" } }
      ])
    }).pipe(Effect.provide(TestBackend.layer()))
  )

  it.effect("fails where it is told to, and changes nothing then", () => {
    let left = 1
    const fail = ({ operation, path }: TestBackend.Request): BackendError.Reason | undefined => {
      if (operation === "upload" && path === "/b") return { _tag: "PermissionDenied" }
      return operation === "write" && path === "/a" && left-- > 0 ? { _tag: "Unavailable" } : undefined
    }
    return Effect.gen(function* () {
      const backend = yield* Backend.Backend
      const error = yield* Effect.flip(backend.write("a", "new"))
      assert.deepStrictEqual([error.operation, error.path, error.reason], ["write", "a", { _tag: "Unavailable" }])
      assert.deepStrictEqual(yield* TestBackend.files, { "/a": "old" })
      yield* backend.write("a", "new")
      const put = yield* backend.upload(["/b", "/c"].map((path) => ({ path, content: new Uint8Array() })))
      assert.deepStrictEqual(
        put.map((one) => one.ok),
        [false, true]
      )
      assert.deepStrictEqual(yield* TestBackend.files, { "/a": "new", "/c": "" })
    }).pipe(Effect.provide(TestBackend.layer({ files: { "/a": "old" }, fail })))
  })

  it.effect("reports a file at an invalid path as a mistake of the test", () =>
    Effect.gen(function* () {
      for (const files of [{ "../x": "" }, { "/a": "", "/a/b": "" }]) {
        const exit = yield* Effect.exit(Effect.scoped(Layer.build(TestBackend.layer({ files }))))
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
      }
    })
  )

  it.effect("bounds transfers by the size that it is given", () =>
    Effect.gen(function* () {
      const backend = yield* Backend.Backend
      const [put] = yield* backend.upload([{ path: "/a", content: new Uint8Array(11) }])
      assert.deepStrictEqual(put?.ok === false && put.error.reason, { _tag: "TooLarge", size: 11, limit: 10 })
    }).pipe(Effect.provide(TestBackend.layer({ maxFileSize: 10 })))
  )

  it.effect("each layer has files of its own", () =>
    Effect.gen(function* () {
      const layer = TestBackend.layer({ files: { "/a": "" } })
      yield* Effect.provide(
        Backend.Backend.use((backend) => backend.delete("/a")),
        Layer.fresh(layer)
      )
      assert.deepStrictEqual(yield* Effect.provide(TestBackend.files, Layer.fresh(layer)), { "/a": "" })
    })
  )
})
