import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Approval, Content, Message, Tool } from "effect-deepagents"
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

it.live("an item whose type is a name of every object is kept as any other unknown item", () =>
  Effect.gen(function* () {
    const server = yield* Server.make
    for (const type of ["constructor", "toString", "something_new"]) {
      server.reply(replies({ type, id: "x_1", status: "completed" }, message("Done.")))
      const { error, message: said } = yield* ask(responses(server), request([Message.human("hi")]))
      assert.deepStrictEqual([error, said === undefined ? "" : Message.text(said)], [undefined, "Done."])
    }
  })
)

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

  it.live("of a container go back beside their output, which has the same call id", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const environment = { type: "container_reference", container_id: "cntr_1" }
      const pairs = ["1", "2"].flatMap((id): ReadonlyArray<Any> => [
        { ...shellCall, id: `sh_${id}`, call_id: `call_${id}`, environment },
        {
          type: "shell_call_output",
          id: `so_${id}`,
          call_id: `call_${id}`,
          status: "completed",
          output: [{ stdout: id, stderr: "", outcome: { type: "exit", exit_code: 0 } }]
        }
      ])
      const told = [...pairs, message("Done.")]
      const model = responses(server, { serverTools: [{ type: "shell", environment: { type: "container_auto" } }] })
      // Streamed, and in the end alone.
      for (const stream of [responseEvents(told), responseEvents(told).slice(-1)]) {
        server.reply(Server.events(stream), replies(message("ok")))
        const hello = [Message.human("hi")]
        const { message: said } = yield* ask(model, request(hello))
        assert.strictEqual(said?.toolCalls.length, 0)
        yield* ask(model, request([...hello, said!, Message.human("go on")]))
        assert.deepStrictEqual(inputOf(server).slice(1, -2), pairs)
      }
    })
  )

  it.live("are texts in a grammar, actions on a screen, and searches for tools", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const custom = { type: "custom_tool_call", id: "ct_1", call_id: "call_ct", name: "sql", input: "select 1" }
      const check = { id: "sc_1", code: "malicious_instructions", message: "look twice" }
      const action = { type: "click", button: "left", x: 1, y: 2 }
      const screen = {
        type: "computer_call",
        id: "cu_1",
        call_id: "call_cu",
        status: "completed",
        action,
        pending_safety_checks: [check]
      }
      const search = {
        type: "tool_search_call",
        id: "ts_1",
        call_id: "call_ts",
        status: "completed",
        execution: "client",
        arguments: { query: "weather" }
      }
      const found = [{ type: "function", name: "weather", parameters: { type: "object" } }]
      const seen: Array<unknown> = []
      const note =
        <A>(answer: A) =>
        (given: unknown) =>
          Effect.sync(() => (seen.push(given), answer))
      const picture = { base64: "iVBORw0KGgo=", mimeType: "image/png" }
      const tools = [
        Tool.make("sql", { description: "Asks", parameters: { input: Schema.String }, execute: note("1") }),
        Tool.make("computer", {
          description: "Acts",
          parameters: { actions: Schema.Array(Schema.Json), pending_safety_checks: Schema.optionalKey(Schema.Json) },
          execute: note([Content.image(picture)])
        }),
        Tool.make("tool_search", {
          description: "Finds tools",
          parameters: { query: Schema.String },
          execute: note(JSON.stringify(found))
        })
      ]
      const serverTools = [
        { type: "custom", name: "sql", format: { type: "grammar", syntax: "lark", definition: "start: /.+/" } },
        { type: "computer" },
        { type: "tool_search", execution: "client", parameters: { type: "object" } }
      ]
      server.reply(replies(custom, screen, search), replies(message("Done.")))
      const agent = Agent.make({ name: "analyst", prompt: "", tools })
      const { text } = yield* Agent.run(agent, "hi").pipe(Effect.provide(responses(server, { serverTools })))
      assert.strictEqual(text, "Done.")
      assert.deepStrictEqual(seen, [
        { input: "select 1" },
        { actions: [action], pending_safety_checks: [check] },
        { query: "weather" }
      ])
      assert.deepStrictEqual(server.seen[0]?.body.tools, serverTools)
      assert.deepStrictEqual(inputOf(server).slice(-6), [
        custom,
        screen,
        search,
        { type: "custom_tool_call_output", call_id: "call_ct", output: "1" },
        {
          type: "computer_call_output",
          call_id: "call_cu",
          output: { type: "computer_screenshot", image_url: `data:image/png;base64,${picture.base64}` },
          acknowledged_safety_checks: [check]
        },
        {
          type: "tool_search_output",
          call_id: "call_ts",
          execution: "client",
          status: "completed",
          tools: found
        }
      ])
    })
  )

  it.live("never end a turn without a word if nobody answers them, for any kind", () =>
    Effect.gen(function* () {
      const server = yield* Server.make
      const items: ReadonlyArray<Any> = [
        { type: "custom_tool_call", id: "1", call_id: "c", name: "sql", input: "" },
        { type: "computer_call", id: "1", call_id: "c", status: "completed", actions: [], pending_safety_checks: [] },
        { type: "tool_search_call", id: "1", call_id: "c", execution: "client", arguments: {} },
        { type: "future_call", id: "1", call_id: "c", execution: "client" },
        { ...patchCall },
        { type: "local_shell_call", id: "1", call_id: "c", status: "completed", action: { type: "exec", command: [] } }
      ]
      for (const item of items) {
        // Streamed, and in the end alone.
        for (const stream of [responseEvents([item]), responseEvents([item]).slice(-1)]) {
          server.reply(Server.events(stream))
          const { error } = yield* ask(responses(server, {}), request([Message.human("hi")]))
          assert.strictEqual(error?.reason._tag, "Unsupported", item.type)
        }
      }
      server.reply(replies({ type: "custom_tool_call", id: "1", call_id: "c", name: "x".repeat(1_000_000), input: "" }))
      const { error } = yield* ask(responses(server, {}), request([Message.human("hi")]))
      assert.isBelow(error?.message.length ?? Infinity, 5_000)
      server.reply(replies({ type: "tool_search_call", id: "1", call_id: "c", execution: "server", arguments: {} }))
      const { message: said } = yield* ask(responses(server, {}), request([Message.human("hi")]))
      assert.strictEqual(said?.stopReason, "stop")
    })
  )

  it.live("fail the turn without an answer, and say what is missing", () =>
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
