import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer } from "effect"
import { Backend, BackendError } from "effect-deepagents"
import { MemoryBackend, StoreBackend } from "effect-deepagents/backends"
import { KeyValueStore } from "effect/persistence"
import * as fc from "fast-check"
import { operations, outcomes } from "./operations.ts"

const encoder = new TextEncoder()
const paths = (listing: Backend.Listing) => listing.entries.map((entry) => entry.path)
const reasonOf = <A>(effect: Effect.Effect<A, BackendError.BackendError>) =>
  Effect.map(Effect.flip(effect), (error) => error.reason._tag)

type Call = readonly [method: string, key: string, size: number]

/** A store in memory that notes its requests, and breaks before the change of that number (counted from 1). */
const recording = Effect.gen(function* () {
  const store = Context.get(yield* Layer.build(KeyValueStore.layerMemory), KeyValueStore.KeyValueStore)
  const calls: Array<Call> = []
  const state = { changesLeft: Infinity, fails: "", slow: false }
  const note = <A>(
    method: string,
    key: string,
    size: number,
    run: Effect.Effect<A, KeyValueStore.KeyValueStoreError>
  ) =>
    Effect.suspend(() => {
      calls.push([method, key, size])
      const isChange = method === "set" || method === "remove"
      if (method === state.fails || (isChange && state.changesLeft-- <= 0))
        return Effect.fail(new KeyValueStore.KeyValueStoreError({ method, key, message: "broken" }))
      return state.slow ? Effect.andThen(Effect.yieldNow, run) : run
    })
  const noting = KeyValueStore.make({
    ...store,
    get: (key) => note("get", key, 0, store.get(key)),
    getUint8Array: (key) => note("getUint8Array", key, 0, store.getUint8Array(key)),
    has: (key) => note("has", key, 0, store.has(key)),
    set: (key, value) => note("set", key, value.length, store.set(key, value)),
    remove: (key) => note("remove", key, 0, store.remove(key))
  })
  /** A backend of a process of its own: it shares only the store with others. */
  const backend = (namespace: string | ReadonlyArray<string> = "tenant") =>
    StoreBackend.make({ namespace }).pipe(Effect.provideService(KeyValueStore.KeyValueStore, { ...noting }))
  return { backend, calls, state, store, noting }
})

const snapshot = Effect.fnUntraced(function* (backend: Backend.Service) {
  const found = paths(yield* backend.glob({ pattern: "**", ignored: true }))
  const files: { [path: string]: string } = {}
  for (const one of yield* backend.download(found)) {
    if (one.ok) files[one.path] = new TextDecoder().decode(one.value)
  }
  return files
})

describe("StoreBackend namespaces", () => {
  const hostile: ReadonlyArray<string | ReadonlyArray<string>> = [
    "",
    "a",
    "a/b",
    "a:",
    "A",
    '""',
    '["a"]',
    "é",
    "e\u0301",
    "\ud800",
    "\ud801",
    "\0",
    "..",
    "x".repeat(100_000),
    "x".repeat(100_001),
    [],
    ["a", "b"],
    ["a", ""],
    ["", "a"],
    ["a/b", "c"],
    ["a", "b/c"]
  ]

  it.effect("are never crossed, with any names", () =>
    Effect.gen(function* () {
      const { backend } = yield* recording
      const backends = yield* Effect.forEach(hostile, (namespace) => backend(namespace))
      for (const [index, one] of backends.entries()) {
        yield* one.write("/who", String(index))
        yield* one.write(`/b/who`, "")
      }
      for (const [index, one] of backends.entries()) {
        assert.deepStrictEqual(yield* snapshot(one), { "/b/who": "", "/who": String(index) })
      }
      yield* backends[1]!.delete("/b", { recursive: true })
      yield* backends[1]!.delete("/who")
      for (const [index, one] of backends.entries()) {
        assert.strictEqual((yield* one.ls("/")).entries.length, index === 1 ? 0 : 2)
      }
    })
  )

  it.effect("a text is a namespace of one part", () =>
    Effect.gen(function* () {
      const { backend } = yield* recording
      yield* (yield* backend("a")).write("/file", "")
      assert.strictEqual((yield* (yield* backend(["a"])).ls("/")).entries.length, 1)
    })
  )

  it.effect("keys are all of one length, in lower case, and fit for file names", () =>
    Effect.gen(function* () {
      const { backend, calls } = yield* recording
      for (const namespace of hostile) {
        const one = yield* backend(namespace)
        yield* one.write(`/${"ü".repeat(120)}/${"x".repeat(255)}/:?*<>|`, "")
      }
      for (const [, key] of calls) assert.match(key, /^[0-9a-f]{64}-(?:file|page)-[0-9a-f]{64}$/)
    })
  )

  it.effect("may be computed by each operation: a request's value goes before the layer's", () =>
    Effect.gen(function* () {
      class Tenant extends Context.Service<Tenant, { readonly name: string }>()("test/Tenant") {}
      const layer = StoreBackend.layer({
        namespace: Tenant.use(({ name }) =>
          name === ""
            ? Effect.fail(BackendError.make("tenant", "/", { _tag: "PermissionDenied" }))
            : Effect.succeed(name)
        )
      }).pipe(Layer.provide(Layer.succeed(Tenant, { name: "default" })), Layer.provide(KeyValueStore.layerMemory))
      yield* Effect.gen(function* () {
        const backend = yield* Backend.Backend
        yield* backend.write("/a", "default")
        yield* Effect.provideService(backend.write("/a", "ada"), Tenant, { name: "ada" })
        const both = [
          yield* backend.read("/a"),
          yield* Effect.provideService(backend.read("/a"), Tenant, { name: "ada" })
        ]
        assert.deepStrictEqual(
          both.map((file) => file.kind === "text" && file.text),
          ["default", "ada"]
        )
        assert.strictEqual(
          yield* reasonOf(Effect.provideService(backend.read("/a"), Tenant, { name: "" })),
          "PermissionDenied"
        )
        const [download] = yield* Effect.provideService(backend.download(["/a"]), Tenant, { name: "" })
        assert.isTrue(download?.ok === false && download.error.reason._tag === "PermissionDenied")
      }).pipe(Effect.provide(layer))
    })
  )
})

describe("StoreBackend", () => {
  it("gives the same as the backend in memory for any operations", () =>
    fc.assert(
      fc.asyncProperty(operations, (sequence) =>
        Effect.gen(function* () {
          const { backend } = yield* recording
          assert.deepStrictEqual(
            yield* outcomes(yield* backend(), sequence),
            yield* outcomes(yield* MemoryBackend.make(), sequence)
          )
        }).pipe(Effect.scoped, Effect.runPromise)
      ),
      { numRuns: 60 }
    ))

  it.live("keeps files in a folder, for the next process", () =>
    Effect.gen(function* () {
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => fs.mkdtempSync(path.join(os.tmpdir(), "store-"))),
        (made) => Effect.sync(() => fs.rmSync(made, { recursive: true }))
      )
      const open = <A>(run: (backend: Backend.Service) => Effect.Effect<A, BackendError.BackendError>) =>
        Backend.Backend.use(run).pipe(
          Effect.provide(
            StoreBackend.layer({ namespace: "a/../b" }).pipe(
              Layer.provide(KeyValueStore.layerFileSystem(path.join(folder, "kv"))),
              Layer.provide(NodeServices.layer)
            ),
            { local: true }
          )
        )
      const long = `/${"é".repeat(127)}/..a/${"x".repeat(255)}`
      yield* open((backend) => backend.write(long, "text\r\n"))
      yield* open((backend) => backend.upload([{ path: "/bytes", content: new Uint8Array([0, 255, 254]) }]))
      assert.deepStrictEqual(yield* open(snapshot), { "/bytes": "\0\ufffd\ufffd", [long]: "text\r\n" })
      const [bytes] = yield* open((backend) => backend.download(["/bytes"]))
      assert.deepStrictEqual(bytes?.ok === true ? [...bytes.value] : bytes, [0, 255, 254])
      yield* open((backend) => backend.delete("/bytes"))
      yield* open((backend) => backend.delete(long))
      assert.deepStrictEqual(fs.readdirSync(path.join(folder, "kv")), [])
    })
  )

  it.effect("a text that looks like base64 is a text, in a store of texts too", () =>
    Effect.gen(function* () {
      const kept = new Map<string, string>()
      const store = KeyValueStore.makeStringOnly({
        get: (key) => Effect.sync(() => kept.get(key)),
        set: (key, value) => Effect.sync(() => void kept.set(key, value)),
        remove: (key) => Effect.sync(() => void kept.delete(key)),
        clear: Effect.void,
        size: Effect.succeed(0),
        keys: Effect.succeed([])
      })
      const backend = yield* Effect.provideService(
        StoreBackend.make({ namespace: "a" }),
        KeyValueStore.KeyValueStore,
        store
      )
      for (const text of ["abcd", "", "null", "ü"]) {
        yield* backend.write("/a", text)
        assert.deepStrictEqual(yield* snapshot(backend), { "/a": text })
      }
    })
  )

  it.effect("a listing reads the directory, not the namespace", () =>
    Effect.gen(function* () {
      const { backend, calls } = yield* recording
      const writer = yield* backend()
      yield* Effect.forEach(Array.from({ length: 200 }), (_, index) => writer.write(`/${index % 20}/${index}`, ""))
      calls.length = 0
      const reader = yield* backend()
      assert.strictEqual((yield* reader.ls("/7")).entries.length, 10)
      assert.isAtMost(calls.length, 4)
    })
  )

  it.effect(
    "a file more costs a page of the index, however many files there are",
    () =>
      Effect.gen(function* () {
        const { backend, calls, store } = yield* recording
        const one = yield* backend()
        const names = Array.from({ length: 2_200 }, (_, index) => `file ${index}`)
        yield* Effect.forEach(names, (name) => one.write(`/d/${name}`, ""))
        assert.isBelow(Math.max(...calls.map(([, , size]) => size)), 10_000)
        const other = yield* backend()
        assert.deepStrictEqual(paths(yield* other.ls("/d")), names.map((name) => `/d/${name}`).sort())
        calls.length = 0
        yield* other.write("/d/file 1", "new")
        yield* other.write("/d/one more", "new")
        assert.isBelow(calls.length, 40)
        yield* Effect.forEach([...names, "one more"], (name) => other.delete(`/d/${name}`))
        assert.deepStrictEqual(yield* one.ls("/"), { entries: [] })
        assert.strictEqual(yield* store.size, 0)
      }),
    30_000
  )

  it.effect("layers over one store work on it together: all files of all writers are listed", () =>
    Effect.gen(function* () {
      const { noting, state } = yield* recording
      state.slow = true
      const provided = Effect.provideService(StoreBackend.make({ namespace: "a" }), KeyValueStore.KeyValueStore, noting)
      const [first, second] = [yield* provided, yield* provided]
      const writes = Array.from({ length: 300 }, (_, index) =>
        (index % 2 === 0 ? first : second).write(`/d/e/${index}`, "")
      )
      yield* Effect.all(writes, { concurrency: "unbounded" })
      assert.strictEqual((yield* first.ls("/d/e")).entries.length, 300)
      yield* first.write("/list", "end")
      const edits = Array.from({ length: 20 }, (_, index) =>
        (index % 2 === 0 ? first : second).edit("/list", [{ old: "end", new: `${index}\nend` }])
      )
      yield* Effect.all(edits, { concurrency: "unbounded" })
      const list = yield* first.read("/list")
      assert.strictEqual(list.kind === "text" && list.totalLines, 21)
    })
  )

  it.effect("files of others that are created and deleted at once leave the index whole", () =>
    Effect.gen(function* () {
      const { noting, state } = yield* recording
      state.slow = true
      const backend = yield* Effect.provideService(
        StoreBackend.make({ namespace: "a" }),
        KeyValueStore.KeyValueStore,
        noting
      )
      yield* Effect.forEach(
        Array.from({ length: 40 }, (_, index) => index),
        (index) =>
          Effect.gen(function* () {
            const file = `/d/e/${index % 5}/${index}`
            yield* backend.write(file, "")
            yield* Effect.yieldNow
            if (index % 8 !== 0) yield* backend.delete(file)
          }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(paths(yield* backend.glob({ pattern: "**" })), [
        "/d/e/0/0",
        "/d/e/1/16",
        "/d/e/2/32",
        "/d/e/3/8",
        "/d/e/4/24"
      ])
    })
  )

  it.effect("an interruption leaves no half of a file, if the store overwrites in place", () =>
    Effect.gen(function* () {
      const { noting } = yield* recording
      const torn = {
        ...noting,
        set: (key: string, value: string | Uint8Array) =>
          noting.set(key, "").pipe(Effect.andThen(Effect.yieldNow), Effect.andThen(noting.set(key, value)))
      }
      const backend = yield* Effect.provideService(
        StoreBackend.make({ namespace: "a" }),
        KeyValueStore.KeyValueStore,
        torn
      )
      yield* backend.write("/a", "old")
      for (let steps = 0; steps < 12; steps++) {
        const fiber = yield* Effect.forkChild(backend.write("/a", "new"), { startImmediately: true })
        for (let step = 0; step < steps; step++) yield* Effect.yieldNow
        yield* Fiber.interrupt(fiber)
        const file = yield* backend.read("/a")
        assert.include(["old", "new"], file.kind === "text" && file.text, `after ${steps} steps`)
        assert.deepStrictEqual(paths(yield* backend.ls("/")), ["/a"])
        yield* backend.write("/a", "old")
      }
    })
  )

  it.effect("a failure of the store is Unavailable, and names the failing part", () =>
    Effect.gen(function* () {
      const { backend, state } = yield* recording
      const one = yield* backend()
      yield* one.write("/a", "a")
      for (const [method, operation] of [
        ["get", one.ls("/")],
        ["getUint8Array", one.read("/a")],
        ["set", one.write("/a", "b")],
        ["remove", one.delete("/a")],
        ["has", one.read("/nothing")]
      ] as const) {
        state.fails = method
        const error = yield* Effect.flip<unknown, BackendError.BackendError, never>(operation)
        assert.strictEqual(error.reason._tag, "Unavailable")
        assert.include(error.message, method)
        assert.instanceOf(error.cause, KeyValueStore.KeyValueStoreError)
      }
    })
  )

  it.effect("an invalid index does not pass for an empty directory", () =>
    Effect.gen(function* () {
      const { backend, calls, store } = yield* recording
      const one = yield* backend()
      yield* one.write("/a", "a")
      const key = calls.find(([method, name]) => method === "set" && name.includes("-page-"))?.[1] ?? ""
      for (const broken of ["", "{}", '[["../../etc"]]', '[["a",1]]', '[["a/b",1,1]]', '[[""]]']) {
        yield* store.set(key, broken)
        assert.strictEqual(yield* reasonOf(one.ls("/")), "Unavailable", broken)
        assert.strictEqual(yield* reasonOf(one.write("/b", "")), "Unavailable", broken)
      }
    })
  )
})

describe("StoreBackend after a crash", () => {
  const before = { "/keep": "keep", "/d/a": "a", "/d/e/b": "b" }
  const changes: ReadonlyArray<
    readonly [
      string,
      (backend: Backend.Service) => Effect.Effect<unknown, BackendError.BackendError>,
      ReadonlyArray<string>
    ]
  > = [
    ["a new file in new directories", (backend) => backend.write("/x/y/z", "new"), ["/x/y/z"]],
    ["a new file", (backend) => backend.write("/d/new", "new"), ["/d/new"]],
    ["a file overwritten", (backend) => backend.write("/d/a", "new"), ["/d/a"]],
    ["a file deleted", (backend) => backend.delete("/d/a"), ["/d/a"]],
    ["the last file of a directory deleted", (backend) => backend.delete("/d/e/b"), ["/d/e/b"]],
    ["a directory deleted", (backend) => backend.delete("/d", { recursive: true }), ["/d/a", "/d/e/b"]],
    ["a file moved", (backend) => backend.move("/d/e/b", "/x/y"), ["/d/e/b", "/x/y"]],
    ["a directory moved", (backend) => backend.move("/d", "/x"), ["/d/a", "/d/e/b", "/x/a", "/x/e/b"]]
  ]

  for (const [name, change, touched] of changes) {
    it.effect(`${name}: each file is the old one or the new one, and all goes on`, () =>
      Effect.gen(function* () {
        for (let crashAt = 0; ; crashAt++) {
          const { backend, state } = yield* recording
          const first = yield* backend()
          for (const [file, text] of Object.entries(before)) yield* first.write(file, text)
          state.changesLeft = crashAt
          const exit = yield* Effect.exit(change(yield* backend()))
          state.changesLeft = Infinity

          const next = yield* backend()
          const whole = yield* MemoryBackend.make({ files: before })
          yield* Effect.ignore(change(whole))
          // A file is there before it is listed.
          if (name.includes("new") || name.includes("overwritten")) {
            const listed = yield* next.download(paths(yield* next.glob({ pattern: "**" })))
            assert.deepStrictEqual(
              listed.filter((one) => !one.ok),
              []
            )
          }
          // No other file has changed.
          const found: { [path: string]: string } = {}
          for (const file of new Set([...Object.keys(before), ...touched])) {
            const read = yield* Effect.option(next.read(file))
            const text = read._tag === "Some" && read.value.kind === "text" ? read.value.text : undefined
            const after = (yield* snapshot(whole))[file]
            const old = Object.entries(before).find(([one]) => one === file)?.[1]
            assert.include([old, after], text, `${file} after ${crashAt} changes`)
            if (text !== undefined) found[file] = text
          }
          // A file that was moved is here or there, or both.
          if (name.includes("moved")) {
            for (const text of ["a", "b"]) assert.include(Object.values(found), text)
          }
          // Reads equal listings, with any leftovers.
          assert.deepStrictEqual(paths(yield* next.glob({ pattern: "**" })), Object.keys(found).sort())
          assert.deepStrictEqual(yield* snapshot(next), found)
          // A begun operation can be done again, and leaves nothing behind.
          for (const file of touched) yield* Effect.ignore(next.write(file, "again"))
          for (const file of touched) yield* Effect.ignore(next.delete(file))
          yield* Effect.ignore(next.delete("/d", { recursive: true }))
          yield* next.delete("/keep")
          assert.deepStrictEqual(yield* snapshot(yield* backend()), {})
          yield* next.write("/d/e/b", "new")
          assert.deepStrictEqual(yield* snapshot(next), { "/d/e/b": "new" })
          if (Exit.isSuccess(exit)) return
        }
      })
    )
  }

  it.effect("of a directory whose page is being parted nothing is lost", () =>
    Effect.gen(function* () {
      for (let crashAt = 0; ; crashAt++) {
        const { backend, state } = yield* recording
        const first = yield* backend()
        const names = Array.from({ length: 128 }, (_, index) => `/d/${index}`)
        yield* first.upload(names.map((name) => ({ path: name, content: encoder.encode(name) })))
        state.changesLeft = crashAt
        const exit = yield* Effect.exit((yield* backend()).write("/d/last", ""))
        state.changesLeft = Infinity
        const next = yield* backend()
        assert.includeMembers([...paths(yield* next.ls("/d"))], names, `after ${crashAt} changes`)
        yield* next.write("/d/last", "")
        assert.strictEqual((yield* next.ls("/d")).entries.length, 129)
        if (Exit.isSuccess(exit)) return
      }
    })
  )
})
