/** `deepagents update`, against a registry on this machine. */
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { gzipSync } from "node:zlib"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { fileIn, isNewer, notesSince } from "../../src/cli/internal/commands/update.ts"
import { useProgram } from "./built.ts"

const program = useProgram()

const changelog =
  "# Changelog\n\n## 99.1.0\n\n- Faster\u001b[31m red\n\n## 99.0.0\n\n- Larger\n\n## 0.0.1\n\n- The beginning\n"

/** A tar archive of files. */
const archive = (files: { readonly [name: string]: string }): Buffer =>
  Buffer.concat([
    ...Object.entries(files).flatMap(([name, text]) => {
      const body = Buffer.from(text)
      const head = Buffer.alloc(512)
      head.write(name, 0)
      head.write(`${body.length.toString(8).padStart(11, "0")}\0`, 124)
      head.write("0", 156)
      return [head, body, Buffer.alloc((512 - (body.length % 512)) % 512)]
    }),
    Buffer.alloc(1024)
  ])

/** A registry whose newest version is this one. */
const registry = (latest: string) =>
  Effect.acquireRelease(
    Effect.callback<http.Server>((resume) => {
      const server = http.createServer((request, response) => {
        const { port } = server.address() as AddressInfo
        if (request.url === "/effect-deepagents") {
          const dist = { tarball: `http://127.0.0.1:${port}/package.tgz` }
          response.end(JSON.stringify({ "dist-tags": { latest }, versions: { [latest]: { dist } } }))
        } else if (request.url === "/package.tgz") {
          response.end(gzipSync(archive({ "package/package.json": "{}", "package/CHANGELOG.md": changelog })))
        } else response.writeHead(404).end()
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
    }),
    (server) => Effect.sync(() => server.close())
  ).pipe(Effect.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`))

const update = (url: string, ...more: ReadonlyArray<string>) =>
  program.run(program.folder(), ["update", ...more], { npm_config_registry: url })

describe("deepagents update", { timeout: 120_000 }, () => {
  it.effect("tells the news since this version, and its installation", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { code, err, out } = yield* update(yield* registry("99.1.0"))
        assert.strictEqual(code, 0, err)
        assert.match(out, /^deepagents 99\.1\.0 is there; this is \d/)
        for (const part of ["Faster", "Larger", "npm install --global effect-deepagents@99.1.0"]) {
          assert.include(out, part)
        }
        assert.notInclude(out, "The beginning")
        assert.notInclude(out, "\u001b")
        const json = yield* update(yield* registry("99.1.0"), "--json")
        assert.deepInclude(JSON.parse(json.out), { latest: "99.1.0", isNew: true })
      })
    )
  )

  it.effect("says that nothing is newer, and that the registry can't be reached", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const same = yield* update(yield* registry("0.0.1"))
        assert.deepInclude(same, { code: 0, err: "" })
        assert.match(same.out, /^deepagents \d\S* is the newest version\.\n$/)
        const none = yield* update("http://127.0.0.1:1")
        assert.strictEqual(none.code, 1)
        assert.match(none.err, /127\.0\.0\.1:1 can't be reached\. This is version \d/)
        const wrong = yield* update("file:///etc")
        assert.strictEqual(wrong.code, 2, wrong.err)
      })
    )
  )

  it("compares versions as npm does", () => {
    const sorted = ["0.9.9", "1.0.0-alpha.2", "1.0.0-alpha.10", "1.0.0-beta.1", "1.0.0", "1.0.1", "1.10.0", "2.0.0"]
    for (const [index, one] of sorted.entries()) {
      for (const [other, than] of sorted.entries()) assert.strictEqual(isNewer(one, than), index > other)
    }
    assert.isFalse(isNewer("latest", "0.1.0"))
    assert.strictEqual(notesSince("## 1.1.0 (soon)\n\n- A\n\n## [1.0.0]\n\n- B\n", "1.0.0"), "## 1.1.0 (soon)\n\n- A")
    assert.isUndefined(fileIn(new Uint8Array(10_240), "package/CHANGELOG.md"))
  })
})
