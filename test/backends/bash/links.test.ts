import * as fs from "node:fs"
import * as path from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, type Scope } from "effect"
import { type Backend, Sandbox } from "effect-deepagents"
import { Permissions } from "effect-deepagents/backends"
import * as Bash from "effect-deepagents/backends/Bash"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { Folder, folder } from "../subjects.ts"

const run = (command: string, options?: Sandbox.ExecuteOptions) =>
  Sandbox.Sandbox.use((sandbox) => sandbox.execute(command, { timeout: "10 seconds", ...options }))

const plant = Effect.map(Folder, ({ outside, root }) => {
  fs.mkdirSync(path.join(root, "d/sub"), { recursive: true })
  fs.writeFileSync(path.join(root, "d/f"), "hello\n")
  fs.writeFileSync(path.join(root, "a"), "x\n")
  const links = { self: ".", "d/up": "..", out: outside, lf: "d/f", ld: "d", dangling: "none", loop: "loop" }
  for (const [name, target] of Object.entries(links)) fs.symlinkSync(target, path.join(root, name))
})

/** A shell over a folder with links to itself, to its parent, out of it and to nowhere. */
const shell = (
  between: (files: Layer.Layer<Backend.Backend, never, Folder>) => Layer.Layer<Backend.Backend, never, Folder>
) => {
  const files = Layer.unwrap(
    Effect.map(Effect.tap(Folder, plant), ({ root }) => FilesystemBackend.layer({ root, ripgrep: false }))
  )
  return Bash.layer().pipe(Layer.provide(between(Layer.orDie(files))), Layer.provideMerge(folder), Layer.orDie)
}

const open = shell((files) => files)
const rules = [{ operations: ["read", "write"], paths: ["/d/sub/**"], ruling: "refuse" }] as const
const ruled = shell((files) => Layer.orDie(Permissions.layer({ rules, default: "allow" })).pipe(Layer.provide(files)))

const all = ["/", "/a", "/d", "/d/f", "/d/sub", "/d/up", "/dangling", "/ld", "/lf", "/loop", "/out", "/self"]

/** Watches for what would end a process. */
const unhandled: Effect.Effect<ReadonlyArray<unknown>, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => {
    const seen: Array<unknown> = []
    const see = (cause: unknown) => void seen.push(cause)
    process.on("unhandledRejection", see)
    return { seen, see }
  }),
  ({ see }) => Effect.sync(() => process.off("unhandledRejection", see))
).pipe(Effect.map(({ seen }) => seen))

describe("links", () => {
  for (const [name, layer, hidden] of [
    ["a folder", open, "none"],
    ["a folder with rules", ruled, "/d/sub"]
  ] as const) {
    it.live(
      `a walk through ${name} meets each file once, and ends`,
      () =>
        Effect.gen(function* () {
          const seen = yield* unhandled
          expect((yield* run("find /")).output.trim().split("\n").sort()).toEqual(all.filter((at) => at !== hidden))
          expect((yield* run("find / -type f | xargs cat")).output).toBe("x\nhello\n")
          expect((yield* run("grep -r hello .; grep -rl hello /; rg hello")).output).toBe(
            "d/f:hello\n//d/f\nd/f:1:hello\n"
          )
          for (const command of [
            "ls -R /",
            "du -a /",
            "tree /",
            "cp -r / /copy",
            "tar cf t d self; tar tf t; rm t",
            "chmod -R 644 /d"
          ]) {
            const { output } = yield* run(command)
            expect([command, output.includes("self/self"), output.includes("up/d")]).toEqual([command, false, false])
          }
          yield* Effect.sleep(20)
          expect(seen).toEqual([])
        }).pipe(Effect.scoped, Effect.provide(layer)),
      60_000
    )
  }

  it.live(
    "a link looks like a link, and leads to its target",
    () =>
      Effect.gen(function* () {
        const commands: ReadonlyArray<readonly [command: string, output: string]> = [
          ["for i in *; do [ -L $i ] && echo $i; done; echo", "dangling\nld\nlf\nloop\nout\nself\n\n"],
          [
            "[ -e dangling ] || echo no; [ -e out ] || echo no; [ -d self ] && echo dir; [ -f lf ] && echo file",
            "no\nno\ndir\nfile\n"
          ],
          ["readlink lf ld self", "/d/f\n/d\n/\n"],
          ["cat lf self/d/f ld/up/d/f", "hello\nhello\nhello\n"],
          ["cd ld; pwd; pwd -P; ls", "/ld\n/d\nf\nsub\nup\n"],
          [
            "echo more >> lf; cat d/f; echo new > ld/n; ls d; [ -L ld ] && echo link",
            "hello\nmore\nf\nn\nsub\nup\nlink\n"
          ],
          ["rm self lf dangling; rm -r ld; ls; ls d", "a\nd\nloop\nout\nf\nn\nsub\nup\n"],
          ["ln -s a b 2>/dev/null; [ -e b ] || echo none", "none\n"]
        ]
        for (const [command, output] of commands) {
          const ended = yield* run(command)
          expect([command, ended.output.startsWith(output) ? output : ended.output]).toEqual([command, output])
        }
        const { outside, root } = yield* Folder
        expect(fs.readFileSync(path.join(root, "d/f"), "utf8")).toBe("hello\nmore\n")
        expect(fs.readdirSync(outside)).toEqual([])
      }).pipe(Effect.provide(open)),
    60_000
  )

  it.live(
    "directories that come and go while a command walks end neither it nor the process",
    () =>
      Effect.gen(function* () {
        const seen = yield* unhandled
        const { root } = yield* Folder
        const churn = Effect.forever(
          Effect.andThen(
            Effect.sync(() => {
              for (let index = 0; index < 20; index++)
                fs.mkdirSync(path.join(root, `d/sub/${index}/x`), { recursive: true })
              for (let index = 0; index < 20; index++) fs.rmSync(path.join(root, `d/sub/${index}`), { recursive: true })
            }),
            Effect.sleep(1)
          )
        )
        const churning = yield* Effect.forkChild(churn)
        for (let times = 0; times < 20; times++) {
          const { exitCode, output } = yield* run("find / -type d; echo $?")
          expect([exitCode, output.includes("/d/sub")]).toEqual([0, true])
        }
        yield* Fiber.interrupt(churning)
        expect((yield* run("echo alive")).output).toBe("alive\n")
        expect(seen).toEqual([])
      }).pipe(Effect.scoped, Effect.provide(open)),
    60_000
  )

  it.live(
    "an abandoned write of a command is dropped with it",
    () =>
      Effect.gen(function* () {
        const seen = yield* unhandled
        const sandbox = yield* Sandbox.Sandbox
        for (let times = 0; times < 5; times++) {
          const running = yield* Effect.forkChild(sandbox.execute("while :; do find / | xargs cat | wc -c; done"))
          yield* Effect.sleep(times * 30)
          yield* Fiber.interrupt(running)
        }
        expect((yield* run("echo alive")).output).toBe("alive\n")
        expect(seen).toEqual([])
      }).pipe(Effect.scoped, Effect.provide(open)),
    60_000
  )
})
