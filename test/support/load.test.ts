/** Workers allow no timer, request, random value or `AbortController` while their modules are loaded. */
import { execFileSync } from "node:child_process"
import { assert, describe, it } from "@effect/vitest"

const portable = ["", "/middleware", "/deep", "/backends", "/sessions", "/models", "/view", "/testing"]

const load = (code: string) =>
  execFileSync(process.execPath, ["--conditions=@effect-deepagents/source", "--input-type=module", "--eval", code], {
    cwd: `${import.meta.dirname}/../..`,
    encoding: "utf8"
  })

describe("modules of the portable core", () => {
  it("do nothing while they are loaded", () => {
    const code = `
      const refuse = (name) => function () { throw new Error(name + " at load") }
      for (const name of ["AbortController", "fetch", "setTimeout", "setInterval", "setImmediate", "WebSocket"])
        globalThis[name] = refuse(name)
      for (const name of ["randomUUID", "getRandomValues"]) globalThis.crypto[name] = refuse(name)
      for (const path of ${JSON.stringify(portable)}) await import("effect-deepagents" + path)
      console.log("loaded")
    `
    assert.strictEqual(load(code).trim(), "loaded")
  })
})
