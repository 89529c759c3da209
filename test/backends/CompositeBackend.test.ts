import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { Backend, BackendError, Sandbox } from "effect-deepagents"
import { CompositeBackend, MemoryBackend } from "effect-deepagents/backends"
import { files } from "./CompositeBackend.requests.ts"

const memory = (contents: Readonly<Record<string, string | Uint8Array>> = {}) => MemoryBackend.make({ files: contents })

const compose = Effect.fnUntraced(function* (
  contents: Readonly<Record<string, string | Uint8Array>>,
  routes: { readonly [route: string]: Readonly<Record<string, string | Uint8Array>> | Backend.Service }
) {
  const mounts: Record<string, Backend.Service> = {}
  for (const [route, content] of Object.entries(routes)) {
    // A record of files has no operations.
    mounts[route] =
      typeof content["ls"] === "function"
        ? (content as Backend.Service)
        : yield* memory(content as Readonly<Record<string, string | Uint8Array>>)
  }
  return yield* CompositeBackend.make(yield* memory(contents), mounts)
})

const paths = (listing: Backend.Listing) => listing.entries.map(({ path }) => path)
const pathsOf = ({ files }: Backend.GrepResult) => files.map(({ path }) => path)

/** The failure of an operation. */
const failure = <A>(effect: Effect.Effect<A, BackendError.BackendError>) =>
  Effect.map(Effect.flip(effect), ({ operation, path, reason }) => `${operation} ${path}: ${reason._tag}`)

const unavailable = (operation: string, path: string) =>
  Effect.fail(BackendError.make(operation, path, { _tag: "Unavailable" }))

/** Runs nothing, and repeats its arguments. */
const sandboxOf = (backend: Backend.Service, more?: Partial<Sandbox.Service>): Sandbox.Service => ({
  ...backend,
  id: "fake",
  execute: (command, options) =>
    Effect.succeed({ output: `${command} in ${options?.cwd ?? "nothing"}`, exitCode: 0, truncated: false }),
  executeStream: (command, options) =>
    Stream.succeed({ _tag: "Output", channel: "stdout", text: `${command} in ${options?.cwd ?? "nothing"}` }),
  reaches: () => true,
  ...more
})

describe("routes", () => {
  const problem = (routes: ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const mounts: Record<string, Backend.Service> = {}
      for (const route of routes) mounts[route] = yield* memory()
      const error = yield* Effect.flip(CompositeBackend.make(yield* memory(), mounts))
      assert.instanceOf(error, CompositeBackend.InvalidRoute)
      return error.message
    })

  it.effect("refuses by name two spellings of one route, a route at the root, and an invalid path", () =>
    Effect.gen(function* () {
      assert.match(yield* problem(["/a", "/a/"]), /^The route "\/a\/" .* the same as "\/a"/)
      assert.match(yield* problem(["a/./b", "//a/b"]), /^The route "\/\/a\/b" .* the same as "a\/\.\/b"/)
      for (const root of ["/", "", "."]) assert.match(yield* problem([root]), /it is the root/)
      for (const bad of ["/../a", "/~", "/a\0", "C:/a", "/a\\b"]) {
        assert.isTrue((yield* problem(["/fine", bad])).startsWith(`The route ${JSON.stringify(bad)} `))
      }
    })
  )

  it.effect("one backend is not mounted twice: its files would be in two places", () =>
    Effect.gen(function* () {
      const one = yield* memory()
      const twice = CompositeBackend.make(yield* memory(), { "/a": one, "/b": one })
      assert.strictEqual((yield* Effect.flip(twice)).route, "/b")
      assert.strictEqual((yield* Effect.flip(CompositeBackend.make(one, { "/a": one }))).route, "/a")
    })
  )

  it.effect("a path belongs to the longest route, on the boundaries of names", () =>
    Effect.gen(function* () {
      const [fallback, outer, inner] = [yield* memory(), yield* memory(), yield* memory()]
      const backend = yield* CompositeBackend.make(fallback, { "/mem/": outer, "mem/deep/er": inner })
      for (const path of ["/memory", "/me", "/mem.txt", "/mem/x", "/mem/deep/x", "/mem/deep/er/x", "//mem/./y"]) {
        const { path: written } = yield* backend.write(path, path)
        assert.strictEqual(written, path.replace("//mem/./y", "/mem/y"))
      }
      assert.deepStrictEqual(
        (yield* files(fallback)).map(([path]) => path),
        ["/me", "/mem.txt", "/memory"]
      )
      assert.deepStrictEqual(
        (yield* files(outer)).map(([path]) => path),
        ["/deep/x", "/x", "/y"]
      )
      assert.deepStrictEqual(yield* files(inner), [["/x", "/mem/deep/er/x"]])
    })
  )
})

describe("visible files", () => {
  it.effect("ls shows routes as directories, also without files of the default, and one entry a name", () =>
    Effect.gen(function* () {
      const backend = yield* compose(
        { "/a/own": "", "/m/hidden": "", "/z": "" },
        { "/m": { "/x": "" }, "/q/r/s": { "/y": "" }, "/a/b": {} }
      )
      const kinds = Effect.map(backend.ls("/"), ({ entries }) => entries.map(({ kind, path }) => `${kind} ${path}`))
      assert.deepStrictEqual(yield* kinds, ["directory /a", "directory /m", "directory /q", "file /z"])
      assert.deepStrictEqual(paths(yield* backend.ls("/q")), ["/q/r"])
      assert.deepStrictEqual(paths(yield* backend.ls("/q/r")), ["/q/r/s"])
      assert.deepStrictEqual(paths(yield* backend.ls("/q/r/s")), ["/q/r/s/y"])
      assert.deepStrictEqual(paths(yield* backend.ls("/a")), ["/a/b", "/a/own"])
      assert.deepStrictEqual(paths(yield* backend.ls("/a/b")), [])
      assert.deepStrictEqual(paths(yield* backend.ls("/m")), ["/m/x"])
    })
  )

  it.effect("hides files of the default at a route, below it, or in the way to it, from everything", () =>
    Effect.gen(function* () {
      const hidden = { "/m/hidden": "word", "/m/x": "word", "/up": "word", "/file": "word", "/seen": "word" }
      const backend = yield* compose(hidden, { "/m": { "/x": "other" }, "/up/route": {}, "/file": {} })
      assert.deepStrictEqual(paths(yield* backend.ls("/")), ["/file", "/m", "/seen", "/up"])
      assert.deepStrictEqual(paths(yield* backend.ls("/up")), ["/up/route"])
      assert.deepStrictEqual(paths(yield* backend.glob({ pattern: "**" })), ["/m/x", "/seen"])
      assert.deepStrictEqual(pathsOf(yield* backend.grep({ pattern: "word" })), ["/seen"])
      assert.deepStrictEqual(pathsOf(yield* backend.grep({ pattern: "word", path: "/up" })), [])
      assert.strictEqual(yield* failure(backend.read("/m/hidden")), "read /m/hidden: NotFound")
      for (const folder of ["/up", "/file", "/m", "/up/route"]) {
        assert.strictEqual(yield* failure(backend.read(folder)), `read ${folder}: IsDirectory`)
        assert.strictEqual(yield* failure(backend.write(folder, "")), `write ${folder}: IsDirectory`)
        assert.strictEqual(yield* failure(backend.edit(folder, [])), `edit ${folder}: IsDirectory`)
        const [upload] = yield* backend.upload([{ path: folder, content: new Uint8Array() }])
        const [download] = yield* backend.download([folder])
        for (const transfer of [upload, download]) {
          assert.deepStrictEqual(
            [transfer?.path, transfer?.ok === false && transfer.error.reason._tag],
            [folder, "IsDirectory"]
          )
        }
      }
    })
  )

  it.effect("a route, and a directory that one is in, can't be deleted, moved, or moved onto", () =>
    Effect.gen(function* () {
      const backend = yield* compose({ "/a/own": "", "/x": "" }, { "/a/b": { "/f": "" } })
      for (const path of ["/a", "/a/b", "/a/b/", "/"]) {
        assert.strictEqual(yield* failure(backend.delete(path, { recursive: true })), `delete ${path}: InvalidPath`)
        assert.strictEqual(yield* failure(backend.move(path, "/new")), `move ${path}: InvalidPath`)
        assert.strictEqual(yield* failure(backend.move("/x", path)), `move ${path}: AlreadyExists`)
        assert.strictEqual(yield* failure(backend.move("/nothing", path)), "move /nothing: NotFound")
      }
      assert.deepStrictEqual(
        (yield* files(backend)).map(([path]) => path),
        ["/a/b/f", "/a/own", "/x"]
      )
    })
  )
})

describe("searches over routes", () => {
  const tree = () =>
    compose(
      { "/a.md": "hit\nhit", "/z/n.md": "hit", "/z/o.txt": "hit" },
      { "/m": { "/n.md": "hit", "/deep/z/p.md": "hit\nhit" }, "/m/deep/q": { "/r.md": "hit" } }
    )

  it.effect("come in path order, with one limit for all", () =>
    Effect.gen(function* () {
      const backend = yield* tree()
      const all = ["/a.md", "/m/deep/q/r.md", "/m/deep/z/p.md", "/m/n.md", "/z/n.md"]
      assert.deepStrictEqual(paths(yield* backend.glob({ pattern: "*.md" })), all)
      for (const limit of [0, 1, 2, 3, 4, 5, 6]) {
        const found = yield* backend.glob({ pattern: "*.md", limit })
        assert.deepStrictEqual(paths(found), all.slice(0, limit))
        assert.strictEqual(found.truncated, limit < 5 ? "limit" : undefined, `limit ${limit}`)
        const most = yield* backend.grep({ pattern: "hit", glob: "*.md", mode: "files", limit })
        assert.deepStrictEqual([pathsOf(most), most.truncated], [all.slice(0, limit), limit < 5 ? "limit" : undefined])
      }
    })
  )

  it.effect("a limit of lines cuts within a file, and hidden files don't use it up", () =>
    Effect.gen(function* () {
      const backend = yield* tree()
      const lines = (limit: number) =>
        Effect.map(backend.grep({ pattern: "hit", glob: "*.md", limit }), (result) => [
          result.files.map((file) => `${file.path} ${file.count} ${file.matches.length}`),
          result.truncated
        ])
      assert.deepStrictEqual(yield* lines(1), [["/a.md 1 1"], "limit"])
      assert.deepStrictEqual(yield* lines(4), [["/a.md 2 2", "/m/deep/q/r.md 1 1", "/m/deep/z/p.md 1 1"], "limit"])
      assert.strictEqual((yield* lines(7))[1], undefined)
      const hidden = Object.fromEntries(Array.from({ length: 500 }, (_, index) => [`/m/${index}`, "hit\nhit"]))
      const crowded = yield* compose({ ...hidden, "/seen": "hit", "/zeen": "hit" }, { "/m": {} })
      for (const limit of [1, 2]) {
        const some = { truncated: limit === 1 ? "limit" : undefined, paths: ["/seen", "/zeen"].slice(0, limit) }
        const glob = yield* crowded.glob({ pattern: "**", limit })
        assert.deepStrictEqual({ truncated: glob.truncated, paths: paths(glob) }, some)
        const grep = yield* crowded.grep({ pattern: "hit", limit })
        assert.deepStrictEqual({ truncated: grep.truncated, paths: pathsOf(grep) }, some)
      }
    })
  )

  it.effect("a pattern with / means whole paths, one without means names in every backend", () =>
    Effect.gen(function* () {
      const backend = yield* tree()
      const globs: ReadonlyArray<readonly [pattern: string, path: string, ...expected: ReadonlyArray<string>]> = [
        ["n.md", "/", "/m/n.md", "/z/n.md"],
        ["m/*.md", "/", "/m/n.md"],
        ["*/n.md", "/", "/m/n.md", "/z/n.md"],
        ["/n.md", "/"],
        ["z/*.md", "/", "/z/n.md"],
        ["**/z/*.md", "/", "/m/deep/z/p.md", "/z/n.md"],
        ["{z,m/deep/*}/*.md", "/", "/m/deep/q/r.md", "/m/deep/z/p.md", "/z/n.md"],
        ["deep/*/*.md", "/m", "/m/deep/q/r.md", "/m/deep/z/p.md"],
        ["q/*", "/m/deep", "/m/deep/q/r.md"],
        ["/r.md", "/m/deep/q", "/m/deep/q/r.md"]
      ]
      for (const [pattern, path, ...expected] of globs) {
        assert.deepStrictEqual(paths(yield* backend.glob({ pattern, path })), expected, `${pattern} in ${path}`)
        const grep = yield* backend.grep({ pattern: "hit", glob: pattern, path })
        assert.deepStrictEqual(pathsOf(grep), expected, `${pattern} in ${path}`)
      }
      for (const pattern of ["[", "a/["]) {
        assert.strictEqual(yield* failure(backend.glob({ pattern })), "glob /: InvalidPattern")
        assert.strictEqual(yield* failure(backend.grep({ pattern: "hit", glob: pattern })), "grep /: InvalidPattern")
      }
      assert.strictEqual(yield* failure(backend.grep({ pattern: "(", regex: true })), "grep /: InvalidPattern")
    })
  )

  it.effect("routes that a pattern can't mean are not asked", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const far = yield* memory({ "/x.md": "" })
      const watched: Backend.Service = {
        ...far,
        glob: (query) =>
          Effect.andThen(
            Effect.sync(() => asked.push(query.pattern)),
            far.glob(query)
          )
      }
      const backend = yield* compose({ "/src/a.md": "" }, { "/far": watched, "/src/b/c": {} })
      assert.deepStrictEqual(paths(yield* backend.glob({ pattern: "src/**/*.md" })), ["/src/a.md"])
      assert.deepStrictEqual(asked, [])
      assert.deepStrictEqual(paths(yield* backend.glob({ pattern: "far/**" })), ["/far/x.md"])
      assert.deepStrictEqual(paths(yield* backend.glob({ pattern: "*.md", path: "/src" })), ["/src/a.md"])
      assert.deepStrictEqual(asked, ["**"])
    })
  )

  it.effect("the failure of one is that of the whole, with its path; and time that was up is said", () =>
    Effect.gen(function* () {
      const good = yield* memory({ "/x": "hit" })
      const broken: Backend.Service = {
        ...good,
        glob: ({ path }) => unavailable("glob", path ?? "?"),
        grep: ({ path }) => unavailable("grep", path ?? "?")
      }
      const backend = yield* compose({ "/y": "hit" }, { "/deep/broken": broken })
      assert.strictEqual(yield* failure(backend.glob({ pattern: "*" })), "glob /deep/broken: Unavailable")
      assert.strictEqual(
        yield* failure(backend.grep({ pattern: "hit", path: "/deep" })),
        "grep /deep/broken: Unavailable"
      )
      assert.strictEqual(yield* failure(backend.glob({ pattern: "*", path: "/none" })), "glob /none: NotFound")
      const slow: Backend.Service = {
        ...good,
        glob: () => Effect.succeed({ entries: [{ path: "/x", kind: "file" }], truncated: "time" })
      }
      const timed = yield* compose({ "/y": "" }, { "/slow": slow })
      const found = yield* timed.glob({ pattern: "*" })
      assert.deepStrictEqual([paths(found), found.truncated], [["/slow/x", "/y"], "time"])
      assert.strictEqual((yield* timed.glob({ pattern: "*", limit: 1 })).truncated, "time")
    })
  )

  it.effect(
    "a backend that gives less than was asked for, and says that this was the limit, is not asked for ever",
    () =>
      Effect.gen(function* () {
        const one = yield* memory({ "/x": "hit" })
        const stubborn: Backend.Service = {
          ...one,
          glob: () => Effect.succeed({ entries: [{ path: "/x", kind: "file" }], truncated: "limit" })
        }
        const found = yield* (yield* compose({}, { "/m": stubborn })).glob({ pattern: "*" })
        assert.deepStrictEqual([paths(found), found.truncated], [["/m/x"], "limit"])
      })
  )
})

describe("transfers", () => {
  it.effect("go to each backend at once, and come back in the order of the request, each with its outcome", () =>
    Effect.gen(function* () {
      const calls: Array<ReadonlyArray<string>> = []
      const base = yield* memory({ "/there": "route" })
      const watched: Backend.Service = {
        ...base,
        upload: (uploads) =>
          Effect.andThen(
            Effect.sync(() => calls.push(uploads.map(({ path }) => path))),
            base.upload(uploads)
          )
      }
      const backend = yield* compose({ "/there": "default", "/folder/x": "" }, { "/m": watched })
      const content = (text: string) => new TextEncoder().encode(text)
      const uploads = yield* backend.upload([
        { path: "/m/1", content: content("one") },
        { path: "/2", content: content("two") },
        { path: "../3", content: content("three") },
        { path: "/folder", content: content("four") },
        { path: "/m/1", content: content("last") },
        { path: "/m//5", content: content("five") }
      ])
      const showTransfers = <A>(transfers: ReadonlyArray<Backend.Transfer<A>>) =>
        transfers.map((each) => `${each.path} ${each.ok ? "ok" : `${each.error.path} ${each.error.reason._tag}`}`)
      assert.deepStrictEqual(showTransfers(uploads), [
        "/m/1 ok",
        "/2 ok",
        "../3 ../3 OutsideRoot",
        "/folder /folder IsDirectory",
        "/m/1 ok",
        "/m/5 ok"
      ])
      assert.deepStrictEqual(calls, [["/1", "/1", "/5"]])
      assert.deepStrictEqual(
        uploads.flatMap((each) => (each.ok ? [each.value.path] : [])),
        ["/m/1", "/2", "/m/1", "/m/5"]
      )
      const downloads = yield* backend.download(["/there", "/m/none", "/m/there", "/m/1"])
      assert.deepStrictEqual(showTransfers(downloads), [
        "/there ok",
        "/m/none /m/none NotFound",
        "/m/there ok",
        "/m/1 ok"
      ])
      assert.deepStrictEqual(
        downloads.flatMap((each) => (each.ok ? [new TextDecoder().decode(each.value)] : [])),
        ["default", "route", "last"]
      )
    })
  )

  it.effect("a backend that gives no answer for a file is not passed over", () =>
    Effect.gen(function* () {
      const base = yield* memory()
      const backend = yield* compose({}, { "/m": { ...base, download: () => Effect.succeed([]) } })
      const [first] = yield* backend.download(["/m/x"])
      assert.isTrue(first?.ok === false && first.error.reason._tag === "Unavailable" && first.error.path === "/m/x")
    })
  )
})

describe("moves between backends", () => {
  const bytes = new Uint8Array([0, 255, 13, 10, 239, 187, 191])
  const tree = { "/d/a.txt": "a\r\n", "/d/b/c.bin": bytes, "/d/b/d/e": "", "/f": "file" }

  it.effect("carry files and directories, byte by byte, both ways", () =>
    Effect.gen(function* () {
      const backend = yield* compose(tree, { "/m": {} })
      yield* backend.move("/d", "/m/new/d")
      yield* backend.move("/f", "/m/f")
      assert.deepStrictEqual(
        (yield* files(backend)).map(([path]) => path),
        ["/m/f", "/m/new/d/a.txt", "/m/new/d/b/c.bin", "/m/new/d/b/d/e"]
      )
      const [binary, text] = yield* backend.download(["/m/new/d/b/c.bin", "/m/new/d/a.txt"])
      assert.deepStrictEqual(binary?.ok === true && [...binary.value], [...bytes])
      assert.deepStrictEqual(text?.ok === true && new TextDecoder().decode(text.value), "a\r\n")
      yield* backend.move("/m/new", "/back")
      assert.deepStrictEqual(
        (yield* files(backend)).map(([path]) => path),
        ["/back/d/a.txt", "/back/d/b/c.bin", "/back/d/b/d/e", "/m/f"]
      )
    })
  )

  it.effect("never overwrite, and name whole paths in failures", () =>
    Effect.gen(function* () {
      const backend = yield* compose(tree, { "/m": { "/file": "1", "/folder/x": "2" } })
      for (const from of ["/d", "/f"]) {
        for (const to of ["/m/file", "/m/folder"]) {
          assert.strictEqual(yield* failure(backend.move(from, to)), `move ${to}: AlreadyExists`)
        }
        assert.strictEqual(yield* failure(backend.move(from, "/m/file/x")), "move /m/file/x: NotDirectory")
        assert.strictEqual(yield* failure(backend.move(`${from}/none`, "/m/x")), `move ${from}/none: NotFound`)
      }
      assert.strictEqual((yield* files(backend)).length, 6)
    })
  )

  it.effect("leave all as it was if anything fails on the way", () =>
    Effect.gen(function* () {
      const before = yield* files(yield* compose(tree, { "/m": { "/kept/x": "" } }))
      const attempt = Effect.fnUntraced(function* (
        source: (backend: Backend.Service) => Partial<Backend.Service>,
        target: (backend: Backend.Service) => Partial<Backend.Service>
      ) {
        const [from, to] = [yield* memory(tree), yield* memory({ "/kept/x": "" })]
        const backend = yield* CompositeBackend.make({ ...from, ...source(from) }, { "/m": { ...to, ...target(to) } })
        const failed = yield* failure(backend.move("/d", "/m/kept/d"))
        const whole = yield* CompositeBackend.make(from, { "/m": to })
        assert.deepStrictEqual(yield* files(whole), before)
        assert.deepStrictEqual(paths(yield* whole.ls("/m/kept")), ["/m/kept/x"])
        return failed
      })
      const nothing = () => ({})
      assert.strictEqual(
        yield* attempt(
          (from) => ({ download: (all) => (all[0]?.endsWith("e") === true ? Effect.succeed([]) : from.download(all)) }),
          nothing
        ),
        "move /d/b/d/e: Unavailable"
      )
      assert.strictEqual(
        yield* attempt(nothing, (to) => ({
          upload: (all) => (all[0]?.path.endsWith("e") === true ? Effect.succeed([]) : to.upload(all))
        })),
        "move /m/kept/d/b/d/e: Unavailable"
      )
      assert.strictEqual(
        yield* attempt(nothing, (to) => ({
          write: (path, ...rest) => (path.endsWith("c.bin") ? unavailable("write", path) : to.write(path, ...rest))
        })),
        "move /m/kept/d/b/c.bin: Unavailable"
      )
      assert.strictEqual(
        yield* attempt(
          (_) => ({ delete: (path) => Effect.fail(BackendError.make("delete", path, { _tag: "PermissionDenied" })) }),
          nothing
        ),
        "move /d: PermissionDenied"
      )
      assert.strictEqual(
        yield* attempt(
          (from) => ({ ls: (path) => (path === "/d/b" ? unavailable("ls", path) : from.ls(path)) }),
          nothing
        ),
        "move /d/b: Unavailable"
      )
      assert.strictEqual(
        yield* attempt(
          (from) => ({ ls: (path) => Effect.map(from.ls(path), (listing) => ({ ...listing, truncated: "limit" })) }),
          nothing
        ),
        "move /d: Unsupported"
      )
    })
  )

  it.effect("a source that changes meanwhile is not deleted", () =>
    Effect.gen(function* () {
      const [from, to] = [yield* memory(tree), yield* memory()]
      const late = {
        ...to,
        upload: (all: Parameters<typeof to.upload>[0]) =>
          Effect.andThen(Effect.orDie(from.write("/d/late", "x")), to.upload(all))
      }
      const backend = yield* CompositeBackend.make(from, { "/m": late })
      assert.strictEqual(yield* failure(backend.move("/d", "/m/d")), "move /d: Conflict")
      assert.strictEqual((yield* from.read("/d/late")).kind, "text")
      assert.deepStrictEqual(yield* files(to), [])
      const edited = {
        ...to,
        upload: (all: Parameters<typeof to.upload>[0]) =>
          Effect.andThen(Effect.orDie(from.write("/f", "newer")), to.upload(all))
      }
      const other = yield* CompositeBackend.make(from, { "/m": edited })
      assert.strictEqual(yield* failure(other.move("/f", "/m/f")), "move /f: Conflict")
      assert.deepStrictEqual(yield* files(to), [])
    })
  )

  it.effect("keeps the copies and says so, if a failed delete may have left something", () =>
    Effect.gen(function* () {
      const [from, to] = [yield* memory(tree), yield* memory()]
      const lossy: Backend.Service = {
        ...from,
        delete: (path) => Effect.andThen(from.delete(`${path}/a.txt`), unavailable("delete", path))
      }
      const backend = yield* CompositeBackend.make(lossy, { "/m": to })
      const error = yield* Effect.flip(backend.move("/d", "/m/d"))
      assert.match(error.message, /^move \/d: .*everything was copied to \/m\/d/)
      assert.deepStrictEqual(
        (yield* files(to)).map(([path]) => path),
        ["/d/a.txt", "/d/b/c.bin", "/d/b/d/e"]
      )
    })
  )

  it.effect("a file whose delete fails when it is done is not lost", () =>
    Effect.gen(function* () {
      const [from, to] = [yield* memory(tree), yield* memory()]
      const lossy: Backend.Service = {
        ...from,
        delete: (path) => Effect.andThen(from.delete(path), unavailable("delete", path))
      }
      const backend = yield* CompositeBackend.make(lossy, { "/m": to })
      const error = yield* Effect.flip(backend.move("/f", "/m/f"))
      assert.match(error.message, /^move \/f: .*everything was copied to \/m\/f/)
      assert.strictEqual((yield* to.read("/f")).kind, "text")
    })
  )

  it.effect("an interrupted move takes its copies back", () =>
    Effect.gen(function* () {
      const [from, to] = [yield* memory(tree), yield* memory()]
      const stuck: Backend.Service = {
        ...to,
        upload: (all) => (all[0]?.path.endsWith("e") === true ? Effect.never : to.upload(all))
      }
      const backend = yield* CompositeBackend.make(from, { "/m": stuck })
      const moving = yield* Effect.forkChild(backend.move("/d", "/m/d"), { startImmediately: true })
      yield* Effect.yieldNow
      while ((yield* files(to)).length < 3) yield* Effect.yieldNow
      yield* Fiber.interrupt(moving)
      assert.deepStrictEqual(yield* files(to), [])
      assert.strictEqual((yield* files(from)).length, 4)
    })
  )

  it.effect("of two to one place, one wins, and nothing is lost", () =>
    Effect.gen(function* () {
      const backend = yield* compose({ "/1": "one", "/2": "two" }, { "/m": {} })
      const moved = yield* Effect.forEach(["/1", "/2"], (path) => Effect.result(backend.move(path, "/m/x")), {
        concurrency: "unbounded"
      })
      assert.deepStrictEqual(moved.map(({ _tag }) => _tag).sort(), ["Failure", "Success"])
      const texts = (yield* files(backend)).map(([, text]) => text ?? "")
      assert.deepStrictEqual(texts.sort(), ["one", "two"])
    })
  )

  it.effect("neither overwrites nor takes back a file that appears meanwhile", () =>
    Effect.gen(function* () {
      const [from, to] = [yield* memory(tree), yield* memory()]
      const busy: Backend.Service = {
        ...to,
        read: (path, window) =>
          Effect.onError(to.read(path, window), () =>
            Effect.orDie(to.write(path === "/d" ? "/d/b/c.bin" : path, "theirs"))
          )
      }
      const backend = yield* CompositeBackend.make(from, { "/m": busy })
      assert.strictEqual(yield* failure(backend.move("/f", "/m/f")), "move /m/f: AlreadyExists")
      assert.strictEqual(yield* failure(backend.move("/d", "/m/d")), "move /m/d/b/c.bin: AlreadyExists")
      assert.deepStrictEqual(yield* files(to), [
        ["/d/b/c.bin", "theirs"],
        ["/f", "theirs"]
      ])
      assert.strictEqual((yield* files(from)).length, 4)
    })
  )

  it.effect("links are not carried over", () =>
    Effect.gen(function* () {
      const [from, to] = [yield* memory(tree), yield* memory()]
      const linked = (link: string, target: string): Backend.Service => ({
        ...from,
        realPaths: (all) =>
          Effect.succeed(
            all.map((path) => (path === link || path.startsWith(`${link}/`) ? path.replace(link, target) : path))
          )
      })
      for (const [link, moved] of [
        ["/d/a.txt", "/d"],
        ["/d/b", "/d"],
        ["/d/b/d", "/d"],
        ["/f", "/f"],
        ["/d", "/d"]
      ] as const) {
        const backend = yield* CompositeBackend.make(linked(link, "/elsewhere"), { "/m": to })
        assert.strictEqual(yield* failure(backend.move(moved, "/m/x")), `move ${link}: Unsupported`)
        assert.deepStrictEqual(yield* files(to), [])
      }
      // A file behind a link on the way is moved like any other.
      const through = yield* CompositeBackend.make(linked("/d", "/real"), { "/m": to })
      yield* through.move("/d/b", "/m/b")
      assert.strictEqual((yield* files(to)).length, 2)
      const dangling: Backend.Service = {
        ...from,
        ls: () => Effect.succeed({ entries: [{ path: "/d/link", kind: "link" }] })
      }
      const backend = yield* CompositeBackend.make(dangling, { "/n": yield* memory() })
      assert.strictEqual(yield* failure(backend.move("/d", "/n/d")), "move /d/link: Unsupported")
    })
  )
})

describe("links", () => {
  it.effect("real paths belong to the composite", () =>
    Effect.gen(function* () {
      const plain = yield* memory()
      assert.isUndefined((yield* compose({}, { "/m": {} })).realPaths)
      const linked: Backend.Service = {
        ...plain,
        realPaths: (all) =>
          Effect.succeed(all.map((path) => (path === "/out" ? undefined : path.replace("/link", "/target"))))
      }
      const backend = yield* compose({}, { "/m": linked })
      const real = yield* backend.realPaths?.(["/m/link/x", "/link", "/m/out", "/../x", "/m"]) ?? Effect.succeed([])
      assert.deepStrictEqual(real, ["/m/target/x", "/link", undefined, undefined, "/m"])
    })
  )
})

describe("a sandbox as default", () => {
  it.effect("runs the commands; the files of routes are not there for them", () =>
    Effect.gen(function* () {
      const sandbox = sandboxOf(yield* memory({ "/work/x": "" }))
      const composite = yield* CompositeBackend.make(sandbox, { "/memories": yield* memory({ "/a/x": "" }) })
      assert.isTrue(Sandbox.isSandbox(composite))
      if (!Sandbox.isSandbox(composite)) return
      assert.strictEqual(composite.id, "fake")
      assert.strictEqual((yield* composite.execute("ls")).output, "ls in nothing")
      assert.strictEqual((yield* composite.execute("ls", { cwd: "work/" })).output, "ls in /work")
      const refused = "execute /memories/a: Unsupported"
      assert.strictEqual(yield* failure(composite.execute("ls", { cwd: "/memories/a" })), refused)
      assert.strictEqual(
        yield* failure(Stream.runDrain(composite.executeStream("ls", { cwd: "/memories/a" }))),
        refused
      )
      assert.strictEqual(yield* failure(composite.execute("ls", { cwd: "/.." })), "execute /..: OutsideRoot")
      assert.deepStrictEqual(yield* Stream.runCollect(composite.executeStream("ls")), [
        { _tag: "Output", channel: "stdout", text: "ls in nothing" }
      ])
      assert.isFalse(Sandbox.isSandbox(yield* compose({}, { "/m": sandbox })))
    })
  )

  it.effect("reaches the same files as before, and no more", () =>
    Effect.gen(function* () {
      const fallback = sandboxOf(yield* memory(), { reaches: (path) => path !== "/shut" })
      const composite = yield* CompositeBackend.makeSandbox(fallback, {
        "/shut/files": yield* memory(),
        "/m": yield* memory(),
        "/m/own": sandboxOf(yield* memory(), { reaches: (path) => path !== "/secret" })
      })
      const reached = (path: string) => composite.reaches(path)
      assert.deepStrictEqual(["/", "/x", "/m/own", "/m/own/x", "/m", "/m/./own"].filter(reached).length, 6)
      assert.deepStrictEqual(["/shut", "/shut/files", "/m/x", "/m/own/secret", "/shut/files/x"].filter(reached), [])
      assert.isTrue(composite.reaches("/.."), "what can't be told is taken to be reached")
    })
  )

  it.effect("reaches routes on the machine that its commands run on", () =>
    Effect.gen(function* () {
      const route: Backend.Service = { ...(yield* memory()), onHost: true }
      const shell = sandboxOf(yield* memory(), { onHost: true })
      const confined = sandboxOf(yield* memory())
      const beside = yield* CompositeBackend.makeSandbox(shell, { "/m": route, "/n": yield* memory() })
      assert.deepStrictEqual(["/m", "/m/x", "/n"].map(beside.reaches), [true, true, false])
      assert.isTrue(beside.onHost)
      const apart = yield* CompositeBackend.makeSandbox(confined, { "/m": { ...route } })
      assert.isFalse(apart.reaches("/m"))
    })
  )
})

describe("layers", () => {
  it.effect("are built once each, with their resources in the scope", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const scoped = (name: string) =>
        Layer.effect(
          Backend.Backend,
          Effect.acquireRelease(
            Effect.andThen(
              Effect.sync(() => log.push(`open ${name}`)),
              memory({ "/x": name })
            ),
            () => Effect.sync(() => log.push(`close ${name}`))
          )
        )
      const layer = CompositeBackend.layer({
        default: scoped("default"),
        routes: { "/a": scoped("a"), "/b": scoped("b") }
      })
      yield* Effect.provide(
        Effect.gen(function* () {
          const backend = yield* Backend.Backend
          assert.deepStrictEqual(yield* files(backend), [
            ["/a/x", "a"],
            ["/b/x", "b"],
            ["/x", "default"]
          ])
        }),
        layer
      )
      assert.deepStrictEqual([...log].sort(), [
        "close a",
        "close b",
        "close default",
        "open a",
        "open b",
        "open default"
      ])
    })
  )

  it.effect("refuses a layer that is given twice; a fresh one is another", () =>
    Effect.gen(function* () {
      const one = MemoryBackend.layer()
      const build = (route: typeof one) =>
        Effect.provide(
          Backend.Backend.use((backend) => backend.ls("/")),
          CompositeBackend.layer({ default: one, routes: { "/a": route } })
        )
      assert.strictEqual((yield* Effect.flip(build(one)))._tag, "InvalidRoute")
      assert.deepStrictEqual(paths(yield* build(Layer.fresh(one))), ["/a"])
    })
  )

  it.effect("layerSandbox gives both services by one value", () =>
    Effect.gen(function* () {
      const shell = Sandbox.layer(Effect.map(memory(), (backend) => sandboxOf(backend)))
      const layer = CompositeBackend.layerSandbox({ default: shell, routes: { "/a": MemoryBackend.layer() } })
      yield* Effect.provide(
        Effect.gen(function* () {
          const sandbox: unknown = yield* Sandbox.Sandbox
          assert.isTrue(sandbox === (yield* Backend.Backend))
          assert.deepStrictEqual(paths(yield* (yield* Sandbox.Sandbox).ls("/")), ["/a"])
        }),
        layer
      )
    })
  )
})
