import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result, Schema, Stream } from "effect"
import { Agent, Approval, Backend, type AgentEvent, Message, Middleware, Ruling, Tool } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { Policy } from "effect-deepagents/rules"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../scale.ts"

const compile = (...policies: ReadonlyArray<Policy.Policy>) => Result.getOrThrow(Policy.compile(policies))

type Call = Parameters<Policy.CompiledPolicies["explain"]>[0]

const verbOf = ({ ruling }: Ruling.Verdict) => effects[ruling._tag]

const explain = (policies: ReadonlyArray<Policy.Policy>, call: Call) => {
  const verdict = compile(...policies).explain(call)
  return [verbOf(verdict), ...verdict.ruling.by.split(": ")]
}

const effects = { Allow: "allow", Ask: "ask", Refuse: "refuse" } as const

const shell = (command: string): Call => ({ name: "execute", arguments: { command } })

type Verb = Policy.Rule["ruling"]
type Pattern = NonNullable<Policy.Rule["arguments"]>[string]

describe("rules for command lines", () => {
  const commands: Policy.Policy = {
    name: "p",
    tools: {
      execute: [
        { ruling: "refuse", command: ["git push:*", "npm publish:*"] },
        { ruling: "allow", command: ["npm test:*", "git log:*"] },
        "ask"
      ],
      pay: [
        { ruling: "allow", command: "npm test" },
        { ruling: "refuse", command: "npm test" }
      ]
    }
  }

  it("allow only lines whose every command they cover, and restrict a line by any of its commands", () => {
    const rulings: ReadonlyArray<readonly [line: string, ruling: string]> = [
      ["npm test", "allow"],
      ["npm test -- --bail && git log -3", "allow"],
      ["npm testing", "ask"],
      ["npm test && rm -rf /", "ask"],
      ["npm test $(rm -rf /)", "ask"],
      ["npm test > ~/.bashrc", "ask"],
      ["git log --output=.git/hooks/pre-commit", "ask"],
      ["git push", "refuse"],
      ["npm test; sudo -n git -C . push --force", "refuse"],
      ["echo $(npm publish)", "refuse"]
    ]
    for (const [line, ruling] of rulings)
      assert.strictEqual(verbOf(compile(commands).explain(shell(line))), ruling, line)
    // A tool without a command line: allowing rules don't cover it, restricting rules do.
    assert.strictEqual(verbOf(compile(commands).explain({ name: "pay", arguments: { amount: 1 } })), "refuse")
  })

  it.effect("reads rules from YAML, and refuses an unreadable pattern", () =>
    Effect.gen(function* () {
      const read = yield* Policy.fromYaml('tools: { execute: [{ ruling: allow, command: "npm test:*" }, ask] }')
      assert.strictEqual(verbOf(compile(read).explain(shell("npm test x"))), "allow")
      const error = yield* Effect.flip(
        Policy.fromYaml("tools: { execute: { ruling: allow, command: 'npm test && ls' } }")
      )
      assert.include(error.message, "npm test && ls")
    })
  )
})

describe("a group of tools", () => {
  const pay = Tool.make("pay", { description: "", parameters: {}, execute: () => "paid" })
  const look = Tool.make("screen_look", {
    description: "",
    parameters: {},
    annotations: { destructive: true },
    execute: () => "seen"
  })
  const desk: Policy.Policy = { name: "desk", tools: { "screen_*": "ask", "camera_*": "refuse" } }
  const money: Policy.Policy = { name: "money", tools: { pay: "ask", refund: "ask" } }
  const runs = (...policies: ReadonlyArray<Policy.Policy>) => {
    const { middleware } = Result.getOrThrow(Policy.compile(policies, { known: ["refund"] }))
    const agent = Agent.make({ name: "a", prompt: "", tools: [pay, look], middleware })
    const model = TestChatModel.script([
      TestChatModel.calls([
        { name: "pay", arguments: {} },
        { name: "screen_look", arguments: {} }
      ])
    ])
    return Effect.map(Effect.provide(Agent.run(agent, "go"), model), ({ pending }) =>
      pending.map(({ rule, toolName }) => `${toolName} by ${rule}`)
    )
  }

  it.effect("has its default as a policy, which a later policy changes for one tool", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* runs(desk, money), [
        "pay by money: tools.pay",
        "screen_look by desk: tools.screen_*"
      ])
      assert.deepStrictEqual(yield* runs(desk, money, { name: "user", tools: { screen_look: "allow" } }), [
        "pay by money: tools.pay"
      ])
      // Annotations say less than the group.
      assert.deepStrictEqual(yield* runs({ name: "all", annotations: { destructive: "refuse" } }, desk), [
        "screen_look by desk: tools.screen_*"
      ])
    })
  )

  it.effect("keeps its default against later policies if it is strict", () =>
    Effect.gen(function* () {
      const user: Policy.Policy = { name: "user", tools: { pay: "allow", screen_look: "allow" } }
      assert.deepStrictEqual(yield* runs(desk, { ...money, strict: true }, user), ["pay by money: tools.pay"])
    })
  )
})

describe("Policy as data", () => {
  it.effect("is read from YAML and JSON, and is the same value after its schema wrote it", () =>
    Effect.gen(function* () {
      const policy = yield* Policy.fromYaml(`
        name: organisation
        strict: [tools]
        off: { tools: ["browser_*"], middleware: [Memory] }
        tools:
          execute:
            - { ruling: allow, arguments: { command: ["git status", "npm test*"] } }
            - { ruling: refuse, arguments: { command: "*rm -rf*" }, reason: "never" }
            - ask
        servers: { github: { default: ask, tools: { search: allow } } }
        annotations: { destructive: ask }
        files: { rules: [{ operations: [write], paths: ["/secrets/**"], ruling: refuse }] }
        sandbox: askForCommands
        budget: { tokens: 1000 }
      `)
      const json = JSON.stringify(Schema.encodeSync(Policy.Policy)(policy))
      assert.deepStrictEqual(yield* Policy.fromYaml(json), policy)
    })
  )

  it.effect("refuses an unknown field or word with a suggestion", () =>
    Effect.gen(function* () {
      for (const [text, path, hint] of [
        ["tolls: { pay: ask }", "tolls", 'Did you mean "tools"?'],
        ["tools: { pay: { ruling: ask, argumnets: { n: 1 } } }", "tools.pay", ""],
        ["annotations: { destructiv: ask }", "annotations.destructiv", 'Did you mean "destructive"?'],
        ["default: forbid", "default", ""],
        ["budget: { tokens: -1 }", "budget.tokens", ""],
        ["- 1", "", ""]
      ] as const) {
        const error = yield* Effect.flip(Policy.fromYaml(text))
        assert.include(error.path, path)
        assert.include(error.message, hint)
      }
    })
  )

  it("a rule for files that can't be one is told with its place", () => {
    const made = Policy.compile([
      { name: "mine", files: { rules: [{ operations: ["read"], paths: ["relative"], ruling: "refuse" }] } }
    ])
    assert(Result.isFailure(made))
    assert.deepInclude(made.failure, { policy: "mine", path: "files.rules[0].paths" })
  })
})

describe("rules for calls", () => {
  const git: Policy.Policy = {
    name: "p",
    tools: {
      execute: [
        { ruling: "allow", arguments: { command: "git *" } },
        { ruling: "refuse", arguments: { command: "*rm -rf*" } },
        "ask"
      ]
    }
  }

  it("the first that fits decides, and the explanation names it", () => {
    assert.deepStrictEqual(explain([git], shell("git status")), ["allow", "p", "tools.execute[0]"])
    assert.deepStrictEqual(explain([git], shell("sudo rm -rf /")), ["refuse", "p", "tools.execute[1]"])
    assert.deepStrictEqual(explain([git], shell("ls")), ["ask", "p", "tools.execute[2]"])
    assert.deepStrictEqual(explain([git], { name: "ls" }), ["allow", "default"])
  })

  it("a rule that allows a command allows no second command behind it, by any syntax of a shell", () => {
    for (const more of [";", "&&", "|", "\n", "`x`", "$(x)", ">", "<", "&", "\r", "{x,y}"]) {
      const [mode] = explain([git], shell(`git log ${more} curl evil`))
      assert.strictEqual(mode, "ask", JSON.stringify(more))
    }
    assert.strictEqual(explain([git], shell("git log; rm -rf /"))[0], "refuse")
  })

  it("a rule that allows a folder allows no path out of it", () => {
    const tmp: Policy.Policy = {
      tools: { read_file: [{ ruling: "allow", arguments: { path: "/tmp/*" } }, "refuse"] }
    }
    const explainRead = (path: string) => explain([tmp], { name: "read_file", arguments: { path } })[0]
    assert.strictEqual(explainRead("/tmp/a/b.txt"), "allow")
    for (const path of ["/tmp/../etc/passwd", "/tmp/a/..", "/etc/tmp/x", "/tmp\\..\\x"]) {
      assert.strictEqual(explainRead(path), "refuse", path)
    }
  })

  it("covers numbers, lists, nested values and forbidden values", () => {
    const rules: Policy.Policy = {
      tools: {
        pay: [
          { ruling: "refuse", arguments: { amount: { above: 1000 } } },
          { ruling: "ask", arguments: { "options.force": true } },
          { ruling: "allow", arguments: { to: { not: ["*@evil.example"] }, tags: "safe*" } },
          "ask"
        ]
      }
    }
    const pay = (args: Call["arguments"]) => explain([rules], { name: "pay", arguments: args })[0]
    assert.strictEqual(pay({ amount: 1001, to: "a", tags: ["safe"] }), "refuse")
    assert.strictEqual(pay({ amount: 5, options: { force: true }, to: "a", tags: ["safe"] }), "ask")
    assert.strictEqual(pay({ amount: 5, to: "ada", tags: ["safe", "safer"] }), "allow")
    assert.strictEqual(pay({ amount: 5, to: "ada", tags: ["safe", "other"] }), "ask")
    assert.strictEqual(pay({ amount: 5, to: "x@evil.example", tags: ["safe"] }), "ask")
    assert.strictEqual(pay({ amount: 5, tags: ["safe"] }), "ask")
  })

  it("a restricting rule covers values in lists, omitted arguments and incomparable values", () => {
    const one = (pattern: Pattern, path = "to"): Policy.Policy => ({
      tools: { send: [{ ruling: "refuse", arguments: { [path]: pattern } }, "allow"] }
    })
    const isDenied = (policy: Policy.Policy, args: Call["arguments"]) =>
      explain([policy], { name: "send", arguments: args })[0] === "refuse"
    const ours = one({ not: "*@ours.example" })
    assert.isFalse(isDenied(ours, { to: "ada@ours.example" }))
    assert.isFalse(isDenied(ours, { to: ["ada@ours.example", "bob@ours.example"] }))
    for (const to of ["x@evil.example", ["ada@ours.example", "x@evil.example"], [], 5, null, {}, [[]]]) {
      assert.isTrue(isDenied(ours, { to }), JSON.stringify(to))
    }
    assert.isTrue(isDenied(ours, {}))
    const most = one({ above: 100 })
    for (const to of [101, [5, 101], "101", { amount: 101 }]) assert.isTrue(isDenied(most, { to }), JSON.stringify(to))
    for (const to of [100, [5, 100], []]) assert.isFalse(isDenied(most, { to }), JSON.stringify(to))
    assert.isFalse(isDenied(most, {}))
    const inside = one("*@evil.example", "to.address")
    assert.isTrue(isDenied(inside, { to: [{ address: "ada@ours.example" }, { address: "x@evil.example" }] }))
    assert.isFalse(isDenied(inside, { to: [{ address: "ada@ours.example" }, "x"] }))
    for (const to of [true, "true"]) assert.isTrue(isDenied(one(true), { to }))
    assert.isFalse(isDenied(one(true), { to: "false" }))
  })

  it("an argument with the name of a path does not hide the value at the path", () => {
    const rule = (ruling: Verb, force: boolean): Policy.Policy => ({
      tools: { remove: [{ ruling, arguments: { "options.force": force } }, "ask"] }
    })
    const mode = (policy: Policy.Policy, args: Call["arguments"]) =>
      explain([policy], { name: "remove", arguments: args })[0]
    const hidden = { options: { force: true }, "options.force": false }
    assert.strictEqual(mode(rule("refuse", true), hidden), "refuse")
    assert.strictEqual(mode(rule("refuse", false), hidden), "refuse")
    assert.strictEqual(mode(rule("allow", false), hidden), "ask")
    assert.strictEqual(mode(rule("allow", false), { "options.force": false }), "allow")
    assert.strictEqual(mode(rule("allow", false), { options: { force: false } }), "allow")
  })

  it("a rule that allows a list allows values that match any of its patterns, and no missing value", () => {
    const allowing = (pattern: Pattern): Policy.Policy => ({
      tools: { tag: [{ ruling: "allow", arguments: { "tags.name": pattern } }, "refuse"] }
    })
    const tag = (pattern: Pattern, ...names: ReadonlyArray<string>) =>
      explain([allowing(pattern)], { name: "tag", arguments: { tags: names.map((name) => ({ name })) } })[0]
    assert.strictEqual(tag(["safe", "ok"], "safe", "ok"), "allow")
    assert.strictEqual(tag(["safe", "ok"], "safe", "other"), "refuse")
    assert.strictEqual(tag({ not: "evil" }, "safe", "evil"), "refuse")
    assert.strictEqual(tag({ not: "evil" }), "refuse")
    assert.strictEqual(
      explain([allowing("safe")], { name: "tag", arguments: { tags: [{ name: "safe" }, {}] } })[0],
      "refuse"
    )
  })

  it("prefers a name to a pattern, then the server's annotation, the strictest annotation, the default", () => {
    const policy: Policy.Policy = {
      name: "p",
      tools: { "git_*": "ask", git_status: "allow" },
      servers: { github: { default: "ask", tools: { search: "allow" } } },
      annotations: { readOnly: "allow", openWorld: "ask" },
      default: "refuse"
    }
    const at = (name: string, annotations: Tool.Annotations = {}) => explain([policy], { name, annotations })
    assert.deepStrictEqual(at("Git-Status"), ["allow", "p", "tools.git_status"])
    assert.deepStrictEqual(at("git_push"), ["ask", "p", "tools.git_*"])
    assert.deepStrictEqual(at("github__search", { server: "github" }), ["allow", "p", "servers.github.tools.search"])
    assert.deepStrictEqual(at("github__push", { server: "github" }), ["ask", "p", "servers.github.default"])
    // Another server that calls its tool so is not that server.
    assert.deepStrictEqual(at("github__search", { server: "evil" }), ["refuse", "p", "default"])
    assert.deepStrictEqual(at("look", { readOnly: true }), ["allow", "p", "annotations.readOnly"])
    assert.deepStrictEqual(at("fetch", { readOnly: true, openWorld: true }), ["ask", "p", "annotations.openWorld"])
    assert.deepStrictEqual(at("constructor"), ["refuse", "p", "default"])
  })

  it("for an argument that the tool lacks, restricting rules cover all calls and allowing rules none", () => {
    const parameters = { type: "object", properties: { command: { type: "string" } }, additionalProperties: false }
    const policy: Policy.Policy = {
      tools: { execute: [{ ruling: "refuse", arguments: { comand: "rm *" } }, "allow"] }
    }
    const call = { ...shell("ls"), parameters }
    assert.strictEqual(explain([policy], call)[0], "refuse")
    const allowing: Policy.Policy = { tools: { execute: [{ ruling: "allow", arguments: { comand: "ls" } }, "ask"] } }
    assert.strictEqual(explain([allowing], call)[0], "ask")
  })
})

const verbs: fc.Arbitrary<Verb> = fc.constantFrom("allow", "ask", "refuse")
const aPolicy: fc.Arbitrary<Policy.Policy> = fc.record(
  {
    tools: fc.dictionary(fc.constantFrom("a", "b", "a*", "*"), verbs, { maxKeys: 3 }),
    annotations: fc.record({ destructive: verbs, readOnly: verbs }, { requiredKeys: [] }),
    default: verbs,
    off: fc.record({ tools: fc.subarray(["a", "b"]) })
  },
  { requiredKeys: [] }
)
const aCall = fc.record({
  name: fc.constantFrom("a", "b", "ab", "c"),
  annotations: fc.record({ destructive: fc.boolean(), readOnly: fc.boolean() }, { requiredKeys: [] })
})
const rank = { allow: 0, ask: 1, refuse: 2 }

describe("policies put together", () => {
  it("later policies never loosen a strict one, and stricter ones tighten it", () => {
    fc.assert(
      fc.property(aPolicy, fc.array(aPolicy, { maxLength: 3 }), aCall, (first, after, call) => {
        const strict = { ...first, strict: true }
        const own = compile(strict).explain(call)
        const all = compile(strict, ...after).explain(call)
        if (own.rulings.length > 0) assert.isAtLeast(rank[verbOf(all)], rank[verbOf(own)])
        const last = compile(...after).explain(call)
        if (verbOf(last) === "refuse" && after.length === 1) assert.strictEqual(verbOf(all), "refuse")
      }),
      { numRuns: scaled(2000) }
    )
  })

  it("later policies may narrow the deciders of a strict rule, and not widen them", () => {
    const call = { name: "drop", annotations: { destructive: true } }
    const org: Policy.Policy = {
      name: "org",
      strict: true,
      annotations: { destructive: { ruling: "ask", expiresIn: 5 } }
    }
    const admins: Policy.Policy = {
      name: "p",
      tools: { drop: { ruling: "ask", deciders: ["role:dba"], expiresIn: 9 } }
    }
    const others: Policy.Policy = { name: "u", tools: { drop: { ruling: "ask", deciders: ["x"] } } }
    const { ruling } = compile(org, admins).explain(call)
    assert(ruling._tag === "Ask")
    assert.strictEqual(ruling.by, "org: annotations.destructive, p: tools.drop")
    assert.deepInclude(ruling.terms, { deciders: ["role:dba"], expiresIn: 5 })
    // Nobody satisfies both.
    const both = compile(org, admins, others).explain(call)
    assert.include(Ruling.explain(both), "no decider in common")
    assert.deepStrictEqual(
      both.rulings.map(({ _tag, by }) => [_tag, by]),
      [
        ["Ask", "org: annotations.destructive"],
        ["Ask", "p: tools.drop"],
        ["Ask", "u: tools.drop"]
      ]
    )
  })

  it("a later policy overrides a lenient one, but switched-off parts stay off", () => {
    const off: Policy.Policy = { name: "org", off: { tools: ["b"] }, tools: { a: "refuse" } }
    const user: Policy.Policy = { name: "user", tools: { a: "allow", b: "allow" } }
    assert.deepStrictEqual(explain([off, user], { name: "a" }), ["allow", "user", "tools.a"])
    assert.deepStrictEqual(explain([off, user], { name: "b" }), ["refuse", "org", "off.tools (b)"])
    assert.strictEqual(
      Ruling.explain(compile(off, user).explain({ name: "a" })),
      "Allowed by user: tools.a; composed from org: tools.a: refuse."
    )
  })

  it("of budgets and reach the last value counts, and the lower one where the policy is strict", () => {
    const org: Policy.Policy = { strict: ["budget"], budget: { tokens: 100, rounds: 5 }, sandbox: "noCommands" }
    const user: Policy.Policy = { budget: { tokens: 500, rounds: 3, cost: 1 }, sandbox: "open" }
    const { budget, reach } = compile(org, user)
    assert.deepStrictEqual([budget, reach], [{ tokens: 100, rounds: 3, cost: 1 }, "open"])
    assert.strictEqual(compile({ ...org, strict: true }, user).reach, "noCommands")
    assert.isUndefined(compile({ budget: {} }).budget)
    assert.deepStrictEqual(compile({ budget: {} }, user).budget, user.budget)
  })

  it("of network rules the later fields count, and after a strict policy only hosts that both allow", () => {
    const org: Policy.Policy = {
      strict: ["network"],
      network: { allow: ["*.example.com", "api.test"], deny: ["evil.example.com"], maxBytes: 100, ports: [443, 80] }
    }
    const user: Policy.Policy = {
      network: {
        allow: ["a.example.com", "*", "other.test", "api.test:8443", "example.com"],
        allowPrivate: ["localhost"],
        maxBytes: 500,
        ports: [443],
        streams: true
      }
    }
    assert.deepStrictEqual(compile(org, user).network, {
      allow: ["a.example.com", "api.test:8443", "*.example.com", "api.test"],
      deny: ["evil.example.com"],
      ports: [443],
      allowPrivate: [],
      keepHeaders: [],
      maxBytes: 100,
      streams: false
    })
    const paced = { rate: { requests: 10, window: 1_000 }, breaker: { failures: 5, openFor: 1_000 } }
    const slow = { rate: { requests: 60, window: 60_000 }, breaker: { failures: 9, openFor: 30_000 } }
    const both = { rate: slow.rate, breaker: { failures: 5, openFor: 30_000 } }
    for (const [first, second] of [
      [paced, slow],
      [slow, paced]
    ] as const) {
      assert.deepInclude(compile({ strict: ["network"], network: first }, { network: second }).network, both)
    }
    assert.deepStrictEqual(compile({ network: { maxBytes: 1, timeout: 5 } }, { network: { maxBytes: 9 } }).network, {
      maxBytes: 9,
      timeout: 5
    })
  })

  it("permissions: a strict one stands, another one gives way", () => {
    const secrets = { rules: [{ operations: ["read" as const], paths: ["/secrets/**"], ruling: "refuse" as const }] }
    const open = { rules: [{ operations: ["read" as const], paths: ["/**"], ruling: "allow" as const }] }
    const at = (...policies: ReadonlyArray<Policy.Policy>) => {
      const verdict = compile(...policies).explainPath("read", "/secrets/a")
      return [verbOf(verdict), verdict.ruling.by]
    }
    assert.deepStrictEqual(at({ files: secrets }, { files: open }), ["allow", "policy 2: files.rules[0]"])
    assert.deepStrictEqual(at({ name: "org", strict: true, files: secrets }, { files: open }), [
      "refuse",
      "org: files.rules[0]"
    ])
    const { ruling } = compile({ sandbox: "readOnly" }).explainPath("write", "/a")
    assert.deepStrictEqual([ruling._tag, ruling.by], ["Refuse", "sandbox: readOnly"])
  })
})

const ran: Array<string> = []
const tool = (name: string, annotations: Tool.Annotations = {}) =>
  Tool.make(name, {
    description: name,
    parameters: { n: Schema.optionalKey(Schema.Int) },
    annotations,
    execute: () => Effect.sync(() => (ran.push(name), "ok"))
  })
const tools = [tool("look", { readOnly: true }), tool("pay"), tool("wipe", { destructive: true })]
const turn = (...names: ReadonlyArray<string>) =>
  TestChatModel.calls(names.map((name) => ({ name, arguments: { n: 1 } })))

describe("policies at work", () => {
  it.effect(
    "allows, asks about and refuses calls, names the rule in the request, and offers no switched-off tool",
    () =>
      Effect.gen(function* () {
        ran.length = 0
        const { middleware: suspending } = compile({
          name: "p",
          off: { tools: ["look"] },
          tools: {
            pay: { ruling: "ask", reason: "money", deciders: ["ada"] },
            wipe: { ruling: "refuse", reason: "no" }
          }
        })
        const agent = Agent.make({ name: "a", prompt: "", tools, middleware: suspending })
        const offered: Array<string> = []
        const model = TestChatModel.reactive((request) => {
          offered.push(...request.tools.map(({ name }) => name))
          return request.messages.some(({ role }) => role === "tool") ? "done" : turn("look", "pay", "wipe")
        })
        const first = yield* Effect.provide(Agent.run(agent, "go"), model)
        const [request] = first.pending
        assert(request !== undefined && first.pending.length === 1)
        assert.deepInclude(request, { toolName: "pay", rule: "p: tools.pay", deciders: ["ada"] })
        assert.include(request.description, "money")
        assert.deepStrictEqual(ran, [])
        const decision = Approval.decidedBy(Approval.approve(request), request, { by: { id: "ada" } })
        const result = yield* Effect.provide(Agent.resume(agent, { checkpoint: first, decisions: [decision] }), model)
        assert.deepStrictEqual(ran, ["pay"])
        assert.notInclude(offered, "look")
        const told = result.messages.filter(({ role }) => role === "tool").map(Message.text)
        assert.include(told[2], "a policy does not allow it (p: tools.wipe): no")
      })
  )

  it.effect("fails runs for a rule with an unknown tool name, with a suggestion; known names and wildcards pass", () =>
    Effect.gen(function* () {
      const run = (policy: Policy.Policy, known: ReadonlyArray<string> = []) =>
        Agent.run(
          Agent.make({
            name: "a",
            prompt: "",
            tools,
            middleware: Result.getOrThrow(Policy.compile([policy], { known })).middleware
          }),
          "go"
        )
      const error = yield* Effect.flip(run({ name: "p", tools: { wip: "refuse" } }))
      assert.include(error.message, 'the policy "p" is for "wip"')
      assert.include(error.message, 'Did you mean "wipe"?')
      assert.include((yield* Effect.flip(run({ off: { tools: ["lok"] } }))).message, '"look"')
      assert.strictEqual((yield* run({ tools: { execute: "refuse", "git_*": "refuse" } }, ["execute"])).text, "done")
    }).pipe(Effect.provide(TestChatModel.reactive(() => "done")))
  )

  it.effect("holds in sub-agents, and warns of an argument that the tool does not have", () =>
    Effect.gen(function* () {
      ran.length = 0
      const child = Agent.make({ name: "child", prompt: "", tools })
      const { middleware: asking } = compile({
        name: "p",
        tools: { pay: { ruling: "refuse", arguments: { m: 1 } } },
        annotations: { destructive: "ask" }
      })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [Agent.asTool(child, { name: "child", description: "" })],
        middleware: asking
      })
      const model = TestChatModel.reactive(({ messages, tools: offered }) =>
        messages.some(({ role }) => role === "tool")
          ? "done"
          : offered.some(({ name }) => name === "child")
            ? TestChatModel.calls([{ name: "child", arguments: { task: "x" } }])
            : turn("pay", "wipe")
      )
      const asked: Array<string> = []
      const approvals = Layer.succeed(Approval.Approvals, {
        decide: (request) => Effect.sync(() => (asked.push(request.toolName), Approval.reject(request)))
      })
      const events: Array<AgentEvent.AgentEvent> = []
      yield* Stream.runForEach(Agent.stream(agent, "go"), (event) => Effect.sync(() => events.push(event))).pipe(
        Effect.provide([model, approvals])
      )
      assert.deepStrictEqual([asked, ran], [["wipe"], []])
      assert.isTrue(events.some((event) => event._tag === "Warning" && event.message.includes('Did you mean "n"?')))
    })
  )

  it.effect("files: permissions and reach stand before the backend", () =>
    Effect.gen(function* () {
      const { files } = compile(
        { strict: true, files: { rules: [{ operations: ["read"], paths: ["/secrets/**"], ruling: "refuse" }] } },
        { sandbox: "readOnly" }
      )
      const layer = files.pipe(Layer.provide(MemoryBackend.layer({ files: { "/secrets/a": "x", "/b": "y" } })))
      const backend = yield* Effect.provide(Backend.Backend, layer)
      assert.strictEqual((yield* Effect.flip(backend.read("/secrets/a"))).reason._tag, "PermissionDenied")
      assert.strictEqual((yield* Effect.flip(backend.write("/b", "z"))).reason._tag, "PermissionDenied")
      yield* backend.read("/b")
    })
  )

  it.effect("removes middleware that is off, except guards, and fails for unknown names", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const note = Middleware.make({ name: "Note", beforeModel: () => Effect.sync(() => void seen.push("note")) })
      const { middleware: suspending } = compile({})
      const agent = Agent.make({ name: "a", prompt: "", middleware: [note, ...suspending] })
      const run = (middleware: ReadonlyArray<string>) => Agent.run(compile({ off: { middleware } }).apply(agent), "go")
      assert.strictEqual((yield* run(["Note"])).text, "done")
      assert.deepStrictEqual(seen, [])
      assert.include((yield* Effect.flip(run(["Policy"]))).message, "guards the agent")
      assert.include((yield* Effect.flip(run(["Not"]))).message, 'Did you mean "Note"?')
    }).pipe(Effect.provide(TestChatModel.reactive(() => "done")))
  )
})
