import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Result, Stream } from "effect"
import { Approval, Backend, type BackendError, type Ruling, Sandbox } from "effect-deepagents"
import { CompositeBackend, MemoryBackend, Permissions } from "effect-deepagents/backends"
import { TestBackend } from "effect-deepagents/testing"
import * as Rules from "../../src/backends/internal/permissions/rules.ts"
import { files } from "./CompositeBackend.requests.ts"
import { withLinks } from "./Permissions.links.ts"

type Rule = Permissions.Options["rules"][number]

const both = ["read", "write"] as const
const refuse = (...paths: ReadonlyArray<string>): Rule => ({ operations: both, paths, ruling: "refuse" })
const allow = (...paths: ReadonlyArray<string>): Rule => ({ operations: both, paths, ruling: "allow" })
const ask = (...paths: ReadonlyArray<string>): Rule => ({ operations: both, paths, ruling: "ask" })

const compiled = (rules: ReadonlyArray<Rule>, otherwise: "allow" | "refuse" = "allow") =>
  Effect.fromResult(Permissions.compile({ rules, default: otherwise }))

const verbOf = ({ _tag }: Ruling.Ruling): string => _tag.toLowerCase()

const guarded = Effect.fnUntraced(function* (
  contents: Readonly<Record<string, string | Uint8Array>>,
  rules: ReadonlyArray<Rule>,
  otherwise: "allow" | "refuse" = "allow"
) {
  const backend = yield* MemoryBackend.make({ files: contents })
  return { backend, guarded: yield* Permissions.wrap(backend, { rules, default: otherwise }) }
})

const paths = (listing: Backend.Listing) => listing.entries.map(({ path }) => path)
const foundPaths = ({ files }: Backend.GrepResult) => files.map(({ path }) => path)

/** The failure of an operation. */
const failure = <A>(effect: Effect.Effect<A, BackendError.BackendError>) =>
  Effect.map(Effect.flip(effect), ({ operation, path, reason }) => `${operation} ${path}: ${reason._tag}`)

const content = (text: string) => new TextEncoder().encode(text)

/** Decides, and keeps the requests. */
const approvals = (decide: (request: Approval.Request) => Approval.Decision) => {
  const requests: Array<Approval.Request> = []
  const layer = Layer.succeed(Approval.Approvals, {
    decide: (request) =>
      Effect.sync(() => {
        requests.push(request)
        return decide(request)
      })
  })
  return { requests, layer }
}

/** The accesses that a request is about. */
const accessesOf = ({ arguments: { accesses } }: Approval.Request) =>
  (accesses as ReadonlyArray<{ readonly operation: string; readonly path?: string }>).map(({ operation, path }) => [
    operation,
    path
  ])

const pathsOf = (request: Approval.Request) => accessesOf(request).map(([, path]) => path)

const sandboxOf = (backend: Backend.Service, reaches: (path: string) => boolean = () => true): Sandbox.Service => ({
  ...backend,
  id: "fake",
  execute: (command) => Effect.succeed({ output: `ran ${command}`, exitCode: 0, truncated: false }),
  executeStream: (command) => Stream.succeed({ _tag: "Output", channel: "stdout", text: `ran ${command}` }),
  reaches
})

describe("decide", () => {
  it.effect("the first rule that covers a path decides, dot files included; then the default", () =>
    Effect.gen(function* () {
      const rule = yield* compiled([
        { operations: ["read"], paths: ["/secrets/public/**"], ruling: "allow" },
        refuse("/secrets/**", "/**/.env"),
        ask("/config/*.json")
      ])
      const modes = (operation: "read" | "write", ...given: ReadonlyArray<string>) =>
        given.map((path) => verbOf(rule(operation, path)))
      assert.deepStrictEqual(modes("read", "/secrets/public/x", "/secrets/public", "/secrets/x"), [
        "allow",
        "allow",
        "refuse"
      ])
      assert.deepStrictEqual(modes("write", "/secrets/public/x"), ["refuse"])
      assert.deepStrictEqual(
        modes("read", "/secrets/.env", "/secrets/a/.b/c", "/.env", "/a/b/.env"),
        Array(4).fill("refuse")
      )
      assert.deepStrictEqual(modes("read", "/config/a.json", "/config/.json", "/config/a/b.json"), [
        "ask",
        "ask",
        "allow"
      ])
      assert.deepStrictEqual(modes("read", "/secretsx", "/secret", "/.envx", "/"), Array(4).fill("allow"))
      // Names are compared as they are.
      assert.deepStrictEqual(modes("read", "/Secrets/x", "/secréts"), ["allow", "allow"])
      // The path is normalised first; an invalid one is refused.
      assert.deepStrictEqual(
        modes("read", "//secrets/./x/", "secrets/x", "/a/../secrets/x", "~/x"),
        Array(4).fill("refuse")
      )
    })
  )

  it.effect("`/a/**` covers `/a`; a refusing or asking rule covers children, an allowing one does not", () =>
    Effect.gen(function* () {
      const at = (rule: Rule, path: string) =>
        Effect.map(compiled([rule], "refuse"), (rule) => verbOf(rule("read", path)))
      assert.strictEqual(yield* at(allow("/a/**"), "/a"), "allow")
      assert.strictEqual(yield* at(allow("/a/"), "/a/b/c"), "allow")
      assert.strictEqual(yield* at(allow("/a"), "/a"), "allow")
      assert.strictEqual(yield* at(allow("/a"), "/a/b"), "refuse")
      assert.strictEqual(yield* at(allow("/a/*"), "/a/b/c"), "refuse")
      assert.strictEqual(yield* at(allow("/**"), "/"), "allow")
      assert.strictEqual(yield* at(ask("/a"), "/a/b/.c"), "ask")
      assert.strictEqual(yield* at(ask("/a/*.d"), "/a/x.d/y"), "ask")
      assert.strictEqual(yield* at(ask("/a/*.d"), "/a"), "refuse")
    })
  )

  it.effect("commands have rules of their own", () =>
    Effect.gen(function* () {
      const mode = (rules: ReadonlyArray<Rule>, otherwise: "allow" | "refuse") =>
        Effect.map(compiled(rules, otherwise), (rule) => verbOf(rule("execute")))
      assert.strictEqual(yield* mode([refuse("/**")], "allow"), "allow")
      assert.strictEqual(yield* mode([allow("/**")], "refuse"), "refuse")
      assert.strictEqual(yield* mode([{ operations: ["execute"], ruling: "ask" }], "refuse"), "ask")
    })
  )
})

describe("overlaps", () => {
  it.effect("lists possible decisions below a directory, without those that an earlier rule leaves no room", () =>
    Effect.gen(function* () {
      const below = (rules: ReadonlyArray<Rule>, path: string, otherwise: "allow" | "refuse" = "allow") =>
        Effect.map(Effect.fromResult(Rules.compile({ rules, default: otherwise })), (all) =>
          Rules.overlaps(all, "write", path).map(verbOf)
        )
      assert.deepStrictEqual(yield* below([refuse("/a/b/c")], "/a"), ["refuse", "allow"])
      assert.deepStrictEqual(yield* below([refuse("/a/b/c")], "/a/b/c/d"), ["refuse"])
      assert.deepStrictEqual(yield* below([refuse("/a/b/c")], "/ab"), ["allow"])
      assert.deepStrictEqual(yield* below([refuse("/secret")], "/secrets"), ["allow"])
      assert.deepStrictEqual(yield* below([refuse("/**/*.lock")], "/any/where"), ["refuse", "allow"])
      assert.deepStrictEqual(yield* below([allow("/a/**"), refuse("/**/*.lock")], "/a/b"), ["allow"])
      assert.deepStrictEqual(yield* below([allow("/a/*"), refuse("/**/*.lock")], "/a"), ["allow", "refuse", "allow"])
      assert.deepStrictEqual(yield* below([refuse("/a"), allow("/a/b/**")], "/", "refuse"), ["refuse", "refuse"])
      assert.deepStrictEqual(yield* below([ask("/x/*/y")], "/x/1"), ["ask", "allow"])
      assert.deepStrictEqual(yield* below([ask("/x/*/y")], "/x/1/2"), ["allow"])
    })
  )
})

describe("rules that can't be followed", () => {
  const problem = (...rules: ReadonlyArray<unknown>) =>
    // As rules may come from a file, of any shape.
    Effect.fromResult(Permissions.compile({ rules: rules as ReadonlyArray<Rule> })).pipe(
      Effect.flip,
      Effect.map(({ field, problem, rule }) => `${rule} ${field}: ${problem}`)
    )

  it.effect("are refused with the rule and the field", () =>
    Effect.gen(function* () {
      const one = (path: string) => problem(allow("/fine"), refuse("/fine", path))
      assert.match(yield* one("secrets"), /^1 paths: "secrets": it must begin with '\/'; "\/\*\*\/secrets"/)
      assert.match(yield* one("../x"), /^1 paths: .*must begin with/)
      assert.match(yield* one("/a/../b"), /^1 paths: .*'\.\.'/)
      assert.match(yield* one("/*/../b"), /^1 paths: .*'\.\.'/)
      assert.match(yield* one("/~/x"), /^1 paths: .*'~'/)
      assert.match(yield* one("/a\0"), /^1 paths: .*NUL/)
      assert.match(yield* one("/a/[b"), /^1 paths: .*\[/)
      assert.match(yield* one("/a/{b,c"), /^1 paths: .*\{/)
      assert.match(yield* one("/a/{b/c,d}"), /^1 paths: .*can't hold a '\/'/)
      assert.match(yield* one("/a/{**,d}"), /^1 paths: .*can't hold a '\*\*'/)
      assert.match(yield* one("/a\\"), /^1 paths: /)
      assert.match(yield* one(`/${"a".repeat(256)}`), /^1 paths: .*255/)
      assert.match(yield* problem({ operations: [], paths: ["/a"], ruling: "refuse" }), /^0 operations: /)
      assert.match(
        yield* problem({ operations: ["delete"], paths: ["/a"], ruling: "refuse" }),
        /^default options: The option "rules\[0\]\.operations\[0\]" must be .* "delete"/
      )
      assert.match(yield* problem({ operations: ["read"], paths: [], ruling: "refuse" }), /^0 paths: /)
      assert.match(
        yield* problem({ operations: ["read"], paths: ["/a"], ruling: "interrupt" }),
        /^default options: The option "rules\[0\]\.ruling" must be/
      )
      assert.match(
        yield* problem({ operations: ["read"], path: "/a", ruling: "refuse" }),
        /no option "rules\[0\]\.path"\. Did you mean "paths"/
      )
      assert.match(
        yield* problem({ operations: ["read", "execute"], paths: ["/a"], ruling: "refuse" }),
        /^0 operations: /
      )
      assert.match(yield* problem({ operations: ["execute"], paths: ["/a"], ruling: "refuse" }), /^0 paths: /)
      const wrong = Permissions.compile({ rules: [], default: "ask" as "refuse" })
      assert.isTrue(Result.isFailure(wrong) && wrong.failure.rule === "default")
    })
  )

  it.effect("braces and classes are for names", () =>
    Effect.gen(function* () {
      const rule = yield* compiled([refuse("/src/**/*.{key,pem}", "/[!a-y]*/x")])
      const modes = ["/src/a.key", "/src/b/c.pem", "/src/c.ts", "/z/x", "/b/x"].map((path) =>
        verbOf(rule("read", path))
      )
      assert.deepStrictEqual(modes, ["refuse", "refuse", "allow", "refuse", "allow"])
    })
  )

  it.effect("stop the layer from being built", () =>
    Effect.gen(function* () {
      const layer = Permissions.layer({ rules: [refuse("x")] }).pipe(Layer.provide(MemoryBackend.layer()))
      const error = yield* Effect.flip(Effect.provide(Backend.Backend.use(Effect.succeed), layer))
      assert.instanceOf(error, Permissions.InvalidPermissions)
      assert.match(error.message, /rules\[0\]\.paths/)
    })
  )
})

describe("a refused path", () => {
  const rules = [refuse("/secrets/**")]
  const tree = { "/secrets/key": "hit", "/open": "hit" }

  it.effect("answers PermissionDenied to every operation, whether or not there is anything, and is not touched", () =>
    Effect.gen(function* () {
      const operations = (backend: Backend.Service, path: string) => [
        backend.ls(path),
        backend.read(path),
        backend.write(path, "x"),
        backend.write(path, "x", { create: true }),
        backend.edit(path, [{ old: "hit", new: "x" }]),
        backend.delete(path),
        backend.delete(path, { recursive: true }),
        backend.move(path, "/new"),
        backend.move("/open", path),
        backend.grep({ pattern: "hit", path }),
        backend.glob({ pattern: "*", path })
      ]
      const messages = (path: string) =>
        Effect.gen(function* () {
          const { backend, guarded: wrapped } = yield* guarded(tree, rules)
          const all = yield* Effect.forEach(operations(wrapped, path), (operation) =>
            Effect.map(Effect.flip<unknown, BackendError.BackendError, never>(operation), ({ message, reason }) => [
              reason._tag,
              message.replaceAll(path, "PATH")
            ])
          )
          const [upload] = yield* wrapped.upload([{ path, content: content("x") }])
          const [download] = yield* wrapped.download([path])
          assert.strictEqual((yield* files(backend)).length, 2)
          for (const transfer of [upload, download]) {
            all.push(
              transfer?.ok === false
                ? [transfer.error.reason._tag, transfer.error.message.replaceAll(path, "PATH")]
                : []
            )
          }
          return all
        })
      const there = yield* messages("/secrets/key")
      assert.deepStrictEqual(new Set(there.map(([tag]) => tag)), new Set(["PermissionDenied"]))
      for (const path of ["/secrets/none", "/secrets", "/secrets/key/below", "/secrets/.hidden/x"]) {
        assert.deepStrictEqual(yield* messages(path), there)
      }
    })
  )

  it.effect("is not asked about below", () =>
    Effect.gen(function* () {
      yield* Backend.Backend.use((backend) => backend.read("/secrets/key")).pipe(Effect.ignore)
      yield* Backend.Backend.use((backend) => backend.move("/open", "/secrets/x")).pipe(Effect.ignore)
      assert.deepStrictEqual(yield* TestBackend.requests, [])
    }).pipe(Effect.provide(Permissions.layer({ rules }).pipe(Layer.provideMerge(TestBackend.layer({ files: tree })))))
  )

  it.effect("a path that can't be one is told as such, rules or not", () =>
    Effect.gen(function* () {
      const { guarded: wrapped } = yield* guarded(tree, [refuse("/**")])
      assert.strictEqual(yield* failure(wrapped.read("/secrets/../open")), "read /secrets/../open: OutsideRoot")
      assert.strictEqual(yield* failure(wrapped.move("/open", "a\0")), "move a\0: InvalidPath")
    })
  )

  it.effect("spellings lead nowhere else", () =>
    Effect.gen(function* () {
      const { guarded: wrapped } = yield* guarded(tree, rules)
      for (const path of ["secrets/key", "//secrets//key", "/./secrets/key/", "/secrets/./key"]) {
        assert.strictEqual(yield* failure(wrapped.read(path)), `read ${path}: PermissionDenied`)
      }
    })
  )
})

describe("listings and searches", () => {
  const many = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`/a/secret${index}`, "hit\nhit"]))
  const tree = { ...many, "/a/.env": "hit", "/b/.env/x": "hit", "/b/x": "hit", "/z": "hit\nhit", "/only/.env": "hit" }
  const rules = [refuse("/a/secret*", "/**/.env")]

  it.effect("are as if refused files were not there", () =>
    Effect.gen(function* () {
      const { guarded: wrapped } = yield* guarded(tree, rules)
      assert.deepStrictEqual(paths(yield* wrapped.ls("/a")), [])
      assert.deepStrictEqual(paths(yield* wrapped.ls("/b")), ["/b/x"])
      assert.deepStrictEqual(paths(yield* wrapped.glob({ pattern: "**" })), ["/b/x", "/z"])
      assert.deepStrictEqual(foundPaths(yield* wrapped.grep({ pattern: "hit" })), ["/b/x", "/z"])
      assert.deepStrictEqual(foundPaths(yield* wrapped.grep({ pattern: "hit", path: "/b" })), ["/b/x"])
    })
  )

  it.effect("their limits count visible files", () =>
    Effect.gen(function* () {
      const { guarded: wrapped } = yield* guarded(tree, rules)
      const expected = [
        [0, [], "limit"],
        [1, ["/b/x"], "limit"],
        [2, ["/b/x", "/z"], undefined]
      ] as const
      for (const [limit, seen, truncated] of expected) {
        const glob = yield* wrapped.glob({ pattern: "**", limit })
        assert.deepStrictEqual([paths(glob), glob.truncated], [seen, truncated])
        const grep = yield* wrapped.grep({ pattern: "hit", mode: "files", limit })
        assert.deepStrictEqual([foundPaths(grep), grep.truncated], [seen, truncated])
      }
      const lines = yield* wrapped.grep({ pattern: "hit", limit: 2 })
      assert.deepStrictEqual(
        [lines.files.map(({ count, path }) => `${path} ${count}`), lines.truncated],
        [["/b/x 1", "/z 1"], "limit"]
      )
      assert.strictEqual((yield* wrapped.grep({ pattern: "hit", limit: 3 })).truncated, undefined)
    })
  )

  it.effect("a search of which all can be seen is done once", () =>
    Effect.gen(function* () {
      const found = yield* Backend.Backend.use((backend) => backend.glob({ pattern: "**", limit: 1 }))
      assert.strictEqual(found.truncated, "limit")
      assert.strictEqual((yield* TestBackend.requests).length, 1)
    }).pipe(
      Effect.provide(
        Permissions.layer({ rules }).pipe(
          Layer.provideMerge(TestBackend.layer({ files: { "/1": "", "/2": "", "/3": "" } }))
        )
      )
    )
  )

  it.effect("directories on the way to allowed files are passable, without a word on their other content", () =>
    Effect.gen(function* () {
      const { guarded: wrapped } = yield* guarded(
        { "/home/me/work/x": "hit", "/home/me/private": "hit", "/home/you/x": "hit", "/etc/x": "hit" },
        [allow("/home/me/work/**")],
        "refuse"
      )
      assert.deepStrictEqual(paths(yield* wrapped.ls("/")), ["/home"])
      assert.deepStrictEqual(yield* wrapped.ls("/home"), { entries: [{ path: "/home/me", kind: "directory" }] })
      assert.deepStrictEqual(paths(yield* wrapped.ls("/home/me")), ["/home/me/work"])
      assert.deepStrictEqual(paths(yield* wrapped.ls("/home/me/work")), ["/home/me/work/x"])
      assert.strictEqual(yield* failure(wrapped.ls("/home/you")), "ls /home/you: PermissionDenied")
      assert.strictEqual(yield* failure(wrapped.ls("/etc")), "ls /etc: PermissionDenied")
      assert.deepStrictEqual(foundPaths(yield* wrapped.grep({ pattern: "hit" })), ["/home/me/work/x"])
      assert.strictEqual(yield* failure(wrapped.read("/home")), "read /home: PermissionDenied")
      const { guarded: empty } = yield* guarded({ "/home": "hit" }, [allow("/home/me/**")], "refuse")
      for (const path of ["/home", "/home/me"]) {
        const nothing = path === "/home/me" ? undefined : { entries: [] }
        const listing = yield* Effect.result(empty.ls(path))
        assert.deepStrictEqual(Result.getOrUndefined(listing), nothing)
      }
      assert.deepStrictEqual(yield* empty.glob({ pattern: "*", path: "/home" }), { entries: [] })
      assert.deepStrictEqual(yield* empty.grep({ pattern: "hit", path: "/home" }), { files: [] })
    })
  )

  it.effect("a directory with something hidden in it does not say when it changed", () =>
    Effect.gen(function* () {
      const { backend } = withLinks({ "/a/open": "", "/a/secret": "", "/b/open": "" }, {})
      const wrapped = yield* Permissions.wrap(backend, { rules: [refuse("/a/secret")] })
      assert.deepStrictEqual(yield* wrapped.ls("/"), {
        entries: [
          { path: "/a", kind: "directory" },
          { path: "/b", kind: "directory", modifiedAt: 1 }
        ]
      })
    })
  )

  it.effect("time that was up and real failures are told", () =>
    Effect.gen(function* () {
      const backend = yield* MemoryBackend.make()
      const slow: Backend.Service = {
        ...backend,
        glob: () => Effect.succeed({ entries: [{ path: "/x", kind: "file" }], truncated: "time" })
      }
      const wrapped = yield* Permissions.wrap(slow, { rules: [refuse("/y")] })
      assert.strictEqual((yield* wrapped.glob({ pattern: "*" })).truncated, "time")
      assert.strictEqual(yield* failure(wrapped.grep({ pattern: "x", path: "/none" })), "grep /none: NotFound")
      assert.strictEqual(yield* failure(wrapped.grep({ pattern: "(", regex: true })), "grep /: InvalidPattern")
    })
  )
})

describe("the paths of operations", () => {
  const readOnly: Rule = { operations: ["write"], paths: ["/ro"], ruling: "refuse" }
  const writeOnly: Rule = { operations: ["read"], paths: ["/wo"], ruling: "refuse" }
  const tree = { "/ro/x": "hit", "/wo/x": "hit", "/x": "hit" }

  it.effect("reading needs to read, changing needs to write, edit both, move both at its source", () =>
    Effect.gen(function* () {
      const { guarded: wrapped } = yield* guarded(tree, [readOnly, writeOnly])
      yield* wrapped.read("/ro/x")
      assert.strictEqual(yield* failure(wrapped.write("/ro/x", "")), "write /ro/x: PermissionDenied")
      assert.strictEqual(yield* failure(wrapped.delete("/ro/x")), "delete /ro/x: PermissionDenied")
      assert.strictEqual(yield* failure(wrapped.edit("/ro/x", [])), "edit /ro/x: PermissionDenied")
      assert.strictEqual(
        yield* failure(wrapped.edit("/wo/x", [{ old: "guess", new: "" }])),
        "edit /wo/x: PermissionDenied"
      )
      assert.strictEqual(yield* failure(wrapped.move("/ro/x", "/y")), "move /ro/x: PermissionDenied")
      assert.strictEqual(yield* failure(wrapped.move("/wo/x", "/y")), "move /wo/x: PermissionDenied")
      assert.strictEqual(yield* failure(wrapped.move("/x", "/ro/y")), "move /ro/y: PermissionDenied")
      yield* wrapped.write("/wo/x", "new")
      yield* wrapped.move("/x", "/wo/y")
      yield* wrapped.delete("/wo/y")
    })
  )

  it.effect("to delete or move a directory, all that could be in it; files in it can be taken one by one", () =>
    Effect.gen(function* () {
      const { backend, guarded: wrapped } = yield* guarded({ "/d/a": "", "/d/b/c": "", "/e/f": "", "/d.lock": "" }, [
        refuse("/d/b/locked", "/new/x", "/new/x/**"),
        { operations: ["read"], paths: ["/e/hidden"], ruling: "refuse" }
      ])
      const before = yield* files(backend)
      for (const recursive of [true, false]) {
        assert.strictEqual(yield* failure(wrapped.delete("/d", { recursive })), "delete /d: PermissionDenied")
      }
      assert.strictEqual(yield* failure(wrapped.delete("/d/b", { recursive: true })), "delete /d/b: PermissionDenied")
      assert.strictEqual(yield* failure(wrapped.delete("/", { recursive: true })), "delete /: PermissionDenied")
      assert.strictEqual(yield* failure(wrapped.move("/d", "/other")), "move /d: PermissionDenied")
      assert.strictEqual(yield* failure(wrapped.move("/e", "/other")), "move /e: PermissionDenied")
      assert.strictEqual(yield* failure(wrapped.move("/e", "/new")), "move /e: PermissionDenied")
      assert.deepStrictEqual(yield* files(backend), before)
      yield* wrapped.delete("/d/b/c", { recursive: true })
      yield* wrapped.move("/d/a", "/new")
      yield* wrapped.delete("/e", { recursive: true })
      assert.strictEqual(yield* failure(wrapped.delete("/none", { recursive: true })), "delete /none: NotFound")
      assert.deepStrictEqual(
        (yield* files(backend)).map(([path]) => path),
        ["/d.lock", "/new"]
      )
    })
  )

  it.effect("transfers have an outcome for each file, in order", () =>
    Effect.gen(function* () {
      const { backend, guarded: wrapped } = yield* guarded(tree, [readOnly, writeOnly])
      const uploads = yield* wrapped.upload(
        ["/a", "/ro/x", "..", "/wo/x", "/a"].map((path) => ({ path, content: content(path) }))
      )
      const showTransfers = <A>(all: ReadonlyArray<Backend.Transfer<A>>) =>
        all.map((each) => `${each.path} ${each.ok ? "ok" : each.error.reason._tag}`)
      assert.deepStrictEqual(showTransfers(uploads), [
        "/a ok",
        "/ro/x PermissionDenied",
        ".. OutsideRoot",
        "/wo/x ok",
        "/a ok"
      ])
      const downloads = yield* wrapped.download(["/none", "/wo/x", "/ro/x", "/a"])
      assert.deepStrictEqual(showTransfers(downloads), [
        "/none NotFound",
        "/wo/x PermissionDenied",
        "/ro/x ok",
        "/a ok"
      ])
      assert.strictEqual((yield* files(backend)).length, 4)
      const silent = yield* Permissions.wrap({ ...backend, download: () => Effect.succeed([]) }, { rules: [] })
      const [first] = yield* silent.download(["/x"])
      assert.isTrue(first?.ok === false && first.error.reason._tag === "Unavailable")
    })
  )
})

describe("ask", () => {
  const tree = { "/config/a": "hit", "/config/b": "hit", "/open": "hit" }
  const rules = [ask("/config/**")]

  it.effect("by default nobody is there to ask: refused, with that said", () =>
    Effect.gen(function* () {
      const { backend, guarded: wrapped } = yield* guarded(tree, rules)
      const error = yield* Effect.flip(wrapped.write("/config/a", "x"))
      assert.strictEqual(error.reason._tag, "PermissionDenied")
      assert.match(error.message, /nobody is there to ask/)
      assert.deepStrictEqual((yield* files(backend))[0], ["/config/a", "hit"])
    })
  )

  it.effect("asks once an operation, before any change, with the whole effect, and only about its paths", () => {
    const { layer, requests } = approvals(Approval.approve)
    return Effect.gen(function* () {
      const { guarded: wrapped } = yield* guarded(tree, rules)
      yield* wrapped.read("/open")
      yield* wrapped.write("/open", "x")
      assert.strictEqual(requests.length, 0)
      yield* wrapped.read("config/a", { limit: 1 })
      yield* wrapped.write("/config/a", "new")
      yield* wrapped.edit("/config/a", [{ old: "new", new: "newer" }])
      yield* wrapped.move("/config/a", "/config/c")
      yield* wrapped.delete("/config/c")
      yield* wrapped.delete("/config", { recursive: true })
      assert.deepStrictEqual(
        requests.map(({ arguments: { accesses: _, ...action } }) => action),
        [
          { operation: "read", path: "/config/a", limit: 1 },
          { operation: "write", path: "/config/a", content: "new" },
          {
            operation: "edit",
            path: "/config/a",
            replacements: [{ old: "new", new: "newer", replaceAll: false }]
          },
          { operation: "move", from: "/config/a", to: "/config/c" },
          { operation: "delete", path: "/config/c", recursive: false },
          { operation: "delete", path: "/config", recursive: true }
        ]
      )
      assert.deepStrictEqual(requests[3] === undefined ? [] : accessesOf(requests[3]), [
        ["read", "/config/a"],
        ["write", "/config/a"],
        ["write", "/config/c"]
      ])
      assert.strictEqual(requests[3]?.rule, "/config/**")
    }).pipe(Effect.provide(layer))
  })

  it.effect("a refusal changes nothing, and its message is told", () => {
    const { layer, requests } = approvals((request) => Approval.reject(request, "not on a Sunday"))
    return Effect.gen(function* () {
      const { backend, guarded: wrapped } = yield* guarded(tree, rules)
      for (const operation of [wrapped.write("/config/a", "x"), wrapped.delete("/config", { recursive: true })]) {
        const error = yield* Effect.flip<unknown, BackendError.BackendError, never>(operation)
        assert.match(error.message, /permission denied \(not on a Sunday\)/)
      }
      assert.strictEqual(requests.length, 2)
      assert.strictEqual((yield* files(backend)).length, 3)
    }).pipe(Effect.provide(layer))
  })

  it.effect("asks about all files of an upload or a download at once; the others go on after any answer", () => {
    const { layer, requests } = approvals((request) =>
      request.toolName === "upload" ? Approval.reject(request, "no") : Approval.approve(request)
    )
    return Effect.gen(function* () {
      const { guarded: wrapped } = yield* guarded(tree, [refuse("/config/b"), ...rules])
      const uploads = yield* wrapped.upload(
        ["/config/a", "/open", "/config/c", "/config/b"].map((path) => ({ path, content: content("x") }))
      )
      assert.deepStrictEqual(
        uploads.map(({ ok }) => ok),
        [false, true, false, false]
      )
      const downloads = yield* wrapped.download(["/config/a", "/config/b", "/open"])
      assert.deepStrictEqual(
        downloads.map(({ ok }) => ok),
        [true, false, true]
      )
      assert.deepStrictEqual(
        requests.map((request) => [request.toolName, pathsOf(request)]),
        [
          ["upload", ["/config/a", "/config/c"]],
          ["download", ["/config/a"]]
        ]
      )
    }).pipe(Effect.provide(layer))
  })

  it.effect("names are shown; grep leaves such files out, unless it is pointed at them", () => {
    const { layer, requests } = approvals(Approval.approve)
    return Effect.gen(function* () {
      const { guarded: wrapped } = yield* guarded(tree, [...rules, ask("/config2")])
      assert.deepStrictEqual(paths(yield* wrapped.ls("/config")), ["/config/a", "/config/b"])
      assert.deepStrictEqual(paths(yield* wrapped.glob({ pattern: "*" })), ["/config/a", "/config/b", "/open"])
      assert.deepStrictEqual(foundPaths(yield* wrapped.grep({ pattern: "hit" })), ["/open"])
      assert.strictEqual(requests.length, 0)
      assert.deepStrictEqual(foundPaths(yield* wrapped.grep({ pattern: "hit", path: "/config" })), [
        "/config/a",
        "/config/b"
      ])
      assert.strictEqual(requests.length, 1)
    }).pipe(Effect.provide(layer))
  })

  it.effect("does not ask about refused paths", () => {
    const { layer, requests } = approvals(Approval.approve)
    return Effect.gen(function* () {
      const { guarded: wrapped } = yield* guarded(tree, [refuse("/secret"), ...rules])
      assert.strictEqual(yield* failure(wrapped.move("/config/a", "/secret")), "move /secret: PermissionDenied")
      assert.strictEqual(requests.length, 0)
    }).pipe(Effect.provide(layer))
  })

  it.effect("who provides approvals later is asked; nobody else waits for an answer", () =>
    Effect.gen(function* () {
      const { guarded: wrapped } = yield* guarded(tree, rules)
      const asked = yield* Deferred.make<void>()
      const answer = yield* Deferred.make<void>()
      const waiting = yield* wrapped.delete("/config/a").pipe(
        Effect.provideService(Approval.Approvals, {
          decide: (request) =>
            Deferred.succeed(asked, undefined).pipe(
              Effect.andThen(Deferred.await(answer)),
              Effect.as(Approval.approve(request))
            )
        }),
        Effect.forkChild
      )
      yield* Deferred.await(asked)
      yield* wrapped.delete("/open")
      yield* wrapped.write("/other", "")
      yield* Deferred.succeed(answer, undefined)
      yield* Fiber.join(waiting)
      assert.deepStrictEqual(paths(yield* wrapped.glob({ pattern: "*" })), ["/config/b", "/other"])
    })
  )
})

describe("links", () => {
  const tree = { "/secret/key": "hidden", "/secret/deep/x": "hidden", "/open/x": "seen", "/readonly/x": "seen" }
  const links = {
    "/open/link": "/secret/key",
    "/open/none": "/secret/none",
    "/open/folder": "/secret",
    "/open/out": "/../out",
    "/open/self": "/open/x",
    "/open/ro": "/readonly/x",
    "/secret/back": "/open/x"
  }
  const rules: ReadonlyArray<Rule> = [
    refuse("/secret"),
    { operations: ["write"], paths: ["/readonly"], ruling: "refuse" }
  ]

  it.effect("the target of a link must be allowed; refusals are the same with and without a file", () =>
    Effect.gen(function* () {
      const { backend, stored } = withLinks(tree, links)
      const wrapped = yield* Permissions.wrap(backend, { rules })
      const before = stored()
      for (const path of ["/open/link", "/open/none", "/open/folder/key", "/open/folder/none/x", "/secret/back"]) {
        assert.strictEqual(yield* failure(wrapped.read(path)), `read ${path}: PermissionDenied`)
        assert.strictEqual(yield* failure(wrapped.write(path, "x")), `write ${path}: PermissionDenied`)
        assert.strictEqual(yield* failure(wrapped.edit(path, [])), `edit ${path}: PermissionDenied`)
        assert.strictEqual(yield* failure(wrapped.delete(path)), `delete ${path}: PermissionDenied`)
        assert.strictEqual(yield* failure(wrapped.move(path, "/open/new")), `move ${path}: PermissionDenied`)
      }
      assert.strictEqual(yield* failure(wrapped.ls("/open/folder")), "ls /open/folder: PermissionDenied")
      assert.strictEqual(
        yield* failure(wrapped.grep({ pattern: "h", path: "/open/folder" })),
        "grep /open/folder: PermissionDenied"
      )
      assert.strictEqual(
        yield* failure(wrapped.move("/open/x", "/open/folder/new")),
        "move /open/folder/new: PermissionDenied"
      )
      assert.deepStrictEqual(stored(), before)
      yield* wrapped.read("/open/self")
      yield* wrapped.read("/open/ro")
      assert.strictEqual(yield* failure(wrapped.write("/open/ro", "x")), "write /open/ro: PermissionDenied")
      assert.strictEqual(yield* failure(wrapped.read("/open/out")), "read /open/out: OutsideRoot")
    })
  )

  it.effect("lists no links to refused files", () =>
    Effect.gen(function* () {
      const { backend } = withLinks(tree, links)
      const wrapped = yield* Permissions.wrap(backend, { rules })
      assert.deepStrictEqual(paths(yield* wrapped.ls("/open")), ["/open/out", "/open/ro", "/open/self", "/open/x"])
      assert.notInclude(paths(yield* wrapped.glob({ pattern: "**" })).join(), "link")
      assert.deepStrictEqual(
        yield* wrapped.realPaths?.(["/open/link", "/open/self", "/secret/key", "..", "/open/x"]) ?? Effect.succeed([]),
        [undefined, "/open/x", undefined, undefined, "/open/x"]
      )
    })
  )

  it.effect("deletes a link in its place, which must be allowed", () =>
    Effect.gen(function* () {
      const { backend, stored } = withLinks(
        { "/open/x": "", "/free/x": "" },
        { "/locked/link": "/free/x", "/open/way": "/locked", "/open/self": "/free/x" }
      )
      const wrapped = yield* Permissions.wrap(backend, { rules: [refuse("/locked")] })
      assert.strictEqual(yield* failure(wrapped.delete("/open/way/link")), "delete /open/way/link: PermissionDenied")
      assert.strictEqual(
        yield* failure(wrapped.move("/open/way/link", "/open/y")),
        "move /open/way/link: PermissionDenied"
      )
      yield* wrapped.delete("/open/self")
      assert.deepStrictEqual(Object.keys(stored()).sort(), ["/free/x", "/locked/link", "/open/way", "/open/x"])
    })
  )

  it.effect("a path with a new target when the answer comes is not approved", () =>
    Effect.gen(function* () {
      const { backend, relink } = withLinks({ "/a": "one", "/b": "two" }, { "/link": "/a" })
      const wrapped = yield* Permissions.wrap(backend, { rules: [ask("/a", "/b")] })
      const { layer, requests } = approvals((request) => {
        assert.deepStrictEqual(pathsOf(request), ["/a"])
        relink("/link", "/b")
        return Approval.approve(request)
      })
      assert.strictEqual(yield* Effect.provide(failure(wrapped.read("/link")), layer), "read /link: Conflict")
      assert.strictEqual(requests.length, 1)
    })
  )

  it.effect("refuses an unresolvable path", () =>
    Effect.gen(function* () {
      const { backend } = withLinks(tree, links)
      const short = yield* Permissions.wrap({ ...backend, realPaths: () => Effect.succeed([]) }, { rules })
      assert.strictEqual(yield* failure(short.read("/open/x")), "read /open/x: Unavailable")
      const [first] = yield* short.download(["/open/x"])
      assert.isTrue(
        first?.ok === false && first.error.reason._tag === "Unavailable" && first.error.operation === "download"
      )
      assert.strictEqual(yield* failure(short.read("/secret/key")), "read /secret/key: PermissionDenied")
    })
  )

  it.effect("names are held against the rules as they are stored", () =>
    Effect.gen(function* () {
      const plain = yield* MemoryBackend.make({ files: { "/secret/key": "hidden", "/dir/locked": "" } })
      const folding: Backend.Service = {
        ...plain,
        read: (path) => plain.read(path.toLowerCase()),
        ls: (path) => plain.ls(path.toLowerCase()),
        delete: (path, options) => plain.delete(path.toLowerCase(), options),
        realPaths: (all) => Effect.succeed(all.map((path) => path.toLowerCase()))
      }
      const wrapped = yield* Permissions.wrap(folding, { rules: [refuse("/secret", "/dir/locked")] })
      assert.strictEqual(yield* failure(wrapped.read("/SECRET/key")), "read /SECRET/key: PermissionDenied")
      assert.strictEqual(yield* failure(wrapped.delete("/Dir", { recursive: true })), "delete /Dir: PermissionDenied")
      assert.strictEqual((yield* files(plain)).length, 2)
    })
  )

  it.effect("moves wait for operations in flight, and later ones wait for them", () =>
    Effect.gen(function* () {
      const { backend } = withLinks({ "/a": "", "/b": "" }, {})
      const log: Array<string> = []
      const go = yield* Deferred.make<void>()
      const slow: Backend.Service = {
        ...backend,
        read: (path, window) =>
          Effect.andThen(
            Effect.andThen(
              Effect.sync(() => log.push(`read ${path}`)),
              path === "/a" ? Deferred.await(go) : Effect.void
            ),
            backend.read(path, window)
          ),
        move: (from, to) =>
          Effect.andThen(
            Effect.sync(() => log.push(`move ${from}`)),
            backend.move(from, to)
          )
      }
      const wrapped = yield* Permissions.wrap(slow, { rules: [refuse("/secret")] })
      const start = <A>(effect: Effect.Effect<A, BackendError.BackendError>) =>
        Effect.forkChild(effect, { startImmediately: true })
      const settle = Effect.repeat(Effect.yieldNow, { times: 50 })
      const fibers = [yield* start(wrapped.read("/a"))]
      yield* settle
      const moving = yield* start(wrapped.move("/b", "/c"))
      yield* settle
      fibers.push(yield* start(wrapped.read("/c")))
      yield* settle
      assert.deepStrictEqual(log, ["read /a"])
      yield* Deferred.succeed(go, undefined)
      yield* Effect.forEach(fibers, Fiber.join)
      yield* Fiber.join(moving)
      assert.deepStrictEqual(log, ["read /a", "move /b", "read /c"])
    })
  )
})

describe("a sandbox beneath", () => {
  const problem = (sandbox: Sandbox.Service, rules: ReadonlyArray<Rule>, otherwise: "allow" | "refuse" = "allow") =>
    Permissions.wrap(sandbox, { rules, default: otherwise }).pipe(
      Effect.flip,
      Effect.map(({ message, rule }) => {
        assert.match(message, /a command can reach/)
        return rule
      })
    )

  it.effect("rules that a command could go around are refused, by name", () =>
    Effect.gen(function* () {
      const sandbox = sandboxOf(yield* MemoryBackend.make())
      assert.strictEqual(yield* problem(sandbox, [allow("/fine"), refuse("/secrets")]), 1)
      assert.strictEqual(yield* problem(sandbox, [ask("/**/.env")]), 0)
      assert.strictEqual(yield* problem(sandbox, [refuse("/secrets"), { operations: ["execute"], ruling: "ask" }]), 0)
      assert.strictEqual(yield* problem(sandbox, [{ operations: ["execute"], ruling: "allow" }], "refuse"), "default")
      assert.strictEqual(
        yield* problem(
          sandbox,
          [
            { operations: ["execute"], ruling: "allow" },
            { operations: ["read"], paths: ["/**"], ruling: "allow" }
          ],
          "refuse"
        ),
        "default"
      )
    })
  )

  it.effect("accepts rules for paths that commands can't reach, and rules without effect", () =>
    Effect.gen(function* () {
      const shell = sandboxOf(yield* MemoryBackend.make({ files: { "/work/x": "" } }))
      const sandbox = yield* CompositeBackend.makeSandbox(shell, {
        "/memories": yield* MemoryBackend.make({ files: { "/private/x": "", "/x": "" } })
      })
      const wrapped = yield* Permissions.wrapSandbox(sandbox, {
        rules: [
          refuse("/memories/private/**", "/memories/*.key"),
          { operations: ["execute"], ruling: "allow" },
          allow("/**"),
          refuse("/work")
        ],
        default: "refuse"
      })
      assert.deepStrictEqual(paths(yield* wrapped.glob({ pattern: "**" })), ["/memories/x", "/work/x"])
      assert.strictEqual((yield* wrapped.execute("ls")).output, "ran ls")
      assert.strictEqual(wrapped.id, "fake")
      assert.isFalse(wrapped.reaches("/memories"))
      assert.strictEqual(yield* problem(sandbox, [refuse("/*/private")]), 0)
      assert.strictEqual(yield* problem(sandbox, [refuse("/memories/private", "/work/x")]), 0)
    })
  )

  it.effect("if commands are refused, any rules are fine, and no commands are left", () =>
    Effect.gen(function* () {
      const sandbox = sandboxOf(yield* MemoryBackend.make({ files: { "/secrets/x": "", "/x": "" } }))
      const rules = [refuse("/secrets"), { operations: ["execute"], ruling: "refuse" } as const]
      const wrapped = yield* Permissions.wrap(sandbox, { rules })
      assert.isFalse(Sandbox.isSandbox(wrapped))
      assert.deepStrictEqual(paths(yield* wrapped.ls("/")), ["/x"])
      assert.isFalse(Sandbox.isSandbox(yield* Permissions.wrap(sandbox, { rules: [allow("/x")], default: "refuse" })))
      const error = yield* Effect.flip(Permissions.wrapSandbox(sandbox, { rules }))
      assert.deepStrictEqual([error.rule, error.field], [1, "ruling"])
      const other = yield* Effect.flip(Permissions.wrapSandbox(sandbox, { rules: [], default: "refuse" }))
      assert.strictEqual(other.rule, "default")
    })
  )

  it.effect("commands are asked about if a rule says so: each, with its options, before it runs", () => {
    const { layer, requests } = approvals((request) =>
      request.arguments["command"] === "ls" ? Approval.approve(request) : Approval.reject(request, "not that one")
    )
    return Effect.gen(function* () {
      const sandbox = sandboxOf(yield* MemoryBackend.make())
      const wrapped = yield* Permissions.wrapSandbox(sandbox, { rules: [{ operations: ["execute"], ruling: "ask" }] })
      assert.strictEqual((yield* wrapped.execute("ls", { cwd: "/x" })).output, "ran ls")
      assert.strictEqual((yield* Stream.runCollect(wrapped.executeStream("ls"))).length, 1)
      const error = yield* Effect.flip(wrapped.execute("rm -rf /"))
      assert.match(error.message, /^execute \/: permission denied \(not that one\)/)
      assert.strictEqual(
        yield* failure(Stream.runDrain(wrapped.executeStream("rm -rf /"))),
        "execute /: PermissionDenied"
      )
      assert.deepStrictEqual(requests[0]?.arguments, {
        operation: "execute",
        command: "ls",
        cwd: "/x",
        accesses: [{ operation: "execute" }]
      })
      assert.strictEqual(requests.length, 4)
    }).pipe(Effect.provide(layer))
  })

  it.effect("layerSandbox gives both services by one value, and hides the backend below", () =>
    Effect.gen(function* () {
      const shell = Sandbox.layer(Effect.map(MemoryBackend.make(), (backend) => sandboxOf(backend, () => false)))
      const layer = Permissions.layerSandbox({ rules: [refuse("/secret")] }).pipe(Layer.provide(shell))
      yield* Effect.provide(
        Effect.gen(function* () {
          const sandbox: unknown = yield* Sandbox.Sandbox
          assert.isTrue(sandbox === (yield* Backend.Backend))
          assert.strictEqual(yield* failure((yield* Sandbox.Sandbox).read("/secret")), "read /secret: PermissionDenied")
        }),
        layer
      )
    })
  )
})
