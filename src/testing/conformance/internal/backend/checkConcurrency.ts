/** Checks parallel callers and interruptions: no update is lost, and no reader sees a partial write. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Service } from "../../../../core/Backend.ts"
import { assert, expect } from "../assert.ts"
import { listFiles, readBytes, putFiles, listPaths, readText, rule, type Rules, readWhole } from "./common.ts"

const atOnce = { concurrency: "unbounded" } as const

/** Spellings of one path. They share one file and one lock. */
const spellings = ["/shared.txt", "shared.txt", "//shared.txt", "/./shared.txt", "./shared.txt/"]

const succeeded = <A>(results: ReadonlyArray<{ readonly _tag: "Success" | "Failure" } & A>): number =>
  results.filter(({ _tag }) => _tag === "Success").length

const editsAtOnce = Effect.fnUntraced(function* (backend: Service) {
  const slots = Array.from({ length: 20 }, (_, index) => `slot-${String(index).padStart(2, "0")}`)
  yield* backend.write("/shared.txt", `${slots.join(": open\n")}: open\n`)
  const results = yield* Effect.forEach(
    slots,
    (slot, index) =>
      Effect.result(
        backend.edit(spellings[index % spellings.length] ?? "", [{ old: `${slot}: open`, new: `${slot}: done` }])
      ),
    atOnce
  )
  const text = yield* readWhole(backend, "/shared.txt")
  for (const [index, slot] of slots.entries()) {
    const result = results[index]
    const expected = result?._tag === "Success" ? "done" : "open"
    yield* assert(text.includes(`${slot}: ${expected}\n`), `${slot} is ${expected}: no update is lost or made up`, text)
    if (result?._tag === "Failure") yield* expect(result.failure.reason._tag, "Conflict", `why ${slot} is not edited`)
  }
  yield* assert(succeeded(results) > 0, "at least one edit succeeds", results)
})

const oneWins = Effect.fnUntraced(function* (backend: Service) {
  const { version } = yield* backend.write("/shared.txt", "start")
  const writers = Array.from({ length: 12 }, (_, index) => `writer ${index}`)
  const versioned = yield* Effect.forEach(
    writers,
    (text, index) => Effect.result(backend.write(spellings[index % spellings.length] ?? "", text, { version })),
    atOnce
  )
  yield* expect(succeeded(versioned), 1, "of writes that know the same version one succeeds")
  const winner = writers[versioned.findIndex(({ _tag }) => _tag === "Success")]
  yield* expect(yield* readWhole(backend, "/shared.txt"), winner, "its text is there")

  const creating = yield* Effect.forEach(
    writers,
    (text) => Effect.result(backend.write("/new/created.txt", text, { create: true })),
    atOnce
  )
  yield* expect(succeeded(creating), 1, "of writes that create one succeeds")
  const creator = writers[creating.findIndex(({ _tag }) => _tag === "Success")]
  yield* expect(yield* readWhole(backend, "/new/created.txt"), creator, "its text is there")

  yield* putFiles(backend, Object.fromEntries(writers.map((text) => [`/from/${text}`, text])))
  const moving = yield* Effect.forEach(
    writers,
    (text) => Effect.result(backend.move(`/from/${text}`, "/to/one")),
    atOnce
  )
  yield* expect(succeeded(moving), 1, "of moves to one place one succeeds")
  const mover = writers[moving.findIndex(({ _tag }) => _tag === "Success")]
  yield* expect(yield* readWhole(backend, "/to/one"), mover, "its file is there")
  yield* expect((yield* backend.ls("/from")).entries.length, writers.length - 1, "the others are where they were")
})

const oldOrNew = Effect.fnUntraced(function* (backend: Service) {
  const texts = ["a", "b", "c"].map((char) => `${char.repeat(63)}\n`.repeat(8000))
  yield* backend.write("/big.txt", texts[0] ?? "")
  const write = Effect.forEach([1, 2, 0, 1, 2, 0], (index) => backend.write("/big.txt", texts[index] ?? ""))
  const read = Effect.forEach(Array.from({ length: 8 }), () =>
    Effect.gen(function* () {
      const text = yield* readWhole(backend, "/big.txt")
      yield* assert(texts.includes(text), "a download gives the old file or the new one", [
        text.length,
        text[0],
        text.at(-2)
      ])
      const window = yield* readText(backend, "/big.txt", { offset: 7990, limit: 5 })
      yield* assert(new Set(window.text).size === 2 && window.totalLines === 8000, "so does read", window)
      yield* Effect.yieldNow
    })
  )
  yield* Effect.all([write, read, read], atOnce)
})

const interrupted = Effect.fnUntraced(function* (backend: Service) {
  const before = `${"before ".repeat(9)}\n`.repeat(10_000)
  const after = `${"after ".repeat(9)}\n`.repeat(10_000)
  yield* backend.write("/i/file.txt", before)
  for (let round = 0; round < 6; round++) {
    const running = yield* Effect.forkScoped(
      round % 2 === 0
        ? backend.write("/i/file.txt", after)
        : backend.edit("/i/file.txt", [{ old: "before", new: "after", replaceAll: true }])
    )
    for (let yields = 0; yields < round * 3; yields++) yield* Effect.yieldNow
    yield* Fiber.interrupt(running)
    const text = yield* readWhole(backend, "/i/file.txt")
    yield* assert(text === before || text === after, "the old content or the new is there", [
      text.length,
      text.slice(0, 10)
    ])
    yield* backend.write("/i/file.txt", before)
  }
  yield* expect(yield* listFiles(backend), ["/i/file.txt"], "nothing is left over")
  yield* expect(yield* listPaths(backend, "/i"), ["/i/file.txt"], "nothing is left in the folder")
})

/** Checks of parallel operations. */
export const concurrencyRules: Rules<Service> = [
  ["edits of one file at once are all there, in any spelling of its path", editsAtOnce],
  ["of several that want the same at once, one gets it", oneWins],
  ["an interrupted write or edit leaves the old file or the new one, and locks nothing", interrupted],
  rule("a counter that is read, edited and tried again on Conflict counts all", function* (backend) {
    yield* backend.write("/count", "0")
    const increment = Effect.gen(function* () {
      const { text, version } = yield* readText(backend, "/count")
      yield* backend.write("/count", String(Number(text) + 1), { version })
    })
    yield* Effect.forEach(
      Array.from({ length: 5 }),
      () =>
        Effect.retry(increment, {
          while: (error) => error._tag === "BackendError" && error.reason._tag === "Conflict",
          times: 200
        }),
      atOnce
    )
    yield* expect(yield* readWhole(backend, "/count"), "5", "the count")
  }),
  rule("other operations go on beside each other, on the same files and folders", function* (backend) {
    const paths = Array.from({ length: 16 }, (_, index) => `/w/${index % 4}/${index}`)
    yield* Effect.forEach(paths, (path) => backend.write(path, path), atOnce)
    yield* Effect.forEach(
      paths,
      (path, index) =>
        index % 4 === 0
          ? backend.delete(path)
          : index % 4 === 1
            ? backend.move(path, `/moved/${index}`)
            : index % 4 === 2
              ? Effect.asVoid(backend.grep({ pattern: "w", mode: "count" }))
              : Effect.asVoid(backend.edit(path, [{ old: "/w/", new: "/edited/" }])),
      atOnce
    )
    yield* expect(
      yield* listFiles(backend),
      [
        "/moved/1",
        "/moved/13",
        "/moved/5",
        "/moved/9",
        "/w/2/10",
        "/w/2/14",
        "/w/2/2",
        "/w/2/6",
        "/w/3/11",
        "/w/3/15",
        "/w/3/3",
        "/w/3/7"
      ],
      "what is there at the end"
    )
    yield* expect((yield* readBytes(backend, "/w/3/11")).length, "/edited/3/11".length, "what was edited")
  })
]

/** Checks of reads during a write. */
export const atomicRules: Rules<Service> = [["a reader sees the old file or the new one", oldOrNew]]
