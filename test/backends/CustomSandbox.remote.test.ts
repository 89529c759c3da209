/** A sandbox with a far side that is slow, cut off, noisy or poorly equipped. */
import { copyFile, mkdir, readdir, rm, symlink, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import type { BackendError } from "effect-deepagents"
import { CustomSandbox } from "effect-deepagents/backends"
import { TestClock } from "effect/testing"
import { isFull } from "../scale.ts"
import * as LocalShell from "./fixtures/localShell.ts"
import { awaitGone, pidIn } from "./processes.ts"

const on = <A>(run: () => Promise<A>) => Effect.promise(run)

const reasonOf = <A>(effect: Effect.Effect<A, BackendError.BackendError>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason._tag)

/** Temporary files of a shell; others' files are in the same folder. */
const leftoversOf = (shell: LocalShell.LocalShell) =>
  on(async () => {
    const all = (await readdir("/tmp")).filter((name) => name.startsWith(".ed-"))
    return all.filter((name) =>
      shell.commands.some((command) => command.includes(name.split(".")[1]?.slice(3) ?? name))
    )
  })

/** A sandbox, of which each way of the channel can be changed. */
const changed = Effect.fnUntraced(function* (
  change: (functions: ReturnType<typeof LocalShell.functionsOf>) => Partial<CustomSandbox.Primitives>
) {
  const shell = yield* LocalShell.make()
  const functions = LocalShell.functionsOf(shell)
  const sandbox = yield* CustomSandbox.make(
    { ...functions, ...change(functions) },
    { root: join(shell.folder, "root") }
  )
  return { shell, sandbox, host: (path: string) => join(shell.folder, "root", path) }
})

describe("a sandbox far away", () => {
  it.live("an operation is one round trip, or two", () =>
    Effect.gen(function* () {
      const { sandbox, shell } = yield* changed(() => ({}))
      const trips = (effect: Effect.Effect<unknown, unknown>) =>
        Effect.suspend(() => {
          const before = shell.commands.length + shell.uploads.length + shell.downloads.length
          return Effect.map(
            effect,
            () => shell.commands.length + shell.uploads.length + shell.downloads.length - before
          )
        })
      const small = Array.from({ length: 20 }, (_, n) => ({
        path: `/d/${n}.txt`,
        content: new TextEncoder().encode(`needle ${n}\n`)
      }))
      expect(yield* trips(sandbox.upload(small))).toBe(1)
      expect(yield* trips(sandbox.download(small.map(({ path }) => path)))).toBe(1)
      expect(yield* trips(sandbox.ls("/d"))).toBe(1)
      expect(yield* trips(sandbox.read("/d/1.txt"))).toBe(1)
      expect(yield* trips(sandbox.write("/d/1.txt", "needle one"))).toBe(1)
      expect(yield* trips(sandbox.edit("/d/1.txt", [{ old: "one", new: "two" }]))).toBe(2)
      expect(yield* trips(sandbox.glob({ pattern: "**" }))).toBe(1)
      expect(yield* trips(sandbox.grep({ pattern: "needle" }))).toBe(2)
      expect(yield* trips(sandbox.grep({ pattern: "nowhere to be found" }))).toBe(1)
      expect(yield* trips(sandbox.move("/d", "/e"))).toBe(1)
      expect(yield* trips(sandbox.delete("/e", { recursive: true }))).toBe(1)
      expect(yield* trips(sandbox.execute("true"))).toBe(1)
      expect(yield* trips(sandbox.write("/big.txt", "x".repeat(200_000)))).toBe(2)
      expect(
        yield* trips(sandbox.edit("/big.txt", [{ old: "x".repeat(200_000), new: "y".repeat(200_000) }]))
      ).toBeLessThan(5)
    }).pipe(Effect.scoped)
  )

  it.live(
    "a large file is not fetched for a window, and a large listing comes whole",
    () =>
      Effect.gen(function* () {
        let received = 0
        const { host, sandbox, shell } = yield* changed(({ execute }) => ({
          execute: (command) =>
            Effect.map(execute(command), (answer) => {
              received += answer.output.length
              return answer
            })
        }))
        const lines = isFull ? 2_000_000 : 500_000
        yield* on(() => writeFile(host("/large.txt"), `${"a line of some length\n".repeat(lines)}the last one\n`))
        received = 0
        expect(yield* sandbox.read("/large.txt", { offset: lines + 1 })).toMatchObject({
          text: "the last one",
          totalLines: lines + 1,
          size: 22 * lines + 13
        })
        expect((yield* sandbox.grep({ pattern: "last" })).files).toMatchObject([
          { matches: [{ line: lines + 1, text: "the last one" }] }
        ])
        expect(received).toBeLessThan(60_000)
        expect(shell.downloads).toEqual([])
        yield* on(() => mkdir(host("/many")))
        yield* on(async () => {
          for (let n = 0; n < 20_000; n++) await writeFile(host(`/many/a name that is not too short ${n}`), "")
        })
        expect((yield* sandbox.ls("/many")).entries.length).toBe(20_000)
        expect((yield* sandbox.glob({ pattern: "**", limit: 30_000 })).entries.length).toBe(20_001)
        expect(shell.downloads.length).toBe(2)
        expect(yield* leftoversOf(shell)).toEqual([])
      }).pipe(Effect.scoped),
    60_000
  )

  it.effect("what never answers is given up", () =>
    Effect.gen(function* () {
      let isDead = false
      const { sandbox } = yield* changed(({ execute, read, write }) => ({
        execute: (command) => (isDead ? Effect.never : execute(command)),
        write: (path, content) => (isDead ? Effect.never : write(path, content)),
        read: (path) => (isDead ? Effect.never : read(path)),
        executeStream: () => Stream.never
      }))
      isDead = true
      const operations: ReadonlyArray<Effect.Effect<unknown, BackendError.BackendError>> = [
        sandbox.ls("/"),
        sandbox.read("/a"),
        sandbox.write("/a", "x"),
        sandbox.write("/a", "x".repeat(100_000)),
        sandbox.edit("/a", [{ old: "a", new: "b" }]),
        sandbox.delete("/a"),
        sandbox.move("/a", "/b"),
        sandbox.glob({ pattern: "*" }),
        sandbox.execute("true", { timeout: "10 seconds" }),
        Stream.runDrain(sandbox.executeStream("true", { timeout: "10 seconds" }))
      ]
      const running = yield* Effect.forkChild(Effect.forEach(operations, reasonOf, { concurrency: "unbounded" }))
      yield* TestClock.adjust("10 minutes")
      expect(yield* Fiber.join(running)).toEqual(operations.map(() => "TimedOut"))
      const searching = yield* Effect.forkChild(sandbox.grep({ pattern: "x" }))
      yield* TestClock.adjust("10 minutes")
      expect(yield* Fiber.join(searching)).toEqual({ files: [], truncated: "time" })
      const moving = yield* Effect.forkChild(
        Effect.all([sandbox.upload([{ path: "/a", content: new Uint8Array(3) }]), sandbox.download(["/a"])])
      )
      yield* TestClock.adjust("10 minutes")
      expect(yield* Fiber.join(moving)).toMatchObject([
        [{ ok: false, error: { reason: { _tag: "TimedOut" } } }],
        [{ ok: false, error: { reason: { _tag: "TimedOut" } } }]
      ])
    }).pipe(Effect.scoped)
  )

  it.live("noise around an answer is passed over, nonsense is an error", () =>
    Effect.gen(function* () {
      let spoil = (output: string) => `Welcome to <your> machine!\n${output}\nlogout\n`
      const { sandbox } = yield* changed(({ execute }) => ({
        execute: (command) => Effect.map(execute(command), (answer) => ({ ...answer, output: spoil(answer.output) }))
      }))
      yield* sandbox.write("/a.txt", "text\n")
      expect(yield* sandbox.read("/a.txt")).toMatchObject({ text: "text" })
      expect((yield* sandbox.execute("cat a.txt")).output).toBe("text\n")
      for (const nonsense of [
        "",
        "<ed:",
        "<ed:x0:ed>",
        "<ed:bAAAA:ed>",
        "<ed:b!!!:ed>",
        "<ed::ed>",
        "\0".repeat(1_000)
      ]) {
        spoil = () => nonsense
        const all: ReadonlyArray<Effect.Effect<unknown, BackendError.BackendError>> = [
          sandbox.ls("/"),
          sandbox.read("/a.txt"),
          sandbox.write("/a.txt", "x"),
          sandbox.edit("/a.txt", [{ old: "a", new: "b" }]),
          sandbox.glob({ pattern: "*" }),
          sandbox.grep({ pattern: "x" }),
          sandbox.move("/a.txt", "/b.txt"),
          sandbox.delete("/a.txt"),
          sandbox.execute("true"),
          Stream.runDrain(sandbox.executeStream("true"))
        ]
        for (const one of all) expect([nonsense, yield* reasonOf(one)]).toEqual([nonsense, "Unavailable"])
        expect(yield* sandbox.download(["/a.txt"])).toMatchObject([
          { ok: false, error: { reason: { _tag: "Unavailable" } } }
        ])
      }
    }).pipe(Effect.scoped)
  )

  it.live("a failure of the channel is one of the operation, and leaves nothing behind", () =>
    Effect.gen(function* () {
      const { host, sandbox, shell } = yield* changed(() => ({
        write: () => Effect.fail(new Error("connection lost")),
        read: () => Effect.fail("gone")
      }))
      yield* sandbox.write("/a.txt", "old")
      yield* on(() => writeFile(host("/big.bin"), new Uint8Array(1_000_000)))
      const error = yield* Effect.flip(sandbox.write("/a.txt", "x".repeat(100_000)))
      expect(error).toMatchObject({ operation: "write", path: "/a.txt", reason: { _tag: "Unavailable" } })
      expect(String(error.cause)).toContain("connection lost")
      expect(yield* sandbox.read("/a.txt")).toMatchObject({ text: "old" })
      expect(
        yield* sandbox.upload([
          { path: "/s", content: new Uint8Array([1]) },
          { path: "/b", content: new Uint8Array(1) }
        ])
      ).toMatchObject([
        { ok: true, path: "/s" },
        { ok: false, path: "/b", error: { operation: "upload", path: "/b" } }
      ])
      expect(yield* sandbox.download(["/a.txt", "/big.bin", "/none", "../x"])).toMatchObject([
        { ok: true, path: "/a.txt" },
        { ok: false, path: "/big.bin", error: { reason: { _tag: "Unavailable" } } },
        { ok: false, path: "/none", error: { reason: { _tag: "NotFound" } } },
        { ok: false, path: "../x", error: { reason: { _tag: "OutsideRoot" } } }
      ])
      expect((yield* on(() => readdir(host("/")))).sort()).toEqual(["a.txt", "big.bin", "s"])
      expect(yield* leftoversOf(shell)).toEqual([])
    }).pipe(Effect.scoped)
  )

  it.live(
    "a machine without base64, setsid and cksum will do",
    () =>
      Effect.gen(function* () {
        const shell = yield* LocalShell.make()
        const tools = join(shell.folder, "tools")
        yield* on(async () => {
          await mkdir(tools)
          const needed =
            "sh cat cp mv rm mkdir rmdir ls find grep sed awk tr od wc head tail cut sleep ps readlink printf kill md5sum touch echo pwd".split(
              " "
            )
          const which = async (name: string) => (await shell.run(`command -v ${name}`)).stdout.trim()
          for (const name of needed) {
            const found = await which(name)
            if (found.startsWith("/")) await symlink(found, join(tools, name))
          }
          await copyFile("/bin/sh", join(tools, "sh")).catch(() => undefined)
          // A slow one: a command that is ended after its children must not act in between.
          await rm(join(tools, "ps"))
          await writeFile(join(tools, "ps"), `#!/bin/sh\nsleep 0.2\nexec ${await which("ps")} "$@"\n`, { mode: 0o755 })
        })
        const { execute, read, write } = LocalShell.functionsOf(shell)
        const sandbox = yield* CustomSandbox.make(
          {
            id: "poor",
            read,
            write,
            execute: (command) => execute(`PATH='${tools}'; export PATH; ${command}`)
          },
          { root: join(shell.folder, "root") }
        )
        const { version } = yield* sandbox.write("/ä 'x'.txt", "needle\n")
        expect(yield* sandbox.read("/ä 'x'.txt")).toMatchObject({ text: "needle", version })
        yield* sandbox.edit("/ä 'x'.txt", [{ old: "needle", new: "naäl" }], { version })
        expect(yield* reasonOf(sandbox.edit("/ä 'x'.txt", [{ old: "n", new: "m" }], { version }))).toBe("Conflict")
        expect((yield* sandbox.grep({ pattern: "aäl" })).files.length).toBe(1)
        const late = yield* Effect.flip(
          sandbox.execute("(sleep 2 & first=$!; sleep 30 & wait $first; touch late) & sleep 30", {
            timeout: "500 millis"
          })
        )
        expect(late.reason._tag).toBe("TimedOut")
        yield* Effect.sleep(1_600)
        expect((yield* sandbox.ls("/")).entries.map(({ path }) => path)).toEqual(["/ä 'x'.txt"])
      }).pipe(Effect.scoped),
    30_000
  )

  it.live(
    "a stream gives output as it comes, however it is cut, and ends its command when it is left",
    () =>
      Effect.gen(function* () {
        const shell = yield* LocalShell.make()
        const byCharacter: NonNullable<CustomSandbox.Primitives["executeStream"]> = (command, options) =>
          Stream.flatMap(LocalShell.streamOf(shell)(command, options), ({ channel, text }) =>
            Stream.fromIterable(Array.from(text, (char) => ({ channel, text: char })))
          )
        const sandbox = yield* CustomSandbox.make(
          {
            ...LocalShell.functionsOf(shell),
            executeStream: byCharacter
          },
          { root: shell.folder }
        )
        const events = yield* Stream.runCollect(
          sandbox.executeStream("echo ':a:'; echo err >&2; printf '<ed:x:0>'; exit 3")
        )
        const text = events.flatMap((event) =>
          event._tag === "Output" && event.channel === "stdout" ? [event.text] : []
        )
        expect(text.join("")).toBe(":a:\n<ed:x:0>")
        expect(events.at(-1)).toEqual({ _tag: "Exited", exitCode: 3, truncated: false })
        expect(yield* reasonOf(Stream.runDrain(sandbox.executeStream("true", { cwd: "/none" })))).toBe("NotFound")
        const late = yield* Effect.flip(
          Stream.runDrain(sandbox.executeStream("echo begun; sleep 30", { timeout: "1 second" }))
        )
        expect([late.reason, late.detail?.includes("begun")]).toEqual([{ _tag: "TimedOut", limit: 1_000 }, true])
        const [first] = yield* sandbox
          .executeStream("sleep 60 & echo $! > pid; echo go; wait")
          .pipe(Stream.take(1), Stream.runCollect)
        expect(first).toEqual({ _tag: "Output", channel: "stdout", text: "g" })
        expect(yield* awaitGone(yield* pidIn(join(shell.folder, "pid")))).toBe(true)
        expect((yield* sandbox.ls("/")).entries.map(({ path }) => path)).toEqual(["/pid"])
      }).pipe(Effect.scoped),
    30_000
  )

  it.live("edits at once of one file are all there, or say that they are not", () =>
    Effect.gen(function* () {
      const { host, sandbox } = yield* changed(() => ({}))
      const lines = Array.from({ length: 8 }, (_, n) => `line ${n}.`)
      yield* sandbox.write("/a.txt", lines.join("\n"))
      yield* on(() => symlink("a.txt", host("/b.txt")))
      yield* Effect.forEach(
        lines,
        (line, n) => sandbox.edit(n % 2 === 0 ? "/a.txt" : "/b.txt", [{ old: line, new: `done ${n}.` }]),
        {
          concurrency: "unbounded"
        }
      )
      expect(yield* sandbox.read("/a.txt")).toMatchObject({ text: lines.map((_, n) => `done ${n}.`).join("\n") })
      const { version } = yield* sandbox.read("/a.txt")
      const results = yield* Effect.forEach(
        [1, 2, 3],
        (n) => Effect.result(sandbox.write(n === 2 ? "/b.txt" : "/a.txt", `${n}`, { version })),
        { concurrency: "unbounded" }
      )
      expect(results.filter(({ _tag }) => _tag === "Success").length).toBe(1)
    }).pipe(Effect.scoped)
  )
})
