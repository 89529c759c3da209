/** Lists that a chat completes from: files behind an `@`, models of providers. */
import { execFileSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { withFiles } from "../../src/cli/internal/chat/attach.ts"
import { entryOf, makeFileIndex, search } from "../../src/cli/internal/chat/completion/fileIndex.ts"
import { namesIn } from "../../src/cli/internal/config/modelList.ts"
import { userPart } from "../../src/view/internal/replay.ts"
import { spentBy } from "../spent.ts"
import { useProgram } from "./built.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "completing-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

const putFiles = (at: string, files: { readonly [name: string]: string }): void => {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(at, name)), { recursive: true })
    writeFileSync(join(at, name), text)
  }
}

describe("files behind an @", () => {
  it("are found by parts of their names, in any case, the best first", () => {
    const paths = ["docs/Search.md", "src/search/index.ts", "src/research.ts", "test/searching.test.ts", "a/b.ts"]
    const findFiles = (text: string) => search(paths.map(entryOf), text, 3)
    assert.deepEqual(findFiles("SEARCH"), ["docs/Search.md", "test/searching.test.ts", "src/research.ts"])
    assert.deepEqual(findFiles("s/ind"), ["src/search/index.ts"])
    assert.deepEqual(findFiles("srchix"), ["src/search/index.ts"])
    assert.deepEqual(findFiles("zzz"), [])
  })

  it("are searched among 50,000 at once", () => {
    const entries = Array.from({ length: 50_000 }, (_, index) =>
      entryOf(`packages/part-${index % 97}/src/file${index}.ts`)
    )
    search(entries, "warm", 50)
    const millis = spentBy(() => assert.equal(search(entries, "part9file49", 50).length, 50))
    // On an idle core it takes 15 ms; a busy machine may take several times as long.
    assert.isBelow(millis, 500)
  })

  it.live("follow git's ignore rules, or a walk without git; settings of the repository run nothing", () =>
    Effect.gen(function* () {
      const at = yield* folder
      putFiles(at, { "src/a.ts": "", "node_modules/x.js": "", "build/out.js": "", ".gitignore": "build\n" })
      const walked = yield* makeFileIndex(at)
      const until = (index: typeof walked, text: string) =>
        Effect.repeat(index.find(text, 9), { until: (found) => found.length > 0, times: 500 })
      yield* Effect.repeat(Effect.andThen(Effect.sleep("10 millis"), walked.find("a.ts", 9)), {
        until: (found) => found.length > 0
      })
      assert.deepEqual(yield* until(walked, "js"), ["build/out.js"])
      execFileSync("git", ["init", "-q"], { cwd: at })
      execFileSync("git", ["config", "core.fsmonitor", `touch ${join(at, "PWNED")}`], { cwd: at })
      const listed = yield* makeFileIndex(at)
      yield* Effect.repeat(Effect.andThen(Effect.sleep("10 millis"), listed.find("a.ts", 9)), {
        until: (found) => found.length > 0
      })
      assert.deepEqual(yield* listed.find("js", 9), ["node_modules/x.js"])
      assert.deepEqual(yield* listed.find("PWNED", 9), [])
    }).pipe(Effect.scoped)
  )

  it.effect("go along with their texts, within limits and from the folder alone; the screen shows their number", () =>
    Effect.gen(function* () {
      const at = yield* folder
      putFiles(at, { "p/a.ts": "const a = 1", "p/big.log": "x".repeat(70_000), "p/bin": "\u0000", "secret.txt": "key" })
      const text = "Look at @a.ts, @a.ts and @big.log @bin @../secret.txt @none mail@a.ts"
      const { message, problems } = yield* withFiles(text, "id", join(at, "p"))
      assert.deepEqual(
        message.content.map((block) => (block.type === "text" ? block.text : block.type)),
        [text, '<file name="a.ts">\nconst a = 1\n</file>']
      )
      assert.deepEqual(problems, ["big.log is too large to go along (70000 bytes); only its name does"])
      assert.deepEqual(userPart(message), { kind: "user", text, attachments: 1 })
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
  )
})

const program = useProgram()

/** A provider that lists models for one key. */
const provider = Effect.acquireRelease(
  Effect.callback<ReturnType<typeof createServer>>((resume) => {
    const server = createServer((request, response) => {
      const isKnown = request.headers["x-api-key"] === "sk-ant-good" && request.url === "/v1/models?limit=1000"
      response.writeHead(isKnown ? 200 : 401, { "content-type": "application/json" })
      response.end(isKnown ? JSON.stringify({ data: [{ id: "claude-a" }, { id: "claude-b" }] }) : "{}")
    })
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.sync(() => server.close())
).pipe(Effect.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`))

describe("models of providers", { timeout: 60_000 }, () => {
  it("are read from the answers of all kinds of providers, without names that act", () => {
    assert.deepEqual(namesIn({ data: [{ id: "a" }, { id: "b\u001b[2J" }, null, { id: 3 }] }), ["a"])
    assert.deepEqual(namesIn({ models: [{ name: "models/gemini-x" }] }), ["gemini-x"])
    assert.deepEqual(namesIn([{ id: "org/model:free" }]), ["org/model:free"])
    assert.deepEqual(namesIn("no"), [])
  })

  it.live("are requested before a key is kept: a wrong key is refused, an unverifiable one is reported", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = program.folder()
        const env = { XDG_DATA_HOME: join(cwd, "data"), ANTHROPIC_BASE_URL: yield* provider }
        const login = (key: string, more = {}) =>
          program.run(cwd, ["models", "login", "anthropic"], { ...env, ...more }, `${key}\n`)
        const wrong = yield* login("sk-ant-bad")
        assert.equal(wrong.code, 3)
        assert.match(wrong.err, /anthropic refuses this key \(status 401\)[^]*no key was kept/)
        assert.match((yield* program.run(cwd, ["models"], env)).out, /anthropic:\S+ +no key/)
        assert.match((yield* login("sk-ant-good")).err, /^Kept\. anthropic accepts it, and lists 2 models\./)
        const offline = yield* login("sk-ant-good", { ANTHROPIC_BASE_URL: "http://127.0.0.1:1" })
        assert.match(offline.err, /^Kept\. It was not checked: 127\.0\.0\.1:1 can't be reached\./)
      })
    )
  )
})
