import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, AgentState, type ChatModel, Message, Middleware, Tool, ToolContext } from "effect-deepagents"
import * as ToolSelection from "effect-deepagents/middleware/ToolSelection"
import { TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"

const described: { readonly [name: string]: string } = {
  listInvoices: "Lists the bills of a customer",
  invoice_create: "Makes a new bill for a customer",
  "invoice-cancel": "Cancels a bill that was not paid yet",
  send_email: "Sends a message to an e-mail address",
  searchEmail: "Finds messages in the mailbox",
  getHTTPStatus: "Asks a server whether it is up",
  create_calendar_event: "Puts a meeting into the calendar",
  list_calendar_events: "Shows the meetings of a day",
  delete_file: "Removes a file for good",
  read_file: "Shows what is in a file",
  convert_currency: "Converts an amount of money from one currency to another",
  get_weather: "Tells the weather of a city",
  translate_text: "Translates a text to another language",
  book_flight: "Reserves a seat on a plane",
  ask_user: "Asks the user a question"
}

const catalogue = Object.entries(described).map(([name, description]) =>
  Tool.make(name, {
    description,
    parameters: { n: Schema.optionalKey(Schema.Finite) },
    execute: () => Effect.succeed(`${name} ran`)
  })
)

const agentWith = (
  options: Parameters<typeof ToolSelection.make>[0],
  ...more: ReadonlyArray<Middleware.Middleware<never, ChatModel.ChatModel>>
) =>
  Agent.make({
    name: "agent",
    prompt: "You run the shop.",
    tools: catalogue,
    middleware: [ToolSelection.make(options), ...more]
  })

const search = (...queries: ReadonlyArray<string>) =>
  TestChatModel.calls(queries.map((query) => ({ name: "search_tools", arguments: { query } })))

const offered = (requests: ReadonlyArray<ChatModel.ModelRequest>) =>
  requests.map((request) => request.tools.map((tool) => tool.name))

const results = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

describe("ToolSelection", () => {
  it.effect("tells found tools with their descriptions, and offers them from the next turn on", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentWith({ limit: 2 }), "What is the weather in Oslo?")
      assert.deepStrictEqual(offered(yield* TestChatModel.requests), [
        ["search_tools"],
        ["search_tools", "get_weather"],
        ["search_tools", "get_weather"]
      ])
      assert.deepStrictEqual(results(result.messages), [
        "You can call these from your next turn on:\n- get_weather: Tells the weather of a city",
        "get_weather ran"
      ])
    }).pipe(
      Effect.provide(TestChatModel.script([search("weather"), TestChatModel.calls([{ name: "get_weather" }]), "Rain."]))
    )
  )

  it.effect("a called tool may call tools that the model does not see", () =>
    Effect.gen(function* () {
      const script = Tool.make("run_script", {
        description: "Runs a script over the other tools",
        parameters: {},
        execute: Effect.fnUntraced(function* () {
          const { call } = yield* ToolContext.ToolContext
          return yield* call("get_weather", {})
        })
      })
      const agent = Agent.make({
        name: "agent",
        prompt: "",
        tools: [script, ...catalogue],
        middleware: [ToolSelection.make({ alwaysOffer: ["run_script"] })]
      })
      const { messages } = yield* Agent.run(agent, "Go")
      assert.deepStrictEqual(results(messages), ["get_weather ran"])
      assert.deepStrictEqual(offered(yield* TestChatModel.requests)[0], ["run_script", "search_tools"])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "run_script" }]), "done"])))
  )

  it.effect("14: a tool that was not brought in can't be called", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentWith({}), "Delete it")
      assert.deepStrictEqual(results(result.messages), ['There is no tool "delete_file" now. There are: search_tools.'])
    }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "delete_file" }]), "I can't."])))
  )

  it.effect("selected tools stay, in order of arrival, through all later searches", () =>
    Effect.gen(function* () {
      yield* Agent.run(agentWith({ limit: 1, alwaysOffer: ["ask_user"] }), "Do much")
      const requests = offered(yield* TestChatModel.requests)
      assert.deepStrictEqual(requests.at(-1), ["ask_user", "search_tools", "get_weather", "book_flight", "read_file"])
      // A request begins with all of the one before: so its prompt cache holds.
      for (const [index, tools] of requests.slice(1).entries()) {
        assert.deepStrictEqual(tools.slice(0, requests[index]?.length), requests[index])
      }
    }).pipe(
      Effect.provide(
        TestChatModel.script([
          search("weather"),
          search("plane seat"),
          search("show file", "weather in a city"),
          "done"
        ])
      )
    )
  )

  it.effect("a run that goes on from the state has its tools at once; another run has not", () =>
    Effect.gen(function* () {
      const agent = agentWith({ limit: 1 })
      const first = yield* Agent.run(agent, "Weather?")
      yield* Agent.run(agent, "And now?", { history: first.messages, state: first.state })
      yield* Agent.run(agent, "Hello")
      assert.deepStrictEqual(offered(yield* TestChatModel.requests).slice(2), [
        ["search_tools", "get_weather"],
        ["search_tools"]
      ])
    }).pipe(Effect.provide(TestChatModel.script([search("weather"), "Rain.", "Rain.", "Hello!"])))
  )

  it.effect("nothing found is said", () =>
    Effect.gen(function* () {
      const result = yield* Agent.run(agentWith({}), "Hi")
      assert.deepStrictEqual(results(result.messages), ["No tool fits. Try other words, or go on without one."])
    }).pipe(Effect.provide(TestChatModel.script([search("zzzzz"), "ok"])))
  )

  it.effect("preselect brings tools in by the user's words, once a message", () =>
    Effect.gen(function* () {
      const handle = yield* Agent.start(agentWith({ preselect: 1 }), "Translate this text")
      yield* handle.followUp("Now book a flight")
      yield* handle.await
      assert.deepStrictEqual(offered(yield* TestChatModel.requests), [
        ["search_tools", "translate_text"],
        ["search_tools", "translate_text", "book_flight"]
      ])
    }).pipe(Effect.scoped, Effect.provide(TestChatModel.script(["Done.", "Booked."])))
  )

  it.effect("calls on the side, and final answers, are left alone", () =>
    Effect.gen(function* () {
      const asks = Middleware.make({
        name: "asks",
        afterModel: (run) =>
          Effect.as(
            Effect.orDie(
              run.call({
                messages: run.messages,
                purpose: "grade",
                tools: [{ name: "grade", description: "Grades", parameters: { type: "object" }, annotations: {} }]
              })
            ),
            Middleware.forceFinalAnswer("stopCondition")
          )
      })
      yield* Agent.run(agentWith({}, asks), "Hi")
      assert.deepStrictEqual(offered(yield* TestChatModel.requests), [["search_tools"], ["grade"], []])
    }).pipe(Effect.provide(TestChatModel.script(["hi", "A", "hello"])))
  )

  it.effect("the tool that takes a structured answer is always offered", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        name: "agent",
        prompt: "",
        tools: catalogue,
        middleware: [ToolSelection.make()],
        output: Schema.Struct({ n: Schema.Finite })
      })
      const result = yield* Agent.run(agent, "How many?")
      assert.deepStrictEqual(result.output, { n: 3 })
      assert.deepStrictEqual(offered(yield* TestChatModel.requests), [["search_tools", "final_answer"]])
    }).pipe(
      Effect.provide(
        TestChatModel.script([TestChatModel.calls([{ name: "final_answer", arguments: { n: 3 } }])], {
          structuredOutput: "tool"
        })
      )
    )
  )

  it.effect("a tool that outer middleware took away is not found", () =>
    Effect.gen(function* () {
      const forbids = Middleware.make<never>({
        name: "forbids",
        wrapModelCall: (request, next) =>
          next({ ...request, tools: request.tools.filter((tool) => tool.name !== "get_weather") })
      })
      const agent = Agent.make({
        name: "agent",
        prompt: "",
        tools: catalogue,
        middleware: [forbids, ToolSelection.make()]
      })
      const result = yield* Agent.run(agent, "Weather?")
      assert.notInclude(results(result.messages)[0], "get_weather")
    }).pipe(Effect.provide(TestChatModel.script([search("weather"), "I don't know."])))
  )

  const findTools = (query: string, limit: number) =>
    Effect.gen(function* () {
      yield* Agent.run(agentWith({ limit, preselect: limit }), query)
      return offered(yield* TestChatModel.requests)[0]?.slice(1) ?? []
    }).pipe(Effect.provide(TestChatModel.reactive(() => "ok")))

  it.effect("ranking: names are read word by word, in any style; names weigh more than descriptions", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* findTools("invoice", 3)).toSorted(), [
        "invoice-cancel",
        "invoice_create",
        "listInvoices"
      ])
      assert.strictEqual((yield* findTools("cancel an invoice", 3))[0], "invoice-cancel")
      assert.strictEqual((yield* findTools("HTTP", 1))[0], "getHTTPStatus")
      assert.strictEqual((yield* findTools("search mail", 1))[0], "searchEmail")
      assert.strictEqual((yield* findTools("meeting", 2)).length, 2)
      assert.strictEqual((yield* findTools("converting currencies", 1))[0], "convert_currency")
      assert.deepStrictEqual(yield* findTools("what is the weather in Oslo", 5), ["get_weather"])
      assert.deepStrictEqual(yield* findTools("of the", 5), [])
    })
  )

  it.effect("any tool is found by its own name, among hundreds", () =>
    Effect.promise(() => {
      const verbs = ["get", "list", "create", "delete", "update", "send", "convert", "archive"]
      const things = ["invoice", "customer", "order", "ticket", "report", "user", "file", "event", "payment", "team"]
      const systems = ["crm", "erp", "jira", "github"]
      const names = systems.flatMap((system) =>
        verbs.flatMap((verb) => things.map((thing) => `${system}_${verb}_${thing}`))
      )
      const tools = names.map((name) =>
        Tool.make(name, {
          description: `In ${name.replaceAll("_", " ")}`,
          parameters: {},
          execute: () => Effect.succeed("")
        })
      )
      const agent = Agent.make({
        name: "agent",
        prompt: "",
        tools,
        middleware: [ToolSelection.make({ preselect: 3 })]
      })
      return fc.assert(
        fc.asyncProperty(fc.constantFrom(...names), (name) =>
          Effect.runPromise(
            Effect.gen(function* () {
              yield* Agent.run(agent, name)
              const [request] = yield* TestChatModel.requests
              assert.strictEqual(request?.tools[1]?.name, name)
              assert.isAtMost(request?.tools.length ?? 0, 4)
            }).pipe(Effect.provide(TestChatModel.reactive(() => "ok")))
          )
        ),
        { numRuns: 30 }
      )
    })
  )

  it.effect("the selection is plain state: another middleware can bring tools in", () =>
    Effect.gen(function* () {
      const agent = agentWith(
        {},
        Middleware.make({
          name: "loads",
          beforeAgent: (run) => run.state.update(ToolSelection.selection, () => ({ tools: ["read_file", "gone"] }))
        })
      )
      const result = yield* Agent.run(agent, "Hi")
      assert.deepStrictEqual(offered(yield* TestChatModel.requests), [["search_tools", "read_file"]])
      assert.deepStrictEqual(yield* Effect.fromResult(AgentState.read(result.state, ToolSelection.selection)), {
        tools: ["read_file", "gone"]
      })
    }).pipe(Effect.provide(TestChatModel.script(["hi"])))
  )
})
