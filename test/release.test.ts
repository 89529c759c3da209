/** The address that a release names. */
import { assert, describe, it } from "@effect/vitest"
import { parseAddress } from "../scripts/release.ts"

describe("the address of a release", () => {
  it("is that of a repository", () => {
    for (const address of ["https://github.com/owner/name", "https://git.example.com:8443/owner/some.name"]) {
      assert.strictEqual(parseAddress(address), address)
      assert.strictEqual(parseAddress(`${address}.git`), address)
    }
  })

  it("has no credentials", () => {
    for (const address of [
      "https://token@github.com/owner/name",
      "https://user:token@github.com/owner/name",
      "https://github.com:token/owner/name",
      "https://github.com\\@evil.test/owner/name",
      "http://github.com/owner/name",
      "https://github.com/owner",
      "https://github.com/owner/name/tree/main",
      "https://github.com/owner/name?token=x",
      "https://github.com/owner/name#x",
      "https:///owner/name",
      ""
    ]) {
      assert.isUndefined(parseAddress(address), address)
    }
  })
})
