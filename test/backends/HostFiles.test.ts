/** Files of the machine in some folders of it, and commands beside them. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Backend, type BackendError, Sandbox } from "effect-deepagents"
import * as HostFiles from "effect-deepagents/backends/HostFiles"
import * as HostShell from "effect-deepagents/backends/HostShell"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"

/** Folders: `p` to work in, `shared` to read, `other` for nobody. */
const folders = Effect.acquireRelease(
  Effect.sync(() => {
    const home = realpathSync(mkdtempSync(join(tmpdir(), "deepagents-host-")))
    const putFile = (path: string, text: string) => {
      mkdirSync(dirname(join(home, path)), { recursive: true })
      writeFileSync(join(home, path), text)
    }
    putFile("p/src/a.ts", "one\n")
    putFile("shared/s.ts", "two\n")
    putFile("other/x.ts", "three\n")
    symlinkSync(join(home, "shared/s.ts"), join(home, "p/in.ts"))
    symlinkSync(join(home, "other/x.ts"), join(home, "p/out.ts"))
    return { home, cwd: join(home, "p"), shared: join(home, "shared"), other: join(home, "other") }
  }),
  ({ home }) => Effect.sync(() => rmSync(home, { recursive: true, force: true }))
)

const opened = Effect.gen(function* () {
  const places = yield* folders
  const files = yield* HostFiles.make({
    cwd: places.cwd,
    folders: [{ path: "../shared", access: "read" }],
    ripgrep: false,
    advise: ({ access, path }) => `ask for ${path} to ${access}`
  })
  return { ...places, files }
})

const refusal = <A>(effect: Effect.Effect<A, BackendError.BackendError>) => Effect.flip(effect)

const textOf = (file: Backend.TextFile | Backend.BinaryFile): string => (file.kind === "text" ? file.text : "")

describe("HostFiles", () => {
  it.live("takes the machine's paths and paths from the working folder, and prints the machine's", () =>
    Effect.gen(function* () {
      const { cwd, files, shared } = yield* opened
      const ways = ["src/a.ts", `${cwd}/src/a.ts`, "./src/../src/a.ts", `file://${cwd}/src/a.ts`]
      for (const path of ways) {
        const read = yield* files.read(path)
        assert.deepStrictEqual([read.path, textOf(read)], [`${cwd}/src/a.ts`, "one"], path)
      }
      assert.strictEqual((yield* files.read("../shared/s.ts")).path, `${shared}/s.ts`)
      const listedPaths = (yield* files.glob({ pattern: "**/*.ts" })).entries.map(({ path }) => path)
      assert.deepStrictEqual(listedPaths, [`${cwd}/src/a.ts`])
      const absolute = (yield* files.glob({ pattern: `${shared}/*.ts` })).entries.map(({ path }) => path)
      assert.deepStrictEqual(absolute, [`${shared}/s.ts`])
      const foundPaths = (yield* files.grep({ pattern: "one" })).files.map(({ path }) => path)
      assert.deepStrictEqual(foundPaths, [`${cwd}/src/a.ts`])
    })
  )

  it.live("tells a path outside from a readable one, and links by their targets", () =>
    Effect.gen(function* () {
      const { cwd, files, other, shared } = yield* opened
      for (const path of [`${other}/x.ts`, "../other/x.ts", "out.ts", "..", "/", `${other}/none`]) {
        const { detail, reason } = yield* refusal(files.read(path))
        assert.deepStrictEqual(reason, { _tag: "OutsideRoot", cwd }, path)
        assert.match(detail ?? "", /ask for .* to read/, path)
      }
      assert.strictEqual(textOf(yield* files.read("in.ts")), "two")
      const changes = [
        files.write("in.ts", "x"),
        files.write(`${shared}/new.ts`, "x"),
        files.delete(`${shared}/s.ts`),
        files.move("src/a.ts", `${shared}/a.ts`),
        files.edit(`${shared}/s.ts`, [{ old: "two", new: "2" }])
      ]
      for (const change of changes) {
        const { detail, reason } = yield* refusal(change)
        assert.strictEqual(reason._tag, "PermissionDenied")
        assert.match(detail ?? "", /may be read, and not changed; ask for .* to write/)
      }
      assert.strictEqual((yield* refusal(files.write(`${other}/new.ts`, "x"))).reason._tag, "OutsideRoot")
      assert.strictEqual((yield* refusal(files.move("src/a.ts", "../other/a.ts"))).reason._tag, "OutsideRoot")
      assert.match((yield* refusal(files.delete(cwd, { recursive: true }))).message, /is not deleted/)
      assert.match((yield* refusal(files.read("/src/a.ts"))).message, new RegExp(`did you mean ${cwd}/src/a.ts`))
      assert.notInclude((yield* refusal(files.read("/src/none.ts"))).message, "did you mean")
    })
  )

  it.live("looks at the folders anew before each operation, if they are an effect", () =>
    Effect.gen(function* () {
      const { cwd, other } = yield* folders
      let all: ReadonlyArray<HostFiles.Folder> = []
      const files = yield* HostFiles.make({ cwd, folders: Effect.sync(() => all), ripgrep: false })
      assert.strictEqual((yield* refusal(files.read(`${other}/x.ts`))).reason._tag, "OutsideRoot")
      all = [{ path: other, access: "read" }]
      assert.strictEqual(textOf(yield* files.read(`${other}/x.ts`)), "three")
      all = []
      assert.strictEqual((yield* refusal(files.read("out.ts"))).reason._tag, "OutsideRoot")
      const missing = HostFiles.make({ cwd, folders: [{ path: "nowhere", access: "read" }] })
      assert.strictEqual((yield* refusal(Effect.scoped(missing))).reason._tag, "NotFound")
    })
  )

  it.live("asks before git's own files are changed", () =>
    Effect.gen(function* () {
      const { files } = yield* opened
      const { reason } = yield* refusal(files.write(".git/hooks/pre-commit", "x"))
      assert.strictEqual(reason._tag, "PermissionDenied")
    })
  )
})

describe("HostShell", () => {
  const name = fc.constantFrom("a", "b.txt", "c d", "é", "..", ".", "~x", "-n", "p")

  it.live("agrees with the shell on every path that a tool prints", () =>
    Effect.gen(function* () {
      const { cwd } = yield* folders
      const shell = yield* HostShell.make({ cwd, ripgrep: false })
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.array(name, { minLength: 1, maxLength: 4 }), (names) =>
            Effect.runPromise(
              Effect.gen(function* () {
                const given = `./${names.join("/")}/f.txt`
                const written = yield* Effect.option(shell.write(given, "x"))
                if (written._tag === "None") return
                const { path } = written.value
                const quoted = `'${path.replaceAll("'", "'\\''")}'`
                const { output } = yield* shell.execute(`realpath -- ${quoted} && cat -- ${quoted}`)
                assert.strictEqual(output, `${realpathSync(path)}\nx`)
                assert.strictEqual((yield* shell.read(path)).path, path)
                const [found] = (yield* shell.glob({ pattern: "./f.txt", path: dirname(path) })).entries
                assert.strictEqual(found?.path, path)
              })
            )
          ),
          { numRuns: scaled(200) }
        )
      )
    })
  )

  it.live("runs commands in the working folder, with the variables of the user but for secrets", () =>
    Effect.gen(function* () {
      const { cwd } = yield* folders
      const shell = yield* Effect.acquireRelease(
        Effect.sync(() => {
          process.env["HOST_TOOL_HOME"] = "/opt/tool"
          process.env["HOST_API_KEY"] = "s3cret"
        }),
        () =>
          Effect.sync(() => {
            delete process.env["HOST_TOOL_HOME"]
            delete process.env["HOST_API_KEY"]
          })
      ).pipe(Effect.andThen(HostShell.make({ cwd, shell: "/bin/bash", env: { inherit: "all" } })))
      assert.isTrue(Sandbox.isSandbox(shell))
      const ran = yield* shell.execute('pwd; [[ -f src/a.ts ]] && echo {1..3} "$HOST_TOOL_HOME" "[$HOST_API_KEY]"')
      assert.strictEqual(ran.output, `${cwd}\n1 2 3 /opt/tool []\n`)
      const failed = yield* shell.execute('test -n "$HOST_API_KEY"')
      assert.match(failed.output, /not passed on to commands: HOST_API_KEY/)
      const quiet = yield* shell.execute("false")
      assert.strictEqual(quiet.output, "")
    })
  )
})
