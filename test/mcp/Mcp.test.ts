import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Ref from "effect/Ref"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import { Agent, Approval } from "../../src/index.ts"
import { Mcp, McpServers } from "../../src/mcp/index.ts"
import { TestChatModel } from "../../src/testing/index.ts"
import { everything, filesystem, hostile, layer } from "./servers.ts"

const makeApprovals = (answer: (request: Approval.Request) => Approval.Decision) =>
  Effect.gen(function* () {
    const requests = yield* Ref.make<ReadonlyArray<Approval.Request>>([])
    return {
      requests: Ref.get(requests),
      layer: Layer.succeed(Approval.Approvals, {
        decide: (request) =>
          Effect.as(
            Ref.update(requests, (all) => [...all, request]),
            answer(request)
          )
      })
    }
  })

const agent = Agent.make({ name: "clerk", prompt: "You work.", middleware: [Mcp.make()] })

/** Calls one tool after the other, and says the end. */
const script = (...calls: ReadonlyArray<readonly [name: string, args?: Record<string, unknown>]>) =>
  TestChatModel.script([
    ...calls.map(([name, args]) => TestChatModel.calls([{ name, arguments: (args ?? {}) as never }])),
    "The end."
  ])

const results = (run: { readonly messages: ReadonlyArray<{ readonly role: string; readonly content?: unknown }> }) =>
  run.messages.filter(({ role }) => role === "tool")

describe("Mcp", () => {
  it.live(
    "asks about tools without a read-only annotation, and about no others",
    () =>
      Effect.gen(function* () {
        const person = yield* makeApprovals((request) => Approval.reject(request, "not today"))
        const run = yield* Agent.run(agent, "Go").pipe(
          Effect.provide(
            Layer.mergeAll(
              person.layer,
              script(
                ["files__list_allowed_directories"],
                ["files__write_file", { path: "/tmp/mcp-never", content: "x" }]
              )
            )
          )
        )
        const requests = yield* person.requests
        assert.deepStrictEqual(
          requests.map(({ toolName }) => toolName),
          ["files__write_file"]
        )
        assert.match(JSON.stringify(results(run)), /not today/)
      }).pipe(Effect.provide(layer({ files: filesystem("/tmp") }))),
    30_000
  )

  it.live(
    "a server's question is asked of a person, and its request for the model goes through the run",
    () =>
      Effect.gen(function* () {
        const person = yield* makeApprovals((request) =>
          request.answer === undefined
            ? Approval.approve(request)
            : Approval.respond(request, { name: "Ada", check: true, integer: 42, email: "ada@example.com" })
        )
        const model = TestChatModel.script([
          TestChatModel.calls([{ name: "everything__trigger-elicitation-request", arguments: {} }]),
          TestChatModel.calls([
            { name: "everything__trigger-sampling-request", arguments: { prompt: "Say hi", maxTokens: 10 } }
          ]),
          "sampled words",
          "The end."
        ])
        const { requests, run } = yield* Effect.gen(function* () {
          return { run: yield* Agent.run(agent, "Go"), requests: yield* TestChatModel.requests }
        }).pipe(Effect.provide(Layer.mergeAll(person.layer, model)))
        const text = JSON.stringify(results(run))
        assert.match(text, /Ada/)
        assert.match(text, /sampled words/)
        assert.strictEqual(run.text, "The end.")
        assert.include(
          requests.map(({ purpose }) => purpose),
          "mcp-sampling"
        )
        const questions = yield* person.requests
        assert.isTrue(questions.some(({ description }) => description.includes("\n> ")))
        assert.isTrue(questions.some(({ description }) => description.includes("asks for an answer of the model")))
      }).pipe(Effect.provide(layer({ everything: { ...everything, sampling: "ask" } }))),
    30_000
  )

  it.live(
    "a run that can be suspended ends with the question, and goes on with the answer",
    () =>
      Effect.gen(function* () {
        const suspending = Agent.make({ name: "clerk", prompt: "You work.", middleware: [Mcp.make()] })
        const model = script(["everything__trigger-elicitation-request"])
        const text = yield* Effect.gen(function* () {
          const first = yield* Agent.run(suspending, "Go")
          assert.strictEqual(first.stopReason, "suspended")
          const [approval] = first.pending
          const second = yield* Agent.resume(suspending, {
            checkpoint: first,
            decisions: [Approval.approve(approval!)]
          })
          assert.strictEqual(second.stopReason, "suspended")
          const [question] = second.pending
          assert.isDefined(question?.answer)
          const third = yield* Agent.resume(suspending, {
            checkpoint: second,
            decisions: [Approval.respond(question, { name: "Grace" })]
          })
          return JSON.stringify(results(third))
        }).pipe(Effect.provide(model))
        assert.match(text, /Grace/)
      }).pipe(Effect.provide(layer({ everything }))),
    30_000
  )

  it.live(
    "tells progress, log and sources; reads resources by two tools",
    () =>
      Effect.gen(function* () {
        const person = yield* makeApprovals((request) => Approval.approve(request))
        const events = yield* Agent.stream(agent, "Go").pipe(
          Stream.runCollect,
          Effect.provide(
            Layer.mergeAll(
              person.layer,
              script(
                ["h__progress"],
                ["everything__get-resource-links", { count: 2 }],
                ["list_mcp_resources", { server: "everything" }],
                ["read_mcp_resource", { server: "everything", uri: "demo://resource/dynamic/text/1" }]
              )
            )
          )
        )
        const progress = events.filter(({ _tag }) => _tag === "ToolProgress")
        assert.strictEqual(progress.length, 3)
        assert.isTrue(events.some((event) => event._tag === "Custom" && event.name === "mcp-log"))
        const done = events.flatMap((event) => (event._tag === "ToolCompleted" ? [event.text] : []))
        assert.deepStrictEqual(
          events.flatMap((event) => (event._tag === "ToolFailed" ? [event] : [])),
          []
        )
        assert.include(done[2], "demo://resource/dynamic/text/{resourceId} (template)")
        assert.include(done[3], "Resource 1: This is a plaintext resource")
      }).pipe(Effect.provide(layer({ h: hostile(), everything }))),
    30_000
  )

  it.live(
    "a tool that is renamed in a call is another one in the next round",
    () =>
      Effect.gen(function* () {
        const person = yield* makeApprovals((request) => Approval.approve(request))
        const offered = yield* Effect.gen(function* () {
          yield* Agent.run(agent, "Go")
          return (yield* TestChatModel.requests).map(({ tools }) => tools.map(({ name }) => name))
        }).pipe(
          Effect.provide(
            Layer.mergeAll(
              person.layer,
              TestChatModel.script([
                TestChatModel.calls([{ name: "h__rename", arguments: {} }]),
                TestChatModel.calls([{ name: "h__echo", arguments: { text: "wait" } }]),
                TestChatModel.calls([{ name: "h__echo", arguments: { text: "more" } }]),
                "The end."
              ])
            )
          )
        )
        assert.include(offered[0] ?? [], "h__rename")
        const tools = McpServers.McpServers.use(({ tools: now }) => now)
        yield* Effect.repeat(tools, {
          until: (all) => all.some(({ name }) => name === "h__renamed"),
          schedule: Schedule.spaced("10 millis")
        })
      }).pipe(Effect.provide(layer({ h: hostile() }))),
    30_000
  )

  it.live(
    "warns of an unreachable server, and fails for an unconfigured one",
    () =>
      Effect.gen(function* () {
        const person = yield* makeApprovals((request) => Approval.approve(request))
        const events = yield* Agent.stream(agent, "Go").pipe(
          Stream.runCollect,
          Effect.provide(Layer.mergeAll(person.layer, script()))
        )
        const warnings = events.filter((event) => event._tag === "Warning")
        assert.strictEqual(warnings.length, 1)
        assert.strictEqual(warnings[0]?.code, "mcp-server-unavailable")
        const misspelt = Agent.make({ name: "m", prompt: "", middleware: [Mcp.make({ servers: ["Missing"] })] })
        const error = yield* Effect.flip(
          Agent.run(misspelt, "Go").pipe(Effect.provide(Layer.mergeAll(person.layer, script())))
        )
        assert.match(error.message, /is "missing" meant\?/)
      }).pipe(Effect.provide(layer({ missing: { type: "stdio", command: "no-such-command" } }))),
    30_000
  )
})
