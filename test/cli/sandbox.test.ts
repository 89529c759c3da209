/** The program with the setting `sandbox`: the work of a day goes on, and files beside the folder are out of reach. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { describeIsolated } from "../backends/isolate/box.ts"
import { answer, say, stream } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"
import { call, canary, world } from "./enclosed.ts"

const program = useProgram()

describeIsolated("the program in a sandbox", { timeout: 120_000 }, () => {
  it.effect("tests, commits and serves, and reaches neither the home nor the network", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cwd, home, requests, results, run } = yield* world(
          program,
          { sandbox: "os" },
          call("npm test"),
          call("git add . && git commit -qm 'Add the shop' && git log --format='%an %ae %s'"),
          call(
            'node -e \'require("http").createServer((a, b) => b.end("served")).listen(8125)\' & sleep 1; curl -s localhost:8125'
          ),
          call("cat ~/.ssh/id; ls -A ~; env | grep -c sk-ant"),
          call("curl -sS --max-time 5 http://example.com"),
          stream(
            answer([{ call: "write_file", id: "toolu_2", input: { file_path: "made.txt", content: "by a tool" } }])
          ),
          call("cat made.txt; pwd"),
          say("Done.")
        )
        const done = yield* run(["run", "--yolo", "Work."])
        assert.equal(done.code, 0, done.err)
        const [tests, commit, served, secret, foreign, , read] = results()
        assert.match(tests ?? "", /pass 1/)
        assert.include(commit, "Ada ada@shop.example Add the shop")
        assert.include(served, "served")
        assert.notInclude(secret, canary)
        assert.notInclude(secret, ".gitconfig")
        assert.match(foreign ?? "", /Could not resolve host/)
        assert.include(read, `by a tool${cwd}`.replace("tool", "tool"))
        assert.include(JSON.stringify(requests[0]?.body.messages), "commands are sandboxed, no network")
        assert.equal(execFileSync("git", ["log", "--format=%s"], { cwd, encoding: "utf8" }), "Add the shop\n")
        assert.isTrue(existsSync(join(home, ".ssh/id")))
        assert.equal(readFileSync(join(cwd, "made.txt"), "utf8"), "by a tool")
      })
    )
  )

  it.effect.runIf(isFull)(
    "asks about no command in the mode auto-edit, except by a rule, or with an open network",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const made = "touch made.txt; echo x >> .git/hooks/pre-commit; echo $?"
          const inside = yield* world(program, { sandbox: "os" }, call(made), say("Done."))
          const done = yield* inside.run(["run", "--approvals", "auto-edit", "Work."])
          assert.equal(done.code, 0, done.err)
          assert.isTrue(existsSync(join(inside.cwd, "made.txt")))
          assert.isFalse(existsSync(join(inside.cwd, ".git/hooks/pre-commit")))
          assert.include(JSON.stringify(inside.requests[0]?.body.messages), "they reach this folder alone")
          const waits = (sandbox: unknown, ...flags: ReadonlyArray<string>) =>
            Effect.gen(function* () {
              const { cwd, run } = yield* world(program, { sandbox }, call(made), say("Done."))
              const { code } = yield* run(["run", ...flags, "Work."])
              assert.isFalse(existsSync(join(cwd, "made.txt")))
              return code
            })
          assert.equal(yield* waits("os"), 6)
          assert.equal(yield* waits({ network: ["registry.npmjs.org"] }, "--approvals", "auto-edit"), 6)
          assert.equal(yield* waits("os", "--approvals", "auto-edit", "--deny", "Bash(touch:*)"), 0)
        })
      )
  )

  it.effect.runIf(isFull)("says so in the doctor, and lets no project switch it off", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cwd, run } = yield* world(program, { sandbox: { network: ["registry.npmjs.org"] } }, say("Hello."))
        const doctor = yield* run(["doctor"])
        assert.include(doctor.out, "isolation of commands")
        assert.include(doctor.out, "bubblewrap: sandboxed, network: registry.npmjs.org")
        mkdirSync(join(cwd, ".deepagents"), { recursive: true })
        writeFileSync(join(cwd, ".deepagents/config.json"), JSON.stringify({ sandbox: "off" }))
        const trusted = yield* run(["run", "--trust", "Hello"])
        assert.notEqual(trusted.code, 0)
        assert.match(trusted.err, /sandbox.* can't be set by a project/)
      })
    )
  )
})
