/** Hooks of the program: from the user's settings, from a trusted project, and what they can't do. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Hooks } from "effect-deepagents/middleware"
import { FetchHttpClient } from "effect/http"
import { beforeCompact } from "../../src/cli/internal/project/hooks.ts"
import { answer, type Reply, say, serve, stream } from "../models/servers/anthropic.ts"
import { isFull } from "../scale.ts"
import { useProgram } from "./built.ts"

const program = useProgram()

const putFiles = (folder: string, files: { readonly [path: string]: unknown }): string => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), typeof content === "string" ? content : JSON.stringify(content))
  }
  return folder
}

const hook = (event: string, command: string, matcher?: string) => ({ [event]: [{ matcher, hooks: [{ command }] }] })
const executing = (command: string) => stream(answer([{ call: "execute", id: "toolu_1", input: { command } }]))

const ran = Effect.fnUntraced(function* (
  cwd: string,
  replies: ReadonlyArray<Reply>,
  args: ReadonlyArray<string>,
  options: { readonly home?: string; readonly stdin?: string } = {}
) {
  const { requests, url } = yield* serve(...replies)
  const env = {
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: "sk-ant-test",
    ...(options.home === undefined ? {} : { HOME: options.home })
  }
  const done = yield* program.run(cwd, args, env, options.stdin ?? "")
  return { ...done, last: JSON.stringify(requests.at(-1)?.body.messages ?? []) }
}, Effect.scoped)

const allow = `echo '{"decision":"approve"}'`

describe("hooks before a person has a conversation compacted", () => {
  it.effect("keep it as it is where one refuses", () =>
    Effect.gen(function* () {
      const command = "grep -q prices && { echo 'The prices are not settled.' >&2; exit 2; }; exit 0"
      const { hooks } = Hooks.fromSettings(
        { hooks: { PreCompact: [{ matcher: "manual", hooks: [{ command }] }] } },
        { cwd: process.cwd() }
      )
      yield* beforeCompact(hooks, "t", "the tests")
      const refused = yield* Effect.flip(beforeCompact(hooks, "t", "the prices"))
      assert.include(refused.message, "The prices are not settled.")
    }).pipe(Effect.provide([NodeServices.layer, FetchHttpClient.layer]))
  )
})

describe("hooks of the program", { concurrent: true, timeout: 90_000 }, () => {
  it.effect("of a project run once it is trusted, refuse calls, and see the session begin and end", () =>
    Effect.gen(function* () {
      const guard = `grep -q 'rm -rf' && echo 'no rm here' >&2 && exit 2; exit 0`
      const cwd = putFiles(program.folder(), {
        ".claude/settings.json": {
          hooks: {
            ...hook("PreToolUse", guard, "Bash"),
            ...hook("SessionStart", "touch began; echo the date is the 28th"),
            ...hook("SessionEnd", "cat > ended"),
            ...hook("PreToolUs", "true")
          }
        },
        victim: "precious"
      })
      const replies = [executing("rm -rf victim"), say("Done.")]
      const not = yield* ran(cwd, replies, ["run", "Go", "--yolo"])
      assert.match(not.err, /not trusted: new hook PreToolUse Bash/)
      assert.deepEqual([existsSync(join(cwd, "began")), existsSync(join(cwd, "victim"))], [false, false])
      writeFileSync(join(cwd, "victim"), "precious")
      const done = yield* ran(cwd, replies, ["run", "Go", "--yolo", "--trust"])
      assert.equal(done.code, 0, done.err)
      assert.match(done.err, /there is no event "PreToolUs"\. Did you mean "PreToolUse"/)
      assert.include(done.last, "no rm here")
      assert.include(done.last, "the date is the 28th")
      assert.isTrue(existsSync(join(cwd, "victim")))
      assert.include(readFileSync(join(cwd, "ended"), "utf8"), '"reason":"exit"')
    })
  )

  it.effect.runIf(isFull)("of the user allow a call in a chat, and never in plan mode or against a policy", () =>
    Effect.gen(function* () {
      const home = putFiles(program.folder(), {
        ".config/deepagents/config.json": {
          hooks: { ...hook("PreToolUse", allow, "execute"), ...hook("Notification", "cat >> waited") }
        }
      })
      const chat = (cwd: string, ...more: ReadonlyArray<string>) =>
        ran(cwd, [executing("touch made"), say("Done.")], ["--plain", ...more], { home, stdin: "Go\n2\n/quit\n" })
      const free = program.folder()
      yield* chat(free)
      assert.isTrue(existsSync(join(free, "made")))
      const planned = program.folder()
      yield* chat(planned, "--approvals", "plan")
      assert.isFalse(existsSync(join(planned, "made")))
      const held = putFiles(program.folder(), { ".deepagents/policy.yaml": "tools: { execute: ask }" })
      yield* chat(held, "--trust")
      assert.isFalse(existsSync(join(held, "made")))
      assert.include(readFileSync(join(held, "waited"), "utf8"), "execute waits for you")
    })
  )

  it.effect.runIf(isFull)("can't keep the program from ending, and change arguments that rules see", () =>
    Effect.gen(function* () {
      const change = JSON.stringify({ hookSpecificOutput: { updatedInput: { command: "touch changed" } } })
      const cwd = putFiles(program.folder(), {
        ".deepagents/hooks.json": {
          hooks: {
            ...hook("PreToolUse", `echo '${change}'`, "Bash"),
            Stop: [{ hooks: [{ command: "sleep 61733", timeout: 1 }] }]
          }
        }
      })
      const { code, err } = yield* ran(
        cwd,
        [executing("touch first"), say("Done.")],
        ["run", "Go", "--yolo", "--trust"]
      )
      assert.equal(code, 0, err)
      assert.deepEqual([existsSync(join(cwd, "first")), existsSync(join(cwd, "changed"))], [false, true])
      const left = execFileSync("sh", ["-c", "ps -eo args | grep -c '[s]leep 61733' || true"], { encoding: "utf8" })
      assert.equal(left.trim(), "0")
    })
  )

  it.effect("may be modules in a worker: they block, add, and are ended when they are late or loud", () =>
    Effect.gen(function* () {
      const module = (event: string, path: string, more: object = {}) => ({
        [event]: [{ hooks: [{ type: "module", path, ...more }] }]
      })
      const home = putFiles(program.folder(), {
        ".config/deepagents/config.json": {
          hooks: {
            ...module("PreToolUse", "guard.ts"),
            ...module("UserPromptSubmit", "add.mjs"),
            ...module("Stop", "hang.ts", { timeout: 1 }),
            ...module("PostToolUse", "broken.ts")
          }
        },
        ".config/deepagents/guard.ts": `
          console.log("NOT ON THE SCREEN")
          export default (input: { tool_input: { command: string } }) =>
            input.tool_input.command.includes("rm")
              ? { hookSpecificOutput: { permissionDecision: "deny", permissionDecisionReason: "no rm here" } }
              : undefined`,
        ".config/deepagents/add.mjs":
          'export default async () => ({ hookSpecificOutput: { additionalContext: "It rains." } })',
        ".config/deepagents/hang.ts": "export default () => { for (;;) {} }",
        ".config/deepagents/broken.ts": 'export default () => { throw new Error("upside down") }'
      })
      const cwd = putFiles(program.folder(), { victim: "precious" })
      const replies = [executing("rm victim"), executing("touch made"), say("Done.")]
      const done = yield* ran(cwd, replies, ["run", "Go", "--yolo", "--json"], { home })
      assert.equal(done.code, 0, done.err)
      assert.deepEqual([existsSync(join(cwd, "victim")), existsSync(join(cwd, "made"))], [true, true])
      for (const part of ["no rm here", "It rains."]) assert.include(done.last, part)
      assert.notInclude(done.out + done.err, "NOT ON THE SCREEN")
      assert.include(done.out, "upside down")
      assert.match(done.out, /hang\.ts.{1,5}failed: no answer within 1s/)
    })
  )

  it.effect.runIf(isFull)("that are modules of a project run as they were trusted, module and all", () =>
    Effect.gen(function* () {
      const refuse = 'export default () => ({ decision: "block", reason: "as trusted" })'
      const cwd = putFiles(program.folder(), {
        ".deepagents/hooks.json": { hooks: { PreToolUse: [{ hooks: [{ type: "module", path: "hooks/guard.ts" }] }] } },
        "hooks/guard.ts": refuse
      })
      const replies = [executing("touch made"), say("Done.")]
      const not = yield* ran(cwd, replies, ["run", "Go", "--yolo"])
      assert.match(not.err, /not trusted: new hook PreToolUse hooks\/guard\.ts/)
      const done = yield* ran(cwd, replies, ["run", "Go", "--yolo", "--trust"])
      assert.equal(done.code, 0, done.err)
      assert.include(done.last, "as trusted")
      writeFileSync(join(cwd, "hooks/guard.ts"), "export default () => undefined")
      const changed = yield* ran(cwd, replies, ["run", "Go", "--yolo"])
      assert.match(changed.err, /not trusted: changed hook PreToolUse hooks\/guard\.ts/)
    })
  )
})
