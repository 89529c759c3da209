import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { loadPeer } from "../../../../src/backends/internal/sandboxes/provider.ts"

it.effect("a package that is not installed is named, with the command that installs it", () =>
  Effect.gen(function* () {
    const error = yield* Effect.flip(loadPeer("some-sdk", () => Promise.reject(new Error("Cannot find package"))))
    expect(error.reason).toEqual({ _tag: "Unsupported" })
    expect(error.message).toContain("npm install some-sdk")
    expect(yield* loadPeer("some-sdk", () => Promise.resolve("module"))).toBe("module")
  })
)
