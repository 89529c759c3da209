import { describe, expect, it } from "@effect/vitest"
import * as Attached from "../../src/support/effect/attached.ts"

describe("attached values", () => {
  it("belong to their kind and their object alone", () => {
    const first = Attached.make<object, string>()
    const second = Attached.make<object, string>()
    const [one, other] = [{}, {}]
    first.set(one, "a")
    second.set(one, "b")
    expect([first.get(one), second.get(one), first.get(other)]).toEqual(["a", "b", undefined])
    first.set(one, "c")
    expect([first.get(one), second.get(one)]).toEqual(["c", "b"])
  })

  it("do not appear in the printed or serialised object", () => {
    const kind = Attached.make<object, string>()
    const object = { name: "it" }
    kind.set(object, "secret")
    expect(JSON.stringify(object)).toBe(`{"name":"it"}`)
    expect(Object.keys(object)).toEqual(["name"])
  })
})
