/**
 * Agents and tools behind a server of the protocol, driven by the official client.
 */
import { spawn } from "node:child_process"
import { createServer, request } from "node:http"
import { createInterface } from "node:readline"
import { NodeHttpServer } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Client, ProtocolError, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { Deferred, Effect, Fiber, Layer, Schema } from "effect"
import { Agent, Backend, Content, Question, Tool, ToolContext, ToolOutput } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { McpAgent } from "effect-deepagents/server"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { McpServer } from "effect/ai"
import { HttpRouter, HttpServer } from "effect/http"
import { TestClock } from "effect/testing"
import { bundle } from "../bundle.ts"

type Era = "2025-11-25" | "2026-07-28"
const eras: ReadonlyArray<Era> = ["2025-11-25", "2026-07-28"]

/** A served layer, and its address. */
const serve = <E, R>(layer: Layer.Layer<never, E, R | HttpRouter.HttpRouter>) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(
      HttpRouter.serve(layer, { disableLogger: true, disableListenLog: true }).pipe(
        Layer.provideMerge(
          NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: "50 millis" })
        )
      )
    )
    const { address } = yield* Effect.provide(HttpServer.HttpServer, context)
    if (address._tag !== "InetAddressV4") return assert.fail("no port")
    return new URL(`http://127.0.0.1:${address.port}/mcp`)
  })

type Answer = { readonly [name: string]: unknown } | undefined
interface Answers {
  readonly elicit?: ((message: string, schema: unknown) => Answer | Promise<Answer>) | undefined
}

const connect = (url: URL, era: Era, { elicit }: Answers = {}) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const client = new Client(
        { name: "test", version: "1" },
        {
          capabilities: elicit === undefined ? {} : { elicitation: { form: {} } },
          versionNegotiation: { mode: era === "2026-07-28" ? { pin: era } : "legacy" }
        }
      )
      if (elicit !== undefined) {
        client.setRequestHandler("elicitation/create", async (request) => {
          const params = request.params
          const content = await elicit(params.message, "requestedSchema" in params ? params.requestedSchema : {})
          return content === undefined
            ? { action: "decline" }
            : { action: "accept", content: content as { [x: string]: string } }
        })
      }
      await client.connect(new StreamableHTTPClientTransport(url))
      return client
    }),
    (client) => Effect.promise(() => client.close())
  )

const call = (client: Client, name: string, args: { readonly [name: string]: unknown } = {}) =>
  Effect.promise(() => client.callTool({ name, arguments: args }))
const textOf = (result: Awaited<ReturnType<Client["callTool"]>>): string =>
  result.content.map((block) => (block.type === "text" ? block.text : `[${block.type}]`)).join("\n")

const unsaid = { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: true }

const options = { name: "office", version: "1.0.0", path: "/mcp" } as const
const say = TestChatModel.text

const remove = Tool.make("remove", {
  description: "Removes a file",
  parameters: { path: Schema.String },
  annotations: { destructive: true },
  execute: ({ path }) => Effect.succeed(`${path} is gone`)
})

const waiting = Agent.make({
  name: "janitor",
  description: "Tidies up",
  prompt: "Tidy.",
  tools: [remove],
  middleware: [HumanInTheLoop.make({ tools: { remove: true } })]
})
const suspending = Agent.make({
  name: "janitor",
  description: "Tidies up",
  prompt: "Tidy.",
  tools: [remove],
  middleware: [HumanInTheLoop.make({ tools: { remove: true } })]
})
const tidy = [TestChatModel.calls([{ name: "remove", arguments: { path: "/a" } }]), say("tidied")]

for (const era of eras) {
  describe(era, () => {
    for (const [kind, agent] of [
      ["waits", waiting],
      ["is suspended", suspending]
    ] as const) {
      it.live(`asks the client's user for an approval, if the run ${kind}`, () =>
        Effect.gen(function* () {
          const url = yield* serve(McpAgent.layerHttp({ ...options, agents: [agent] }))
          const asked: Array<string> = []
          const client = yield* connect(url, era, {
            elicit: (message) => {
              asked.push(message)
              return { decision: "approve" }
            }
          })
          const result = yield* call(client, "janitor", { task: "Tidy up" })
          assert.strictEqual(textOf(result), "tidied")
          assert.lengthOf(asked, 1)
          assert.include(asked[0], '"path": "/a"')
          const [, second] = yield* TestChatModel.requests
          assert.include(JSON.stringify(second?.messages), "/a is gone")
        }).pipe(Effect.provide(TestChatModel.script(tidy)))
      )
    }

    it.live("takes a decline for a rejection, and a client that can't ask for one too", () =>
      Effect.gen(function* () {
        const url = yield* serve(McpAgent.layerHttp({ ...options, agents: [waiting] }))
        for (const answers of [{ elicit: () => undefined }, {}]) {
          const client = yield* connect(url, era, answers)
          yield* call(client, "janitor", { task: "Tidy up" })
        }
        const requests = yield* TestChatModel.requests
        assert.notInclude(JSON.stringify(requests), "/a is gone")
        assert.include(JSON.stringify(requests[1]?.messages), "declined")
        assert.include(JSON.stringify(requests[3]?.messages), "no way to ask")
      }).pipe(Effect.provide(TestChatModel.script([...tidy, ...tidy])))
    )

    it.live("asks questions of tools by forms, of any schema", () =>
      Effect.gen(function* () {
        const seen: Array<unknown> = []
        const ask = (name: string, answer: Schema.Codec<unknown, unknown>) =>
          Tool.make(name, {
            description: "Asks",
            parameters: {},
            execute: () =>
              Effect.gen(function* () {
                const given = yield* (yield* ToolContext.ToolContext).ask(Question.make("Which?", { answer }))
                seen.push(given)
                return "asked"
              })
          })
        const tools = [
          ask("seat", Schema.Literals(["window", "aisle"])),
          ask("flag", Schema.Boolean),
          ask("form", Schema.Struct({ name: Schema.String, age: Schema.Finite })),
          ask("deep", Schema.Struct({ list: Schema.Array(Schema.Finite) }))
        ]
        const url = yield* serve(McpAgent.layerHttp({ ...options, tools }))
        const answers = [{ answer: "aisle" }, { answer: true }, { name: "Ada", age: 36 }, { answer: '{"list":[1,2]}' }]
        const client = yield* connect(url, era, { elicit: () => answers.shift() })
        for (const { name } of tools) assert.strictEqual(textOf(yield* call(client, name)), "asked")
        assert.deepStrictEqual(seen, ["aisle", true, { name: "Ada", age: 36 }, { list: [1, 2] }])
      })
    )

    it.live("offers tools with schema and annotations, images as images, failures as failures", () =>
      Effect.gen(function* () {
        const picture = Tool.make("picture", {
          description: "Draws",
          parameters: { of: Schema.String },
          annotations: { readOnly: true },
          execute: ({ of }) =>
            Effect.succeed(
              ToolOutput.make([Content.text(of), Content.image({ base64: "AAEC", mimeType: "image/png" })])
            )
        })
        const broken = Tool.make("broken", {
          description: "Breaks",
          parameters: {},
          execute: () => Effect.die(new Error("secret inside"))
        })
        const url = yield* serve(McpAgent.layerHttp({ ...options, tools: [picture, broken, remove] }))
        const client = yield* connect(url, era)
        const { tools } = yield* Effect.promise(() => client.listTools())
        assert.deepStrictEqual(
          tools.map(({ annotations, name }) => [name, annotations]),
          [
            // Omitted hints have the protocol's values.
            ["picture", { ...unsaid, readOnlyHint: true }],
            ["broken", unsaid],
            ["remove", unsaid]
          ]
        )
        const drawn = yield* call(client, "picture", { of: "a cat" })
        assert.deepStrictEqual(drawn.content[0], { type: "text", text: "a cat" })
        assert.deepStrictEqual(drawn.content[1], { type: "image", data: "AAEC", mimeType: "image/png" })
        const failed = yield* call(client, "broken")
        assert.isTrue(failed.isError)
        const wrong = yield* call(client, "remove", { file: "/a" })
        assert.isTrue(wrong.isError)
        assert.include(textOf(wrong), "path")
      })
    )

    it.live("tells how far a run is", () =>
      Effect.gen(function* () {
        const worker = Agent.make({ name: "worker", description: "Works", prompt: "Work.", tools: [remove] })
        const url = yield* serve(McpAgent.layerHttp({ ...options, agents: [worker] }))
        const client = yield* connect(url, era)
        const notes: Array<string> = []
        const onprogress = ({ message }: { readonly message?: string | undefined }) => void notes.push(message ?? "")
        yield* Effect.promise(() => client.callTool({ name: "worker", arguments: { task: "Go" } }, { onprogress }))
        assert.deepStrictEqual(notes, ["worker: round 1", "remove: called", "remove: done", "worker: round 2"])
      }).pipe(Effect.provide(TestChatModel.script(tidy)))
    )

    it.live("interrupts the run when the client cancels", () =>
      Effect.gen(function* () {
        const began = yield* Deferred.make<void>()
        const ended = yield* Deferred.make<void>()
        const slow = Tool.make("slow", {
          description: "Takes for ever",
          parameters: {},
          execute: () =>
            Effect.onInterrupt(Effect.andThen(Deferred.succeed(began, undefined), Effect.never), () =>
              Deferred.succeed(ended, undefined)
            )
        })
        const url = yield* serve(McpAgent.layerHttp({ ...options, tools: [slow] }))
        const client = yield* connect(url, era)
        const abort = new AbortController()
        const asked = client.callTool({ name: "slow", arguments: {} }, { signal: abort.signal }).catch(() => "gone")
        yield* Deferred.await(began)
        abort.abort()
        yield* Deferred.await(ended)
        assert.strictEqual(yield* Effect.promise(() => asked), "gone")
      })
    )

    it.live("offers files as resources and skills as prompts", () =>
      Effect.gen(function* () {
        const backend = yield* Backend.Backend
        yield* backend.write("/notes/ä b.md", "hello")
        yield* backend.write("/skills/greet/SKILL.md", "---\nname: greet\ndescription: Greets\n---\nSay hello.")
        yield* backend.upload([{ path: "/x.bin", content: new Uint8Array([0, 1]) }])
        const note = Tool.make("note", {
          description: "Notes",
          parameters: {},
          execute: () => Effect.as(backend.write("/later.md", "later"), "noted")
        })
        const url = yield* serve(
          McpAgent.layerHttp({ ...options, tools: [note], backend, skills: { sources: ["/skills"] } })
        )
        const client = yield* connect(url, era)
        const list = () =>
          Effect.map(
            Effect.promise(() => client.listResources()),
            ({ resources }) => resources
          )
        const first = yield* list()
        assert.sameMembers(
          first.map(({ name }) => name),
          ["/notes/ä b.md", "/skills/greet/SKILL.md", "/x.bin"]
        )
        const readResource = (uri: string) => Effect.promise(() => client.readResource({ uri }))
        const uri = first.find(({ name }) => name.startsWith("/notes"))?.uri ?? ""
        assert.deepInclude((yield* readResource(uri)).contents[0], { uri, text: "hello", mimeType: "text/plain" })
        assert.deepInclude((yield* readResource("backend:///x.bin")).contents[0], { blob: "AAE=" })
        yield* call(client, "note")
        assert.isTrue((yield* list()).some(({ name }) => name === "/later.md"))
        assert.deepInclude((yield* readResource("backend:///later.md")).contents[0], { text: "later" })
        for (const bad of [
          "backend:///none.md",
          "backend:///%zz",
          "backend:///%ff",
          `backend:///${"%41".repeat(2000)}`,
          "backend:///../../etc/passwd",
          "file:///etc/passwd"
        ]) {
          const error = yield* Effect.flip(
            Effect.tryPromise({ try: () => client.readResource({ uri: bad }), catch: (cause) => cause })
          )
          assert(error instanceof ProtocolError)
          assert.include([-32602, -32002], error.code, bad.slice(0, 50))
          assert.isBelow(error.message.length, 300, bad.slice(0, 50))
        }
        const { prompts } = yield* Effect.promise(() => client.listPrompts())
        assert.deepStrictEqual(
          prompts.map(({ description, name }) => [name, description]),
          [["greet", "Greets"]]
        )
        const prompt = yield* Effect.promise(() => client.getPrompt({ name: "greet", arguments: { task: "for Ada" } }))
        const [message] = prompt.messages
        assert.include(JSON.stringify(message), "Say hello.")
        assert.include(JSON.stringify(message), "for Ada")
      }).pipe(Effect.provide(MemoryBackend.layer()))
    )

    it.live("goes on with a thread by its name", () =>
      Effect.gen(function* () {
        const helper = Agent.make({ name: "helper", description: "Helps", prompt: "Help." })
        const own = Agent.program({
          name: "own",
          description: "Has an argument of this name",
          input: Schema.Struct({ thread: Schema.String }),
          output: Schema.String,
          run: ({ thread }) => Effect.succeed(thread)
        })
        const url = yield* serve(McpAgent.layerHttp({ ...options, agents: [helper, own] }))
        const client = yield* connect(url, era)
        yield* call(client, "helper", { task: "I am Ada", thread: "t" })
        yield* call(client, "helper", { task: "Who am I?", thread: "t" })
        yield* call(client, "helper", { task: "And here?" })
        const [, second, third] = yield* TestChatModel.requests
        assert.include(JSON.stringify(second?.messages), "I am Ada")
        assert.notInclude(JSON.stringify(third?.messages), "I am Ada")
        for (const thread of [7, "t".repeat(201), ["t"]]) {
          const refused = yield* call(client, "helper", { task: "And now?", thread })
          assert.isTrue(refused.isError)
          assert.include(textOf(refused), "thread: a text of at most 200 characters")
        }
        const kept = yield* call(client, "own", { thread: "a thread of its own" })
        assert.strictEqual(textOf(kept), "a thread of its own")
      }).pipe(
        Effect.provide([
          TestChatModel.script([say("hi"), say("Ada"), say("nobody")]),
          Layer.provide(SessionStore.journal, MemorySessions.layer)
        ])
      )
    )

    it.live("gives a structured answer as such", () =>
      Effect.gen(function* () {
        const counter = Agent.make({
          name: "counter",
          description: "Counts",
          prompt: "Count.",
          output: Schema.Struct({ count: Schema.Finite })
        })
        const url = yield* serve(McpAgent.layerHttp({ ...options, agents: [counter] }))
        const client = yield* connect(url, era)
        const result = yield* call(client, "counter", { task: "Count" })
        assert.deepStrictEqual(result.structuredContent, { count: 3 })
      }).pipe(Effect.provide(TestChatModel.script([say('{"count":3}')])))
    )
  })
}

const Body = Schema.fromJsonString(
  Schema.Struct({
    error: Schema.optionalKey(Schema.Struct({ code: Schema.Finite })),
    result: Schema.optionalKey(
      Schema.Struct({
        content: Schema.optionalKey(Schema.Array(Schema.Struct({ text: Schema.String }))),
        inputRequests: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown)),
        requestState: Schema.optionalKey(Schema.String)
      })
    )
  })
)
const decodeBody = Schema.decodeUnknownSync(Body)

/** A request of the protocol of 2026-07-28, by hand. */
const post = (url: URL, params: object, headers: { readonly [name: string]: string } = {}) =>
  Effect.promise(async () => {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } }
    }
    const response = await fetch(url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "janitor",
        ...headers
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { ...params, _meta: meta } })
    })
    const text = await response.text()
    const json = text.startsWith("{") ? text : (text.match(/^data: (.*)$/m)?.[1] ?? "{}")
    return { status: response.status, body: decodeBody(json) }
  })

it.live("takes a sealed state once, for its own call, unchanged", () =>
  Effect.gen(function* () {
    const url = yield* serve(McpAgent.layerHttp({ ...options, agents: [waiting] }))
    const args = { name: "janitor", arguments: { task: "Tidy up" } }
    const first = yield* post(url, args)
    const { inputRequests = {}, requestState = "" } = first.body.result ?? {}
    const [id = ""] = Object.keys(inputRequests)
    const inputResponses = { [id]: { action: "accept", content: { decision: "approve" } } }
    const end = requestState.length - 1
    // Another character that a lenient reader takes for the same bytes, and a third that it does not.
    const signs = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    const [same = "", changed = ""] = [1, 4].map(
      (bits) => requestState.slice(0, end) + signs[signs.indexOf(requestState[end] ?? "") ^ bits]
    )
    const [body = "", tag = ""] = requestState.split(".")
    const moved = `${btoa(atob(body.replaceAll("-", "+").replaceAll("_", "/")).replace("janitor", "another"))}.${tag}`
    for (const bad of [same, changed, moved, "", ".", "x".repeat(100_000)]) {
      const { body } = yield* post(url, { ...args, inputResponses, requestState: bad })
      assert.strictEqual(body.error?.code, -32602, bad.slice(0, 50))
    }
    const other = yield* post(url, { ...args, arguments: { task: "Else" }, inputResponses, requestState })
    assert.strictEqual(other.body.error?.code, -32602)
    // Without the answer, the same is asked again.
    const again = yield* post(url, { ...args, requestState })
    assert.deepStrictEqual(Object.keys(again.body.result?.inputRequests ?? {}), [id])
    const both = yield* Effect.all(
      [0, 1].map(() => post(url, { ...args, inputResponses, requestState })),
      { concurrency: 2 }
    )
    assert.lengthOf(
      both.filter(({ body }) => body.result?.content?.[0]?.text === "tidied"),
      1
    )
    assert.lengthOf(
      both.filter(({ body }) => body.error?.code === -32602),
      1
    )
  }).pipe(Effect.provide(TestChatModel.script(tidy)))
)

it.effect("a client that never answers is no client to wait for: the call ends without it", () =>
  Effect.gen(function* () {
    const url = yield* serve(McpAgent.layerHttp({ ...options, agents: [waiting] }))
    const asked = yield* Deferred.make<void>()
    const client = yield* connect(url, "2025-11-25", {
      elicit: () => {
        Deferred.doneUnsafe(asked, Effect.void)
        return new Promise(() => {})
      }
    })
    const answer = yield* Effect.forkChild(call(client, "janitor", { task: "Tidy up" }))
    yield* Deferred.await(asked)
    yield* TestClock.adjust("10 minutes")
    assert.strictEqual(textOf(yield* Fiber.join(answer)), "tidied")
    const [, second] = yield* TestChatModel.requests
    assert.include(JSON.stringify(second?.messages), "nobody answered in time")
    // The server takes its time to close.
    yield* Effect.forkScoped(Effect.forever(TestClock.adjust("1 second")))
  }).pipe(Effect.provide(TestChatModel.script(tidy)))
)

it.live("refuses other hosts and origins", () =>
  Effect.gen(function* () {
    const url = yield* serve(McpAgent.layerHttp({ ...options, tools: [remove] }))
    const list = { name: "remove", arguments: { path: "/a" } }
    const named = { "mcp-name": "remove" }
    assert.strictEqual((yield* post(url, list, named)).status, 200)
    assert.strictEqual((yield* post(url, list, { ...named, origin: "http://evil.example" })).status, 403)
    // `fetch` does not let a program choose the host.
    const askHost = (host: string) =>
      Effect.callback<number | undefined>((resume) => {
        request(url, { method: "POST", headers: { host } }, (response) => {
          response.resume()
          resume(Effect.succeed(response.statusCode))
        }).end("{}")
      })
    for (const host of ["evil.example", `evil.example:${url.port}`, "127.0.0.1.evil.example", "localhost."]) {
      assert.strictEqual(yield* askHost(host), 403, host)
    }
    for (const host of ["localhost", `LOCALHOST:${url.port}`, `127.0.0.1:${url.port}`, "[::1]:80"]) {
      assert.notStrictEqual(yield* askHost(host), 403, host)
    }
  })
)

it.live("names the parts that can't be offered", () =>
  Effect.gen(function* () {
    const odd = Tool.dynamic("odd", {
      description: "",
      parameters: { type: "string" },
      execute: () => Effect.succeed("")
    })
    const spaced = { ...remove, name: "a b" }
    const cases = [
      [McpAgent.layer({ tools: [odd] }), "odd"],
      [McpAgent.layer({ tools: [remove, remove] }), "remove"],
      [McpAgent.layer({ tools: [spaced] }), "a b"],
      [McpAgent.layer({ skills: { sources: [] } }), "skills"]
    ] as const
    for (const [layer, name] of cases) {
      const error = yield* Effect.flip(Layer.build(Layer.provide(layer, McpServer.McpServer.layer)))
      assert.strictEqual(error.name, name)
      assert.include(error.message, JSON.stringify(name))
    }
  })
)

it.live(
  "writes only the protocol to stdout, for any output of a tool",
  () =>
    Effect.gen(function* () {
      const child = yield* Effect.acquireRelease(
        Effect.sync(() =>
          spawn(process.execPath, [bundle(new URL("children/agentServer.ts", import.meta.url))], { stdio: "pipe" })
        ),
        (running) => Effect.sync(() => running.kill("SIGKILL"))
      )
      let err = ""
      child.stderr.setEncoding("utf8").on("data", (text: string) => (err += text))
      const lines: Array<string> = []
      const ask = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
      const answered = Effect.callback<void>((resume) => {
        createInterface({ input: child.stdout }).on("line", (line) => {
          lines.push(line)
          if (line.includes('"id":1')) {
            ask({ method: "notifications/initialized" })
            ask({ id: 2, method: "tools/call", params: { name: "chatty", arguments: {} } })
          }
          if (line.includes('"id":2')) resume(Effect.void)
        })
      })
      const initialize = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } }
      ask({ id: 1, method: "initialize", params: initialize })
      yield* answered
      for (const line of lines) assert.deepInclude(JSON.parse(line), { jsonrpc: "2.0" })
      assert.include(lines.join("\n"), "printed")
      const ways = ["log", "info", "debug", "dir", "dirxml", "table", "group", "count", "time"]
      for (const said of ["by a log", "by the console of Effect", ...ways.map((way) => `console.${way}`)]) {
        assert.include(err, said)
      }
    }),
  30_000
)
