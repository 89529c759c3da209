import { Content, type Json, Question, Tool, ToolContext, ToolOutput } from "effect-deepagents"
import { McpAgent } from "effect-deepagents/server"
import { McpSchema, McpServer } from "effect/ai"
/** The server for the protocol's conformance suite: our tools by `McpAgent`, and by Effect's `McpServer` the parts without a form in `McpAgent` (sampling, roots, prompts and resources of any kind). */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
const wav = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
const bytes = (base64: string) => new Uint8Array(Buffer.from(base64, "base64"))

const says = (name: string, output: ToolOutput.ToolOutput | string) =>
  Tool.make(name, { description: `Gives ${name}`, parameters: {}, execute: () => Effect.succeed(output) })

const asks = <A>(name: string, question: Question.Question<A>) =>
  Tool.dynamic(name, {
    description: "Asks a person",
    parameters: { type: "object", properties: { message: { type: "string" } } },
    execute: () =>
      Effect.map(
        ToolContext.ToolContext.use(({ ask }) => ask(question)),
        (given) => JSON.stringify(given)
      )
  })

const picture = Content.image({ base64: png, mimeType: "image/png" })
const document = Content.file({
  base64: Buffer.from("This is an embedded resource content.").toString("base64"),
  mimeType: "text/plain",
  name: "a.txt"
})

const address = { $anchor: "addressDef", type: "object", properties: { street: { type: "string" } } }

const modern: Json.JsonObject = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  $defs: { address: { ...address, properties: { street: { type: "string" }, city: { type: "string" } } } },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" }
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  // oxlint-disable-next-line unicorn/no-thenable
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false
}

const defaults = Schema.Struct({
  name: Schema.String.annotate({ default: "John Doe" }),
  age: Schema.Int.annotate({ default: 30 }),
  score: Schema.Finite.annotate({ default: 95.5 }),
  status: Schema.Literals(["active", "inactive", "pending"]).annotate({ default: "active" }),
  verified: Schema.Boolean.annotate({ default: true })
})

const confirm = Question.make("Please confirm", { answer: Schema.Struct({ ok: Schema.Boolean }) })

/** The tools that `McpAgent` offers by itself. */
const tools = [
  says("test_simple_text", "This is a simple text response for testing."),
  says("test_image_content", ToolOutput.make([picture])),
  says("test_audio_content", ToolOutput.make([Content.file({ base64: wav, mimeType: "audio/wav" })])),
  says("test_embedded_resource", ToolOutput.make([document])),
  says("test_multiple_content_types", ToolOutput.make([Content.text("Multiple:"), picture, document])),
  says("test_error_handling", ToolOutput.make("This tool intentionally returns an error", { isError: true })),
  Tool.make("test_tool_with_progress", {
    description: "Tells how far it is",
    parameters: {},
    execute: () =>
      ToolContext.ToolContext.use(({ emit }) => Effect.forEach([0, 50, 100], (done) => emit(`${done}`))).pipe(
        Effect.as("done")
      )
  }),
  Tool.dynamic("json_schema_2020_12_tool", {
    description: "Tool with JSON Schema 2020-12 features",
    parameters: modern,
    execute: () => Effect.succeed("done")
  }),
  Tool.dynamic("test_headers", {
    description: "Has an argument that is a header, too",
    parameters: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } },
    execute: () => Effect.succeed("done")
  }),
  asks(
    "test_elicitation",
    Question.make("Please", { answer: Schema.Struct({ username: Schema.String, email: Schema.String }) })
  ),
  asks("test_elicitation_sep1034_defaults", Question.make("Please", { answer: defaults })),
  asks("test_streaming_elicitation", confirm),
  asks("test_input_required_result_request_state", confirm),
  asks("test_input_required_result_tampered_state", confirm)
]

const none = Context.empty()
const text = (said: string) => new McpSchema.CallToolResult({ content: [{ type: "text", text: said }] })

type Service = McpServer.McpServer["Service"]
type Handle = (server: Service) => ReturnType<Parameters<Service["addTool"]>[0]["handle"]>

const addTool = (name: string, handle: Handle) =>
  Layer.effectDiscard(
    McpServer.McpServer.use((server) =>
      server.addTool({
        tool: new McpSchema.Tool({
          name,
          description: `Gives ${name}`,
          inputSchema: { type: "object", properties: {} }
        }),
        annotations: none,
        handle: () => handle(server)
      })
    )
  )

const elicitation = (message: string, ...fields: ReadonlyArray<string>) =>
  ({
    method: "elicitation/create",
    params: {
      mode: "form",
      message,
      requestedSchema: {
        type: "object",
        properties: Object.fromEntries(fields.map((field) => [field, { type: "string" }])),
        required: fields
      }
    }
  }) as const

const sampling = (said: string) =>
  ({
    method: "sampling/createMessage",
    params: { messages: [{ role: "user", content: { type: "text", text: said } }], maxTokens: 100 }
  }) as const

const roots = { method: "roots/list", params: {} } as const

type Requests = NonNullable<McpSchema.InputRequired["inputRequests"]>

/** A tool that wants these answers, and is done when it has all of them. */
const wanting = (name: string, inputRequests: Requests, requestState?: string) =>
  addTool(name, () =>
    Effect.map(McpSchema.McpRequestContext, ({ inputResponses = {} }) => {
      const isWhole = Object.keys(inputRequests).every((key) => {
        const given = inputResponses[key]
        return given !== undefined && (!("action" in given) || given.action !== "accept" || "content" in given)
      })
      return isWhole
        ? text("done")
        : new McpSchema.InputRequired({ inputRequests, ...(requestState === undefined ? {} : { requestState }) })
    })
  )

const asking = [
  wanting("test_input_required_result_elicitation", { user_name: elicitation("What is your name?", "name") }),
  wanting("test_input_required_result_sampling", { capital_question: sampling("What is the capital of France?") }),
  wanting("test_input_required_result_list_roots", { client_roots: roots }),
  wanting("test_input_required_result_capabilities", { greeting: sampling("Generate a greeting") }),
  wanting(
    "test_input_required_result_multiple_inputs",
    { user_name: elicitation("What is your name?", "name"), greeting: sampling("Greet"), client_roots: roots },
    "state"
  ),
  addTool("test_input_required_result_multi_round", () =>
    Effect.map(McpSchema.McpRequestContext, ({ inputResponses = {} }) =>
      "step2" in inputResponses
        ? text("done")
        : "step1" in inputResponses
          ? new McpSchema.InputRequired({
              inputRequests: { step2: elicitation("Step 2", "color") },
              requestState: "two"
            })
          : new McpSchema.InputRequired({
              inputRequests: { step1: elicitation("Step 1", "name") },
              requestState: "one"
            })
    )
  )
]

const resource = (
  uri: string,
  content: { readonly text: string } | { readonly blob: Uint8Array<ArrayBuffer> },
  mimeType: string
) =>
  McpServer.resource({
    uri,
    name: uri,
    description: uri,
    mimeType,
    content: Effect.succeed({ contents: [{ uri, mimeType, ...content }] })
  })

const template = Layer.effectDiscard(
  McpServer.McpServer.use((server) =>
    server.addResourceTemplate({
      template: new McpSchema.ResourceTemplate({ uriTemplate: "test://template/{id}/data", name: "data" }),
      annotations: none,
      routerPath: "test:://template/:0/data",
      completions: {},
      handle: (uri, [id]) =>
        Effect.succeed({
          contents: [
            {
              uri,
              mimeType: "application/json",
              text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` })
            }
          ]
        })
    })
  )
)

type Prompted = typeof McpSchema.PromptMessage.Type
const user = (content: Prompted["content"]): Prompted => ({ role: "user", content })
const userSays = (words: string) => user({ type: "text", text: words })

const prompts = [
  McpServer.prompt({
    name: "test_simple_prompt",
    description: "A prompt",
    content: () => Effect.succeed([userSays("This is a simple prompt for testing.")])
  }),
  McpServer.prompt({
    name: "test_prompt_with_arguments",
    description: "A prompt with arguments",
    parameters: { arg1: Schema.String, arg2: Schema.String },
    completion: { arg1: () => Effect.succeed(["paris"]) },
    content: ({ arg1, arg2 }) => Effect.succeed([userSays(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)])
  }),
  McpServer.prompt({
    name: "test_prompt_with_embedded_resource",
    description: "A prompt with a resource",
    parameters: { resourceUri: Schema.String },
    content: ({ resourceUri }) =>
      Effect.succeed([
        user({
          type: "resource",
          resource: { uri: resourceUri, mimeType: "text/plain", text: "Embedded resource content for testing." }
        }),
        userSays("Please process the embedded resource above.")
      ])
  }),
  McpServer.prompt({
    name: "test_prompt_with_image",
    description: "A prompt with an image",
    content: () =>
      Effect.succeed([
        user({ type: "image", data: bytes(png), mimeType: "image/png" }),
        userSays("Please analyze the image above.")
      ])
  }),
  Layer.effectDiscard(
    McpServer.McpServer.use((server) =>
      server.addPrompt({
        prompt: new McpSchema.Prompt({ name: "test_input_required_result_prompt", description: "Asks first" }),
        annotations: none,
        completions: {},
        handle: () =>
          Effect.map(McpSchema.McpRequestContext, ({ inputResponses }) =>
            inputResponses === undefined
              ? new McpSchema.InputRequired({
                  inputRequests: { user_context: elicitation("What context?", "context") }
                })
              : new McpSchema.GetPromptResult({ messages: [userSays("done")] })
          )
      })
    )
  )
]

/** Asks the client in the middle of a call, as the protocols before 2026-07-28 have it. */
const reverse = <A, E>(ask: (client: McpSchema.McpReverseClient) => Effect.Effect<A, E>): ReturnType<Handle> =>
  Effect.gen(function* () {
    const client = yield* Effect.serviceOption(McpSchema.McpServerClient)
    if (client._tag === "None") return text("the client can't be asked")
    return text(JSON.stringify(yield* ask(yield* client.value.getClient)))
  }).pipe(Effect.scoped, Effect.orDie)

const decodeForm = Schema.decodeUnknownEffect(McpSchema.ElicitRequestFormParams)

const options = ["option1", "option2", "option3"]
const titled = options.map((name) => ({ const: name, title: `The ${name}` }))

const enums = {
  type: "object",
  properties: {
    untitledSingle: { type: "string", enum: options },
    titledSingle: { type: "string", oneOf: titled },
    legacyEnum: { type: "string", enum: options, enumNames: ["One", "Two", "Three"] },
    untitledMulti: { type: "array", items: { type: "string", enum: options } },
    titledMulti: { type: "array", items: { anyOf: titled } }
  }
}

const logging = (name: string) =>
  addTool(name, (server) =>
    Effect.gen(function* () {
      const words = ["Tool execution started", "Tool processing data", "Tool execution completed"]
      yield* Effect.forEach(words, (data) => server.notifications["notifications/message"]({ level: "info", data }))
      return text("done")
    })
  )

const changing = (what: "prompts" | "tools") =>
  addTool(`test_trigger_${what === "tools" ? "tool" : "prompt"}_change`, (server) =>
    Effect.as(server.notifications[`notifications/${what}/list_changed`]({}), text("done"))
  )

const calling = [
  addTool("test_sampling", () =>
    reverse((client) =>
      client.createMessage({ messages: [{ role: "user", content: { type: "text", text: "Test" } }], maxTokens: 100 })
    )
  ),
  addTool("test_elicitation_sep1330_enums", () =>
    reverse((client) =>
      Effect.flatMap(decodeForm({ mode: "form", message: "Please", requestedSchema: enums }), client.elicit)
    )
  ),
  wanting("test_missing_capability", { greeting: sampling("Greet") }),
  logging("test_tool_with_logging"),
  logging("test_logging_tool"),
  changing("tools"),
  changing("prompts")
]

/** The server, for a router. */
export const server = Layer.mergeAll(
  template,
  resource("test://static-text", { text: "This is the content of the static text resource." }, "text/plain"),
  resource("test://static-binary", { blob: bytes(png) }, "image/png"),
  ...asking,
  ...calling,
  ...prompts
).pipe(Layer.provide(McpAgent.layerHttp({ name: "conformance", version: "1.0.0", path: "/mcp", tools })))
