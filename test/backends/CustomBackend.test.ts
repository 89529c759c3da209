import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Stream } from "effect"
import { type Backend, BackendError } from "effect-deepagents"
import { CustomBackend, MemoryBackend } from "effect-deepagents/backends"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import * as Locks from "../../src/backends/internal/files/locks.ts"
import { scaled } from "../scale.ts"
import { operations, outcomes } from "./operations.ts"

const encoder = new TextEncoder()

const fail = (path: string, reason: BackendError.Reason) => Effect.fail(BackendError.make("primitive", path, reason))

const notFound = (path: string) => fail(path, { _tag: "NotFound" })

/** The plainest primitives: bytes by path, directories as common prefixes of paths, and links by their targets (`undefined`: nowhere). Requests are noted. */
const plain = (
  given: { readonly [path: string]: string } = {},
  links: { readonly [path: string]: string | undefined } = {}
) => {
  const files = new Map<string, Uint8Array>(Object.entries(given).map(([path, text]) => [path, encoder.encode(text)]))
  const linked = new Map(Object.entries(links))
  const asked: Array<string> = []
  const note = (what: string, path: string) => Effect.sync(() => void asked.push(`${what} ${path}`))
  const under = (path: string) =>
    [...files.keys(), ...linked.keys()].filter((file) => file.startsWith(path === "/" ? "/" : `${path}/`))
  const follow = (path: string): string => {
    for (const [link, to] of linked) {
      if (to !== undefined && (path === link || path.startsWith(`${link}/`)))
        return follow(to + path.slice(link.length))
    }
    return path
  }
  const look = (path: string): CustomBackend.Stat | undefined => {
    if (linked.has(path)) {
      const to = linked.get(path)
      const there = to === undefined ? undefined : look(to)
      return { kind: there?.kind ?? "link", isLink: true }
    }
    const size = files.get(path)?.length
    if (size !== undefined) return { kind: "file", size }
    return path === "/" || under(path).length > 0 ? { kind: "directory" } : undefined
  }
  /** The place of a name, whose directory may be behind a link. */
  const at = (path: string) => {
    const slash = path.lastIndexOf("/")
    return follow(path.slice(0, slash)) + path.slice(slash)
  }
  const primitives: CustomBackend.Primitives = {
    stat: (path) => Effect.as(note("stat", path), look(path)),
    list: (path) =>
      Effect.flatMap(note("list", path), () => {
        const real = follow(path)
        const folder = real === "/" ? "/" : `${real}/`
        const names = new Set(under(real).map((file) => file.slice(folder.length).split("/")[0] ?? ""))
        if (names.size === 0 && real !== "/") return notFound(path)
        return Effect.succeed(
          [...names].map((name) => ({ name, ...(look(folder + name) ?? { kind: "file" as const }) }))
        )
      }),
    read: (path, range) =>
      Effect.flatMap(note("read", path), () => {
        const bytes = files.get(follow(path))
        return bytes === undefined ? notFound(path) : Effect.succeed(bytes.slice(range?.start, range?.end))
      }),
    write: (path, content) =>
      Effect.map(note("write", path), () => void files.set(follow(path), CustomBackend.toBytes(content))),
    remove: (path) =>
      Effect.flatMap(note("remove", path), () =>
        files.delete(at(path)) || linked.delete(at(path)) ? Effect.void : notFound(path)
      ),
    rename: (from, to) =>
      Effect.flatMap(note("rename", from), () => {
        const bytes = files.get(at(from))
        if (linked.has(at(from))) linked.set(at(to), linked.get(at(from)))
        else if (bytes !== undefined) files.set(at(to), bytes)
        else return notFound(from)
        return Effect.sync(() => {
          files.delete(at(from))
          linked.delete(at(from))
        })
      }),
    resolve: (path) =>
      linked.has(path) && linked.get(path) === undefined
        ? fail(path, { _tag: "OutsideRoot" })
        : Effect.succeed(follow(path))
  }
  return { primitives, files, linked, asked }
}

const paths = (listing: Backend.Listing) => listing.entries.map((entry) => entry.path)
const foundPaths = (result: Backend.GrepResult) => result.files.map((file) => file.path)
const reasonOf = <A>(effect: Effect.Effect<A, BackendError.BackendError>) =>
  Effect.map(Effect.flip(effect), (error) => error.reason._tag)

describe("CustomBackend.make", () => {
  it("gives the same as the backend in memory for any operations", () =>
    fc.assert(
      fc.asyncProperty(operations, (sequence) =>
        Effect.gen(function* () {
          const derived = yield* outcomes(CustomBackend.make(plain().primitives), sequence)
          assert.deepStrictEqual(derived, yield* outcomes(yield* MemoryBackend.make(), sequence))
        }).pipe(Effect.runPromise)
      ),
      { numRuns: scaled(200) }
    ))

  it.effect("a failure names the operation, and the path as it was given", () =>
    Effect.gen(function* () {
      const { primitives } = plain({ "/a": "a" })
      const backend = CustomBackend.make({
        ...primitives,
        write: (path) =>
          Effect.fail(BackendError.make("x", path, { _tag: "Unavailable" }, { detail: "full", cause: 1 }))
      })
      const error = yield* Effect.flip(backend.write("./a/", "b"))
      assert.deepStrictEqual(
        [error.operation, error.path, error.reason._tag, error.detail, error.cause],
        ["write", "./a/", "Unavailable", "full", 1]
      )
      const moved = yield* Effect.flip(backend.move("nothing", "/b"))
      assert.deepStrictEqual([moved.operation, moved.path, moved.reason._tag], ["move", "nothing", "NotFound"])
    })
  )

  it.effect("without versions from below a version stands for the content", () =>
    Effect.gen(function* () {
      const backend = CustomBackend.make(plain().primitives)
      const first = yield* backend.write("/a", "one ü")
      const { version } = yield* backend.read("/a")
      assert.strictEqual(version, first.version)
      const second = yield* backend.edit("/a", [{ old: "one", new: "two" }], { version })
      assert.notStrictEqual(second.version, version)
      assert.strictEqual(yield* reasonOf(backend.edit("/a", [{ old: "two", new: "x" }], { version })), "Conflict")
      assert.strictEqual(yield* reasonOf(backend.write("/a", "x", { version })), "Conflict")
      assert.strictEqual(yield* reasonOf(backend.write("/nothing", "x", { version })), "Conflict")
      assert.strictEqual((yield* backend.write("/a", "one ü", { version: second.version })).version, version)
    })
  )

  it.effect("takes versions from below, of the state before the content is read", () =>
    Effect.gen(function* () {
      const { files, primitives } = plain({ "/a": "a" })
      let version = 1
      const backend = CustomBackend.make({
        ...primitives,
        stat: (path) => Effect.map(primitives.stat(path), (stat) => stat && { ...stat, version: `v${version}` }),
        read: (path) =>
          Effect.suspend(() => {
            const bytes = files.get(path) ?? new Uint8Array()
            // Somebody else writes while this is read.
            version++
            return Effect.succeed(bytes)
          }),
        write: (path, content) =>
          Effect.map(primitives.write(path, content, { create: false }), () => {
            const mine = ++version
            version++
            return `v${mine}`
          })
      })
      assert.strictEqual((yield* backend.read("/a")).version, "v1")
      assert.strictEqual(yield* reasonOf(backend.edit("/a", [{ old: "a", new: "b" }], { version: "v1" })), "Conflict")
      assert.strictEqual((yield* backend.write("/a", "c", { version: `v${version}` })).version, "v4")
    })
  )

  it.effect("operations don't call each other, so each can be replaced", () =>
    Effect.gen(function* () {
      const { primitives } = plain({ "/a/b": "b", "/c": "c" })
      const made = CustomBackend.make(primitives)
      const keys = Object.keys(made) as ReadonlyArray<keyof Backend.Service>
      const never = Object.fromEntries(keys.map((key) => [key, () => Effect.die("called")]))
      const backend = { ...made, ...never, move: made.move, delete: made.delete, upload: made.upload }
      yield* backend.upload([{ path: "/d", content: new Uint8Array() }])
      yield* backend.move("/a", "/e")
      yield* backend.delete("/e", { recursive: true })
      assert.deepStrictEqual(paths(yield* made.ls("/")), ["/c", "/d"])
    })
  )

  it.effect("`create` reaches the primitive, and its answer counts", () =>
    Effect.gen(function* () {
      const { primitives } = plain()
      const created: Array<boolean> = []
      const backend = CustomBackend.make({
        ...primitives,
        write: (path, content, { create }) => {
          created.push(create)
          return create ? fail(path, { _tag: "AlreadyExists" }) : primitives.write(path, content, { create })
        }
      })
      yield* backend.write("/a", "a")
      assert.strictEqual(yield* reasonOf(backend.write("/b", "b", { create: true })), "AlreadyExists")
      assert.deepStrictEqual(created, [false, true])
    })
  )
})

describe("windows of large files", () => {
  const line = "0123456789abcde\n"
  const lines = 1_000_000
  /** A file of 16 MB that is nowhere. */
  const huge = (version: string | undefined) => {
    const ranges: Array<number> = []
    const { primitives } = plain()
    const chunk = encoder.encode(line.repeat(65_536))
    const size = line.length * lines
    return {
      ranges,
      primitives: {
        ...primitives,
        stat: (path: string) =>
          Effect.succeed(
            path === "/huge"
              ? { kind: "file" as const, size, ...(version === undefined ? {} : { version }) }
              : { kind: "directory" as const }
          ),
        list: () => Effect.succeed([{ name: "huge", kind: "file" as const, size }]),
        read: (_path: string, range?: { readonly start: number; readonly end: number }) =>
          Effect.sync(() => {
            const { end, start } = range ?? { start: 0, end: size }
            ranges.push(end - start)
            return chunk.subarray(start % line.length, (start % line.length) + end - start)
          })
      } satisfies CustomBackend.Primitives
    }
  }

  it.effect(
    "a file over the largest size is read by ranges, a window at a time",
    () =>
      Effect.gen(function* () {
        const { primitives, ranges } = huge("v1")
        const backend = CustomBackend.make(primitives)
        const file = yield* backend.read("/huge", { offset: 999_999, limit: 5 })
        assert.deepStrictEqual(file, {
          kind: "text",
          path: "/huge",
          text: "0123456789abcde\n0123456789abcde",
          startLine: 999_999,
          endLine: lines,
          totalLines: lines,
          size: line.length * lines,
          version: "v1"
        })
        assert.strictEqual(Math.max(...ranges), 1024 * 1024)
        const counted = yield* backend.grep({ pattern: "^0", regex: true, mode: "count" })
        assert.strictEqual(counted.files[0]?.count, lines)
        assert.strictEqual(Math.max(...ranges), 1024 * 1024)
        assert.strictEqual(yield* reasonOf(backend.edit("/huge", [{ old: "0", new: "1" }])), "TooLarge")
        const [download] = yield* backend.download(["/huge"])
        assert.isTrue(download?.ok === false && download.error.reason._tag === "TooLarge")
      }),
    30_000
  )

  it.effect("its version, too, is that of the whole content", () =>
    Effect.gen(function* () {
      const { files, primitives } = plain()
      const small = CustomBackend.make(primitives, { maxFileSize: 1 })
      const large = CustomBackend.make(primitives)
      const whole = `${"line\n".repeat(300_000)}end`
      files.set("/a", encoder.encode(whole))
      const one = yield* small.read("/a", { limit: 1 })
      assert.strictEqual(one.version, (yield* large.read("/a", { limit: 1 })).version)
      // Cut anywhere, and into pieces of any size.
      const bytes = encoder.encode(whole)
      const cuts = [0, 1, 3, 8, 8, 13, 100_002, 1_000_001, bytes.length]
      const streamed = CustomBackend.make({
        ...primitives,
        stream: () => Stream.fromIterable(cuts.slice(1).map((cut, index) => bytes.slice(cuts[index], cut)))
      })
      assert.strictEqual(one.version, (yield* streamed.read("/a", { limit: 1 })).version)
      files.set("/a", encoder.encode(`${whole}!`))
      assert.notStrictEqual(one.version, (yield* small.read("/a", { limit: 1 })).version)
    })
  )

  it.effect("a stream is taken instead, and no further than it is wanted", () =>
    Effect.gen(function* () {
      const { primitives } = huge("v1")
      let pulled = 0
      const backend = CustomBackend.make({
        ...primitives,
        read: () => Effect.die("read as a whole"),
        stream: () =>
          Stream.range(1, 1_000).pipe(
            Stream.rechunk(1),
            Stream.map((index) => {
              pulled = index
              return new Uint8Array(4_096)
            })
          )
      })
      assert.strictEqual((yield* backend.read("/huge")).kind, "binary")
      assert.isAtMost(pulled, 3)
      assert.deepStrictEqual((yield* backend.grep({ pattern: "0" })).files, [])
    })
  )
})

describe("locks", () => {
  /** Primitives that let others in at each step. */
  const slow = (primitives: CustomBackend.Primitives): CustomBackend.Primitives => ({
    ...primitives,
    stat: (path) => Effect.andThen(Effect.sleep(10), primitives.stat(path)),
    read: (path, range) => Effect.tap(primitives.read(path, range), Effect.sleep(10)),
    write: (path, content, options) => Effect.andThen(Effect.sleep(10), primitives.write(path, content, options))
  })
  const settle = <A, E>(effect: Effect.Effect<A, E>) =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(effect)
      yield* TestClock.adjust("1 hour")
      return yield* Fiber.join(fiber)
    })

  it.effect("edits of one file at once are all there", () =>
    Effect.gen(function* () {
      const { files, primitives } = plain({ "/a": "0" })
      const backend = CustomBackend.make(slow(primitives))
      const edits = Array.from({ length: 20 }, (_, index) =>
        backend.edit(index % 2 === 0 ? "/a" : "a", [{ old: `${index}`, new: `${index + 1}` }])
      )
      yield* settle(Effect.all(edits, { concurrency: "unbounded" }))
      assert.strictEqual(new TextDecoder().decode(files.get("/a")), "20")
    })
  )

  it.effect("links to one file are one file", () =>
    Effect.gen(function* () {
      const { files, primitives } = plain({ "/a": "1 2" }, { "/link": "/a" })
      const backend = CustomBackend.make(slow(primitives))
      yield* settle(
        Effect.all([backend.edit("/a", [{ old: "1", new: "x" }]), backend.edit("/link", [{ old: "2", new: "y" }])], {
          concurrency: "unbounded"
        })
      )
      assert.strictEqual(new TextDecoder().decode(files.get("/a")), "x y")
    })
  )

  it.effect("files side by side don't wait for each other", () =>
    Effect.gen(function* () {
      const backend = CustomBackend.make(slow(plain().primitives))
      const writes = ["/d/a", "/d/b", "/d/c/e"].map((path) => backend.write(path, ""))
      const fiber = yield* Effect.forkChild(Effect.all(writes, { concurrency: "unbounded" }))
      yield* TestClock.adjust(100)
      assert.isDefined(fiber.pollUnsafe())
    })
  )

  it.effect("a directory is moved before its files are written, or after, but not while", () =>
    Effect.gen(function* () {
      const { files, primitives } = plain({ "/d/a": "1", "/d/b": "2", "/d/e/f": "3" })
      const backend = CustomBackend.make({
        ...slow(primitives),
        rename: (from, to) => Effect.andThen(Effect.sleep(10), primitives.rename(from, to))
      })
      const writes = ["/d/a", "/d/b", "/d/new", "/d/e/f"].map((path) => backend.write(path, "new"))
      yield* settle(Effect.all([backend.move("/d", "/to"), ...writes], { concurrency: "unbounded" }))
      const text = (path: string) => new TextDecoder().decode(files.get(path))
      assert.deepStrictEqual([text("/to/a"), text("/to/b"), text("/to/e/f")], ["1", "2", "3"])
      assert.deepStrictEqual([text("/d/a"), text("/d/b"), text("/d/e/f"), text("/d/new")], ["new", "new", "new", "new"])
    })
  )

  it.effect("a move takes no place that a writer takes meanwhile", () =>
    Effect.gen(function* () {
      const { files, primitives } = plain({ "/a": "a" })
      const backend = CustomBackend.make({
        ...slow(primitives),
        rename: (from, to) => Effect.andThen(Effect.sleep(100), primitives.rename(from, to))
      })
      const both = [backend.move("/a", "/to"), backend.write("/to", "new", { create: true })]
      const exits = yield* settle(Effect.all(both.map(Effect.exit), { concurrency: "unbounded" }))
      assert.deepStrictEqual(exits.map(Exit.isSuccess), [true, false])
      assert.strictEqual(new TextDecoder().decode(files.get("/to")), "a")
    })
  )

  it.effect("of a file and a directory of one name there is one", () =>
    Effect.gen(function* () {
      const { files, primitives } = plain()
      const backend = CustomBackend.make(slow(primitives))
      const both = [backend.write("/a", ""), backend.write("/a/b", "")].map(Effect.exit)
      const exits = yield* settle(Effect.all(both, { concurrency: "unbounded" }))
      assert.deepStrictEqual([exits.map(Exit.isSuccess), files.size], [[true, false], 1])
    })
  )

  it.effect("nothing is left of them: not after interruption, nor after failure", () =>
    Effect.gen(function* () {
      const locks = Locks.make()
      const gate = yield* Deferred.make<void>()
      const order: Array<string> = []
      const work = (name: string, ...held: ReadonlyArray<string>) =>
        Effect.forkChild(
          Effect.andThen(
            Deferred.await(gate),
            Effect.sync(() => order.push(name))
          ).pipe(locks.hold(held)),
          {
            startImmediately: true
          }
        )
      const first = yield* work("first", "/a/b")
      const second = yield* work("second", "/a")
      const third = yield* work("third", "/a/c", "/x/y")
      const fourth = yield* work("fourth", "/x/y/z", "/a/b/c")
      // The third one waits for the second, although it could go on beside the first: the order of arrival counts.
      yield* Fiber.interrupt(second)
      yield* Fiber.interrupt(fourth)
      const failed = yield* Effect.exit(locks.hold(["/q/r"])(Effect.fail("no")))
      assert.isTrue(Exit.isFailure(failed))
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(first)
      yield* Fiber.join(third)
      assert.deepStrictEqual(order, ["first", "third"])
      assert.strictEqual(locks.size(), 0)
    })
  )

  it.effect("serves in order of arrival, and files don't keep a directory waiting", () =>
    Effect.gen(function* () {
      const locks = Locks.make()
      const gate = yield* Deferred.make<void>()
      const order: Array<string> = []
      const work = (name: string, path: string) =>
        Effect.andThen(
          Deferred.await(gate),
          Effect.sync(() => order.push(name))
        ).pipe(locks.hold([path]))
      const all = [work("file", "/a/b"), work("directory", "/a"), work("other file", "/a/c"), work("beside", "/d/e")]
      const fiber = yield* Effect.forkChild(Effect.all(all, { concurrency: "unbounded" }), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(
        order.filter((name) => name !== "beside"),
        ["file", "directory", "other file"]
      )
    })
  )

  it.effect("two who want the same two paths don't wait for each other", () =>
    Effect.gen(function* () {
      const locks = Locks.make()
      const [first, second] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const hold = (effect: Effect.Effect<void>, ...held: ReadonlyArray<string>) =>
        Effect.forkChild(locks.hold(held)(effect), { startImmediately: true })
      const fibers = [
        yield* hold(Deferred.await(first), "/p"),
        yield* hold(Deferred.await(second), "/q"),
        yield* hold(Effect.void, "/p", "/q"),
        yield* hold(Effect.void, "/q", "/p")
      ]
      yield* Deferred.succeed(first, undefined)
      yield* Effect.yieldNow
      yield* Deferred.succeed(second, undefined)
      for (let turn = 0; turn < 10; turn++) yield* Effect.yieldNow
      assert.deepStrictEqual(
        fibers.map((fiber) => fiber.pollUnsafe() === undefined),
        [false, false, false, false]
      )
    })
  )

  it.live("thousands may wait for one path, and any of them may give up", () =>
    Effect.gen(function* () {
      const locks = Locks.make()
      const gate = yield* Deferred.make<void>()
      let inside = 0
      let done = 0
      const work = (first: Effect.Effect<void>) =>
        Effect.gen(function* () {
          assert.strictEqual(++inside, 1)
          yield* first
          inside--
          done++
        }).pipe(locks.hold(["/a/b"]))
      const fork = (effect: Effect.Effect<void>) => Effect.forkChild(effect, { startImmediately: true })
      const one = yield* fork(work(Deferred.await(gate)))
      const fibers = yield* Effect.forEach(Array.from({ length: 20_000 }), () => fork(work(Effect.void)))
      yield* Fiber.interruptAll(fibers.filter((_, index) => index % 4 === 0))
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.awaitAll([one, ...fibers])
      assert.strictEqual(done, 15_001)
      assert.strictEqual(locks.size(), 0)
    })
  )
})

describe("links", () => {
  const linked = () =>
    plain(
      { "/real/a": "hit", "/real/sub/b": "hit" },
      { "/folder": "/real", "/file": "/real/a", "/real/sub/up": "/real", "/gone": undefined }
    )

  it.effect("operations follow links in the way, and results have the given names", () =>
    Effect.gen(function* () {
      const { files, primitives } = linked()
      const backend = CustomBackend.make(primitives)
      assert.deepStrictEqual(paths(yield* backend.ls("/folder")), ["/folder/a", "/folder/sub"])
      assert.strictEqual((yield* backend.read("/folder/a")).path, "/folder/a")
      assert.strictEqual((yield* backend.write("/file", "new")).path, "/file")
      assert.strictEqual(new TextDecoder().decode(files.get("/real/a")), "new")
      assert.deepStrictEqual(foundPaths(yield* backend.grep({ pattern: "hit", path: "/folder/sub" })), [
        "/folder/sub/b"
      ])
      assert.deepStrictEqual(paths(yield* backend.glob({ pattern: "*", path: "/folder" })), [
        "/folder/a",
        "/folder/sub/b"
      ])
    })
  )

  it.effect("are not followed by a walk, nor by a glob's own way down", () =>
    Effect.gen(function* () {
      const backend = CustomBackend.make(linked().primitives)
      assert.deepStrictEqual(paths(yield* backend.glob({ pattern: "**" })), ["/real/a", "/real/sub/b"])
      assert.deepStrictEqual(paths(yield* backend.glob({ pattern: "folder/**" })), [])
      assert.deepStrictEqual(foundPaths(yield* backend.grep({ pattern: "hit" })), ["/real/a", "/real/sub/b"])
    })
  )

  it.effect("deletes and moves the links themselves", () =>
    Effect.gen(function* () {
      const { files, linked: links, primitives } = linked()
      const backend = CustomBackend.make(primitives)
      yield* backend.delete("/folder", { recursive: true })
      yield* backend.delete("/real/sub", { recursive: true })
      yield* backend.move("/gone", "/still")
      yield* backend.move("/file", "/real/link")
      assert.deepStrictEqual([...files.keys()], ["/real/a"])
      assert.deepStrictEqual(
        [...links],
        [
          ["/still", undefined],
          ["/real/link", "/real/a"]
        ]
      )
    })
  )

  it.effect("that lead nowhere are listed, and no more", () =>
    Effect.gen(function* () {
      const backend = CustomBackend.make(linked().primitives)
      const { resolve: _resolve, ...unresolved } = linked().primitives
      const blind = CustomBackend.make(unresolved)
      const entry = (yield* backend.ls("/")).entries.find(({ path }) => path === "/gone")
      assert.strictEqual(entry?.kind, "link")
      for (const operation of [
        blind.write("/gone", ""),
        blind.read("/gone"),
        backend.read("/gone"),
        backend.ls("/gone"),
        backend.write("/gone", ""),
        backend.grep({ pattern: "a", path: "/gone" })
      ])
        assert.strictEqual(yield* reasonOf<unknown>(operation), "OutsideRoot")
    })
  )
})

describe("many files at once", () => {
  it.effect("a recursive delete that fails in the middle says that something is gone", () =>
    Effect.gen(function* () {
      const { files, primitives } = plain({ "/d/a": "", "/d/b": "", "/d/c": "" })
      const backend = CustomBackend.make({
        ...primitives,
        remove: (path) => (path === "/d/b" ? fail(path, { _tag: "PermissionDenied" }) : primitives.remove(path))
      })
      const error = yield* Effect.flip(backend.delete("/d", { recursive: true }))
      assert.strictEqual(error.reason._tag, "Unavailable")
      assert.include(error.message, "some of it was deleted already")
      assert.include(error.message, "/d/b: permission denied")
      assert.isFalse(files.has("/d/a"))
      assert.strictEqual(yield* reasonOf(backend.delete("/d/b")), "PermissionDenied")
    })
  )

  it.effect("a file that others remove meanwhile is no failure", () =>
    Effect.gen(function* () {
      const { files, primitives } = plain({ "/d/a": "", "/d/e/b": "", "/d/f/x": "", "/d/f/y": "", "/keep": "" })
      const backend = CustomBackend.make({
        ...primitives,
        remove: (path) =>
          Effect.tap(primitives.remove(path), () =>
            Effect.sync(() => files.delete(path === "/d/a" ? "/d/e/b" : path === "/d/f/x" ? "/d/f/y" : ""))
          )
      })
      yield* backend.delete("/d", { recursive: true })
      assert.deepStrictEqual([...files.keys()], ["/keep"])
    })
  )

  it.effect("a file that appears in a moving directory stays in place", () =>
    Effect.gen(function* () {
      const { asked, files, primitives } = plain({ "/d/a": "a", "/d/e/b": "b" })
      const backend = CustomBackend.make({
        ...primitives,
        rename: (from, to) =>
          Effect.tap(primitives.rename(from, to), () => Effect.sync(() => void files.set("/d/e/new", new Uint8Array())))
      })
      yield* backend.move("/d", "/to")
      assert.deepStrictEqual([...files.keys()].sort(), ["/d/e/new", "/to/a", "/to/e/b"])
      assert.deepStrictEqual(
        asked.filter((one) => one.startsWith("remove")),
        []
      )
    })
  )

  it.effect("no name that a listing gives leads out of the directory", () =>
    Effect.gen(function* () {
      const { asked, primitives } = plain({ "/d/a": "hit", "/keep": "hit" })
      const names = ["../keep", "..", ".", "", "/keep", "a\0", "a"]
      const backend = CustomBackend.make({
        ...primitives,
        list: (path) =>
          path === "/d" ? Effect.succeed(names.map((name) => ({ name, kind: "file" }))) : primitives.list(path)
      })
      assert.deepStrictEqual(paths(yield* backend.ls("/d")), ["/d/a"])
      assert.deepStrictEqual(foundPaths(yield* backend.grep({ pattern: "hit", path: "/d" })), ["/d/a"])
      yield* backend.delete("/d", { recursive: true })
      assert.deepStrictEqual(
        asked.filter((one) => one.startsWith("remove")),
        ["remove /d/a", "remove /d"]
      )
    })
  )

  it.effect("uploads are done in order: of two with one path the last one is there", () =>
    Effect.gen(function* () {
      const backend = CustomBackend.make(plain().primitives)
      const upload = (path: string, text: string) => ({ path, content: encoder.encode(text) })
      const outcomesOf = yield* backend.upload([
        upload("a", "1"),
        upload("../x", ""),
        upload("/a/", "22"),
        upload("/a/b", "")
      ])
      assert.deepStrictEqual(
        outcomesOf.map((one) => [one.path, one.ok ? one.value.created : one.error.reason._tag]),
        [
          ["/a", true],
          ["../x", "OutsideRoot"],
          ["/a", false],
          ["/a/b", "NotDirectory"]
        ]
      )
      const [file] = yield* backend.download(["/a"])
      assert.isTrue(file?.ok === true && file.value.length === 2)
    })
  )
})

describe("searches", () => {
  it.effect("grep returns its results after 15 seconds, through any hanging part", () =>
    Effect.gen(function* () {
      const { primitives } = plain({ "/a": "hit", "/b": "hit", "/c": "hit" })
      const backend = CustomBackend.make({
        ...primitives,
        read: (path) => (path === "/b" ? Effect.never : primitives.read(path))
      })
      const fiber = yield* Effect.forkChild(backend.grep({ pattern: "hit" }))
      yield* TestClock.adjust(14_999)
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      const result = yield* Fiber.join(fiber)
      assert.deepStrictEqual([foundPaths(result), result.truncated], [["/a"], "time"])
    })
  )

  it.effect("glob returns its results after 5 seconds", () =>
    Effect.gen(function* () {
      const { primitives } = plain({ "/a": "", "/b/c": "", "/d": "" })
      const backend = CustomBackend.make({
        ...primitives,
        list: (path) => (path === "/b" ? Effect.never : primitives.list(path))
      })
      const fiber = yield* Effect.forkChild(backend.glob({ pattern: "**" }))
      yield* TestClock.adjust(4_999)
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      const result = yield* Fiber.join(fiber)
      assert.deepStrictEqual([paths(result), result.truncated], [["/a"], "time"])
    })
  )

  // Each name costs milliseconds, and the files are in memory: the search never waits for anything.
  const slowly = Array.from({ length: 400 }, (_, n) => `/${"ab".repeat(120)}${n}`)
  const letters = "{a,b,c,d,e,f,g,h,i,j}"
  const hostile = {
    "a pattern": { pattern: `*${letters}*b*a*${letters}*b*a*b*${letters}*a*q`, ignore: "" },
    "an ignore file": { pattern: "**", ignore: `${"*a*b*a*b*a*b*a*b*a*b*a*b*q\n".repeat(2_000)}` }
  }
  for (const [what, { ignore, pattern }] of Object.entries(hostile)) {
    it.effect(`end in time whatever ${what} says of names`, () =>
      Effect.gen(function* () {
        const backend = yield* MemoryBackend.make({
          files: { "/.gitignore": ignore, ...Object.fromEntries(slowly.map((path) => [path, "x"])) }
        })
        const globbing = yield* Effect.forkChild(backend.glob({ pattern }), { startImmediately: true })
        const grepping = yield* Effect.forkChild(backend.grep({ pattern: "none", glob: pattern }), {
          startImmediately: true
        })
        yield* TestClock.adjust(15_000)
        assert.strictEqual((yield* Fiber.join(globbing)).truncated, "time")
        assert.strictEqual((yield* Fiber.join(grepping)).truncated, "time")
      })
    )
  }

  it.effect("others get their turn while much is searched in memory", () =>
    Effect.gen(function* () {
      const backend = yield* MemoryBackend.make({
        files: { "/large": "some text that does not match\n".repeat(100_000) }
      })
      let count = 0
      const other = yield* Effect.forkChild(
        Effect.forever(
          Effect.andThen(
            Effect.yieldNow,
            Effect.sync(() => ++count)
          )
        )
      )
      yield* backend.grep({ pattern: "nothing", regex: true })
      yield* Fiber.interrupt(other)
      assert.isAbove(count, 15)
    })
  )

  it.effect("skips unreadable folders; fails for a named one, and for a broken backend", () =>
    Effect.gen(function* () {
      const { primitives } = plain({ "/a": "hit", "/b": "hit", "/d/e": "hit" })
      const denied = (path: string) => fail(path, { _tag: "PermissionDenied" })
      const backend = CustomBackend.make({
        ...primitives,
        read: (path) => (path === "/a" ? denied(path) : primitives.read(path)),
        list: (path) => (path === "/d" ? denied(path) : primitives.list(path))
      })
      assert.deepStrictEqual(foundPaths(yield* backend.grep({ pattern: "hit" })), ["/b"])
      assert.strictEqual(yield* reasonOf(backend.grep({ pattern: "hit", path: "/a" })), "PermissionDenied")
      assert.strictEqual(yield* reasonOf(backend.grep({ pattern: "hit", path: "/d" })), "PermissionDenied")
      const broken = CustomBackend.make({ ...primitives, read: (path) => fail(path, { _tag: "Unavailable" }) })
      assert.strictEqual(yield* reasonOf(broken.grep({ pattern: "hit" })), "Unavailable")
    })
  )

  it.effect("files are read several at once if that is wanted, and results are the same", () =>
    Effect.gen(function* () {
      const files = Object.fromEntries(
        Array.from({ length: 30 }, (_, index) => [`/${index}`, "hit\n".repeat(index % 4)])
      )
      const { primitives } = plain(files)
      let reading = 0
      let most = 0
      const counted: CustomBackend.Primitives = {
        ...primitives,
        read: (path) =>
          Effect.acquireUseRelease(
            Effect.sync(() => (most = Math.max(most, ++reading))),
            () => Effect.andThen(Effect.yieldNow, primitives.read(path)),
            () => Effect.sync(() => reading--)
          )
      }
      const one = CustomBackend.make(primitives)
      const several = CustomBackend.make(counted, { concurrency: 7 })
      for (const mode of ["content", "count", "files"] as const) {
        for (const limit of [0, 1, 2, 3, 10, 22, 23, 44, 45, 46, 1_000]) {
          const query = { pattern: "hit", mode, limit }
          assert.deepStrictEqual(yield* several.grep(query), yield* one.grep(query), JSON.stringify(query))
        }
      }
      assert.strictEqual(most, 7)
    })
  )

  it.effect("ignore files count from the root down, wherever the search begins", () =>
    Effect.gen(function* () {
      const { asked, primitives } = plain({
        "/.gitignore": "out/\n*.log\n",
        "/src/.gitignore": "!keep.log\n",
        "/src/a.log": "hit",
        "/src/keep.log": "hit",
        "/src/deep/b.log": "hit",
        "/out/c": "hit",
        "/.git/d": "hit",
        "/.env": "hit"
      })
      const backend = CustomBackend.make(primitives)
      assert.deepStrictEqual(foundPaths(yield* backend.grep({ pattern: "hit" })), ["/.env", "/src/keep.log"])
      assert.deepStrictEqual(paths(yield* backend.glob({ pattern: "*.log", path: "/src/deep" })), [])
      asked.length = 0
      assert.deepStrictEqual(foundPaths(yield* backend.grep({ pattern: "hit", path: "/out" })), [])
      assert.notInclude(asked, "list /out")
      assert.strictEqual((yield* backend.grep({ pattern: "hit", ignored: true })).files.length, 6)
      assert.deepStrictEqual(foundPaths(yield* backend.grep({ pattern: "hit", path: "/out", ignored: true })), [
        "/out/c"
      ])
    })
  )

  it.effect("a glob looks only into the directory that it names", () =>
    Effect.gen(function* () {
      const { asked, primitives } = plain({ "/a/b/c.ts": "", "/a/x/y.ts": "", "/z/b/c.ts": "" })
      const backend = CustomBackend.make(primitives)
      assert.deepStrictEqual(paths(yield* backend.glob({ pattern: "a/b/*.ts" })), ["/a/b/c.ts"])
      assert.deepStrictEqual(
        asked.filter((one) => one.startsWith("list")),
        ["list /a/b"]
      )
      assert.deepStrictEqual(paths(yield* backend.glob({ pattern: "nowhere/*.ts" })), [])
      assert.strictEqual(yield* reasonOf(backend.glob({ pattern: "*", path: "/nowhere" })), "NotFound")
    })
  )
})

describe("options that their type refuses", () => {
  it.effect("are the failure of each operation", () =>
    Effect.gen(function* () {
      const { asked, primitives } = plain({ "/a": "one" })
      const options: object = { maxFileSizes: 3 }
      const backend = CustomBackend.make(primitives, options)
      const works = [backend.ls("/"), backend.read("/a"), backend.write("/b", "two"), backend.glob({ pattern: "*" })]
      for (const work of works) {
        const error = yield* Effect.flip(Effect.asVoid<unknown, BackendError.BackendError, never>(work))
        assert.include(error.message, 'There is no option "maxFileSizes"')
      }
      assert.isEmpty(asked)
    })
  )
})
