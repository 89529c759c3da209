import { chmod, lstat, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it, vi } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type { Backend, BackendError, Sandbox } from "effect-deepagents"
import { CustomSandbox, MemoryBackend } from "effect-deepagents/backends"
import { isFull } from "../scale.ts"
import * as LocalShell from "./fixtures/localShell.ts"
import { family, awaitGone, isAlive, pidIn } from "./processes.ts"

// Each operation is a shell with a dozen processes: seconds on a machine that has other things to do.
vi.setConfig({ testTimeout: 60_000 })

interface Box {
  readonly shell: LocalShell.LocalShell
  readonly sandbox: Sandbox.Service
  readonly host: (path: string) => string
  /** How many commands an effect runs. */
  readonly trips: (effect: Effect.Effect<unknown, unknown>) => Effect.Effect<number>
}

const boxOf = Effect.fnUntraced(function* (kind?: LocalShell.Kind, options?: Partial<CustomSandbox.Options>) {
  const shell = yield* LocalShell.make(kind)
  const root = join(shell.folder, "root")
  const sandbox = yield* CustomSandbox.make(LocalShell.functionsOf(shell), { root, ...options })
  return {
    shell,
    sandbox,
    host: (path) => join(root, path),
    trips: (effect) =>
      Effect.suspend(() => {
        const before = shell.commands.length
        return Effect.map(Effect.exit(effect), () => shell.commands.length - before)
      })
  } satisfies Box
})

const reasonOf = <A>(effect: Effect.Effect<A, BackendError.BackendError>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason._tag)

const bytes = (text: string) => new TextEncoder().encode(text)
const on = <A>(run: () => Promise<A>) => Effect.promise(run)

/** Names that break tools for text. */
const names = [
  "it's",
  'a"b',
  "$&$(id)`id`",
  "-rf",
  "*",
  "[a]?",
  "new\nline",
  " ",
  "ä€😀",
  "#",
  "a:b",
  "\u0001",
  "e\u0301",
  "x".repeat(255)
]

for (const [index, kind] of LocalShell.kinds.entries()) {
  /** All cases over the first shell, some over each other one; a third if there is only the first. */
  const some = <A>(all: ReadonlyArray<A>) =>
    all.filter((_, nth) => (isFull ? index === 0 || nth % 4 === index : nth % 3 === 0))

  describe.runIf(index === 0 || isFull)(`a sandbox from three functions, over ${kind.name}`, () => {
    it.live("names are bytes as given, in any shell", () =>
      Effect.gen(function* () {
        const { host, sandbox } = yield* boxOf(kind)
        for (const name of names) {
          yield* sandbox.write(`/d/${name}`, `old ${name}`)
          expect(yield* on(() => readFile(host(`/d/${name}`), "utf8"))).toBe(`old ${name}`)
          yield* sandbox.edit(`/d/${name}`, [{ old: "old ", new: "$& $1 \\1 & '" }])
          expect(yield* sandbox.read(`/d/${name}`)).toMatchObject({ path: `/d/${name}` })
          expect(yield* on(() => readFile(host(`/d/${name}`), "utf8"))).toBe(`$& $1 \\1 & '${name}`)
        }
        const listed = yield* sandbox.ls("/d")
        expect(new Set(listed.entries.map(({ path }) => path))).toEqual(new Set(names.map((name) => `/d/${name}`)))
        for (const { path, size } of listed.entries) {
          expect(size).toBe((yield* on(() => stat(host(path)))).size)
        }
        const globbed = yield* sandbox.glob({ pattern: "**" })
        expect(globbed.entries.map(({ path }) => path)).toEqual(listed.entries.map(({ path }) => path))
        const grepped = yield* sandbox.grep({ pattern: "$1" })
        expect(grepped.files.map(({ path }) => path)).toEqual(listed.entries.map(({ path }) => path))
        for (const name of names) {
          yield* sandbox.move(`/d/${name}`, `/e/${name}/${name}`)
          yield* sandbox.delete(`/e/${name}`, { recursive: true })
        }
        expect((yield* sandbox.ls("/e")).entries).toEqual([])
      }).pipe(Effect.scoped)
    )

    it.live("each failure has its reason", () =>
      Effect.gen(function* () {
        const { host, sandbox } = yield* boxOf(kind)
        yield* sandbox.write("/a.txt", "text")
        yield* sandbox.write("/dir/b.txt", "text")
        expect(yield* reasonOf(sandbox.read("/none"))).toBe("NotFound")
        expect(yield* reasonOf(sandbox.read("/none/deep"))).toBe("NotFound")
        expect(yield* reasonOf(sandbox.read("/a.txt/b"))).toBe("NotDirectory")
        expect(yield* reasonOf(sandbox.read("/dir"))).toBe("IsDirectory")
        expect(yield* reasonOf(sandbox.read("/"))).toBe("IsDirectory")
        expect(yield* reasonOf(sandbox.ls("/a.txt"))).toBe("NotDirectory")
        expect(yield* reasonOf(sandbox.ls("/none"))).toBe("NotFound")
        expect(yield* reasonOf(sandbox.write("/dir", "x"))).toBe("IsDirectory")
        expect(yield* reasonOf(sandbox.write("/", "x"))).toBe("IsDirectory")
        expect(yield* reasonOf(sandbox.write("/a.txt/b", "x"))).toBe("NotDirectory")
        expect(yield* reasonOf(sandbox.write("/a.txt", "x", { create: true }))).toBe("AlreadyExists")
        expect(yield* reasonOf(sandbox.write("/a.txt", "x", { version: "old" }))).toBe("Conflict")
        expect(yield* reasonOf(sandbox.write("/new.txt", "x", { version: "old" }))).toBe("Conflict")
        expect(yield* reasonOf(sandbox.edit("/none", [{ old: "a", new: "b" }]))).toBe("NotFound")
        expect(yield* reasonOf(sandbox.edit("/a.txt", [{ old: "zzz", new: "b" }]))).toBe("NoMatch")
        expect(yield* reasonOf(sandbox.edit("/a.txt", [{ old: "t", new: "b" }]))).toBe("NotUnique")
        expect(yield* reasonOf(sandbox.edit("/a.txt", [{ old: "e", new: "b" }], { version: "old" }))).toBe("Conflict")
        expect(yield* reasonOf(sandbox.delete("/"))).toBe("InvalidPath")
        expect(yield* reasonOf(sandbox.delete("/", { recursive: true }))).toBe("InvalidPath")
        expect(yield* reasonOf(sandbox.delete("/none"))).toBe("NotFound")
        expect(yield* reasonOf(sandbox.delete("/dir"))).toBe("IsDirectory")
        expect(yield* reasonOf(sandbox.move("/none", "/x"))).toBe("NotFound")
        expect(yield* reasonOf(sandbox.move("/dir", "/a.txt"))).toBe("AlreadyExists")
        expect(yield* reasonOf(sandbox.move("/dir", "/dir/in"))).toBe("InvalidPath")
        expect(yield* reasonOf(sandbox.move("/dir", "/dir"))).toBe("InvalidPath")
        expect(yield* reasonOf(sandbox.move("/dir", "/a.txt/x"))).toBe("NotDirectory")
        expect(yield* reasonOf(sandbox.glob({ pattern: "**", path: "/none" }))).toBe("NotFound")
        expect(yield* reasonOf(sandbox.glob({ pattern: "[" }))).toBe("InvalidPattern")
        expect(yield* reasonOf(sandbox.grep({ pattern: "(", regex: true }))).toBe("InvalidPattern")
        for (const path of ["..", "/../x", "/a/../../x", "~", "~/x"]) {
          expect(yield* reasonOf(sandbox.read(path))).toBe("OutsideRoot")
        }
        for (const path of ["C:/x", "a\\b", "a\0b"]) expect(yield* reasonOf(sandbox.read(path))).toBe("InvalidPath")
        yield* on(() => writeFile(host("/bin"), new Uint8Array([0, 1, 2])))
        expect(yield* sandbox.read("/bin")).toMatchObject({ kind: "binary", size: 3 })
        expect(yield* reasonOf(sandbox.edit("/bin", [{ old: "a", new: "b" }]))).toBe("NotText")
        expect(yield* on(() => readFile(host("/a.txt"), "utf8"))).toBe("text")
        expect(yield* on(() => readdir(host("/")))).toEqual(["a.txt", "bin", "dir"])
      }).pipe(Effect.scoped)
    )

    it.live("links are followed within the root, and nowhere else", () =>
      Effect.gen(function* () {
        const { host, sandbox, shell } = yield* boxOf(kind)
        yield* sandbox.write("/in/file.txt", "inside")
        yield* on(() => mkdir(join(shell.folder, "out")))
        yield* on(() => writeFile(join(shell.folder, "out/secret.txt"), "secret"))
        yield* on(() => symlink("in/file.txt", host("/link.txt")))
        yield* on(() => symlink(host("/in"), host("/absolute")))
        yield* on(() => symlink("../out", host("/outdir")))
        yield* on(() => symlink("../out/secret.txt", host("/outfile")))
        yield* on(() => symlink("outfile", host("/twice")))
        yield* on(() => symlink("loop2", host("/loop1")))
        yield* on(() => symlink("loop1", host("/loop2")))
        yield* on(() => symlink("..", host("/up")))
        yield* on(() => symlink(".", host("/self")))
        yield* on(() => symlink("in/none", host("/dangling")))
        yield* on(() => symlink(`${host("")}x/../../out/secret.txt`, host("/prefix")))

        expect(yield* sandbox.read("/link.txt")).toMatchObject({ text: "inside", path: "/link.txt" })
        expect(yield* sandbox.read("/absolute/file.txt")).toMatchObject({ text: "inside" })
        expect(yield* sandbox.read("/self/self/in/file.txt")).toMatchObject({ text: "inside" })
        for (const path of ["/outdir/secret.txt", "/outfile", "/twice", "/loop1", "/up/out/secret.txt", "/loop1/x"]) {
          expect([path, yield* reasonOf(sandbox.read(path))]).toEqual([path, "OutsideRoot"])
          expect([path, yield* reasonOf(sandbox.write(path, "x"))]).toEqual([path, "OutsideRoot"])
          expect([path, yield* reasonOf(sandbox.edit(path, [{ old: "secret", new: "x" }]))]).toEqual([
            path,
            "OutsideRoot"
          ])
          const [down] = yield* sandbox.download([path])
          expect(down).toMatchObject({ ok: false, error: { reason: { _tag: "OutsideRoot" } } })
        }
        for (const path of ["/outdir", "/up"]) {
          expect([path, yield* reasonOf(sandbox.ls(path))]).toEqual([path, "OutsideRoot"])
          expect([path, yield* reasonOf(sandbox.write(`${path}/new.txt`, "x"))]).toEqual([path, "OutsideRoot"])
          expect([path, yield* reasonOf(sandbox.delete(`${path}/x`, { recursive: true }))]).toEqual([
            path,
            "OutsideRoot"
          ])
          expect([path, yield* reasonOf(sandbox.move("/in", `${path}/x`))]).toEqual([path, "OutsideRoot"])
          expect([path, yield* reasonOf(sandbox.execute("id", { cwd: path }))]).toEqual([path, "OutsideRoot"])
        }
        expect(["NotFound", "OutsideRoot"]).toContain(yield* reasonOf(sandbox.read("/prefix")))
        expect(yield* reasonOf(sandbox.read("/dangling"))).toBe("NotFound")

        expect((yield* sandbox.ls("/")).entries.map(({ kind: what, path }) => [path, what])).toEqual([
          ["/absolute", "directory"],
          ["/dangling", "link"],
          ["/in", "directory"],
          ["/link.txt", "file"],
          ["/loop1", "link"],
          ["/loop2", "link"],
          ["/outdir", "link"],
          ["/outfile", "link"],
          ["/prefix", "link"],
          ["/self", "directory"],
          ["/twice", "link"],
          ["/up", "link"]
        ])
        expect((yield* sandbox.glob({ pattern: "**" })).entries.map(({ path }) => path)).toEqual(["/in/file.txt"])
        expect((yield* sandbox.grep({ pattern: "s" })).files.map(({ path }) => path)).toEqual(["/in/file.txt"])

        yield* sandbox.write("/link.txt", "changed")
        expect((yield* on(() => lstat(host("/link.txt")))).isSymbolicLink()).toBe(true)
        expect(yield* on(() => readFile(host("/in/file.txt"), "utf8"))).toBe("changed")
        yield* sandbox.write("/dangling", "made")
        expect(yield* on(() => readFile(host("/in/none"), "utf8"))).toBe("made")

        yield* sandbox.move("/outdir", "/moved")
        yield* sandbox.delete("/moved", { recursive: true })
        yield* sandbox.delete("/outfile")
        yield* sandbox.delete("/up", { recursive: true })
        yield* sandbox.delete("/absolute", { recursive: true })
        yield* on(() => symlink(join(shell.folder, "out"), host("/in/deep")))
        yield* sandbox.delete("/in", { recursive: true })
        expect(yield* on(() => readFile(join(shell.folder, "out/secret.txt"), "utf8"))).toBe("secret")
        expect(yield* on(() => readdir(join(shell.folder, "out")))).toEqual(["secret.txt"])
      }).pipe(Effect.scoped)
    )

    it.live(
      "a window of a large file is made on the other side",
      () =>
        Effect.gen(function* () {
          const { host, sandbox, trips } = yield* boxOf(kind)
          const line = (n: number) => `line ${n} ä€😀 ${"x".repeat(n % 50)}`
          const text = Array.from({ length: 4_000 }, (_, index) => line(index + 1))
          const memory = yield* MemoryBackend.make()
          const long = `${"é😀a".repeat(120_000)}\nsecond\n`
          const files = {
            "/lf": text.join("\n"),
            "/lf-end": `${text.join("\n")}\n`,
            "/crlf": `${text.join("\r\n")}\r\n`,
            "/cr": text.join("\r"),
            "/cr-end": `${text.join("\r")}\r`,
            "/mixed": `${text.slice(0, 1_500).join("\r")}\r\r\n\n${text.slice(1_500).join("\r\n")}\r\r`,
            "/bom": `\uFEFF${text.join("\n")}`,
            "/long": long,
            "/long-bom": `\uFEFF${long}`,
            "/x-end": `${text.join("\n")}\nx`
          }
          const windows: ReadonlyArray<Backend.Window | undefined> = [
            undefined,
            { offset: 2, limit: 3 },
            { offset: 3_999 },
            { offset: 4_000, limit: 5 },
            { offset: 4_001 },
            { offset: 500_000 },
            { limit: 0 },
            { offset: 2_000, limit: 1_000_000 },
            { offset: 1, limit: 1, column: 7 },
            { offset: 1, column: 100_000, limit: 1 },
            { offset: 1, column: 100_001 },
            { offset: 1, column: 100_002 },
            { offset: 1, column: 10_000_000 },
            { offset: 3, column: 9, limit: 2 }
          ]
          for (const [nth, [path, content]] of Object.entries(files).entries()) {
            yield* memory.write(path, content)
            yield* on(() => writeFile(host(path), content))
            for (const window of some(windows).filter((_, at) => (at + nth) % 2 === 0)) {
              // A window of a part does not know the line endings of the whole.
              const {
                crlf: _crlf,
                version: _,
                ...expected
              } = { crlf: undefined, ...(yield* memory.read(path, window)) }
              const {
                crlf: __crlf,
                version: __,
                ...actual
              } = { crlf: undefined, ...(yield* sandbox.read(path, window)) }
              expect({ window, ...actual }).toEqual({ window, ...expected })
            }
          }
          expect(yield* trips(sandbox.read("/lf", { offset: 2_500, limit: 10 }))).toBe(1)
        }).pipe(Effect.scoped),
      120_000
    )

    it.live(
      "a search returns the same as in memory",
      () =>
        Effect.gen(function* () {
          const { host, sandbox } = yield* boxOf(kind)
          const memory = yield* MemoryBackend.make()
          const hay = "hay ".repeat(10)
          const big = Array.from({ length: 8_000 }, (_, n) => (n % 250 === 7 ? `needle ${n} Straße` : `${hay}${n}`))
          const files: Record<string, string> = {
            "/.gitignore": "*.log\n/build\nnode_modules\n!keep.log\n",
            "/a.log": "needle",
            "/keep.log": "needle",
            "/build/x.txt": "needle",
            "/src/build/x.txt": "needle",
            "/node_modules/p/i.js": "needle",
            "/src/.gitignore": "!*.log\nsecret/\n",
            "/src/b.log": "needle",
            "/src/secret/x": "needle",
            "/src/secret.txt": "Needle\r\nneedle\rneedle\r\n\r\nneedle",
            "/src/new\nline.txt": "needle in newline",
            "/src/-e": "needle -e",
            "/.git/config": "needle",
            "/.hidden/x.ts": "needle ſtraße K k",
            "/big.txt": big.join("\n"),
            "/big-crlf.txt": `${big.join("\r\n")}\r\n`,
            "/big-cr.txt": big.join("\r"),
            "/bin.dat": `needle\0`,
            "/empty.txt": "",
            "/bom.txt": "\uFEFFneedle",
            "/utf/ä/😀.txt": "ünïcödé needle ÄÖÜ",
            "/dir.ts/f.ts": "const needle = /a.b*c/ // (x|y)"
          }
          const uploads = Object.entries(files).map(([path, content]) => ({ path, content: bytes(content) }))
          expect((yield* memory.upload(uploads)).every(({ ok }) => ok)).toBe(true)
          const own = ({ path }: { readonly path: string }) => path.startsWith("/.git/")
          expect((yield* sandbox.upload(uploads.filter((one) => !own(one)))).every(({ ok }) => ok)).toBe(true)
          yield* on(() => mkdir(host("/.git")))
          for (const { content, path } of uploads.filter(own)) yield* on(() => writeFile(host(path), content))
          const queries: ReadonlyArray<Backend.GrepQuery> = [
            { pattern: "needle" },
            { pattern: "NEEDLE", ignoreCase: true },
            { pattern: "needle", mode: "count" },
            { pattern: "needle", mode: "files" },
            { pattern: "needle", mode: "files", limit: 3 },
            { pattern: "needle", limit: 5 },
            { pattern: "needle", limit: 35 },
            { pattern: "needle", limit: 0 },
            { pattern: "needle", context: 2, limit: 40 },
            { pattern: "needle", ignored: true, mode: "files" },
            { pattern: "needle", glob: "*.txt", mode: "files" },
            { pattern: "needle", glob: "src/**", mode: "files" },
            { pattern: "needle", path: "/src" },
            { pattern: "needle", path: "/src/secret.txt", context: 1 },
            { pattern: "needle", path: "/src/secret" },
            { pattern: "needle", path: "/src/secret/x" },
            { pattern: "needle", path: "/build/x.txt", ignored: true },
            { pattern: "strasse", ignoreCase: true },
            { pattern: "STRAßE", ignoreCase: true, mode: "count" },
            { pattern: "k", ignoreCase: true, path: "/.hidden" },
            { pattern: "ST", ignoreCase: true, path: "/.hidden" },
            { pattern: "^needle \\d+ ", regex: true, limit: 7 },
            { pattern: "(foo|needle) (1007|2007)\\b", regex: true },
            { pattern: "(?i)NEEDLE 1007", regex: true },
            { pattern: "nee(d)?le$", regex: true },
            { pattern: "ne+dle", regex: true, mode: "count" },
            { pattern: "needlex*", regex: true, mode: "count" },
            { pattern: "z*needle|zzz", regex: true, mode: "count" },
            { pattern: "^$", regex: true, mode: "count" },
            { pattern: "[m-n]eedle 2\\d{4}", regex: true },
            { pattern: "a.b*c", path: "/dir.ts" },
            { pattern: "(x|y)" },
            { pattern: "-e" },
            { pattern: "öd" },
            { pattern: "Ö", ignoreCase: true }
          ]
          for (const query of some(queries)) {
            expect({ query, result: yield* sandbox.grep(query) }).toEqual({ query, result: yield* memory.grep(query) })
          }
          const globs: ReadonlyArray<Backend.GlobQuery> = [
            { pattern: "**" },
            { pattern: "*" },
            { pattern: "*.ts" },
            { pattern: "**/*.{ts,log}" },
            { pattern: "src/*" },
            { pattern: "/src/**" },
            { pattern: "[a-k]*.txt" },
            { pattern: "?ig.txt" },
            { pattern: "**/build/**", ignored: true },
            { pattern: "*", path: "/src" },
            { pattern: "*.txt", limit: 2 },
            { pattern: "*.txt", path: "/src/secret.txt" },
            { pattern: "😀.txt" },
            { pattern: "*.log" }
          ]
          for (const query of some(globs)) {
            const plain = (listing: Backend.Listing) => ({
              ...listing,
              entries: listing.entries.map(({ path }) => path)
            })
            expect({ query, result: plain(yield* sandbox.glob(query)) }).toEqual({
              query,
              result: plain(yield* memory.glob(query))
            })
          }
        }).pipe(Effect.scoped),
      180_000
    )

    it.live("a file keeps its mode, and a new one has that of the machine", () =>
      Effect.gen(function* () {
        const { host, sandbox } = yield* boxOf(kind)
        const modeOf = (path: string) => on(async () => (await stat(host(path))).mode & 0o777)
        yield* sandbox.write("/run.sh", "#!/bin/sh\n")
        const usual = yield* modeOf("/run.sh")
        yield* on(() => chmod(host("/run.sh"), 0o750))
        yield* sandbox.write("/run.sh", "#!/bin/sh\necho hi\n")
        expect(yield* modeOf("/run.sh")).toBe(0o750)
        yield* sandbox.edit("/run.sh", [{ old: "hi", new: "x".repeat(100_000) }])
        expect(yield* modeOf("/run.sh")).toBe(0o750)
        yield* sandbox.upload([{ path: "/run.sh", content: new Uint8Array([0]) }])
        expect(yield* modeOf("/run.sh")).toBe(0o750)
        yield* sandbox.upload([{ path: "/new", content: new Uint8Array([0]) }])
        expect(yield* modeOf("/new")).toBe(usual)
        yield* sandbox.move("/run.sh", "/other.sh")
        expect(yield* modeOf("/other.sh")).toBe(0o750)
      }).pipe(Effect.scoped)
    )

    it.live(
      "a command has its folder, its environment and its input, and its exit code is no failure",
      () =>
        Effect.gen(function* () {
          const { host, sandbox } = yield* boxOf(kind, { outputLimit: 1_000 })
          yield* sandbox.write("/it's here/x", "")
          const { exitCode, output, truncated } = yield* sandbox.execute(`pwd; cat; echo "$V"; echo err >&2; exit 7`, {
            cwd: "/it's here",
            env: { V: `a'b"c\n$(id) *` },
            stdin: "input 'x'\n"
          })
          expect({ exitCode, output, truncated }).toEqual({
            exitCode: 7,
            output: `${host("/it's here")}\ninput 'x'\na'b"c\n$(id) *\nerr\n`,
            truncated: false
          })
          expect((yield* sandbox.execute("cat")).output).toBe("")
          expect((yield* sandbox.execute("wc -c", { stdin: "x".repeat(300_000) })).output.trim()).toBe("300000")
          expect((yield* sandbox.execute(`: ${"x".repeat(200_000)}; echo long`)).output).toBe("long\n")
          expect((yield* sandbox.execute("kill -9 $$")).exitCode).toBe(137)
          expect((yield* sandbox.execute("printf ':0:'; exit 5")).exitCode).toBe(5)
          expect((yield* sandbox.execute("locale_is=${LC_ALL-none}; echo $locale_is")).output).toBe("none\n")
          const much = yield* sandbox.execute("i=0; while [ $i -lt 3000 ]; do echo $i; i=$((i+1)); done")
          expect(much.truncated).toBe(true)
          expect(much.output.length).toBeLessThan(1_100)
          expect(much.output.startsWith("0\n1\n2\n")).toBe(true)
          expect(much.output.endsWith("2998\n2999\n")).toBe(true)
          expect(yield* reasonOf(sandbox.execute("id", { cwd: "/none" }))).toBe("NotFound")
          expect(yield* reasonOf(sandbox.execute("id", { cwd: "/it's here/x" }))).toBe("NotDirectory")
          for (const name of ["A;id", "A=B", "1A", "", "A\0", "é"])
            expect(yield* reasonOf(sandbox.execute("id", { env: { [name]: "x" } }))).toBe("InvalidPath")
          expect(yield* reasonOf(sandbox.execute("echo a\0b"))).toBe("Unsupported")
          expect(yield* reasonOf(sandbox.execute("id", { env: { A: "a\0b" } }))).toBe("Unsupported")
          // The input of a command may have any bytes; a command line may not.
          expect((yield* sandbox.execute("wc -c", { stdin: "a\0b" })).output.trim()).toBe("3")
        }).pipe(Effect.scoped),
      60_000
    )

    it.live(
      "a command over its time is ended, with all that it started",
      () =>
        Effect.gen(function* () {
          const { host, sandbox } = yield* boxOf(kind)
          const command = `${family}; echo begun; sleep 60`
          const error = yield* Effect.flip(sandbox.execute(command, { timeout: "2 seconds" }))
          expect(error.reason).toEqual({ _tag: "TimedOut", limit: 2_000 })
          expect(error.detail).toContain("begun")
          for (const file of ["/child", "/inner"]) expect(yield* awaitGone(yield* pidIn(host(file)))).toBe(true)
        }).pipe(Effect.scoped),
      60_000
    )

    it.live(
      "an interrupted command is ended, with all that it started",
      () =>
        Effect.gen(function* () {
          const { host, sandbox } = yield* boxOf(kind)
          const running = yield* Effect.forkChild(sandbox.execute(`${family}; sleep 60`))
          const pids = [yield* pidIn(host("/child")), yield* pidIn(host("/inner"))]
          expect(pids.map(isAlive)).toEqual([true, true])
          yield* Fiber.interrupt(running)
          for (const pid of pids) expect(yield* awaitGone(pid)).toBe(true)
        }).pipe(Effect.scoped),
      60_000
    )
  })
}
