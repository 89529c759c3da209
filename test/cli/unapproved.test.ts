/** Commands that nobody approved run isolated in the mode `auto-edit`. What a person or a rule approved has all rights. */
import { execFileSync } from "node:child_process"
import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as FileCheckpoints from "effect-deepagents/sessions/FileCheckpoints"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { describeIsolated } from "../backends/isolate/box.ts"
import { answer, type Reply, say, stream } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"
import { call, canary, world } from "./enclosed.ts"

const program = useProgram()

const autoEdit = { approvals: "auto-edit" }

const callTool = (name: string, input: { readonly [name: string]: unknown }): Reply =>
  stream(answer([{ call: name, id: "toolu_1", input }]))

const hint = "call execute again with outside: true"

describeIsolated("commands that nobody approved", { timeout: 120_000 }, () => {
  it.effect("run isolated in auto-edit, and the model is told how to get out", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cwd, home, requests, results, run } = yield* world(
          program,
          autoEdit,
          call("npm test && touch made.txt"),
          call("curl -sS --max-time 5 http://example.com"),
          call("cat ~/.ssh/id; cat /root/.bashrc; env | grep -c sk-ant"),
          call("git status --short && ls"),
          call("echo evil > .git/commondir; git add ."),
          call("ln -s $PWD/../home/.ssh/id link; ln -s ../home/.ssh/id near"),
          call("cat near"),
          say("Done.")
        )
        const done = yield* run(["run", "Work."])
        assert.equal(done.code, 0, done.err)
        const [tests, foreign, secret, status, git, , near] = results()
        assert.match(tests ?? "", /pass 1/)
        assert.notInclude(tests, hint)
        assert.isTrue(existsSync(join(cwd, "made.txt")))
        assert.match(foreign ?? "", /Could not resolve host/)
        assert.include(foreign, hint)
        assert.notInclude(secret, canary)
        assert.include(status, "made.txt")
        assert.match(git ?? "", /Read-only file system/)
        assert.include(git, hint)
        assert.isFalse(existsSync(join(cwd, ".git/commondir")))
        assert.notInclude(near, canary)
        assert.include(JSON.stringify(requests[0]?.body.messages), "they then run isolated")
        assert.isTrue(existsSync(join(home, ".ssh/id")))
      })
    )
  )

  it.effect(
    "ask about each way out: by the argument, in the background, from a script, a sub-agent and another line",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const waits = Effect.fnUntraced(function* (reply: Reply, flags: ReadonlyArray<string> = [], settings = {}) {
            const { cwd, run } = yield* world(program, { ...autoEdit, ...settings }, reply, say("Done."))
            const { code, err } = yield* run(["run", ...flags, "Work."])
            assert.isFalse(existsSync(join(cwd, "../escaped")))
            assert.equal(code, 6, err)
          })
          const command = "touch ../escaped; cat ../home/.ssh/id"
          const script = `return await tools.execute({ command: ${JSON.stringify(command)}, outside: true })`
          yield* waits(callTool("Execute", { command, outside: "true" }))
          yield* waits(callTool("run_script", { script }), [], { scripts: true })
          if (!isFull) return
          yield* waits(callTool("execute", { command, background: true, outside: false }))
          yield* waits(callTool("execute", { command: "cat package.json", outside: true }))
          yield* waits(callTool("execute", { command: `npm test; ${command}`, outside: true }), [
            "--allow",
            "Bash(npm test:*)"
          ])
          yield* waits(callTool("execute", { command: "cat .env" }), ["--deny", "Read(.env)"])
          yield* waits(callTool("execute", { command, outside: false }), ["--approvals", "ask"])
          yield* waits(callTool("execute", { command, outside: false }), [], { sandbox: "off" })
          const { cwd, run } = yield* world(
            program,
            autoEdit,
            callTool("task", { description: "Look.", subagent_type: "general-purpose" }),
            callTool("execute", { command, outside: true }),
            say("Done.")
          )
          assert.equal((yield* run(["run", "Work."])).code, 6)
          assert.isFalse(existsSync(join(cwd, "../escaped")))
        })
      )
  )

  it.effect(
    "ask in a home, or with the program's own folders in the folder; so do changes of hidden files of the home",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const evil = "echo evil >> .bashrc; echo evil > .config/deepagents/mcp.json"
          const write = (file_path: string) => callTool("write_file", { file_path, content: "evil" })
          for (const reply of [call(evil), write(".zshrc"), write(".config/deepagents/mcp.json")]) {
            for (const settings of [autoEdit, { ...autoEdit, sandbox: "os" }]) {
              const { home, run } = yield* world(program, settings, reply, say("Done."))
              const waiting = yield* run(["run", "Work."], {}, home)
              assert.equal(waiting.code, 6, waiting.err)
              for (const path of [".bashrc", ".zshrc", ".config/deepagents/mcp.json"])
                assert.isFalse(existsSync(join(home, path)), path)
            }
          }
          const { cwd, requests, run } = yield* world(program, autoEdit, call("touch made.txt"), say("Done."))
          assert.equal((yield* run(["run", "Work."], { XDG_DATA_HOME: join(cwd, "data") })).code, 6)
          assert.notInclude(JSON.stringify(requests[0]?.body.messages), "they then run isolated")
          const free = yield* world(program, autoEdit, write("notes.txt"), say("Done."))
          assert.equal((yield* free.run(["run", "Work."], {}, free.home)).code, 0)
          assert.isTrue(existsSync(join(free.home, "notes.txt")))
        })
      )
  )

  it.effect("are isolated in scripts and sub-agents, too; a refusal stays one", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const command = "touch ../escaped; touch inside.txt; cat ../home/.ssh/id"
        const script = `return JSON.stringify(await tools.execute({ command: ${JSON.stringify(command)} }))`
        const scripted = yield* world(
          program,
          { ...autoEdit, scripts: true },
          callTool("run_script", { script }),
          say("Done.")
        )
        assert.equal((yield* scripted.run(["run", "Work."])).code, 0)
        const delegated = yield* world(
          program,
          autoEdit,
          callTool("task", { description: "Look.", subagent_type: "general-purpose" }),
          call(command),
          say("Looked."),
          say("Done.")
        )
        assert.equal((yield* delegated.run(["run", "Work."])).code, 0)
        for (const { cwd, requests } of [scripted, delegated]) {
          assert.isTrue(existsSync(join(cwd, "inside.txt")))
          assert.isFalse(existsSync(join(cwd, "../escaped")))
          assert.notInclude(JSON.stringify(requests.map(({ body }) => body.messages)), canary)
        }
        const refused = yield* world(program, autoEdit, call("touch inside.txt"), say("Done."))
        assert.equal((yield* refused.run(["run", "--deny", "Bash(touch:*)", "Work."])).code, 0)
        assert.isFalse(existsSync(join(refused.cwd, "inside.txt")))
      })
    )
  )

  it.effect(
    "run with all rights once a rule or a person approved them, also where the mode is another one by then",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const command = "cp ../home/.ssh/id copy.txt"
          const ruled = yield* world(program, autoEdit, call(command), say("Done."))
          assert.equal((yield* ruled.run(["run", "--allow", "Bash(cp:*)", "Work."])).code, 0)
          assert.equal(readFileSync(join(ruled.cwd, "copy.txt"), "utf8"), canary)
          const asked = yield* world(program, {}, call(command), say("Done."))
          assert.equal((yield* asked.run(["run", "Work."])).code, 6)
          const [request] = JSON.parse((yield* asked.run(["inbox", "--json"])).out)
          assert.deepEqual(request.request.arguments, { command })
          const approved = yield* asked.run(["inbox", "approve", request.id], { DEEPAGENTS_APPROVALS: "auto-edit" })
          assert.equal(approved.code, 0, approved.err)
          assert.equal(readFileSync(join(asked.cwd, "copy.txt"), "utf8"), canary)
          if (!isFull) return
          const outside = yield* world(program, autoEdit, callTool("execute", { command, outside: true }), say("Done."))
          assert.equal((yield* outside.run(["run", "Work."])).code, 6)
          const [way] = JSON.parse((yield* outside.run(["inbox", "--json"])).out)
          assert.include(way.request.description, "It runs outside of the sandbox, with all your rights.")
          assert.equal((yield* outside.run(["inbox", "approve", way.id])).code, 0)
          assert.equal(readFileSync(join(outside.cwd, "copy.txt"), "utf8"), canary)
          execFileSync("git", ["status"], { cwd: outside.cwd })
        })
      )
  )

  it.live("are taken back with their turn, and no link of theirs leads that out of the folder", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { cwd, home, run } = yield* world(
          program,
          autoEdit,
          call("mkdir src; echo one > src/id; echo two > src/b"),
          say("Made."),
          call("echo new > made.txt; echo changed >> package.json; rm -r src; ln -s ../home/.ssh src"),
          call("chmod 777 sum.test.js; ln sum.test.js hard; mkfifo pipe"),
          say("Done.")
        )
        assert.equal((yield* run(["run", "Make."])).code, 0)
        const sessions = (yield* run(["sessions"])).out
        const id = /^\d{8}-\w+/m.exec(sessions)?.[0] ?? sessions
        const before = readFileSync(join(cwd, "package.json"), "utf8")
        assert.equal((yield* run(["run", "--session", id, "Change."])).code, 0)
        assert.isTrue(lstatSync(join(cwd, "src")).isSymbolicLink())
        const outcome = yield* Effect.gen(function* () {
          const checkpoints = yield* FileCheckpoints.FileCheckpoints
          const last = (yield* checkpoints.turns(id)).at(-1)
          assert.isDefined(last)
          return yield* checkpoints.restore({ threadId: id, turns: [last], to: "before", leaf: last.leaf })
        }).pipe(
          Effect.provide(
            FileCheckpoints.layer({ folders: [cwd], file: join(cwd, "../data/deepagents/checkpoints.db") })
          ),
          Effect.provide(SqliteSessions.layer({ file: join(cwd, "../data/deepagents/sessions.db") }))
        )
        assert.equal(outcome._tag, "Restored", JSON.stringify(outcome))
        assert.equal(readFileSync(join(cwd, "package.json"), "utf8"), before)
        assert.equal(readFileSync(join(cwd, "src/id"), "utf8"), "one\n")
        assert.isFalse(existsSync(join(cwd, "made.txt")) || existsSync(join(cwd, "hard")))
        assert.equal(lstatSync(join(cwd, "sum.test.js")).mode & 0o777, 0o644)
        assert.equal(readFileSync(join(home, ".ssh/id"), "utf8"), canary)
        assert.deepEqual(readdirSync(join(home, ".ssh")), ["id"])
      })
    )
  )

  it.effect("are told of in the doctor, and no project turns it off", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { run } = yield* world(program, {}, say("Hello."))
        assert.include((yield* run(["doctor"])).out, "in the mode auto-edit, commands that nobody approved")
        const off = yield* world(program, { sandbox: "off" }, say("Hello."))
        assert.include((yield* off.run(["doctor"])).out, "off: commands run with your rights")
        const misspelt = yield* world(program, { sandbox: "none" }, say("Hello."))
        const refused = yield* misspelt.run(["run", "Hello"])
        assert.equal(refused.code, 2)
        assert.match(refused.err, /sandbox is "none"; expected/)
      })
    )
  )
})
