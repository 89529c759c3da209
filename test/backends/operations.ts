/** Random operations that get in each other's way, and their results, to compare one backend with another. */
import { Effect, Exit } from "effect"
import type { Backend } from "effect-deepagents"
import * as fc from "fast-check"

type Operation = readonly [label: string, run: (backend: Backend.Service) => Effect.Effect<unknown, unknown>]

const path = fc
  .array(fc.constantFrom("a", "b", "a.txt", "__proto__", "é"), { minLength: 1, maxLength: 3 })
  .map((names) => `/${names.join("/")}`)

const text = fc.constantFrom("", "a", "a b\nb\n", "a\r\nb\r\n", "b\0a", "x".repeat(20))

const bytes = fc.uint8Array({ maxLength: 6 })

const op = <A>(
  name: string,
  given: fc.Arbitrary<A>,
  run: (backend: Backend.Service, given: A) => Effect.Effect<unknown, unknown>
): fc.Arbitrary<Operation> =>
  given.map((value) => [`${name} ${JSON.stringify(value)}`, (backend) => run(backend, value)] as const)

/** A sequence of operations. */
export const operations = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: op("write", fc.tuple(path, text, fc.boolean()), (backend, [at, content, create]) =>
        backend.write(at, content, { create })
      )
    },
    {
      weight: 2,
      arbitrary: op("edit", fc.tuple(path, fc.boolean()), (backend, [at, replaceAll]) =>
        backend.edit(at, [{ old: "a", new: "b\nc", replaceAll }])
      )
    },
    { weight: 2, arbitrary: op("move", fc.tuple(path, path), (backend, [from, to]) => backend.move(from, to)) },
    {
      weight: 2,
      arbitrary: op("delete", fc.tuple(path, fc.boolean()), (backend, [at, recursive]) =>
        backend.delete(at, { recursive })
      )
    },
    {
      weight: 2,
      arbitrary: op("upload", fc.tuple(path, bytes), (backend, [at, content]) =>
        backend.upload([
          { path: at, content },
          { path: at, content }
        ])
      )
    },
    op("read", path, (backend, at) => backend.read(at)),
    op("ls", path, (backend, at) => backend.ls(at)),
    op("download", path, (backend, at) => backend.download([at])),
    op("grep", fc.tuple(path, fc.constantFrom("content", "count", "files")), (backend, [at, mode]) =>
      backend.grep({ pattern: "a", path: at, mode, limit: 2 })
    ),
    op("glob", path, (backend, at) => backend.glob({ pattern: "a*", path: at }))
  ),
  { minLength: 1, maxLength: 40 }
)

/** The parts that do not depend on the place of files: versions and times differ. */
const bare = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, inner: unknown) =>
      key === "version" || key === "modifiedAt" || key === "cause" || key === "stack"
        ? undefined
        : inner instanceof Uint8Array
          ? Array.from(inner)
          : inner
    ) ?? "null"
  )

/** The result of each operation, and the final state. */
export const outcomes = (
  backend: Backend.Service,
  sequence: ReadonlyArray<Operation>
): Effect.Effect<ReadonlyArray<unknown>> =>
  Effect.gen(function* () {
    const all: Array<unknown> = []
    for (const [label, run] of sequence) {
      const exit = yield* Effect.exit(run(backend))
      all.push([label, Exit.isSuccess(exit) ? bare(exit.value) : bare(exit.cause)])
    }
    const files = yield* Effect.orDie(backend.glob({ pattern: "**", ignored: true }))
    all.push(bare(yield* backend.download(files.entries.map((entry) => entry.path))))
    return all
  })
