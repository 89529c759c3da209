/** Coders in worktrees, scripts, and sub-agents in the background, in the program as it is published. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"
import { model } from "./model.ts"
import { opener } from "./program.ts"

const program = useProgram()

const git = (cwd: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=ada@a.b", ...args], { cwd, encoding: "utf8" })

const repository = (): string => {
  const cwd = realpathSync(program.folder())
  git(cwd, "init", "--quiet", "--initial-branch=main")
  writeFileSync(join(cwd, "a.txt"), "one\n")
  git(cwd, "add", "--all")
  git(cwd, "commit", "--quiet", "-m", "first")
  return cwd
}

const isOf = (body: string, role: string): boolean => JSON.parse(body).system !== undefined && body.includes(role)

describe("coders", { timeout: 120_000 }, () => {
  it.effect("work in worktrees of their own, by the machine's paths, and are merged", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = repository()
        const { bodies, env } = yield* model((body) => {
          if (isOf(body, "in a copy of the project that is yours alone")) {
            return body.includes("tool_result")
              ? [{ text: "Written." }]
              : [{ call: "write_file", id: "toolu_w", input: { file_path: "b.txt", content: "two\n" } }]
          }
          if (body.includes("toolu_m")) return [{ text: "Merged." }]
          return body.includes("toolu_c")
            ? [{ call: "merge_branches", id: "toolu_m", input: { branches: ["part"] } }]
            : [{ call: "code_in_worktree", id: "toolu_c", input: { branch: "part", task: "Write b.txt" } }]
        })
        const done = yield* program.run(cwd, ["run", "Do it", "--yolo"], env)
        assert.deepEqual([done.code, done.out], [0, "Merged.\n"], done.err)
        assert.strictEqual(readFileSync(join(cwd, "b.txt"), "utf8"), "two\n")
        assert.isFalse(existsSync(join(cwd, ".worktrees/part")))
        const told = bodies.find((body) => body.includes("yours alone")) ?? ""
        assert.include(told, `Working folder: ${cwd}/.worktrees/part (git, branch part, no changes)`)
      })
    )
  )

  it.effect.runIf(isFull)(
    "make no branch in plan mode; leftovers of a crash are reported, and not offered outside of git",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const cwd = repository()
          mkdirSync(join(cwd, ".worktrees/half"), { recursive: true })
          const { bodies, env } = yield* model((body) =>
            body.includes("toolu_c")
              ? [{ text: "No." }]
              : [{ call: "code_in_worktree", id: "toolu_c", input: { branch: "part", task: "Write" } }]
          )
          const planned = yield* program.run(cwd, ["run", "Plan it", "--approvals", "plan"], env)
          assert.deepEqual([planned.code, planned.out], [0, "No.\n"], planned.err)
          assert.include(bodies.at(-1) ?? "", "no branch is made")
          assert.include(bodies.at(-1) ?? "", '"name":"merge_branches"')
          assert.match(planned.err, /! \.worktrees\/half has the work of a coder that was cut off/)
          assert.strictEqual(git(cwd, "branch", "--list", "part"), "")
          const elsewhere = yield* program.run(program.folder(), ["run", "Plan it", "--approvals", "plan"], env)
          assert.strictEqual(elsewhere.code, 0, elsewhere.err)
          assert.notInclude(bodies.at(-1) ?? "", '"name":"merge_branches"')
        })
      )
  )
})

describe("a script", { timeout: 120_000 }, () => {
  it.effect.runIf(isFull)("does the work of many calls, and asks for calls that change files", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = realpathSync(program.folder())
        for (let at = 0; at < 5; at++) writeFileSync(join(cwd, `f${at}.txt`), `old ${at}\n`)
        const script =
          "const files = (await tools.glob({ pattern: '*.txt' })).split('\\n').filter((line) => line.endsWith('.txt')); for (const file_path of files) await tools.read_file({ file_path }); for (const file_path of files) await tools.edit_file({ file_path, old_string: 'old', new_string: 'new' }); return `changed ${files.length}`"
        const { bodies, env } = yield* model((body) =>
          body.includes("tool_result")
            ? [{ text: "Done." }]
            : [{ call: "run_script", id: "toolu_s", input: { script } }]
        )
        const withScripts = { ...env, DEEPAGENTS_SCRIPTS: "true" }
        const asked = yield* program.run(cwd, ["run", "Rename"], withScripts)
        assert.strictEqual(readFileSync(join(cwd, "f0.txt"), "utf8"), "old 0\n", asked.out)
        const done = yield* program.run(cwd, ["run", "Rename", "--yolo"], withScripts)
        assert.deepEqual([done.code, done.out], [0, "Done.\n"], done.err)
        assert.include(bodies.at(-1) ?? "", '"text":"changed 5"')
        assert.strictEqual(readFileSync(join(cwd, "f4.txt"), "utf8"), "new 4\n")
        const without = yield* program.run(cwd, ["run", "Rename", "--yolo"], env)
        assert.strictEqual(without.code, 0, without.err)
        assert.notInclude(bodies.at(-1) ?? "", "Runs a program over tools")
      })
    )
  )
})

describe("a sub-agent in the background", { timeout: 120_000 }, () => {
  const start = opener()

  it.effect("is listed, tells its end to the person and to the agent, and is missed after a kill", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = realpathSync(program.folder())
        let isHanging = false
        const { bodies, env } = yield* model((body) => {
          if (isOf(body, "You answer one question by research")) return isHanging ? undefined : [{ text: "It is 42." }]
          if (body.includes("Second")) {
            return body.includes("toolu_2")
              ? [{ text: "Looking again." }]
              : [
                  {
                    call: "start_task",
                    id: "toolu_2",
                    input: { description: "Look longer", subagent_type: "researcher" }
                  }
                ]
          }
          if (body.includes("And?")) return [{ text: "It told me." }]
          return body.includes("toolu_1")
            ? [{ text: "Looking." }]
            : [{ call: "start_task", id: "toolu_1", input: { description: "Look it up", subagent_type: "researcher" } }]
        })
        const home = { ...env, HOME: cwd, XDG_DATA_HOME: join(cwd, "data") }
        const open = (...args: ReadonlyArray<string>) =>
          start([program.bin, ...args, "--cwd", cwd], { env: home, columns: 100, rows: 30 })
        const wait = (work: Promise<void>) => Effect.promise(() => work)
        const chat = open()
        yield* wait(chat.until("/ commands"))
        chat.type("First\r")
        yield* wait(chat.until("in the background, researcher: Look it up: completed"))
        yield* wait(chat.until("Looking."))
        chat.type("/ps\r")
        yield* wait(chat.until((text) => /researcher: Look it up: completed, /.test(text)))
        chat.type("And?\r")
        yield* wait(chat.until("It told me."))
        assert.include(bodies.at(-1) ?? "", "task-1 (researcher) is completed")
        isHanging = true
        chat.type("Second\r")
        yield* wait(chat.until("Looking again."))
        chat.kill("SIGKILL")
        yield* Effect.promise(() => chat.ended)
        const again = open("resume")
        yield* wait(
          again.until("task-2, researcher: Look longer: ended with the program that began it; its result is lost")
        )
      })
    )
  )
})
