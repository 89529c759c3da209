/** Policies as files of the program. */
import { existsSync, mkdirSync, readdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { readMemory } from "../../src/cli/internal/config/memory.ts"
import { placesOf } from "../../src/cli/internal/config/places.ts"
import { compiled, readPolicies } from "../../src/cli/internal/config/policies.ts"
import { answer, say, serve, stream } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"

const program = useProgram()

describe("policies of the program", { timeout: 60_000 }, () => {
  it.effect("are merged so that the stricter one holds, of any origin and with any name", () =>
    Effect.gen(function* () {
      const folder = mkdtempSync(join(tmpdir(), "deepagents-policies-"))
      const file = (name: string, text: string) => {
        writeFileSync(join(folder, name), text)
        return join(folder, name)
      }
      const found = yield* readPolicies([
        { from: "organisation", file: file("organisation", "tools: { execute: refuse }\nbudget: { tokens: 10 }") },
        { from: "user", file: join(folder, "none") },
        {
          from: "project",
          file: file(
            "project",
            "name: organisation\nstrict: false\ntools: { execute: allow, delete_file: refuse }\nbudget: { tokens: 99 }"
          )
        }
      ])
      const policy = yield* compiled(found, [], placesOf("/work"), [])
      const words = ["execute", "delete_file", "ls"].map((name) => policy?.explain({ name }))
      assert.deepEqual(
        words.map((verdict) => [verdict?.ruling._tag, verdict?.ruling.by]),
        [
          ["Refuse", "organisation: tools.execute"],
          ["Refuse", "project: tools.delete_file"],
          ["Allow", "default"]
        ]
      )
      assert.equal(policy?.budget?.tokens, 10)
      const hidden = "files: { rules: [{ operations: [read], paths: [/secrets/**], ruling: refuse }] }"
      const around = yield* readPolicies([{ from: "user", file: file("user", hidden) }])
      assert.match(
        (yield* Effect.flip(compiled(around, [], placesOf("/work"), []))).message,
        /commands go around.*sandbox: noCommands/
      )
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.effect(
    "hold in a run, even with --yolo, and allow no call that asks; a project's policy needs trust; mistakes are refused with 2",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { folder, run } = program
          const cwd = folder()
          const call = { call: "write_file", id: "toolu_1", input: { file_path: "a.txt", content: "x" } }
          const { requests, url } = yield* serve(
            stream(answer([call])),
            say("It may not be."),
            stream(answer([call])),
            stream(answer([call])),
            say("Nobody is there.")
          )
          const env = {
            ANTHROPIC_BASE_URL: url,
            ANTHROPIC_API_KEY: "sk-ant-test",
            XDG_CONFIG_HOME: join(cwd, "config")
          }
          mkdirSync(join(cwd, ".deepagents"))
          const file = join(cwd, ".deepagents/policy.yaml")
          writeFileSync(file, "tools: { write_file: { ruling: refuse, reason: not on Fridays } }")
          assert.deepEqual(JSON.parse((yield* run(cwd, ["config", "--json"], env)).out).policies, [])
          const held = yield* run(cwd, ["run", "Write it", "--yolo", "--trust"], env)
          assert.equal(held.code, 0, held.err)
          assert.include(JSON.stringify(requests.at(-1)?.body), "not on Fridays")
          assert.notOk(existsSync(join(cwd, "a.txt")))
          const [shown, why] = yield* Effect.all(
            [run(cwd, ["config"], env), run(cwd, ["config", "explain", "write_file"], env)],
            { concurrency: 2 }
          )
          assert.match(shown.out, /tools\.write_file .*not on Fridays.* policy project \(.*policy\.yaml\)/)
          assert.match(why.out, /^refuse +tools\.write_file +project \(.*policy\.yaml\)/)
          writeFileSync(file, "tools: { write_file: allow }\ndefault: allow")
          const asked = yield* run(cwd, ["run", "Write it", "--trust"], env)
          assert.equal(asked.code, 6, asked.err)
          writeFileSync(file, "tools: { write_file: ask }")
          const unasked = yield* run(cwd, ["run", "Write it", "--yolo", "--trust"], env)
          assert.equal(unasked.code, 0, unasked.err)
          assert.include(JSON.stringify(requests.at(-1)?.body), "Only a person may decide")
          assert.notOk(existsSync(join(cwd, "a.txt")))
          if (!isFull) return
          writeFileSync(file, "toools: {}")
          const field = yield* run(cwd, ["config", "--trust"], env)
          assert.deepEqual([field.code, field.err.includes("tools")], [2, true])
          writeFileSync(file, "tools: { writ_file: refuse }")
          const tool = yield* run(cwd, ["run", "Write it", "--trust"], env)
          assert.equal(tool.code, 2, tool.err)
          assert.match(tool.err, /write_file/)
        })
      )
  )

  it.effect.runIf(isFull)(
    "keep files, the network and commands from agents: denied files seem absent, with --yolo too",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { folder, run } = program
          const cwd = folder()
          const { notes } = yield* Effect.provide(
            readMemory({ ...placesOf(cwd), data: join(cwd, "data/deepagents") }),
            NodeServices.layer
          )
          const call = (id: string, name: string, input: unknown) => ({ call: name, id, input })
          const { requests, url } = yield* serve(
            stream(
              answer([
                call("toolu_1", "read_file", { file_path: "secrets/key.txt" }),
                call("toolu_2", "write_file", { file_path: "a.txt", content: "x" }),
                call("toolu_3", "write_file", {
                  file_path: join(notes, "memo.md"),
                  content: "mine"
                }),
                call("toolu_4", "fetch_url", { url: "https://elsewhere.example/" })
              ])
            ),
            say("None of it.")
          )
          const env = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "sk-ant-test", XDG_DATA_HOME: join(cwd, "data") }
          mkdirSync(join(cwd, ".deepagents"))
          mkdirSync(join(cwd, "secrets"))
          writeFileSync(join(cwd, "secrets/key.txt"), "the-secret")
          writeFileSync(
            join(cwd, ".deepagents/policy.yaml"),
            [
              "sandbox: readOnly",
              "files: { rules: [{ operations: [read, write], paths: [/secrets/**], ruling: refuse }] }",
              "network: { allow: [docs.example] }",
              "off: { middleware: [Todos] }"
            ].join("\n")
          )
          const done = yield* run(cwd, ["run", "Look", "--yolo", "--trust", "--remember"], env)
          assert.equal(done.code, 0, done.err)
          const names = JSON.stringify(requests[0]?.body)
          assert.include(names, '"read_file"')
          for (const gone of ['"execute"', '"git_status"', '"write_todos"']) assert.notInclude(names, gone)
          const results = JSON.stringify(requests[1]?.body)
          assert.notInclude(results, "the-secret")
          assert.match(results, /not among those that are allowed/)
          assert.notOk(existsSync(join(cwd, "a.txt")))
          // Files that the program keeps for an agent are its own.
          const [memory = ""] = readdirSync(join(cwd, "data/deepagents/memory"))
          assert.ok(existsSync(join(cwd, "data/deepagents/memory", memory, "notes/memo.md")))
          const [path, command, setting] = yield* Effect.all(
            [
              run(cwd, ["config", "explain", "./secrets/key.txt"], env),
              run(cwd, ["config", "explain", "execute", '{"command": "ls"}'], env),
              run(cwd, ["config", "explain", "agent", "-a", "planner"], env)
            ],
            { concurrency: 3 }
          )
          assert.match(path.out, /read +refuse +project: files\.rules\[0\]\nwrite +refuse/)
          assert.match(command.out, /^refuse +off\.tools \(execute\) +project/)
          assert.match(setting.out, /"planner" +flag \(--agent\)\n"deep" +default/)
        })
      )
  )
})
