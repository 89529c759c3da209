/** The profile for macOS, as text: no Mac runs these tests. */
import * as fs from "node:fs"
import * as path from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeProfile } from "../../../src/backends/internal/isolate/seatbelt.ts"
import { folders } from "./box.ts"

const plain = { binds: [], node: "/usr/local/bin/node", port: undefined, temporary: "/private/tmp/box" } as const

/** Reads the expressions of a profile: lists of words and texts, as `sandbox-exec` does. */
const parseProfile = (profile: string): ReadonlyArray<string> => {
  const found: Array<string> = []
  let depth = 0
  let isText = false
  let begin = 0
  for (let at = 0; at < profile.length; at++) {
    const one = profile[at]
    if (isText) {
      if (one === "\\") at++
      else if (one === '"') isText = false
    } else if (one === '"') isText = true
    else if (one === "(" && depth++ === 0) begin = at
    else if (one === ")" && --depth === 0) found.push(profile.slice(begin, at + 1))
  }
  assert.deepStrictEqual([depth, isText], [0, false])
  return found
}

const writes = (profile: string) => parseProfile(profile).filter((one) => /^\((?:allow|deny) .*file-write/.test(one))

describe("the profile for macOS", () => {
  it("refuses all that it does not name, and has no network", () => {
    const rules = parseProfile(makeProfile(plain))
    assert.deepStrictEqual(rules.slice(0, 2), ["(version 1)", "(deny default)"])
    assert.isFalse(rules.some((one) => one.includes("network")))
    assert.isFalse(rules.some((one) => one.includes("/Users") || one.includes('(subpath "/")')))
    assert.include(makeProfile({ ...plain, port: 3128 }), '(allow network-outbound (remote ip "localhost:3128"))')
  })

  it("lets commands change the folder, and lets the deepest path decide", () => {
    const binds = [
      { path: "/work/project/vendor", access: "read" },
      { path: "/work/project", access: "write" },
      { path: "/work/project/vendor/cache", access: "write" }
    ] as const
    assert.deepStrictEqual(writes(makeProfile({ ...plain, binds })).slice(2), [
      '(allow file-read* file-write* (subpath "/private/tmp/box"))',
      '(allow file-read* file-write* (subpath "/work/project"))',
      '(deny file-write* (subpath "/work/project/vendor"))',
      '(allow file-read* file-write* (subpath "/work/project/vendor/cache"))'
    ])
  })

  it.effect("keeps hooks and settings of a repository, and the folder that they are in", () =>
    Effect.gen(function* () {
      const { root } = yield* folders
      const git = path.join(root, ".git")
      fs.mkdirSync(git)
      fs.writeFileSync(path.join(git, "config"), "")
      const rules = writes(makeProfile({ ...plain, binds: [{ path: root, access: "write" }] }))
      assert.includeMembers(
        [...rules],
        [
          `(deny file-write* (subpath "${git}/hooks"))`,
          `(deny file-write* (subpath "${git}/config"))`,
          `(deny file-write-unlink (literal "${git}"))`
        ]
      )
      assert.isAbove(
        rules.indexOf(`(deny file-write* (subpath "${git}/hooks"))`),
        rules.indexOf(`(allow file-read* file-write* (subpath "${git}"))`)
      )
    })
  )

  it("is not changed by the name of a folder", () => {
    const names = ['/a") (allow default) ("', "/a\\", '/a\\") (allow network*) (x "', "/a\n(allow default)", "relative"]
    const binds = names.map((name) => ({ path: name, access: "write" }) as const)
    const expected = parseProfile(makeProfile(plain)).length
    const rules = parseProfile(makeProfile({ ...plain, binds }))
    const inner = { path: "/work/odd\nname", access: "read" } as const
    assert.notInclude(makeProfile({ ...plain, binds: [{ path: "/work", access: "write" }, inner] }), '"/work"')
    // Names with a control character, and relative ones, are left out.
    assert.strictEqual(rules.length, expected + 3)
    assert.isFalse(rules.some((one) => one.startsWith("(allow default") || one.startsWith("(allow network")))
  })
})
