/** The row of `Adaptive` in the table of docs/patterns.md, and its questions to a person. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { Agent, type AgentResult, Approval, type Json, Message, Tool } from "effect-deepagents"
import { Adaptive } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { DurableAgent } from "effect-deepagents/durable"
import { Budget, HumanInTheLoop } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestChatModel } from "effect-deepagents/testing"
import { WorkflowEngine } from "effect/workflow"

const chain = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`a${at}`, { $ref: `#/$defs/a${at + 1}` }]))

const parameters: Json.JsonObject = {
  type: "object",
  properties: { left: { type: "number" }, right: { type: "number" } },
  required: ["left", "right"]
}

/** A tool that adds by another tool of the agent. */
const sum = (changes: Json.JsonObject = {}): Json.JsonObject => ({
  name: "sum",
  description: "Adds",
  parameters,
  script: "return Number(await tools.add_one({ to: args.left })) + args.right - 1",
  ...changes
})

const addOne = Tool.make("add_one", {
  description: "Adds one",
  parameters: { to: Schema.Finite },
  execute: ({ to }) => Effect.succeed(String(to + 1)),
  annotations: { readOnly: true }
})

const worker = Agent.make({ name: "worker", description: "works", prompt: "WORK", tools: [addOne] })
const adaptive = Adaptive.make({ worker })

type Call = readonly [tool: string, args: Json.JsonObject]
const usual: ReadonlyArray<Call> = [
  ["write_tool", sum()],
  ["sum", { left: 20, right: 22 }]
]

/** Makes these calls, one a turn, and answers with the last result. */
const makeModel = (calls = usual, onTurn: (turn: number) => TestChatModel.Turn | undefined = () => undefined) => {
  const count = { turns: 0, offered: [] as ReadonlyArray<string> }
  const model = TestChatModel.reactive(({ messages, systemPrompt, tools }) => {
    const turn = onTurn(++count.turns)
    if (turn !== undefined) return turn
    if (systemPrompt === "LEAD" && messages.length === 1)
      return TestChatModel.calls([{ name: "worker", arguments: { task: "go" } }])
    const last = messages.at(-1)
    const texts = toolTexts(messages)
    if (systemPrompt === "LEAD") return last === undefined ? "" : `lead: ${Message.text(last)}`
    count.offered = tools.map(({ name }) => name)
    const call = calls[texts.length]
    return call === undefined
      ? (texts.at(-1) ?? "nothing")
      : TestChatModel.calls([{ name: call[0], arguments: call[1] }])
  })
  return { count, layer: model }
}

const approveAll = Effect.fnUntraced(function* <E, R>(
  agent: Agent.Agent<unknown, E, R>,
  first: AgentResult.AgentResult<unknown>
) {
  let result = first
  let asked = 0
  while (result.stopReason === "suspended") {
    asked += result.pending.length
    const decisions = result.pending.map((request) => Approval.approve(request))
    result = yield* Agent.resume(agent, { checkpoint: result, decisions })
  }
  return { result, asked }
})

/** A person who approves all requests, and keeps them. */
const approver = () => {
  const requests: Array<Approval.Request> = []
  const layer = Layer.succeed(Approval.Approvals, {
    decide: (request) =>
      Effect.sync(() => {
        requests.push(request)
        return Approval.approve(request)
      })
  })
  return { requests, layer }
}

const attended = Agent.attended(adaptive)

const toolTexts = (messages: ReadonlyArray<Message.Message>) =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

const threads = Layer.fresh(SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer)))
const inThread = { threadId: "t" }

layer(NodeScripts.layer())("Adaptive", (it) => {
  it.effect("asks once about a tool, shows its script, and offers it in later turns of the thread", () =>
    Effect.gen(function* () {
      const { layer: person, requests } = approver()
      const { text } = yield* Agent.run(attended, "go", inThread).pipe(Effect.provide([makeModel().layer, person]))
      assert.deepStrictEqual([text, requests.length], ["42", 1])
      assert.include(requests[0]?.description, "return Number(await tools.add_one({ to: args.left })) + args.right - 1")
      assert.isTrue(requests[0]?.byPerson)
      // A later input of the thread, in a process that knows nothing but the thread.
      const later = makeModel([...usual, ["sum", { left: 1, right: 2 }]])
      const again = yield* Agent.run(Adaptive.make({ worker }), "once more", inThread).pipe(Effect.provide(later.layer))
      assert.deepStrictEqual([again.stopReason, again.text], ["completed", "3"])
    }).pipe(Effect.provide(threads))
  )

  it.effect("asks again when a script, a schema or a description changes, and not for the same tool", () =>
    Effect.gen(function* () {
      const product = sum({ script: "return args.left * args.right" })
      const calls: ReadonlyArray<Call> = [
        ...usual,
        ["write_tool", sum()],
        ["write_tool", product],
        ["sum", { left: 6, right: 7 }],
        ["write_tool", { ...product, description: "Multiplies" }],
        ["write_tool", { ...product, description: "Multiplies", parameters: { type: "object" } }]
      ]
      const { layer: person, requests } = approver()
      const { messages } = yield* Agent.run(attended, "go").pipe(Effect.provide([makeModel(calls).layer, person]))
      assert.strictEqual(requests.length, 4)
      assert.strictEqual(toolTexts(messages)[4], "42")
    })
  )

  it.effect("keeps no tool that a person rejects", () =>
    Effect.gen(function* () {
      const model = makeModel()
      const first = yield* Agent.run(adaptive, "go", inThread)
      const decisions = first.pending.map((one) => Approval.reject(one, "no"))
      const { text } = yield* Agent.resume(adaptive, { ...inThread, decisions })
      assert.notInclude(model.count.offered, "sum")
      assert.include(text, "sum")
      assert.notStrictEqual(text, "42")
    }).pipe(Effect.provide([threads, makeModel().layer]))
  )

  it.effect("asks nobody about a tool that can't be kept", () =>
    Effect.gen(function* () {
      const wrong: ReadonlyArray<Json.JsonObject> = [
        sum({ name: "add_one" }),
        sum({ name: "Add-One" }),
        sum({ name: "write_tool" }),
        sum({ parameters: { type: "string" } }),
        sum({ parameters: { type: "object", allOf: [{ $ref: "#" }] } }),
        // A chain of references would overflow the stack.
        sum({ parameters: { type: "object", $ref: "#/$defs/a0", $defs: chain } }),
        sum({ script: "x".repeat(20_000) })
      ]
      const { layer: person, requests } = approver()
      const model = makeModel(wrong.map((args) => ["write_tool", args]))
      const { messages } = yield* Agent.run(attended, "go").pipe(Effect.provide([model.layer, person]))
      assert.deepStrictEqual(requests, [])
      const errors = messages.filter((one) => one.role === "tool" && one.isError)
      assert.strictEqual(errors.length, wrong.length)
    })
  )

  it.effect("checks arguments by the schema, bounds the script, and keeps the rules of its calls", () =>
    Effect.gen(function* () {
      const paid: Array<string> = []
      const pay = Tool.make("pay", {
        description: "Pays",
        parameters: { to: Schema.String },
        execute: ({ to }) => Effect.sync(() => `paid ${paid.push(to)}`)
      })
      const clerk = Agent.make({
        name: "clerk",
        prompt: "",
        tools: [pay],
        middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
      })
      const agent = Adaptive.make({ worker: clerk, limits: { time: "1 second" } })
      const model = makeModel([
        [
          "write_tool",
          sum({ name: "pay_twice", script: "await tools.pay({ to: 'a' }); return tools.pay({ to: 'b' })" })
        ],
        ["pay_twice", { left: "many" }],
        ["pay_twice", { left: 1, right: 2 }],
        ["write_tool", sum({ name: "spin", script: "for (;;) {}" })],
        ["spin", { left: 1, right: 2 }],
        ["write_tool", sum({ name: "nested", script: "return tools.pay_twice({ left: 1, right: 1 })" })],
        ["nested", { left: 1, right: 2 }]
      ])
      const first = yield* Agent.run(agent, "go").pipe(Effect.provide(model.layer))
      const { asked, result } = yield* approveAll(agent, first).pipe(Effect.provide(model.layer))
      const texts = toolTexts(result.messages)
      assert.include(texts[1], "right")
      assert.strictEqual(texts[2], "paid 2")
      assert.match(texts[4] ?? "", /The script failed \(Time\)/)
      // Written tools don't call each other: a circle of them would never end.
      assert.match(texts[6] ?? "", /no tool "pay_twice"/)
      assert.deepStrictEqual(paid, ["a", "b"])
      assert.strictEqual(asked, 5)
    })
  )

  it.effect("is nested, and approved at depth", () =>
    Effect.gen(function* () {
      const lead = Agent.make({
        name: "lead",
        prompt: "LEAD",
        tools: [Agent.asTool(adaptive)],
        middleware: [HumanInTheLoop.make({ tools: {} })]
      })
      const outer = Agent.program({
        name: "outer",
        middleware: [HumanInTheLoop.make({ tools: {} })],
        run: () => Effect.map(Agent.delegate(lead, "go"), ({ text }) => text)
      })
      const first = yield* Agent.run(outer, "go")
      assert.strictEqual(first.stopReason, "suspended")
      const { asked, result } = yield* approveAll(outer, first)
      assert.deepStrictEqual([asked, result.text], [1, "lead: 42"])
    }).pipe(Effect.provide(makeModel().layer))
  )

  it.effect("is streamed: the calls of a script are events with the tool's call as their parent", () =>
    Effect.gen(function* () {
      const events = yield* Stream.runCollect(Agent.stream(attended, "go"))
      assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
      const calls = events.filter((event) => event._tag === "ToolCalled")
      assert.deepStrictEqual(
        calls.map((call) => call.toolName),
        ["write_tool", "sum", "add_one"]
      )
      assert.strictEqual(calls[2]?.parent, calls[1]?.callId)
    }).pipe(Effect.provide([makeModel().layer, approver().layer]))
  )

  it.effect("is killed at every turn, and resumed: the same output, and no second question", () =>
    Effect.gen(function* () {
      for (let at = 1; at <= 3; at++) {
        const folder = mkdtempSync(join(tmpdir(), "adaptive-"))
        const [before, after] = [join(folder, "before"), join(folder, "after")]
        const { layer: person, requests } = approver()
        const reached = yield* Deferred.make<void>()
        const dying = makeModel(usual, (turn) => {
          if (turn < at) return undefined
          if (turn === at) {
            cpSync(before, after, { recursive: true })
            Deferred.doneUnsafe(reached, Effect.void)
          }
          return TestChatModel.hang
        })
        mkdirSync(before)
        const places = (path: string) =>
          SessionStore.journal.pipe(Layer.provideMerge(SqliteSessions.layer({ file: join(path, "threads.db") })))
        const fiber = yield* Effect.forkChild(
          Agent.run(attended, "go", inThread).pipe(Effect.provide([places(before), dying.layer, person]))
        )
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(fiber)
        const next = makeModel()
        const { text } = yield* Agent.resume(attended, inThread).pipe(
          // Nothing of a thread is stored before its first turn.
          Effect.catchTag("AgentError", () => Agent.run(attended, "go", inThread)),
          Effect.provide([places(after), next.layer, person])
        )
        assert.deepStrictEqual([text, requests.length, at + next.count.turns], ["42", 1, 4], `killed at turn ${at}`)
        rmSync(folder, { recursive: true, force: true })
      }
    })
  )

  it.effect("is durable", () =>
    Effect.gen(function* () {
      const durable = DurableAgent.make({ name: "d-adaptive", agent: attended })
      const { count, layer: model } = makeModel()
      const sent = { threadId: "t", inputId: "1", input: Message.human("go") }
      const twice = Effect.gen(function* () {
        const first = yield* DurableAgent.execute(durable, sent)
        return [first, yield* DurableAgent.execute(durable, sent)] as const
      })
      const [first, second] = yield* twice.pipe(
        Effect.provide(DurableAgent.layer(durable)),
        Effect.provide(Layer.mergeAll(WorkflowEngine.layerMemory, MemorySessions.layer, model, approver().layer))
      )
      assert.strictEqual(first.text, "42")
      assert.deepStrictEqual(second, first)
      assert.strictEqual(count.turns, 3)
    })
  )

  it.effect("is budgeted", () =>
    Effect.gen(function* () {
      const { count, layer: model } = makeModel()
      const bounded = Agent.around(attended, Budget.make({ rounds: 2, onExhausted: "fail" }))
      const failed = yield* Effect.flip(Agent.run(bounded, "go").pipe(Effect.provide(model)))
      assert.deepStrictEqual([failed._tag, count.turns], ["BudgetExceeded", 2])
    }).pipe(Effect.provide(approver().layer))
  )

  it.effect("has its row in the table of the page", () =>
    Effect.sync(() => {
      const page = readFileSync(new URL("../../docs/patterns.md", import.meta.url), "utf8")
      const row = page.split("\n").find((line) => /^\| `Adaptive` +\|/.test(line))
      assert.strictEqual(row?.match(/\| yes /g)?.length, 6)
    })
  )
})
