/** The template of a GitHub Action, run as a runner runs the step of a composite action. */
import { spawn } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { parse } from "yaml"
import { answer, say, serve, stream } from "../models/servers/anthropic.ts"
import { useProgram } from "./built.ts"

const program = useProgram()

interface Action {
  readonly inputs: { readonly [name: string]: { readonly default?: string } }
  readonly outputs: { readonly [name: string]: { readonly value: string } }
  readonly runs: {
    readonly steps: ReadonlyArray<{ readonly run: string; readonly env: { readonly [name: string]: string } }>
  }
}

/** Runs the step of an action with these inputs, and reads its outputs. */
const step = (cwd: string, inputs: { readonly [name: string]: string }, more: { readonly [name: string]: string }) => {
  const at = join(cwd, ".github/actions/deepagents")
  const action: Action = parse(readFileSync(join(at, "action.yml"), "utf8"))
  const [only] = action.runs.steps
  assert(only !== undefined)
  const valueOf = (text: string): string =>
    text.replaceAll(
      /\$\{\{ inputs\.([\w-]+) \}\}/g,
      (_, name: string) => inputs[name] ?? action.inputs[name]?.default ?? ""
    )
  const outputs = join(cwd, "outputs")
  writeFileSync(outputs, "")
  const env = Object.fromEntries(Object.entries(only.env).map(([name, value]) => [name, valueOf(value)]))
  return Effect.map(
    Effect.promise(
      () =>
        new Promise<{ readonly code: number | null; readonly log: string }>((resolve) => {
          const running = spawn("bash", ["-e", "-c", only.run], {
            cwd,
            env: { PATH: process.env["PATH"], GITHUB_ACTION_PATH: at, GITHUB_OUTPUT: outputs, ...env, ...more }
          })
          let log = ""
          for (const one of [running.stdout, running.stderr]) one.on("data", (data) => (log += data))
          running.on("close", (code) => resolve({ code, log }))
        })
    ),
    ({ code, log }) => {
      const found = readFileSync(outputs, "utf8").matchAll(/^([\w-]+)<<(.+)\n([^]*?)\n\2$/gm)
      return { code, log, outputs: Object.fromEntries([...found].map(([, name, , value]) => [name, value])), action }
    }
  )
}

describe("the action of init", { timeout: 120_000 }, () => {
  it.effect("gives the answer as an output, keeps to its rules, and no input is a command", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const cwd = program.folder()
        const made = yield* program.run(cwd, ["init", "--template", "action"])
        assert.equal(made.code, 0, made.err)
        const twice = yield* program.run(cwd, ["init", "--template", "action"])
        assert.match(twice.out, /run\.mjs exists already/)
        assert.isTrue(existsSync(join(cwd, ".github/workflows/deepagents.yml")))
        const touch = stream(answer([{ call: "execute", id: "toolu_1", input: { command: "touch made" } }]))
        const { requests, url } = yield* serve(touch, say("exit-code<<x\n0\nx\n::error::hostile"), touch)
        const env = {
          HOME: cwd,
          DEEPAGENTS: program.bin,
          ANTHROPIC_API_KEY: "sk-ant-test",
          ANTHROPIC_BASE_URL: url,
          XDG_DATA_HOME: join(cwd, "data")
        }
        const prompt = '--yolo "; touch hacked; $(touch hacked) `touch hacked`'
        const done = yield* step(cwd, { prompt, allow: "# tests\nBash(touch made)\n" }, env)
        assert.equal(done.code, 0, done.log)
        assert.deepEqual([existsSync(join(cwd, "made")), existsSync(join(cwd, "hacked"))], [true, false])
        assert.include(JSON.stringify(requests[0]?.body.messages), "touch hacked")
        assert.equal(done.outputs["answer"], "exit-code<<x\n0\nx\n::error::hostile")
        assert.match(done.log, /^::stop-commands::([\w-]{36})\n[^]*\n::error::hostile\n::\1::\n$/m)
        assert.equal(done.outputs["exit-code"], "0")
        assert.match(done.outputs["session"] ?? "", /^\d{8}-/)
        assert.sameMembers(Object.keys(done.action.outputs), Object.keys(done.outputs))
        const waits = yield* step(cwd, { prompt: "touch it" }, env)
        assert.deepEqual([waits.code, waits.outputs["exit-code"]], [6, "6"], waits.log)
        const wrong = yield* step(cwd, { prompt: "x".repeat(100_000), deny: "Bsh(ls)" }, env)
        assert.deepEqual([wrong.code, wrong.outputs["exit-code"]], [2, "2"], wrong.log)
        assert.match(wrong.log, /Did you mean "Bash"/)
      })
    )
  )
})
