import { describe, expect, it } from "@effect/vitest"
import { pipe, Schema } from "effect"
import { BackendError } from "effect-deepagents"

const denied = BackendError.make("write", "/inner/a", { _tag: "PermissionDenied" }, { detail: "a rule", cause: "why" })

describe("BackendError.at", () => {
  it("names another operation and path, and loses nothing", () => {
    const outer = BackendError.at(denied, "move", "/a")
    expect(outer).toMatchObject({
      operation: "move",
      path: "/a",
      reason: denied.reason,
      detail: "a rule",
      cause: "why"
    })
    expect(pipe(denied, BackendError.at("move", "/a"))).toStrictEqual(outer)
  })

  it("gives the same failure where nothing changes", () => {
    expect(BackendError.at(denied, "write", "/inner/a")).toBe(denied)
  })

  it("adds no keys that were not there, so it is the same after JSON", () => {
    const bare = BackendError.at(BackendError.make("read", "/inner", { _tag: "NotFound" }), "read", "/")
    const codec = Schema.toCodecJson(BackendError.BackendError)
    const again = Schema.decodeSync(codec)(JSON.parse(JSON.stringify(Schema.encodeSync(codec)(bare))))
    expect("detail" in again || "cause" in again).toBe(false)
    expect(again).toStrictEqual(bare)
  })
})
