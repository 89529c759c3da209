/** Hooks: answers of Claude Code's hooks hold; a hook that fails, floods or hangs does not stop the agent. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync } from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, type AgentEvent, Message, Middleware, Ruling, Tool, ToolOutput } from "effect-deepagents"
import { Hooks } from "effect-deepagents/middleware"
import { Network } from "effect-deepagents/net"
import { TestChatModel } from "effect-deepagents/testing"
import { FetchHttpClient } from "effect/http"
import * as fc from "fast-check"
import type { Json } from "../../src/core/Json.ts"
import { fits } from "../../src/middleware/internal/hooks/fire.ts"

const services = Layer.merge(NodeServices.layer, FetchHttpClient.layer)

/** A hook before commands, in the settings of Claude Code. */
const hookBefore = (command: string, more: { readonly [field: string]: unknown } = {}, matcher = "Bash") => ({
  hooks: { PreToolUse: [{ matcher, hooks: [{ type: "command", command, ...more }] }] }
})

const json = (verdict: unknown): string => `cat >/dev/null; echo '${JSON.stringify(verdict)}'`

/** Runs one call of `execute` under hooks from settings. */
const called = Effect.fnUntraced(function* (
  settings: unknown,
  options: {
    readonly arguments?: { readonly [name: string]: string }
    readonly middleware?: ReadonlyArray<Middleware.Middleware>
    readonly needsApproval?: boolean
  } = {}
) {
  const ran: Array<string> = []
  const execute = Tool.make("execute", {
    description: "Runs a command",
    parameters: { command: Schema.String },
    annotations: { runsCommands: true, aliases: ["Bash"] },
    ...(options.needsApproval === true ? { needsApproval: true } : {}),
    execute: ({ command }) => Effect.sync(() => (ran.push(command), "output"))
  })
  const cwd = mkdtempSync(join(tmpdir(), "hooks-"))
  const { hooks, problems } = Hooks.fromSettings(yield* Schema.decodeUnknownEffect(Schema.Json)(settings), { cwd })
  const agent = Agent.make({
    name: "a",
    prompt: "",
    tools: [execute],
    middleware: [Hooks.make({ hooks, cwd }), ...(options.middleware ?? [])]
  })
  const calls = [{ name: "execute", arguments: options.arguments ?? { command: "rm -rf x" } }]
  const startedAt = performance.now()
  const { events, requests, result } = yield* Effect.gen(function* () {
    const events: Array<AgentEvent.AgentEvent> = []
    const handle = yield* Agent.start(agent, "go")
    yield* Stream.runForEach(handle.events, (event) => Effect.sync(() => void events.push(event)))
    return { events, result: yield* handle.await, requests: yield* TestChatModel.requests }
  }).pipe(
    Effect.scoped,
    Effect.provide(TestChatModel.script([TestChatModel.calls(calls), "done"], { exhaustive: false }))
  )
  const said = requests.at(-1)?.messages.findLast(({ role }) => role === "tool")
  return {
    ran,
    cwd,
    problems,
    result,
    took: performance.now() - startedAt,
    said: said === undefined ? "" : Message.text(said),
    warnings: events.flatMap((event) => (event._tag === "Warning" ? [event.message] : []))
  }
}, Effect.provide(services))

describe("hooks before a call", { concurrent: true, timeout: 60_000 }, () => {
  it.live("exit code 2 refuses it, with the errors as the reason", () =>
    Effect.gen(function* () {
      const { ran, said } = yield* called(hookBefore("cat >/dev/null; echo 'no rm here' >&2; exit 2"))
      assert.deepEqual(ran, [])
      assert.include(said, "no rm here")
    })
  )

  it.live("JSON refuses it, asks or ends the run", () =>
    Effect.gen(function* () {
      const say = (permissionDecision: string) =>
        json({
          hookSpecificOutput: { hookEventName: "PreToolUse", permissionDecision, permissionDecisionReason: "why" }
        })
      const denied = yield* called(hookBefore(say("deny")))
      assert.deepEqual([denied.ran, denied.said], [[], "why"])
      const asked = yield* called(hookBefore(say("ask")))
      assert.deepEqual([asked.ran, asked.result?.pending.map(({ toolName }) => toolName)], [[], ["execute"]])
      const ended = yield* called(hookBefore(json({ continue: false, stopReason: "enough" })))
      assert.deepEqual([ended.result?.text, ended.result?.stopReason], ["enough", "stopCondition"])
    })
  )

  it.live("a program reads the call as JSON, in the names of Claude Code", () =>
    Effect.gen(function* () {
      const { cwd, ran } = yield* called(hookBefore('cat > seen.json; test "$PWD" = "$(pwd)"'))
      assert.deepEqual(ran, ["rm -rf x"])
      const seen = JSON.parse(readFileSync(join(cwd, "seen.json"), "utf8"))
      assert.deepInclude(seen, {
        hook_event_name: "PreToolUse",
        tool_name: "Bash",
        tool_input: { command: "rm -rf x" },
        cwd
      })
      assert.isString(seen.session_id)
      assert.isString(seen.tool_use_id)
    })
  )

  it.live("changed arguments are decoded, and ruled on by every other source", () =>
    Effect.gen(function* () {
      const change = (updatedInput: unknown) =>
        json({ hookSpecificOutput: { permissionDecision: "allow", updatedInput } })
      const changed = yield* called(hookBefore(change({ command: "ls" })))
      assert.deepEqual(changed.ran, ["ls"])
      const noList = Middleware.make({
        name: "noList",
        rulings: (_run, calls) =>
          Effect.succeed(
            calls.map((one) => (one.given()["command"] === "ls" ? Ruling.refuse("noList", "No ls.") : undefined))
          )
      })
      const gated = yield* called(hookBefore(change({ command: "ls" })), { middleware: [noList] })
      assert.deepEqual([gated.ran, gated.said], [[], "No ls."])
      const wrong = yield* called(hookBefore(change({ command: 7, x: [] })))
      assert.notInclude(wrong.ran, "rm -rf x")
    })
  )

  it.live("allow takes away the tool's own question, and no refusal", () =>
    Effect.gen(function* () {
      const allow = json({ decision: "approve" })
      assert.deepEqual((yield* called(hookBefore(allow), { needsApproval: true })).ran, ["rm -rf x"])
      const both = {
        hooks: { PreToolUse: [{ hooks: [{ command: allow }, { command: "exit 2" }, { command: allow }] }] }
      }
      assert.deepEqual((yield* called(both)).ran, [])
    })
  )

  it.live("kills a hanging hook with its group after its time, and says so once", () =>
    Effect.gen(function* () {
      const hanging = yield* called(hookBefore("sleep 100 & sleep 100", { timeout: 1 }))
      assert.deepEqual(hanging.ran, ["rm -rf x"])
      assert.deepEqual(hanging.warnings.length, 1)
      assert.match(hanging.warnings[0] ?? "", /no answer within 1s/)
      assert.isBelow(hanging.took, 10_000)
      const strict = yield* called(hookBefore("sleep 100", { timeout: 1, blocking: true }))
      assert.deepEqual(strict.ran, [])
    })
  )

  it.live("does not wait for a process that a hook leaves with its pipes, and kills it", () =>
    Effect.gen(function* () {
      const { cwd, ran, took } = yield* called(hookBefore("sleep 64321 & echo $! > left.pid; exit 0", { timeout: 30 }))
      assert.deepEqual(ran, ["rm -rf x"])
      assert.isBelow(took, 15_000)
      const pid = readFileSync(join(cwd, "left.pid"), "utf8").trim()
      const state = execFileSync("sh", ["-c", `cat /proc/${pid}/stat 2>/dev/null || echo gone`], { encoding: "utf8" })
      assert.match(state, /gone|\) Z /)
    })
  )

  it.live("a flood of output is bounded, and 10 MB of input that nobody reads does no harm", () =>
    Effect.gen(function* () {
      const flood = yield* called(hookBefore("yes", { timeout: 1 }))
      assert.deepEqual(flood.ran, ["rm -rf x"])
      const rss = process.memoryUsage().rss
      const big = yield* called(hookBefore("exit 0"), { arguments: { command: "x".repeat(10_000_000) } })
      assert.equal(big.ran.length, 1)
      assert.isBelow(process.memoryUsage().rss - rss, 400_000_000)
    })
  )

  it.live("runs the call if a hook is missing, fails or prints no JSON", () =>
    Effect.gen(function* () {
      for (const [command, problem] of [
        ["/nowhere/x", /exit code 127/],
        ["echo boom >&2; exit 1", /exit code 1: boom/],
        ["echo '{nonsense'", /begins like JSON and is none/]
      ] as const) {
        const { ran, warnings } = yield* called(hookBefore(command))
        assert.deepEqual(ran, ["rm -rf x"], command)
        assert.match(warnings.join(), problem)
      }
    })
  )

  it.live("one for other tools does not run", () =>
    Effect.gen(function* () {
      const { cwd, ran } = yield* called(hookBefore("touch ran; exit 2", {}, "Edit|Write"))
      assert.deepEqual(ran, ["rm -rf x"])
      assert.isFalse(existsSync(join(cwd, "ran")))
    })
  )
})

const agentWith = (settings: { readonly [event: string]: string }, tools: ReadonlyArray<Tool.Tool> = []) => {
  const hooks = Object.entries(settings).map(([event, command]) => [event, [{ hooks: [{ command }] }]])
  const read = Hooks.fromSettings({ hooks: Object.fromEntries(hooks) })
  return Agent.make({ name: "a", prompt: "", tools, middleware: [Hooks.make({ hooks: read.hooks })] })
}

describe("hooks of other events", { concurrent: true, timeout: 60_000 }, () => {
  it.live("add text behind the message, equal in each request, and refuse a message", () =>
    Effect.gen(function* () {
      const look = Tool.make("look", { description: "Looks", parameters: {}, execute: () => Effect.succeed("seen") })
      const agent = agentWith({ SessionStart: "echo today is a holiday", UserPromptSubmit: "echo be quick" }, [look])
      const [first, second] = yield* Effect.gen(function* () {
        yield* Agent.run(agent, "go")
        return yield* TestChatModel.requests
      }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "look", arguments: {} }]), "done"])))
      const texts = first?.messages.map(Message.text) ?? []
      assert.equal(texts.length, 2)
      assert.match(texts[1] ?? "", /today is a holiday[^]*be quick/)
      assert.deepEqual(second?.messages.slice(0, 2).map(Message.text), texts)
      const refused = yield* Agent.run(agentWith({ UserPromptSubmit: "echo no secrets >&2; exit 2" }), "go").pipe(
        Effect.provide(TestChatModel.script([]))
      )
      assert.deepEqual([refused.text, refused.stopReason], ["no secrets", "refused"])
    }).pipe(Effect.provide(services))
  )

  it.live("go on with a run that would end, a bounded number of times, and object to a result", () =>
    Effect.gen(function* () {
      const once = `if grep -q '"stop_hook_active":false'; then echo run the tests >&2; exit 2; fi`
      const result = yield* Agent.run(agentWith({ Stop: once }), "go").pipe(
        Effect.provide(TestChatModel.script(["first", "second"]))
      )
      assert.equal(result.text, "second")
      const always = yield* Agent.run(agentWith({ Stop: "exit 2" }), "go").pipe(
        Effect.provide(TestChatModel.reactive(() => TestChatModel.text("again")))
      )
      assert.equal(always.rounds, 11)
      const look = Tool.make("look", {
        description: "Looks",
        parameters: {},
        execute: () => Effect.succeed(ToolOutput.make("seen"))
      })
      const requests = yield* Effect.gen(function* () {
        yield* Agent.run(
          agentWith({ PostToolUse: `grep -q '"output":"seen"' && echo tidy up >&2; exit 2` }, [look]),
          "go"
        )
        return yield* TestChatModel.requests
      }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "look", arguments: {} }]), "done"])))
      const last = requests.at(-1)?.messages.at(-1)
      assert.match(last === undefined ? "" : Message.text(last), /^seen\n?[^]*<notice>\ntidy up\n<\/notice>$/)
    }).pipe(Effect.provide(services))
  )

  it.live("by HTTP, within the rules of the network", () =>
    Effect.gen(function* () {
      const bodies: Array<string> = []
      const server = createServer((request, response) => {
        request.on("data", (piece) => bodies.push(String(piece)))
        request.on("end", () => response.end(JSON.stringify({ decision: "block", reason: "not today" })))
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void server.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => server.close())
      )
      const address = server.address()
      const url = `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}/hook`
      const { hooks } = Hooks.fromSettings({
        hooks: { Notification: [{ hooks: [{ type: "http", url, headers: { a: "b" } }] }] }
      })
      const free = yield* Hooks.fire(hooks, "Notification", { message: "waits" })
      assert.deepEqual(free.verdict.decision, "deny")
      assert.include(bodies.join(), '"message":"waits"')
      const guarded = yield* Hooks.fire(hooks, "Notification").pipe(
        Effect.provide(Layer.provide(Network.layer({}), FetchHttpClient.layer))
      )
      assert.equal(guarded.verdict.decision, undefined)
      assert.match(guarded.failures[0]?.message ?? "", /private|127\.0\.0\.1/)
    }).pipe(Effect.provide(services), Effect.scoped)
  )
})

describe("settings and matchers", () => {
  it("report unusable entries, and use the rest", () => {
    const { hooks, problems } = Hooks.fromSettings({
      hooks: {
        PreToolUs: [],
        Stop: [{ hooks: [{ type: "prompt", prompt: "x" }, { type: "command" }, { command: "true", timeout: 5 }, 7] }],
        PreCompact: "no list"
      }
    })
    assert.deepEqual(
      hooks.map(({ event, timeout }) => [event, timeout]),
      [["Stop", "5 seconds"]]
    )
    assert.match(problems[0] ?? "", /no event "PreToolUs"\. Did you mean "PreToolUse"/)
    assert.match(problems.slice(1).join("\n"), /type "prompt"[^]*needs a `command`[^]*expected an object/)
    assert.deepEqual(Hooks.fromSettings(null), { hooks: [], problems: [] })
    assert.equal(Hooks.fromSettings({ hooks: [] }).problems.length, 1)
  })

  it("say of each guard that would never fire why", () => {
    const guard = { type: "command", command: "true" }
    for (const [groups, problem] of [
      ["no list", "hooks.PreToolUse: expected a list"],
      [{ matcher: "Bash", hooks: [guard] }, "hooks.PreToolUse: expected a list"],
      [[guard], "hooks.PreToolUse[0]: expected an object with a list of `hooks`"],
      [[7], "hooks.PreToolUse[0]: expected an object with a list of `hooks`"],
      [[{ matcher: ["Bash"], hooks: [guard] }], "hooks.PreToolUse[0]: `matcher` is a text"],
      [
        [{ matcher: "[Bb]ash", hooks: [guard] }],
        'hooks.PreToolUse[0]: the matcher "[Bb]ash" fits nothing: write names with | between them, and * in them'
      ],
      [[{ hooks: [{ ...guard, timeout: "10" }] }], "hooks.PreToolUse[0].hooks[0]: `timeout` is a number of seconds"],
      [[{ hooks: [{ ...guard, blocking: "true" }] }], "hooks.PreToolUse[0].hooks[0]: `blocking` is true or false"]
    ] satisfies ReadonlyArray<readonly [Json, string]>) {
      assert.deepEqual(Hooks.fromSettings({ hooks: { PreToolUse: groups } }), { hooks: [], problems: [problem] })
    }
    assert.equal(
      Hooks.fromSettings({ hooks: { PreToolUse: [{ matcher: "^(A|B.*)$", hooks: [guard] }] } }).hooks.length,
      1
    )
  })

  it("fit names of both sides, without an engine that can hang", () => {
    for (const [matcher, names, isFit] of [
      [undefined, ["x"], true],
      ["Edit|Write", ["Edit", "MultiEdit", "edit_file"], true],
      ["edit_file", ["Edit", "edit_file"], true],
      ["mcp__github__.*", ["mcp__github__search"], true],
      ["mcp__.*__write.*", ["mcp__a__write_x"], true],
      ["Notebook.*", ["Bash"], false],
      ["^(Bash|Read)$", ["Bash"], true],
      ["bash", ["Bash"], false],
      ["a*a", ["a"], false],
      ["*", ["x"], true]
    ] as const) {
      assert.equal(fits(matcher, names), isFit, `${matcher}`)
    }
    assert.isFalse(fits(`${"a*".repeat(2_000)}b`, ["a".repeat(50_000)]))
    const unit = fc.constantFrom("a", "b", "*", "|")
    fc.assert(
      fc.property(
        fc.string({ unit, maxLength: 8 }),
        fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1 }),
        (matcher, name) => {
          const parts = matcher.split("|").map((part) => `^${part.replaceAll("*", ".*")}$`)
          const expected = matcher === "" || parts.some((part) => new RegExp(part).test(name))
          assert.equal(fits(matcher, [name]), expected, `${matcher} on ${name}`)
        }
      )
    )
  })
})
