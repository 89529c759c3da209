import { assert, describe, it } from "@effect/vitest"
import { Effect, Result } from "effect"
import type { Backend } from "effect-deepagents"
import { CompositeBackend, MemoryBackend } from "effect-deepagents/backends"
import { type TestBackend } from "effect-deepagents/testing"
import { BackendConformance } from "effect-deepagents/testing/conformance"
import { files, outcome } from "./CompositeBackend.requests.ts"

describe("routes don't show", () => {
  const mounts = ["/a", "/a/b", "/d.ts/A"]
  /** These are refused, as a backend is mounted there or below; ignore files hold in their own backend. */
  const isOther = (request: TestBackend.Request): boolean => {
    if (JSON.stringify(request).includes(".gitignore")) return true
    if (request.operation !== "delete" && request.operation !== "move") return false
    const paths = request.operation === "move" ? [request.path, request.to] : [request.path]
    return paths.some((path) => {
      const normal = `/${path
        .split("/")
        .filter((name) => name !== "" && name !== ".")
        .join("/")}`
      return mounts.some((mount) => mount === normal || normal === "/" || mount.startsWith(`${normal}/`))
    })
  }

  for (const seed of Array.from({ length: 20 }, (_, index) => index + 1)) {
    it.effect(`the same operations give the same as one backend with the same files (seed ${seed})`, () =>
      Effect.gen(function* () {
        const one = yield* MemoryBackend.make()
        const routes: Record<string, Backend.Service> = {}
        for (const mount of mounts) routes[mount] = yield* MemoryBackend.make()
        const many = yield* CompositeBackend.make(yield* MemoryBackend.make(), routes)
        for (const mount of mounts) {
          yield* one.write(`${mount}/.kept`, "kept")
          yield* many.write(`${mount}/.kept`, "kept")
        }
        for (const [index, request] of BackendConformance.randomRequests(seed, 120).entries()) {
          if (isOther(request)) continue
          const pattern =
            request.operation === "glob"
              ? request.query.pattern
              : request.operation === "grep"
                ? request.query.glob
                : ""
          // The meaning of a path pattern for a single file is open.
          if (pattern?.includes("/") === true && Result.isSuccess(yield* Effect.result(one.read(request.path))))
            continue
          const label = `operation ${index}: ${JSON.stringify(request)}`
          assert.deepStrictEqual(yield* outcome(many, request), yield* outcome(one, request), label)
        }
        assert.deepStrictEqual(yield* files(many), yield* files(one))
      })
    )
  }
})
