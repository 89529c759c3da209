/** Files of threads over HTTP: their readers, their sizes, and a browser's use of them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Agent, BackendError } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { ask, readFrames, serve } from "./door.ts"

const helper = Agent.make({ name: "helper", prompt: "" })
const runs = Server.layer({ helper }).pipe(Layer.provide(TestChatModel.reactive(() => "Hello.")))
const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)

const start = (url: string, thread: string, token: string) =>
  Effect.andThen(
    ask(`${url}/threads/${thread}/runs`, { token, body: { agent: "helper", input: "hello", id: "1" } }),
    readFrames(`${url}/threads/${thread}/events`, { token })
  )

describe("the files of a thread", () => {
  it.live("are its tenant's alone, and are not asked for before the thread is there", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const url = yield* serve(runs, {
        files: ({ id, principal }) => {
          asked.push(`${principal.tenant} ${id}`)
          return MemoryBackend.make({ files: { "/a.txt": `of ${principal.tenant}`, "/b/c.txt": "deep" } })
        }
      })
      const paths = ["files", "files?path=/b", "files/text?path=/a.txt", "files/content?path=/a.txt"]
      for (const path of paths) {
        for (const token of ["token-of-ada", "token-of-eve"]) {
          assert.strictEqual((yield* ask(`${url}/threads/t/${path}`, { token })).status, 404)
        }
        assert.strictEqual((yield* ask(`${url}/threads/t/${path}`, { token: "" })).status, 401)
      }
      assert.deepStrictEqual(asked, [])
      yield* start(url, "t", "token-of-ada")
      assert.isTrue((yield* ask(`${url}/agents`)).at("files"))
      const listed = yield* ask(`${url}/threads/t/files`)
      const names = [0, 1].map((index) => listed.at("entries", index, "path"))
      assert.deepStrictEqual([listed.at("path"), ...names], ["/", "/a.txt", "/b"])
      assert.strictEqual((yield* ask(`${url}/threads/t/files?path=/b`)).at("entries", 0, "path"), "/b/c.txt")
      const text = yield* ask(`${url}/threads/t/files/text?path=/a.txt`)
      assert.deepStrictEqual([text.at("kind"), text.at("text"), text.at("totalLines")], ["text", "of acme", 1])
      // The tenant "acm" has no thread of this name: it learns nothing from any request.
      for (const path of [...paths, "files?path=/none", "files/text?path=/none"]) {
        const foreign = yield* ask(`${url}/threads/t/${path}`, { token: "token-of-eve" })
        const missing = yield* ask(`${url}/threads/none/${path}`, { token: "token-of-eve" })
        assert.deepStrictEqual([foreign.status, foreign.text], [404, missing.text])
      }
      assert.isTrue(asked.every((one) => one === "acme t"))
      yield* start(url, "t", "token-of-eve")
      const own = yield* ask(`${url}/threads/t/files/text?path=/a.txt`, { token: "token-of-eve" })
      assert.strictEqual(own.at("text"), "of acm")
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.live("come in bounds, and their bytes as downloads that nothing runs", () =>
    Effect.gen(function* () {
      const many = Object.fromEntries(Array.from({ length: 2_100 }, (_, index) => [`/many/${index}.txt`, "x"]))
      const odd = "/x\";filename=y.html\u202e é'.html"
      const files = yield* MemoryBackend.make({
        files: { ...many, "/long.txt": "l\n".repeat(3_000), [odd]: "<script>alert(1)</script>" }
      })
      yield* files.upload([{ path: "/bytes", content: new Uint8Array([0, 1, 2, 255]) }])
      const url = yield* serve(runs, { files: () => Effect.succeed(files) })
      yield* start(url, "t", "token-of-ada")
      const at = `${url}/threads/t/files`
      const listed = yield* ask(`${at}?path=/many`)
      assert.deepStrictEqual([listed.at("entries", "length"), listed.at("isCut")], [2_000, true])
      const first = yield* ask(`${at}/text?path=/long.txt`)
      assert.deepStrictEqual([first.at("endLine"), first.at("totalLines")], [2_000, 3_000])
      assert.strictEqual((yield* ask(`${at}/text?path=/long.txt&line=2001`)).at("endLine"), 3_000)
      assert.strictEqual((yield* ask(`${at}/text?path=/bytes`)).at("kind"), "binary")
      for (const line of ["0", "-1", "x", "1e99"]) {
        assert.strictEqual((yield* ask(`${at}/text?path=/long.txt&line=${line}`)).at("startLine"), 1, line)
      }
      for (const path of ["/bytes", odd]) {
        const response = yield* Effect.promise(() =>
          fetch(`${at}/content?path=${encodeURIComponent(path)}`, { headers: { authorization: "Bearer token-of-ada" } })
        )
        assert.strictEqual(response.status, 200)
        const { headers } = response
        assert.match(headers.get("content-disposition") ?? "", /^attachment; filename\*=UTF-8''[\w.%-]+$/)
        assert.strictEqual(headers.get("content-type"), "application/octet-stream")
        assert.strictEqual(headers.get("x-content-type-options"), "nosniff")
        assert.strictEqual(headers.get("content-security-policy"), "sandbox; default-src 'none'")
        const bytes = new Uint8Array(yield* Effect.promise(() => response.arrayBuffer()))
        if (path === "/bytes") assert.deepStrictEqual([...bytes], [0, 1, 2, 255])
      }
      for (const [path, status] of [
        ["/none", 404],
        ["/many", 400],
        ["/../../etc/passwd", 400],
        ["/\u0000", 400],
        [`/${"x".repeat(5_000)}`, 400]
      ] as const) {
        const answer = yield* ask(`${at}/content?path=${encodeURIComponent(path)}`)
        assert.strictEqual(answer.status, status, path.slice(0, 20))
      }
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.live("are not told with the folders of the server, and not served unless it says so", () =>
    Effect.gen(function* () {
      const secret = BackendError.make("read", "/srv/secret", { _tag: "OutsideRoot", cwd: "/srv/secret" })
      const url = yield* serve(runs, { files: () => Effect.fail(secret) })
      yield* start(url, "t", "token-of-ada")
      const refused = yield* ask(`${url}/threads/t/files`)
      assert.strictEqual(refused.status, 400)
      assert.notInclude(refused.text, "srv")
      const bare = yield* serve(runs)
      assert.strictEqual((yield* ask(`${bare}/threads/t/files`)).status, 404)
      assert.isUndefined((yield* ask(`${bare}/agents`)).at("files"))
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})
