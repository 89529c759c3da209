/** Policies as files of the program. */
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { compiled, readPolicies } from "../../src/cli/internal/policies.ts"
import { answer, say, serve, stream } from "../models/servers/anthropic.ts"
import { build } from "./built.ts"

let program: ReturnType<typeof build>

beforeAll(() => {
  program = build()
})
afterAll(() => program.remove())

describe("policies of the program", { timeout: 60_000 }, () => {
  it.effect("are merged so that the stricter one holds, whoever's it is and whatever name it gives itself", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "deepagents-policies-"))
      const file = (name: string, text: string) => {
        writeFileSync(join(folder, name), text)
        return join(folder, name)
      }
      const found = yield* readPolicies([
        { from: "organisation", file: file("organisation", "tools: { execute: deny }\nbudget: { tokens: 10 }") },
        { from: "user", file: join(folder, "none") },
        {
          from: "project",
          file: file(
            "project",
            "name: organisation\nstrict: false\ntools: { execute: allow, delete_file: deny }\nbudget: { tokens: 99 }"
          )
        }
      ])
      const policy = yield* compiled(found, [])
      const words = ["execute", "delete_file", "ls"].map((name) => policy?.explain({ name }))
      assert.deepEqual(
        words.map((word) => [word?.mode, word?.policy]),
        [
          ["deny", "organisation"],
          ["deny", "project"],
          ["allow", undefined]
        ]
      )
      assert.equal(policy?.budget?.tokens, 10)
      const wrong = [{ from: "user", file: file("user", "sandbox: readOnly") } as const]
      assert.match((yield* Effect.flip(readPolicies(wrong))).message, /takes no sandbox/)
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect(
    "hold in a run, even with --yolo, and allow nothing that is asked about; a project's only where it is trusted; mistakes are refused with 2",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { folder, run } = program
          const cwd = folder()
          const call = { call: "write_file", id: "toolu_1", input: { file_path: "/a.txt", content: "x" } }
          const { requests, url } = yield* serve(stream(answer([call])), say("It may not be."), stream(answer([call])))
          const env = {
            ANTHROPIC_BASE_URL: url,
            ANTHROPIC_API_KEY: "sk-ant-test",
            XDG_CONFIG_HOME: join(cwd, "config")
          }
          mkdirSync(join(cwd, ".deepagents"))
          const file = join(cwd, ".deepagents/policy.yaml")
          writeFileSync(file, "tools: { write_file: { mode: deny, reason: not on Fridays } }")
          assert.deepEqual(JSON.parse((yield* run(cwd, ["config", "--json"], env)).out).policies, [])
          const held = yield* run(cwd, ["run", "Write it", "--yolo", "--trust"], env)
          assert.equal(held.code, 0, held.err)
          assert.include(JSON.stringify(requests.at(-1)?.body), "not on Fridays")
          assert.notOk(existsSync(join(cwd, "a.txt")))
          const shown = yield* run(cwd, ["config"], env)
          assert.match(shown.out, /policy +project \(.*policy\.yaml\): .*not on Fridays/)
          writeFileSync(file, "tools: { write_file: allow }\ndefault: allow")
          const asked = yield* run(cwd, ["run", "Write it"], env)
          assert.equal(asked.code, 6, asked.err)
          writeFileSync(file, "toools: {}")
          const field = yield* run(cwd, ["config"], env)
          assert.deepEqual([field.code, field.err.includes("tools")], [2, true])
          writeFileSync(file, "tools: { writ_file: deny }")
          const tool = yield* run(cwd, ["run", "Write it"], env)
          assert.equal(tool.code, 2, tool.err)
          assert.match(tool.err, /write_file/)
        })
      )
  )
})
