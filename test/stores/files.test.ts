/** Files of a storage: their state after a crash, their readers, and removed values. */
import { existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Layer, Logger, PlatformError, Result } from "effect"
import { MemoryStore, Storage } from "effect-deepagents/stores"
import { file, folder } from "./places.ts"

const filesUnder = (path: string): ReadonlyArray<string> =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

/** A table as a new process sees it. */
const openTable = (path: string) => Effect.map(Effect.provide(Storage.Storage, file(path)), ({ table }) => table("t"))

/** The file of the only space. */
const onlyFile = (path: string): string => {
  const [only] = filesUnder(path).filter((name) => statSync(name).size > 0)
  return only ?? ""
}

const silent = Logger.layer([])

describe("files", () => {
  it.live(
    "a line cut anywhere loses its own value and nothing else, with any lines behind it",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const table = yield* openTable(path)
      yield* table.put("s", [{ key: "a", value: "1" }])
      const before = statSync(onlyFile(path)).size
      yield* table.put("s", [
        { key: "a", value: "2" },
        { key: "b", value: '{"deep":"ä\\n"}' }
      ])
      const whole = readFileSync(onlyFile(path))
      for (let size = before; size < whole.length; size++) {
        const name = onlyFile(path)
        writeFileSync(name, whole)
        truncateSync(name, size)
        const after = yield* openTable(path)
        assert.strictEqual(yield* after.get("s", "a"), "1", `cut at ${size}`)
        yield* after.put("s", [{ key: "c", value: "3" }])
        const again = yield* openTable(path)
        assert.deepStrictEqual(
          yield* again.scan("s", { limit: 9 }),
          [
            { key: "a", value: "1" },
            { key: "c", value: "3" }
          ],
          `cut at ${size}`
        )
      }
    }, Effect.provide(silent))
  )

  it.live(
    "logs the unreadable part of a file",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const table = yield* openTable(path)
      yield* table.put("s", [{ key: "a", value: "1" }])
      writeFileSync(onlyFile(path), `${readFileSync(onlyFile(path), "utf8")}{"_tag":"Se\n`)
      const logged: Array<unknown> = []
      const after = yield* openTable(path)
      const logger = Logger.make(({ message }) => void logged.push(message))
      assert.strictEqual(yield* after.get("s", "a").pipe(Effect.provide(Logger.layer([logger]))), "1")
      assert.include(String(logged), "can't be read")
    })
  )

  it.live(
    "removed and replaced values are in no file",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const store = yield* Effect.provide(MemoryStore.MemoryStore, Layer.provide(MemoryStore.layer, file(path)))
      const { id } = yield* store.add("ada", { text: "the wish that is forgotten", vector: [1, 2] })
      yield* store.add("ada", { text: "what stays" })
      assert.isTrue(filesUnder(path).some((name) => readFileSync(name, "utf8").includes("the wish")))
      yield* store.remove("ada", id)
      assert.isFalse(filesUnder(path).some((name) => readFileSync(name, "utf8").includes("the wish")))
      assert.strictEqual((yield* store.search("ada", { text: "stays" })).length, 1)
      yield* store.clear("ada")
      assert.isFalse(filesUnder(path).some((name) => readFileSync(name, "utf8").includes("what stays")))
    })
  )

  it.live(
    "files don't grow with the number of writes, nor does their number",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const table = yield* openTable(path)
      for (let n = 0; n < 2000; n++) yield* table.put("s", [{ key: `k${n % 3}`, value: `${n}`.padEnd(100) }])
      const size = () => filesUnder(path).reduce((sum, name) => sum + statSync(name).size, 0)
      assert.isAtMost(size(), 600 * 250)
      for (let n = 0; n < 60; n++) {
        yield* table.put("s", [{ key: "gone", value: `${n}` }])
        yield* table.swap("s", "gone", `${n}`, undefined)
      }
      assert.isAtMost(filesUnder(path).length, 12)
      assert.isAtMost(size(), 600 * 250)
      assert.strictEqual(yield* (yield* openTable(path)).get("s", "k1"), "1999".padEnd(100))
    })
  )

  it.live(
    "nobody but the owner can read them, and no name leads out of the folder",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const table = yield* openTable(join(path, "inner"))
      const names = ["..", "../../x", "/etc/passwd", "a/b", "a_b", "A/B", ".", "CON", "a\\b", "x".repeat(500), "🙂"]
      for (const name of names) yield* table.put(name, [{ key: name, value: name }])
      for (const name of names) {
        assert.deepStrictEqual(yield* table.scan(name, { limit: 9 }), [{ key: name, value: name }])
        yield* table.swap(name, name, name, "changed")
      }
      assert.deepStrictEqual(readdirSync(path), ["inner"])
      assert.strictEqual(readdirSync(join(path, "inner", "t")).length, names.length)
      for (const name of filesUnder(path)) assert.strictEqual(statSync(name).mode & 0o777, 0o600)
      for (const entry of readdirSync(join(path, "inner"), { recursive: true, withFileTypes: true })) {
        if (entry.isDirectory()) assert.strictEqual(statSync(join(entry.parentPath, entry.name)).mode & 0o077, 0)
      }
    })
  )

  it.live(
    "a process that ended while it wrote the file anew leaves nothing open",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const table = yield* openTable(path)
      yield* table.put("s", [{ key: "a", value: "secret draft" }])
      const first = onlyFile(path)
      // Sealed, and the next file only begun: lines behind the seal never held.
      const sealed = `${readFileSync(first, "utf8")}{"_tag":"Seal","by":"x"}\n{"_tag":"Set","by":"y","rows":[["a","late"]]}\n`
      writeFileSync(first, sealed)
      writeFileSync(`${first.slice(0, -1)}2.dead.draft`, "half a fi")
      const after = yield* openTable(path)
      assert.strictEqual(yield* after.get("s", "a"), "secret draft")
      // The process that had it open goes on, too.
      assert.isTrue(yield* table.swap("s", "a", "secret draft", "2"))
      assert.strictEqual(yield* after.get("s", "a"), "2")
      yield* after.clear("s")
      assert.isFalse(filesUnder(path).some((name) => /draft|half/.test(name + readFileSync(name, "utf8"))))
      assert.isUndefined(yield* table.get("s", "a"))
    })
  )

  it.live(
    "a process that lags behind writes to the current file",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const [left, right] = [yield* openTable(path), yield* openTable(path)]
      yield* left.put("s", [{ key: "a", value: "0" }])
      for (let n = 0; n < 15; n++) {
        yield* right.put("s", [{ key: "x", value: "1" }])
        yield* right.swap("s", "x", "1", undefined)
        if (n % 5 === 4) yield* left.put("s", [{ key: `left${n}`, value: "1" }])
      }
      assert.deepStrictEqual(
        (yield* right.scan("s", { limit: 9 })).map(({ key }) => key),
        ["a", "left14", "left4", "left9"]
      )
    })
  )

  it.live(
    "reports a foreign or moved folder as corrupt, and a removed one as empty",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      const table = yield* openTable(path)
      yield* table.put("s", [{ key: "a", value: "1" }])
      const name = onlyFile(path)
      const text = readFileSync(name, "utf8")
      for (const wrong of ["", "{}\n", text.replace(`"v":1`, `"v":2`), text.replace(`"space":"s"`, `"space":"t"`)]) {
        writeFileSync(name, wrong)
        const problem = yield* Effect.flip((yield* openTable(path)).get("s", "a"))
        assert.strictEqual(problem.reason, "Corrupt")
        assert.include(problem.problem, name)
      }
      rmSync(path, { recursive: true })
      assert.isUndefined(yield* table.get("s", "a"))
      assert.isFalse(existsSync(path), "reading makes nothing")
      yield* table.put("s", [{ key: "b", value: "1" }])
      assert.strictEqual(yield* table.count("s"), 1)
    }, Effect.provide(silent))
  )

  it.live(
    "reports a full disk as unavailable, and keeps the existing values",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      let left = Number.POSITIVE_INFINITY
      const full = PlatformError.systemError({
        _tag: "Unknown",
        module: "FileSystem",
        method: "writeAll",
        description: "ENOSPC"
      })
      const small = Layer.effect(
        FileSystem.FileSystem,
        Effect.map(FileSystem.FileSystem, (fs) => ({
          ...fs,
          open: (name: string, options?: Parameters<typeof fs.open>[1]) =>
            Effect.map(fs.open(name, options), (handle) => ({
              ...handle,
              [Symbol.iterator]: undefined,
              stat: handle.stat,
              sync: handle.sync,
              readAlloc: handle.readAlloc.bind(handle),
              writeAll: (bytes: Uint8Array) => {
                const fits = bytes.subarray(0, left)
                left -= fits.length
                const write = fits.length > 0 ? handle.writeAll(fits) : Effect.void
                return fits.length < bytes.length ? Effect.andThen(write, Effect.fail(full)) : write
              }
            }))
        }))
      )
      const storage = Storage.layerFile({ folder: path, fsync: true }).pipe(
        Layer.provide(small),
        Layer.provide(NodeServices.layer)
      )
      const table = (yield* Effect.provide(Storage.Storage, storage)).table("t")
      yield* table.put("s", [{ key: "a", value: "1" }])
      left = 20
      const problem = Result.getFailure(yield* Effect.result(table.put("s", [{ key: "a", value: "2" }])))
      assert.include(JSON.stringify(problem), "ENOSPC")
      assert.strictEqual(yield* table.get("s", "a"), "1")
      left = Number.POSITIVE_INFINITY
      yield* table.put("s", [{ key: "b", value: "3" }])
      // The seal is written, the next file is not: the next process makes it.
      left = 230
      yield* Effect.ignore(table.swap("s", "a", "1", undefined))
      left = Number.POSITIVE_INFINITY
      assert.deepStrictEqual(yield* table.scan("s", { limit: 9 }), [{ key: "b", value: "3" }])
    }, Effect.provide(silent))
  )
})
