/** Checks files and folders that are too large for memory. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import type { Service } from "../../../../core/Backend.ts"
import { assert, expect } from "../assert.ts"
import { readBytes, putFiles, pathsOf, readText, rule, type Rules } from "./common.ts"
import type { Huge, ManyFiles } from "./subject.ts"

const mebibyte = 1024 * 1024

/** Checks of huge files. */
export const hugeRules = <H>(): Rules<Service, Huge<H>, H | Scope.Scope> => [
  rule<Service, Huge<H>, H | Scope.Scope>(
    "a window of a file of 100 MB takes little memory",
    function* (backend, huge) {
      const line = `${"0123456789".repeat(9)}\r\n`
      const times = Math.ceil((100 * mebibyte + 1) / line.length)
      yield* huge.plant("/huge.txt", line, times)
      const before = yield* huge.memory
      let most = before
      const watching = yield* Effect.forkScoped(
        Effect.forever(
          Effect.gen(function* () {
            most = Math.max(most, yield* huge.memory)
            yield* Effect.sleep("5 millis")
          })
        )
      )
      const last = yield* readText(backend, "/huge.txt", { offset: times - 1 })
      yield* expect([last.startLine, last.endLine, last.totalLines], [times - 1, times, times], "the last lines")
      yield* expect(last.text, `${line.trimEnd()}\n${line.trimEnd()}`, "their text")
      const first = yield* readText(backend, "/huge.txt", { limit: 3 })
      yield* expect([first.startLine, first.endLine, first.size], [1, 3, times * line.length], "the first lines")
      most = Math.max(most, yield* huge.memory)
      yield* Fiber.interrupt(watching)
      yield* assert(
        most - before < 80 * mebibyte,
        "memory stays below the size of the file",
        `${most - before} bytes more`
      )
      const [download] = yield* backend.download(["/huge.txt"])
      yield* assert(
        download?.ok === false && download.error.reason._tag === "TooLarge",
        "it is too large for a download",
        download?.ok
      )
      const result = yield* backend.grep({ pattern: "nowhere", mode: "files" })
      yield* expect(result.files, [], "grep has nothing to find")
    }
  ),
  rule("a line of 100 MB is read in windows", function* (backend, huge) {
    yield* huge.plant("/line.txt", "0123456789", 10 * mebibyte)
    const window = yield* readText(backend, "/line.txt", { column: 90 * mebibyte + 3, limit: 1 })
    yield* expect([window.startLine, window.endLine, window.totalLines], [1, 1, 1], "it is one line")
    yield* expect(
      window.text.slice(0, 8),
      `${"0123456789"}${"0123456789"}`.slice((90 * mebibyte + 3) % 10).slice(0, 8),
      "from that column"
    )
    yield* assert(
      window.text.length <= 256 * 1024 && window.nextColumn !== undefined,
      "a window of it",
      window.nextColumn
    )
    const result = yield* backend.grep({ pattern: "012345", mode: "content" })
    const lengths = result.files.flatMap(({ matches }) => matches.map(({ text }) => text.length))
    yield* assert(
      lengths.every((length) => length < 64 * 1024),
      "grep does not show all of it",
      lengths
    )
  })
]

/** Checks of a folder with many files. */
export const manyRules = <H>(): Rules<Service, ManyFiles<H>, H | Scope.Scope> => [
  rule("a folder of very many files is listed and searched in order", function* (backend, { count, plant }) {
    const paths = Array.from({ length: count }, (_, index) => `/many/file ${index}.txt`)
    const files = Object.fromEntries(paths.map((path, index) => [path, `needle ${index % 10}\n`]))
    yield* plant === undefined ? putFiles(backend, files) : plant(files)
    const sorted = paths.toSorted()
    const listed = yield* backend.ls("/many")
    const names = pathsOf(listed)
    yield* assert(names.length === count || listed.truncated === "limit", "ls gives all, or says so", names.length)
    yield* assert(
      names.every((path, index) => path === sorted[index]),
      "in order",
      names.slice(0, 12)
    )
    const all = yield* backend.glob({ pattern: "*.txt", limit: count })
    yield* assert(
      all.truncated === undefined && all.entries.every(({ path }, index) => path === sorted[index]),
      "glob gives all, in order",
      all.truncated
    )
    const first = yield* backend.glob({ pattern: "**/*.txt", limit: 7 })
    yield* expect(pathsOf(first), sorted.slice(0, 7), "glob gives the first ones")
    yield* expect(first.truncated, "limit", "and says that there are more")
    const lines = yield* backend.grep({ pattern: "needle", mode: "content", limit: 7 })
    yield* expect(
      lines.files.map(({ path }) => path),
      sorted.slice(0, 7),
      "grep gives the first ones"
    )
    yield* expect(lines.truncated, "limit", "and says that there are more")
    const some = yield* backend.grep({ pattern: "needle 3", mode: "count", limit: count })
    yield* expect([some.files.length, some.truncated ?? "all"], [count / 10, "all"], "grep finds all")
    const order = some.files.map(({ path }) => path)
    yield* expect(order.slice(0, 9), order.toSorted().slice(0, 9), "in order")
    yield* backend.move("/many", "/moved")
    yield* backend.delete("/moved", { recursive: true })
    yield* expect((yield* backend.ls("/")).entries, [], "all are deleted")
    yield* assert(
      (yield* Effect.result(readBytes(backend, paths[0] ?? "")))._tag === "Failure",
      "none is left",
      paths[0]
    )
  })
]
