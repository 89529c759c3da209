/** The address that a release names, and the entry in the registry of the Agent Client Protocol. */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { fillEntry, parseAddress } from "../scripts/release.ts"

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

describe("the entry in the registry of the Agent Client Protocol", () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8"))
  const entry = JSON.parse(readFileSync("scripts/registry/agent.json", "utf8"))

  it("follows the registry's rules, and has the version of the package", () => {
    // The rules come from `agent.schema.json` and CONTRIBUTING.md of the registry, of November 2026.
    const known = ["id", "name", "version", "description", "repository", "website", "authors", "license", "license_url"]
    assert.containsAllKeys(entry, ["id", "name", "version", "description", "license_url", "distribution"])
    assert.deepStrictEqual(
      Object.keys(entry).filter((key) => ![...known, "distribution"].includes(key)),
      []
    )
    assert.match(entry.id, /^[a-z][a-z0-9-]*$/)
    assert.match(entry.version, /^\d+\.\d+\.\d+$/)
    assert.strictEqual(entry.version, version)
    assert.isTrue(URL.canParse(entry.license_url))
    assert.deepStrictEqual(entry.distribution, { npx: { package: `effect-deepagents@${version}`, args: ["acp"] } })
  })

  it("has an icon of 16 by 16 in one colour", () => {
    const icon = readFileSync("scripts/registry/icon.svg", "utf8")
    assert.match(icon, /width="16" height="16" viewBox="0 0 16 16"/)
    for (const [, colour] of icon.matchAll(/(?:fill|stroke)="([^"]*)"/g)) {
      assert.include(["currentColor", "none", "inherit"], colour)
    }
  })

  it("gets the address of a release", () => {
    const filled = fillEntry(entry, "effect-deepagents", "1.2.3", "https://github.com/owner/name")
    assert.deepStrictEqual({ ...entry, ...filled }, filled)
    assert.deepStrictEqual([filled.version, filled.repository], ["1.2.3", "https://github.com/owner/name"])
    assert.strictEqual(filled.distribution.npx.package, "effect-deepagents@1.2.3")
  })
})
