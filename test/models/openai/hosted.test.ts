import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Approval, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
import * as Server from "../servers/openai.ts"
import { ask, compatible, request, responses } from "./asking.ts"
import { chunk, functionCall, message, responseEvents, usageChunk } from "./wire.ts"

// Items are written as they are on the wire: the SDK's types want more of some than servers send.
// oxlint-disable-next-line typescript/no-explicit-any
type Any = any

const replies = (...items: ReadonlyArray<Any>) => Server.events(responseEvents(items))

const ran: Array<ReadonlyArray<string>> = []

const shell = Tool.make("shell", {
  description: "Runs commands",
  parameters: { commands: Schema.Array(Schema.String) },
  execute: ({ commands }) =>
    Effect.sync(() => {
      ran.push(commands)
      return "two files"
    })
})

const patch = Tool.make("apply_patch", {
  description: "Changes a file",
  parameters: { type: Schema.String, path: Schema.String, diff: Schema.optionalKey(Schema.String) },
  execute: ({ path }) => Effect.fail(`there is no ${path}`)
})

const shellCall = {
  type: "shell_call",
  id: "sh_1",
  call_id: "call_sh",
  status: "completed",
  action: { commands: ["ls"], timeout_ms: 1_000, max_output_length: 100 },
  environment: { type: "local" }
}

const patchCall = {
  type: "apply_patch_call",
  id: "ap_1",
  call_id: "call_ap",
  status: "completed",
  operation: { type: "update_file", path: "a.ts", diff: "@@\n-a\n+b" }
}

const approvalRequest = {
  type: "mcp_approval_request",
  id: "mcpr_1",
  server_label: "wiki",
  name: "edit",
  arguments: '{"page":"Home"}'
}

const local = { type: "shell", environment: { type: "local" } }
const wiki = { type: "mcp", server_label: "wiki", server_url: "https://wiki.example/mcp" }

const inputOf = (server: Server.Server): ReadonlyArray<Any> => server.seen.at(-1)?.body.input

describe("OpenAI's tools that wait for the client", () => {
  it.live("are calls of the agent's tools, answered in their own form", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(replies(shellCall, patchCall), replies(message("Done.")))
      const agent = Agent.make({ name: "coder", prompt: "", tools: [shell, patch] })
      const model = responses(server, { serverTools: [local, { type: "apply_patch" }] })
      const { text } = yield* Agent.run(agent, "hi").pipe(Effect.provide(model))
      assert.strictEqual(text, "Done.")
      assert.deepStrictEqual(ran, [["ls"]])
      // The agent's tools are there as OpenAI's own, and not once more.
      assert.deepStrictEqual(
        server.seen.map(({ body }) => body.tools),
        [
          [local, { type: "apply_patch" }],
          [local, { type: "apply_patch" }]
        ]
      )
      assert.deepStrictEqual(inputOf(server).slice(-4), [
        shellCall,
        patchCall,
        {
          type: "shell_call_output",
          call_id: "call_sh",
          output: [{ stdout: "two files", stderr: "", outcome: { type: "exit", exit_code: 0 } }]
        },
        { type: "apply_patch_call_output", call_id: "call_ap", status: "failed", output: "there is no a.ts" }
      ])
    })
  )

  it.live("have a shell of one command at a time, for the models that know no other", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const call = {
        type: "local_shell_call",
        id: "lsh_1",
        call_id: "call_lsh",
        status: "completed",
        action: { type: "exec", command: ["ls", "-a"], env: { A: "1" }, working_directory: "/srv", timeout_ms: 1_000 }
      }
      server.reply(replies(call), replies(message("Done.")))
      const seen: Array<unknown> = []
      const localShell = Tool.make("local_shell", {
        description: "Runs a command",
        parameters: {
          command: Schema.Array(Schema.String),
          env: Schema.Record(Schema.String, Schema.String),
          working_directory: Schema.optionalKey(Schema.String),
          timeout_ms: Schema.optionalKey(Schema.Finite)
        },
        execute: (given) => Effect.sync(() => (seen.push(given), "two files"))
      })
      const agent = Agent.make({ name: "coder", prompt: "", tools: [localShell] })
      const model = responses(server, { serverTools: [{ type: "local_shell" }] })
      assert.strictEqual((yield* Agent.run(agent, "hi").pipe(Effect.provide(model))).text, "Done.")
      const { type: _, ...given } = call.action
      assert.deepStrictEqual(seen, [given])
      assert.deepStrictEqual(server.seen[0]?.body.tools, [{ type: "local_shell" }])
      assert.deepStrictEqual(inputOf(server).slice(-2), [
        call,
        { type: "local_shell_call_output", call_id: "call_lsh", output: "two files" }
      ])
    })
  )

  it.live("go to another model as the calls that they are for us", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(replies(shellCall), replies(message("ok")))
      const tools = [{ name: "shell", description: "", parameters: { type: "object" }, annotations: {} }]
      const hello = [Message.human("hi")]
      const { message: said } = yield* ask(responses(server, { serverTools: [local] }), request(hello, { tools }))
      const result = Message.tool("two files", { toolCallId: "call_sh", toolName: "shell" })
      yield* ask(responses(server, { model: "gpt-4.1" }), request([...hello, said!, result], { tools }))
      assert.deepStrictEqual(
        inputOf(server).map(({ type = "message" }) => type),
        ["message", "function_call", "function_call_output"]
      )
    })
  )

  it.live("pass the agent's gates: an approval of an MCP server is a person's", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const agent = Agent.make({
        name: "writer",
        prompt: "",
        tools: [OpenAiChatModel.mcpApproval],
        middleware: [HumanInTheLoop.make({})]
      })
      const decide = Effect.fnUntraced(function* (decision: (request: Approval.Request) => Approval.Decision) {
        server.reply(replies(approvalRequest), replies(message("Done.")))
        const first = yield* Agent.run(agent, "hi")
        assert.deepStrictEqual(
          first.pending.map(({ arguments: args }) => args),
          [{ server: "wiki", tool: "edit", arguments: { page: "Home" } }]
        )
        yield* Agent.resume(agent, { checkpoint: first, decisions: first.pending.map(decision) })
        return inputOf(server).slice(-2)
      })
      const answers = yield* Effect.all([
        decide(Approval.approve),
        decide((one) => Approval.reject(one, "not today"))
      ]).pipe(Effect.provide(responses(server, { serverTools: [wiki] })))
      assert.deepStrictEqual(answers[0], [
        approvalRequest,
        { type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: true }
      ])
      assert.deepStrictEqual(answers[1]?.[0], approvalRequest)
      assert.strictEqual(answers[1]?.[1].approve, false)
      assert.include(answers[1]?.[1].reason, "not today")
      // Model and API do not see the tool.
      assert.deepStrictEqual(server.seen[0]?.body.tools, [wiki])
    })
  )

  it.live("that nobody answers fail the turn, and say what is missing", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      server.reply(replies(shellCall), replies(approvalRequest), replies({ ...shellCall, environment: null }))
      const model = responses(server, { serverTools: [local, wiki] })
      const told = [
        yield* ask(model, request([Message.human("hi")])),
        yield* ask(model, request([Message.human("hi")]))
      ].map(({ error }) => `${error?.reason._tag} ${error?.detail}`)
      assert.match(told[0]!, /^Unsupported .*tool named shell/)
      assert.match(told[1]!, /^Unsupported .*mcpApproval.*require_approval/)
      // OpenAI's own container is its own affair.
      const hosted = responses(server, { serverTools: [{ type: "shell", environment: { type: "container_auto" } }] })
      assert.strictEqual((yield* ask(hosted, request([Message.human("hi")]))).message?.stopReason, "stop")
    })
  )
})

describe("strict tools", () => {
  const tools = [
    {
      name: "find",
      description: "Finds",
      parameters: {
        type: "object",
        properties: { of: { type: "string" }, limit: { type: "integer" } },
        required: ["of"]
      },
      annotations: {}
    },
    {
      name: "any",
      description: "Takes all",
      parameters: { type: "object", additionalProperties: true },
      annotations: {}
    }
  ]

  it.live("hold arguments to schemas that can be, and take the nulls of optional keys out again", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const args = '{"of":"a","limit":null}'
      server.reply(
        replies(functionCall("call_1", "find", args)),
        Server.chunks([
          chunk({
            tool_calls: [{ index: 0, id: "call_1", type: "function", function: { name: "find", arguments: args } }]
          }),
          chunk({}, "tool_calls"),
          usageChunk()
        ])
      )
      const asked = request([Message.human("hi")], { tools })
      const said = [
        yield* ask(responses(server, { strictTools: true }), asked),
        yield* ask(compatible(server, { strictTools: true }), asked)
      ]
      for (const { message: one } of said) assert.deepStrictEqual(one?.toolCalls[0]?.arguments, { of: "a" })
      const [find, any] = server.seen[0]!.body.tools
      assert.deepInclude(find, { strict: true })
      assert.deepStrictEqual(find.parameters.required, ["of", "limit"])
      assert.strictEqual(find.parameters.additionalProperties, false)
      assert.strictEqual(any.strict, false)
      assert.deepStrictEqual(
        server.seen[1]?.body.tools.map((tool: Any) => tool.function.strict),
        [true, undefined]
      )
    })
  )
})
