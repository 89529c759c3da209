import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Approval, Message, Middleware, Tool } from "effect-deepagents"
import { AgentFile } from "effect-deepagents/agents"
import { MemoryBackend } from "effect-deepagents/backends"
import * as Bash from "effect-deepagents/backends/Bash"
import { TestChatModel } from "effect-deepagents/testing"

const parse = (fields: string) =>
  AgentFile.parse(`---\ndescription: pays\n${fields}\n---\nYou pay bills.`, { path: "clerk.md" })

const pay = Tool.make("pay", {
  description: "pays",
  parameters: { amount: Schema.Finite },
  annotations: { destructive: true },
  execute: ({ amount }) => Effect.succeed(`${amount} paid`)
})

const call = (name: string, args: Readonly<Record<string, string | number>>) =>
  TestChatModel.calls([{ name, arguments: args }])

const memory = MemoryBackend.layer({ files: { "/secrets/key": "s", "/docs/a.md": "a" } })
const files = Layer.merge(memory, Bash.layer().pipe(Layer.provide(memory)))

/** Runs an agent of a file, and gives the results of its tools and the requests. */
const running = Effect.fnUntraced(function* (
  fields: string,
  options: AgentFile.Options,
  ...turns: Parameters<typeof TestChatModel.script>[0]
) {
  const agent = yield* AgentFile.compile(yield* parse(fields), { tools: [pay], ...options })
  const requests: Array<Approval.Request> = []
  const approvals = Layer.succeed(Approval.Approvals, {
    decide: (request) => Effect.sync(() => (requests.push(request), Approval.approve(request)))
  })
  const { messages } = yield* Agent.run(agent, "go").pipe(
    Effect.provide([TestChatModel.script([...turns, "done"]), files, approvals])
  )
  const results = messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
  return { results, requests }
})

describe("the policy of an agent's file", () => {
  it.effect("rules on its calls as a policy does, by the same words", () =>
    Effect.gen(function* () {
      const { requests, results } = yield* running(
        `tools: [pay]
policy:
  tools:
    pay:
      - { ruling: refuse, arguments: { amount: { above: 1000 } }, reason: too much }
      - { ruling: ask, name: bills }`,
        {},
        call("pay", { amount: 5000 }),
        call("pay", { amount: 5 })
      )
      assert.match(results[0] ?? "", /a policy does not allow it \(clerk: tools\.pay\[0\]\): too much/)
      assert.strictEqual(results[1], "5 paid")
      assert.deepStrictEqual(
        requests.map(({ rule }) => rule),
        ["clerk: bills"]
      )
    })
  )

  it.effect("takes away no question that the program asks", () =>
    Effect.gen(function* () {
      const { requests } = yield* running(
        "tools: [pay]\npolicy: { tools: { pay: allow } }",
        { approvals: { destructive: true } },
        call("pay", { amount: 5 })
      )
      assert.lengthOf(requests, 1)
    })
  )

  it.effect("keeps the program's rules for tools of servers, which come later", () =>
    Effect.gen(function* () {
      const send = { ...pay, name: "mail__send" }
      const servers = {
        names: ["mail"],
        make: () => Middleware.make({ name: "Mail", tools: () => Effect.succeed([send]) })
      }
      const { requests } = yield* running(
        "mcp: [mail]\ntools: [ls]",
        { servers, approvals: { tools: { mail__send: { name: "mails" }, no_tool: true } } },
        call("mail__send", { amount: 5 })
      )
      assert.deepStrictEqual(
        requests.map(({ rule, toolName }) => [rule, toolName]),
        [["mails", "mail__send"]]
      )
    })
  )

  it.effect("is beside rules for untrusted text that name tools which this agent does not have", () =>
    Effect.gen(function* () {
      const names = ["pay", "fetch_url", "mail__send"]
      const taint = {
        acts: names,
        untrusted: names,
        harmless: ["web_search"],
        trusted: ["read_page"],
        secrets: { read_vault: ["vault"] },
        clearance: { post: ["vault"] }
      }
      const { results } = yield* running("tools: [pay]", { taint }, call("pay", { amount: 5 }))
      assert.deepStrictEqual(results, ["5 paid"])
    })
  )

  it.effect("rules on its files", () =>
    Effect.gen(function* () {
      const { results } = yield* running(
        `tools: [read_file, write_file]
policy:
  files:
    rules:
      - { operations: [read, write], paths: ["/secrets"], ruling: refuse }
      - { operations: [write], paths: ["/**"], ruling: refuse, reason: only read }`,
        {},
        call("read_file", { file_path: "/secrets/key" }),
        call("write_file", { file_path: "/docs/b.md", content: "b" }),
        call("read_file", { file_path: "/docs/a.md" })
      )
      assert.match(results[0] ?? "", /permission denied/)
      assert.match(results[1] ?? "", /rules don't allow to write here: only read/)
      assert.match(results[2] ?? "", /a/)
    })
  )

  it.effect("is refused with a suggestion if it is wrong", () =>
    Effect.gen(function* () {
      const problem = (fields: string) => Effect.map(Effect.flip(parse(fields)), ({ message }) => message)
      assert.match(yield* problem("policy: { tols: { pay: ask } }"), /policy: tols: .*Did you mean "tools"\?/)
      assert.match(yield* problem("policy: { tools: { pay: deny } }"), /policy: tools\.pay: expected .*"refuse"/)
      assert.match(yield* problem("policy: { network: {} }"), /an agent's file has no network/)
      const wrong = yield* parse(
        'tools: [ls]\npolicy: { files: { rules: [{ operations: [read], paths: ["x"], ruling: refuse }] } }'
      )
      for (const tools of ["", "tools: [Execute]", "tools: [Bash]"]) {
        const shell = yield* parse(`${tools}\npolicy: { files: { rules: [] } }`)
        assert.match((yield* Effect.flip(AgentFile.compile(shell))).message, /can't hold beside a shell/)
      }
      const error = yield* Effect.flip(AgentFile.compile(wrong))
      assert.match(error.message, /clerk\.md: policy: files\.rules\[0\]\.paths: "x": it must begin with '\/'/)
    })
  )
})
