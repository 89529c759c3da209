/** Mistakes that only a folder of a real machine allows; the rest is in the conformance suite. */
import * as NodeFs from "node:fs"
import * as NodePath from "node:path"
import { fileURLToPath } from "node:url"
import { Worker } from "node:worker_threads"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { Backend, type BackendError } from "effect-deepagents"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { BackendConformance } from "effect-deepagents/testing/conformance"
import { inJail } from "../../../src/backends/internal/local/files.ts"
import * as Jail from "../../../src/backends/internal/local/jail.ts"
import { scaled } from "../../scale.ts"
import { folder, inFolder, onDiskAgain } from "../conformance.ts"
import { runNow, plant, rgPath, system, temporary } from "./temporary.ts"

const tagOf = <A>(effect: Effect.Effect<A, BackendError.BackendError>): Effect.Effect<string> =>
  Effect.match(effect, { onSuccess: () => "Success", onFailure: (error) => error.reason._tag })

const isRoot = process.getuid?.() === 0
const isLinux = process.platform === "linux"
const names = (folder: string) => runNow(() => NodeFs.readdirSync(folder).toSorted())

const opened = Effect.gen(function* () {
  const folders = yield* temporary
  const backend = yield* FilesystemBackend.make({ root: folders.root, ripgrep: false })
  return { ...folders, backend }
})

/** A folder as a system without /proc opens it. */
const makeByPath = Effect.fnUntraced(function* (root: string) {
  const jail = yield* Effect.orDie(Effect.mapError(Jail.make(root), () => new Error("no root")))
  const byPath = { ...jail, byDescriptor: false }
  return yield* inJail(byPath, byPath, { ripgrep: false })
})

const openedByPath = Effect.gen(function* () {
  const folders = yield* temporary
  return { ...folders, backend: yield* makeByPath(folders.root) }
})

for (const [kind, layer] of [
  ["a folder", folder(false)],
  ["a folder without /proc", (root: string) => Backend.layer(makeByPath(root))]
] as const) {
  describe(`links in ${kind}`, () => {
    const checks = BackendConformance.suite({
      layer: inFolder<Backend.Backend, BackendError.BackendError>(layer),
      ...onDiskAgain
    })
    for (const check of checks.filter(({ name }) => name.includes("link"))) it.live(check.name, () => check.run, 60_000)
  })
}

describe("a folder that is only read", () => {
  it.live("has no hidden files and no installed dependencies, and nothing in it changes", () =>
    Effect.gen(function* () {
      const { root } = yield* temporary
      yield* plant(root, {
        "a.txt": "hit",
        "src/b.txt": "hit",
        ".env": "hit",
        "src/.secret/c.txt": "hit",
        "src/node_modules/d/e.txt": "hit"
      })
      const context = yield* Layer.build(FilesystemBackend.layerReadOnly({ root, ripgrep: false }))
      const backend = Context.get(context, Backend.Backend)
      const { files } = yield* backend.grep({ pattern: "hit", ignored: true })
      assert.deepStrictEqual(files.map(({ path }) => path).toSorted(), ["/a.txt", "/src/b.txt"])
      const refused = [
        backend.read("/.env"),
        backend.read("/src/.secret/c.txt"),
        backend.read("/src/node_modules/d/e.txt"),
        backend.write("/new.txt", "x"),
        backend.edit("/a.txt", [{ old: "hit", new: "x" }]),
        backend.move("/a.txt", "/b.txt"),
        backend.delete("/a.txt")
      ]
      for (const one of refused) assert.strictEqual(yield* tagOf<unknown>(one), "PermissionDenied")
      assert.deepStrictEqual(yield* names(root), [".env", "a.txt", "src"])
      assert.strictEqual(yield* runNow(() => NodeFs.readFileSync(`${root}/a.txt`, "utf8")), "hit")
    })
  )
})

describe("the root", () => {
  it.live("is a folder that exists, or the layer is not built", () =>
    Effect.gen(function* () {
      const { root } = yield* temporary
      yield* plant(root, { "file.txt": "text" })
      const missing = yield* Effect.flip(FilesystemBackend.make({ root: `${root}/none` }))
      assert.strictEqual(missing.reason._tag, "NotFound")
      assert.include(missing.message, "make this folder first")
      assert.strictEqual(yield* tagOf(FilesystemBackend.make({ root: `${root}/file.txt` })), "NotDirectory")
    })
  )

  it.live("may be named by a link, whose target it is from then on", () =>
    Effect.gen(function* () {
      const { outside, root } = yield* temporary
      yield* plant(root, { "a/file.txt": "text" })
      const alias = `${root}/../alias`
      yield* runNow(() => NodeFs.symlinkSync(`${root}/a`, alias))
      const backend = yield* FilesystemBackend.make({ root: alias })
      yield* runNow(() => {
        NodeFs.unlinkSync(alias)
        NodeFs.symlinkSync(outside, alias)
      })
      assert.deepStrictEqual(
        (yield* backend.ls("/")).entries.map(({ path }) => path),
        ["/file.txt"]
      )
    })
  )

  it.live("a ripgrep that can't be run is said when the layer is built; one in the root is never run", () =>
    Effect.gen(function* () {
      const { outside, root } = yield* temporary
      const error = yield* Effect.flip(FilesystemBackend.make({ root, ripgrep: `${root}/rg` }))
      assert.strictEqual(error.reason._tag, "NotFound")
      const mark = `${root}/ran`
      yield* plant(root, { "bin/rg": `#!/bin/sh\ntouch ${mark}\n`, "file.txt": "text" })
      yield* plant(outside, { rg: `#!/bin/sh\ntouch ${mark}\n` })
      yield* runNow(() => [`${root}/bin/rg`, `${outside}/rg`].forEach((program) => NodeFs.chmodSync(program, 0o755)))
      const search = (path: string) =>
        Effect.acquireUseRelease(
          runNow(() => {
            const before = { path: process.env["PATH"] ?? "", folder: process.cwd() }
            process.env["PATH"] = path
            process.chdir(root)
            return before
          }),
          () => Effect.flatMap(FilesystemBackend.make({ root }), (backend) => backend.grep({ pattern: "text" })),
          ({ folder, path: before }) =>
            runNow(() => {
              process.chdir(folder)
              process.env["PATH"] = before
            })
        )
      const { files } = yield* search(`${root}/bin:bin:.:../outside`)
      assert.deepStrictEqual([files.length, NodeFs.existsSync(mark)], [1, false])
    })
  )
})

describe("links", () => {
  for (const [kind, make] of [
    ["by descriptor", opened],
    ["by path", openedByPath]
  ] as const) {
    it.live(`to another process's root lead nowhere, and to a file that is not there yet make it (${kind})`, () =>
      Effect.gen(function* () {
        const { backend, outside, root } = yield* make
        yield* runNow(() => {
          NodeFs.symlinkSync("/proc/self/root", `${root}/proc`)
          NodeFs.symlinkSync("later.txt", `${root}/dangling`)
        })
        for (const operation of [
          backend.read(`/proc${outside}/secret.txt`),
          backend.write(`/proc${outside}/secret.txt`, "x"),
          backend.ls("/proc")
        ])
          assert.strictEqual(yield* tagOf<unknown>(operation), "OutsideRoot")
        yield* backend.write("/dangling", "made")
        assert.strictEqual(NodeFs.readFileSync(`${root}/later.txt`, "utf8"), "made")
        assert.strictEqual(NodeFs.readFileSync(`${outside}/secret.txt`, "utf8"), "secret\n")
      })
    )
  }

  it.live("are refused before anything outside is looked at", () =>
    Effect.gen(function* () {
      const { backend, outside, root } = yield* opened
      // Any look at it waits for its mount, or is noticed: here, by its changed time of access.
      yield* plant(outside, { "trap/file.txt": "text" })
      yield* runNow(() => {
        NodeFs.symlinkSync(`${outside}/trap`, `${root}/out`)
        NodeFs.utimesSync(`${outside}/trap`, new Date(0), new Date(0))
      })
      for (const run of [
        backend.ls("/out"),
        backend.read("/out/file.txt"),
        backend.grep({ pattern: "text" }),
        backend.glob({ pattern: "**" }),
        backend.ls("/")
      ])
        yield* Effect.ignore(run)
      assert.strictEqual(NodeFs.statSync(`${outside}/trap`).atimeMs, 0)
    })
  )
})

/** Swaps a folder and a link to the outside as fast as it can. */
const swapping = (root: string, outside: string) =>
  Effect.acquireRelease(
    runNow(() => {
      const code = `
        const fs = require("node:fs")
        const { root, outside } = require("node:worker_threads").workerData
        const [dir, link, away] = ["/dir", "/link", "/away"].map((name) => root + name)
        for (;;) {
          try {
            if (!fs.lstatSync(link, { throwIfNoEntry: false })) fs.symlinkSync(outside, link)
            fs.renameSync(dir, away)
            fs.renameSync(link, dir)
            fs.renameSync(dir, link)
            fs.renameSync(away, dir)
          } catch {
            // A write has made the folder anew meanwhile.
            try {
              fs.rmSync(dir, { recursive: true, force: true })
              if (fs.existsSync(away)) fs.renameSync(away, dir)
            } catch {
              // And once more: the next round takes care of it.
            }
          }
        }`
      return new Worker(code, { eval: true, workerData: { root, outside } })
    }),
    (worker) => Effect.promise(() => worker.terminate())
  )

describe.runIf(isLinux)("a folder that is swapped for a link all the time", () => {
  it.live(
    "never leads out: not a read, a write, a listing, a search, a delete or a move",
    () =>
      Effect.gen(function* () {
        const { backend, outside, root } = yield* opened
        yield* plant(root, { "dir/secret.txt": "inside\n", "dir/sub/secret.txt": "inside\n" })
        yield* plant(outside, { "sub/secret.txt": "secret\n" })
        yield* swapping(root, outside)
        const until = Date.now() + scaled(3000)
        const seen = { inside: 0, refused: 0 }
        const count = <A>(run: Effect.Effect<A, BackendError.BackendError>) =>
          Effect.match(run, { onSuccess: () => void seen.inside++, onFailure: () => void seen.refused++ })
        for (let round = 0; Date.now() < until || Math.min(seen.inside, seen.refused) <= 10; round++) {
          for (const path of ["/dir/secret.txt", "/dir/sub/secret.txt"]) {
            const read = yield* Effect.option(backend.read(path))
            if (read._tag === "Some") assert.strictEqual(read.value.kind === "text" && read.value.text, "inside")
          }
          yield* count(backend.write(`/dir/new-${round}.txt`, "x"))
          yield* count(backend.write(`/dir/deep-${round}/new.txt`, "x"))
          yield* count(backend.upload([{ path: "/dir/sub/up.txt", content: new Uint8Array(3) }]).pipe(Effect.asVoid))
          yield* count(backend.delete("/dir/secret.txt"))
          yield* count(backend.delete("/dir/sub", { recursive: true }))
          yield* count(backend.write("/dir/secret.txt", "inside\n"))
          yield* count(backend.write("/dir/sub/secret.txt", "inside\n"))
          yield* count(backend.move("/dir/secret.txt", "/dir/moved.txt"))
          yield* count(backend.move("/dir/moved.txt", "/dir/secret.txt"))
          const found = yield* Effect.option(backend.grep({ pattern: "secret" }))
          if (found._tag === "Some") assert.deepStrictEqual(found.value.files, [])
          yield* count(backend.ls("/dir"))
        }
        assert.deepStrictEqual(yield* names(outside), ["secret.txt", "sub"])
        assert.deepStrictEqual(yield* names(`${outside}/sub`), ["secret.txt"])
      }),
    60_000
  )

  it.live(
    "nor does a file that is swapped for a link, or for a pipe that nobody writes to",
    () =>
      Effect.gen(function* () {
        const { backend, outside, root } = yield* opened
        yield* plant(root, { "file.txt": "inside\n" })
        yield* system("mkfifo", `${root}/pipe`)
        yield* Effect.acquireRelease(
          runNow(() => {
            const code = `
              const fs = require("node:fs")
              const { root, outside } = require("node:worker_threads").workerData
              const [file, link, pipe, away] = ["/file.txt", "/link", "/pipe", "/away"].map((name) => root + name)
              fs.symlinkSync(outside + "/secret.txt", link)
              fs.renameSync(file, away)
              for (;;) {
                for (const other of [link, pipe, away]) {
                  fs.renameSync(other, file)
                  fs.renameSync(file, other)
                }
              }`
            return new Worker(code, { eval: true, workerData: { root, outside } })
          }),
          (worker) => Effect.promise(() => worker.terminate())
        )
        const until = Date.now() + scaled(2500)
        let read = 0
        while (Date.now() < until || read === 0) {
          const found = yield* Effect.option(backend.read("/file.txt"))
          if (found._tag === "None") continue
          assert.strictEqual(found.value.kind === "text" && found.value.text, "inside")
          read++
        }
      }).pipe(Effect.timeout("50 seconds")),
    60_000
  )

  it.live(
    "does not let ripgrep's findings out either",
    () =>
      Effect.gen(function* () {
        const { outside, root } = yield* temporary
        const backend = yield* FilesystemBackend.make({ root, ripgrep: rgPath })
        yield* plant(root, { "dir/file.txt": "inside\n" })
        yield* swapping(root, outside)
        const until = Date.now() + scaled(1500)
        while (Date.now() < until) {
          const { files } = yield* backend.grep({ pattern: "s.c.et", regex: true })
          assert.deepStrictEqual(files, [])
        }
      }),
    60_000
  )
})

describe("irregular files", () => {
  it.live("is neither read nor written, and nobody waits for it", () =>
    Effect.gen(function* () {
      const { backend, root } = yield* opened
      yield* system("mkfifo", `${root}/pipe`)
      if (isRoot && isLinux) yield* system("mknod", `${root}/zero`, "c", "1", "5")
      const paths = isRoot && isLinux ? ["/pipe", "/zero"] : ["/pipe"]
      for (const path of paths) {
        assert.strictEqual(yield* tagOf(backend.read(path)), "Unsupported", path)
        assert.strictEqual(yield* tagOf(backend.write(path, "x")), "Unsupported", path)
        assert.strictEqual(yield* tagOf(backend.edit(path, [{ old: "a", new: "b" }])), "Unsupported", path)
        const [download] = yield* backend.download([path])
        assert.isTrue(download?.ok === false && download.error.reason._tag === "Unsupported", path)
      }
      assert.deepStrictEqual((yield* backend.grep({ pattern: "x" })).files, [])
      assert.deepStrictEqual((yield* backend.glob({ pattern: "*" })).entries, [])
      yield* Effect.forEach(paths, (path) => backend.delete(path))
    }).pipe(Effect.timeout("5 seconds"))
  )

  it.live("an ignore file that is a pipe, a device or a link out holds nobody up and says nothing", () =>
    Effect.gen(function* () {
      const { outside, root } = yield* temporary
      yield* plant(root, { "a/file.txt": "text", "b/file.txt": "text", "c/file.txt": "text" })
      yield* plant(outside, { ignore: "*\n" })
      yield* system("mkfifo", `${root}/a/.gitignore`)
      yield* runNow(() => {
        NodeFs.symlinkSync("/dev/zero", `${root}/b/.gitignore`)
        NodeFs.symlinkSync(`${outside}/ignore`, `${root}/c/.gitignore`)
      })
      for (const ripgrep of [rgPath, false] as const) {
        const backend = yield* FilesystemBackend.make({ root, ripgrep })
        const { files } = yield* backend.grep({ pattern: "text", mode: "files" })
        assert.strictEqual(files.length, 3)
        assert.strictEqual((yield* backend.glob({ pattern: "file.txt" })).entries.length, 3)
      }
    }).pipe(Effect.timeout("5 seconds"))
  )
})

describe("writes", () => {
  it.live("keep the mode and the owner of the replaced file", () =>
    Effect.gen(function* () {
      const { backend, root } = yield* opened
      yield* plant(root, { "run.sh": "#!/bin/sh\n", "private.txt": "x" })
      yield* runNow(() => {
        NodeFs.chmodSync(`${root}/run.sh`, 0o755)
        NodeFs.chmodSync(`${root}/private.txt`, 0o600)
        if (isRoot) NodeFs.chownSync(`${root}/private.txt`, 1234, 4321)
      })
      yield* backend.edit("/run.sh", [{ old: "sh\n", new: "sh\ntrue\n" }])
      yield* backend.write("/private.txt", "y")
      assert.strictEqual(NodeFs.statSync(`${root}/run.sh`).mode & 0o7777, 0o755)
      const { gid, mode, uid } = NodeFs.statSync(`${root}/private.txt`)
      assert.deepStrictEqual([mode & 0o7777, ...(isRoot ? [uid, gid] : [])], [0o600, ...(isRoot ? [1234, 4321] : [])])
    })
  )

  it.live("show a reader the old file or the new one, and leave nothing else behind", () =>
    Effect.gen(function* () {
      const { backend, root } = yield* opened
      const contents = ["a", "b"].map((letter) => letter.repeat(3_000_000))
      yield* backend.write("/file.txt", contents[0]!)
      const writer = yield* Effect.forkChild(
        Effect.forEach(Array.from({ length: 12 }), (_, round) => backend.write("/file.txt", contents[round % 2]!))
      )
      let listed = 0
      while (writer.pollUnsafe() === undefined) {
        const text = yield* Effect.promise(() => NodeFs.promises.readFile(`${root}/file.txt`, "utf8"))
        assert.isTrue(contents.includes(text))
        const { entries } = yield* backend.ls("/")
        assert.deepStrictEqual(
          entries.map(({ path }) => path),
          ["/file.txt"]
        )
        listed++
      }
      yield* Fiber.join(writer)
      assert.isAbove(listed, 2)
      assert.deepStrictEqual(yield* names(root), ["file.txt"])
    })
  )

  it.live("that are interrupted leave the old file, or the new one, and nothing else", () =>
    Effect.gen(function* () {
      const { backend, root } = yield* opened
      const [before, after] = ["a".repeat(5_000_000), "b".repeat(5_000_000)]
      let kept = 0
      for (let wait = 0; wait < 24; wait++) {
        yield* backend.write("/file.txt", before)
        yield* Effect.ignore(Effect.timeoutOption(backend.write("/file.txt", after), `${wait / 2} millis`))
        assert.deepStrictEqual(yield* names(root), ["file.txt"])
        const text = NodeFs.readFileSync(`${root}/file.txt`, "utf8")
        assert.isTrue(text === before || text === after)
        if (text === before) kept++
      }
      assert.isAbove(kept, 0)
    })
  )

  it.live("of a name of 255 bytes work, beside an old file too", () =>
    Effect.gen(function* () {
      const { backend } = yield* opened
      const path = `/${"ä".repeat(127)}a`
      yield* backend.write(path, "one")
      yield* backend.write(path, "two")
      const read = yield* backend.read(path)
      assert.strictEqual(read.kind === "text" && read.text, "two")
    })
  )

  it.live("that must make a file never replace one, against any other writer", () =>
    Effect.gen(function* () {
      const { root } = yield* temporary
      const backends = yield* Effect.forEach(Array.from({ length: 8 }), () => FilesystemBackend.make({ root }))
      for (let round = 0; round < 10; round++) {
        const path = `/made-${round}.txt`
        const outcomes = yield* Effect.forEach(
          backends,
          (backend, index) => tagOf(backend.write(path, `${index}`, { create: true })),
          { concurrency: "unbounded" }
        )
        assert.strictEqual(outcomes.filter((tag) => tag === "Success").length, 1)
        assert.strictEqual(outcomes.filter((tag) => tag === "AlreadyExists").length, 7)
        const winner = outcomes.indexOf("Success")
        assert.strictEqual(NodeFs.readFileSync(root + path, "utf8"), `${winner}`)
      }
    })
  )

  it.live("shows nobody the leftovers of a crash, and removes them with their folder", () =>
    Effect.gen(function* () {
      const { backend, root } = yield* opened
      const leftover = `.effect-deepagents-${"0".repeat(32)}`
      yield* plant(root, { [`d/${leftover}`]: "needle", [`e/f/${leftover}`]: "needle" })
      const withRipgrep = yield* FilesystemBackend.make({ root, ripgrep: rgPath })
      assert.deepStrictEqual((yield* backend.ls("/d")).entries, [])
      assert.deepStrictEqual((yield* backend.glob({ pattern: "**" })).entries, [])
      assert.deepStrictEqual((yield* backend.grep({ pattern: "needle" })).files, [])
      assert.deepStrictEqual((yield* withRipgrep.grep({ pattern: "needle" })).files, [])
      yield* backend.delete("/d")
      yield* backend.delete("/e", { recursive: true })
      assert.deepStrictEqual(yield* names(root), [])
    })
  )
})

describe("versions", () => {
  it.live("change with each change behind the back of the backend", () =>
    Effect.gen(function* () {
      const { backend, root } = yield* opened
      yield* backend.write("/file.txt", "one")
      const seen = new Set<string>()
      const version = Effect.map(backend.read("/file.txt"), (read) => void seen.add(read.version))
      yield* version
      yield* runNow(() => NodeFs.writeFileSync(`${root}/file.txt`, "three"))
      yield* version
      yield* runNow(() => {
        NodeFs.writeFileSync(`${root}/other.txt`, "threE")
        NodeFs.renameSync(`${root}/other.txt`, `${root}/file.txt`)
      })
      yield* version
      assert.strictEqual(seen.size, 3)
      const [first = ""] = seen
      assert.strictEqual(yield* tagOf(backend.write("/file.txt", "x", { version: first })), "Conflict")
    })
  )

  it.live("a write returns the file's version", () =>
    Effect.gen(function* () {
      const { backend } = yield* opened
      const written = yield* backend.write("/file.txt", "one")
      assert.strictEqual((yield* backend.read("/file.txt")).version, written.version)
      const edited = yield* backend.edit("/file.txt", [{ old: "one", new: "two" }], { version: written.version })
      assert.strictEqual((yield* backend.read("/file.txt")).version, edited.version)
    })
  )
})

/** A disk of its own, or nothing where none can be mounted. */
const disk = (options: string) =>
  Effect.gen(function* () {
    const { root } = yield* temporary
    yield* Effect.acquireRelease(system("mount", "-t", "tmpfs", "-o", options, "tmpfs", root), () =>
      system("umount", "-l", root)
    )
    return root
  })

describe.runIf(isRoot && isLinux)("refusals of the system", () => {
  it.live("a full disk is Unavailable, says so, and leaves the old file and nothing else", () =>
    Effect.gen(function* () {
      const root = yield* disk("size=64k")
      const backend = yield* FilesystemBackend.make({ root })
      yield* backend.write("/file.txt", "old")
      const error = yield* Effect.flip(backend.write("/file.txt", "x".repeat(200_000)))
      assert.deepStrictEqual([error.reason._tag, error.detail], ["Unavailable", "the disk is full"])
      assert.notInclude(error.message, root)
      assert.deepStrictEqual(yield* names(root), ["file.txt"])
      assert.strictEqual(NodeFs.readFileSync(`${root}/file.txt`, "utf8"), "old")
    })
  )

  it.live("a disk that is read-only is PermissionDenied, and says so", () =>
    Effect.gen(function* () {
      const root = yield* disk("ro")
      const backend = yield* FilesystemBackend.make({ root })
      const error = yield* Effect.flip(backend.write("/file.txt", "x"))
      assert.deepStrictEqual([error.reason._tag, error.detail], ["PermissionDenied", "the file system is read-only"])
    })
  )

  it.live("two disks in one root: a move from one to the other is Unsupported, and says what to do", () =>
    Effect.gen(function* () {
      const inner = yield* disk("size=64k")
      const backend = yield* FilesystemBackend.make({ root: NodePath.dirname(inner) })
      yield* backend.write("/root/file.txt", "x")
      const error = yield* Effect.flip(backend.move("/root/file.txt", "/file.txt"))
      assert.strictEqual(error.reason._tag, "Unsupported")
      assert.include(error.message, "different file systems")
      assert.strictEqual((yield* backend.read("/root/file.txt")).size, 1)
    })
  )

  it.live(
    "a file that only others may write is not replaced",
    () =>
      Effect.gen(function* () {
        const { root } = yield* temporary
        yield* plant(root, { "theirs.txt": "old" })
        yield* runNow(() => {
          for (let at = root; at !== "/tmp" && at !== "/"; at = NodePath.dirname(at)) NodeFs.chmodSync(at, 0o777)
          NodeFs.chmodSync(`${root}/theirs.txt`, 0o644)
        })
        const script = fileURLToPath(new URL("./write.ts", import.meta.url))
        const nobody = ["--reuid=65534", "--regid=65534", "--clear-groups"]
        const condition = "--conditions=@effect-deepagents/source"
        const output = yield* system("setpriv", ...nobody, process.execPath, condition, script, root)
        assert.deepStrictEqual(JSON.parse(output), { theirs: "PermissionDenied", mine: "Success" })
        assert.strictEqual(NodeFs.readFileSync(`${root}/theirs.txt`, "utf8"), "old")
      }),
    30_000
  )
})

describe("large files", () => {
  it.live(
    "a window is read with flat memory",
    () =>
      Effect.gen(function* () {
        const { backend, root } = yield* opened
        const line = `${"x".repeat(99)}\n`
        const chunk = line.repeat(40_000)
        yield* runNow(() => {
          const fd = NodeFs.openSync(`${root}/huge.txt`, "w")
          for (let part = 0; part < 75; part++) NodeFs.writeSync(fd, chunk)
          NodeFs.closeSync(fd)
        })
        const before = process.memoryUsage().rss
        let peak = before
        const timer = setInterval(() => {
          peak = Math.max(peak, process.memoryUsage().rss)
        }, 5)
        const read = yield* backend.read("/huge.txt", { offset: 2_999_000, limit: 3 })
        clearInterval(timer)
        assert.isTrue(read.kind === "text" && read.totalLines === 3_000_000 && read.startLine === 2_999_000)
        assert.isBelow(peak - before, 120_000_000)
        const [download] = yield* backend.download(["/huge.txt"])
        assert.isTrue(download?.ok === false && download.error.reason._tag === "TooLarge")
      }),
    60_000
  )
})

describe("names", () => {
  const operations = (backend: Backend.Service) => [
    Effect.map(backend.ls("/"), ({ entries }) => entries.map(({ path }) => path)),
    Effect.map(backend.glob({ pattern: "**" }), ({ entries }) => entries.map(({ path }) => path)),
    Effect.map(backend.grep({ pattern: "text" }), ({ files }) => files.map(({ path }) => path))
  ]

  it.live("that no path can say are not shown; all that is shown can be read", () =>
    Effect.gen(function* () {
      const { root } = yield* temporary
      const shown = [
        "new\nline",
        "q\"uote's",
        "$&",
        "a:b",
        "-e",
        "--help",
        " ",
        "e\u0301",
        "\u00e9",
        "*",
        "f\uFFFD\uFFFD",
        "[a]",
        "\uFFFD"
      ]
      yield* plant(root, Object.fromEntries([...shown, "back\\slash", "~tilde"].map((name) => [name, "text"])))
      if (isLinux) {
        yield* runNow(() =>
          NodeFs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x66, 0xff, 0xfe])]), "text")
        )
      }
      for (const ripgrep of [rgPath, false] as const) {
        const backend = yield* FilesystemBackend.make({ root, ripgrep })
        for (const operation of operations(backend)) {
          const found = yield* operation
          assert.deepStrictEqual(found.toSorted(), shown.map((name) => `/${name}`).toSorted())
        }
        yield* Effect.forEach(shown, (name) => backend.read(`/${name}`))
      }
      const backend = yield* FilesystemBackend.make({ root: NodePath.dirname(root) })
      yield* backend.delete("/root", { recursive: true })
      assert.isFalse(NodeFs.existsSync(root))
    })
  )
})
