/** Code mode at the agent's door: the model's view, the reach of scripts, and repeated work in a resumed run. */
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import {
  Agent,
  Approval,
  Backend,
  type ChatModel,
  Message,
  Middleware,
  Ruling,
  Tool,
  type ToolContext
} from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
import { CodeMode, type Scripts } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { FanOut, Subagents, Taint } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { declare } from "../../src/code/internal/declarations.ts"

const add = Tool.make("add_numbers", {
  description: "Adds two numbers",
  parameters: { left: Schema.Finite, right: Schema.Finite },
  execute: ({ left, right }) => Effect.succeed(String(left + right)),
  annotations: { readOnly: true }
})

const echo = Tool.make("echo", {
  description: "Says a word again",
  parameters: { word: Schema.String },
  execute: ({ word }) => Effect.succeed(word)
})

/** A tool that notes its calls, and acts. */
const pay = (log: Array<string>) =>
  Tool.make("pay", {
    description: "Pays somebody",
    parameters: { to: Schema.String },
    execute: ({ to }) =>
      Effect.sync(() => {
        log.push(`pay ${to}`)
        return `paid ${to}`
      })
  })

const toolTexts = (messages: ReadonlyArray<Message.Message>): ReadonlyArray<string> =>
  messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))

/** A model that runs scripts, one a turn, and answers with the last result. */
const scripted = (scripts: ReadonlyArray<string>, onRequest: (request: ChatModel.ModelRequest) => void = () => {}) =>
  TestChatModel.reactive((request) => {
    onRequest(request)
    const done = toolTexts(request.messages)
    const script = scripts[done.length]
    return script === undefined
      ? (done.at(-1) ?? "nothing")
      : TestChatModel.calls([{ name: "run_script", arguments: { script } }])
  })

/** Asks before each call of these tools. */
const asking = (tools: ReadonlyArray<string>) =>
  Middleware.make({
    name: "asking",
    asks: true,
    rulings: (_run, calls) =>
      Effect.succeed(
        calls.map(({ name }) => (tools.includes(name) ? Ruling.ask("asking", { description: name }) : undefined))
      )
  })

it("the declaration of a tool whose schema contains itself is bounded", () => {
  const properties = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`p${index}`, { $ref: "#" }]))
  // Three levels of 300 would have 27 million parts.
  const shown = declare({ name: "own", description: "", parameters: { type: "object", properties } })
  assert.match(shown, /^own\(args: \{ p0\?: \{ p0\?: .*p299\?: unknown \}\): Promise<string>$/)
  assert.isBelow(shown.length, 100_000)
})

layer(NodeScripts.layer())("code mode", (it) => {
  const runOnce = (
    scripts: ReadonlyArray<string>,
    mode: Middleware.Middleware<never, Scripts.Scripts | ToolContext.ToolContext> = CodeMode.make()
  ) =>
    Effect.provide(
      Agent.run(Agent.make({ name: "a", prompt: "", tools: [echo], middleware: [mode] }), "go"),
      scripted(scripts)
    )

  it.effect("gives the model a script's return value and output, in place of the results of its calls", () =>
    Effect.gen(function* () {
      const { messages, text } = yield* runOnce(
        [
          "let sum = 0; for (let i = 1; i <= 40; i++) sum = Number(await tools.add_numbers({ left: sum, right: i })); text('done'); return { sum, said: await tools.echo({ word: 'x' }) }"
        ],
        CodeMode.make({ tools: [add] })
      )
      assert.strictEqual(text, 'done\n{"sum":820,"said":"x"}')
      assert.strictEqual(messages.length, 4)
    })
  )

  it.effect("shows the model declarations of its tools, which it can't call itself", () =>
    Effect.gen(function* () {
      const seen: Array<ChatModel.ModelRequest> = []
      const agent = Agent.make({ name: "a", prompt: "", tools: [echo], middleware: [CodeMode.make({ tools: [add] })] })
      yield* Effect.provide(
        Agent.run(agent, "go"),
        scripted([], (request) => seen.push(request))
      )
      const tools = seen[0]?.tools ?? []
      assert.deepStrictEqual(tools.flatMap((tool) => (tool.hidden === true ? [] : [tool.name])).toSorted(), [
        "echo",
        "run_script"
      ])
      const description = tools.find(({ name }) => name === "run_script")?.description ?? ""
      assert.include(
        description,
        "/** Adds two numbers */ add_numbers(args: { left: number; right: number }): Promise<string>"
      )
    })
  )

  it.effect("accepts the spellings of a tool's name, and names the problem of a call", () =>
    Effect.gen(function* () {
      const { text } = yield* runOnce([
        "const fail = (p) => p.catch((e) => [e.name, e.reason, e.message]); return [await tools.Echo({ word: 'x' }), await fail(tools.nope({})), await fail(tools.echo('x')), await fail(tools.echo({ text: 'x' })), await fail(tools.run_script({ script: 'return 1' }))]"
      ])
      const [said, unknown, notObject, wrong, itself] = JSON.parse(text)
      assert.strictEqual(said, "x")
      assert.deepStrictEqual(unknown.slice(0, 2), ["ToolError", "UnknownTool"])
      assert.strictEqual(notObject[1], "InvalidArguments")
      assert.strictEqual(wrong[1], "InvalidArguments")
      assert.include(wrong[2], "word")
      assert.strictEqual(itself[1], "UnknownTool")
    })
  )

  it.effect("finds tools beyond the budget of declarations", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 300 }, (_, at) =>
        Tool.make(`report_${at}`, {
          description: at === 250 ? "Forecasts the weather of a city" : `Writes the report number ${at} of the company`,
          parameters: { city: Schema.String },
          execute: ({ city }) => Effect.succeed(`${at} ${city}`)
        })
      )
      const { text } = yield* runOnce(
        [
          "const found = await searchTools('weather forecast'); const name = /(\\w+)\\(/.exec(found[0])[1]; return [found[0], await describeTool(name) === found[0], await tools[name]({ city: 'Ulm' })]"
        ],
        CodeMode.make({ tools: many })
      )
      assert.deepStrictEqual(JSON.parse(text), [
        "/** Forecasts the weather of a city */ report_250(args: { city: string }): Promise<string>",
        true,
        "250 Ulm"
      ])
    })
  )

  it.effect("tells the model of a failure, with the finished calls and the output before it", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const { text } = yield* runOnce(
        ["text('a line'); await tools.pay({ to: 'Ada' }); await tools.add_numbers({ left: 1, right: 1 })\nnull.x"],
        CodeMode.make({ tools: [pay(log), add] })
      )
      assert.deepStrictEqual(log, ["pay Ada"])
      assert.match(text, /^The script failed \(Threw\): TypeError/)
      assert.include(text, "script.ts:2")
      assert.match(
        text,
        /calls of it were done:\n- pay\(\{"to":"Ada"\}\)\nGive.*"continues": "\w{8}".*\nIt had printed:\na line/
      )
      assert.notInclude(text, "- add_numbers")
    })
  )

  it.effect("tells the model of a failure in bounded words, without paths of the host", () =>
    Effect.gen(function* () {
      const failures = [
        ["for (;;);", "computed for more than"],
        ["const all = []; for (;;) all.push('x'.repeat(1e6) + all.length)", "The script"],
        ["await new Promise(() => {})", "nobody settles"],
        ["throw new Error('x'.repeat(1e6))", "Error: xxx"],
        ["({ ['y'.repeat(1e6)]() { throw new Error('named') } })['y'.repeat(1e6)]()", "Error: named"],
        ["throw null", "Error: null"]
      ] as const
      for (const [script, words] of failures) {
        const { text } = yield* runOnce([script], CodeMode.make({ limits: { time: 300 } }))
        assert.include(text, words)
        assert.notMatch(text, /file:|node_modules|internal\//)
        assert.isBelow(text.length, 13_000, script)
      }
    })
  )

  it.effect("stores values of scripts for later scripts of the thread", () =>
    Effect.gen(function* () {
      const { text } = yield* runOnce([
        "await store('seen', [1, 2]); return await load('other')",
        "return [await load('seen'), (await budget.spent()).calls, (await budget.remaining()).calls]"
      ])
      assert.deepStrictEqual(JSON.parse(text), [[1, 2], 2, 253])
    })
  )

  it.effect("puts a result that is too long into a file", () =>
    Effect.gen(function* () {
      const backend = yield* MemoryBackend.make()
      const agent = Agent.make({
        name: "a",
        prompt: "",
        middleware: [CodeMode.make({ limits: { output: 200 } })]
      })
      const { text } = yield* Effect.provide(
        Agent.run(agent, "go"),
        Layer.merge(scripted(["return 'x'.repeat(500) + 'end'"]), Layer.succeed(Backend.Backend, backend))
      )
      const path = /all of it is in (\S+)/.exec(text)?.[1] ?? ""
      const stored = yield* backend.read(path)
      assert.isBelow(text.length, 400)
      assert.include(JSON.stringify(stored), "xend")
    })
  )

  it.effect("runs sub-agents, by name, in a conversation and in a schema", () =>
    Effect.gen(function* () {
      const helper = Agent.make({ name: "helper", description: "helps", prompt: "helper" })
      const other = Agent.make({ name: "other", description: "other", prompt: "other" })
      const agent = Agent.make({ name: "a", prompt: "", middleware: [CodeMode.make({ agents: [helper, other] })] })
      const script =
        "const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }; return [await agent('one'), await task('two', { agent: 'other' }), await agent('three', { session: 's' }), await agent('four', { session: 's' }), await agent('five', { schema }), await agent('six', { agent: 'nobody' }).catch((e) => [e.name, e.message]), await agent('seven', { schema }).catch((e) => e.reason)]"
      const model = TestChatModel.reactive((request) => {
        const { systemPrompt } = request
        if (systemPrompt.startsWith("helper") || systemPrompt.startsWith("other")) {
          const asked = request.messages.flatMap((message) => (message.role === "human" ? [Message.text(message)] : []))
          if (asked[0]?.startsWith("seven") === true) return "no JSON"
          if (asked[0]?.startsWith("five") === true)
            return asked.length === 1 ? '{"n":"many"}' : 'Here:\n```json\n{"n":5}\n```\nDone.'
          return `${systemPrompt.split("\n")[0]} ${asked.join("+")}`
        }
        const done = toolTexts(request.messages)
        return done.at(-1) ?? TestChatModel.calls([{ name: "run_script", arguments: { script } }])
      })
      const { text } = yield* Effect.provide(Agent.run(agent, "go"), model)
      assert.deepStrictEqual(JSON.parse(text), [
        "helper one",
        "other two",
        "helper three",
        "helper three+four",
        { n: 5 },
        ["AgentError", 'There is no agent "nobody". There are: "helper", "other".'],
        "InvalidOutput"
      ])
    })
  )

  it.effect("shows gates the calls that a script begins together, and gates each of them", () =>
    Effect.gen(function* () {
      const batches: Array<ReadonlyArray<string>> = []
      const gate = Middleware.make({
        name: "gate",
        rulings: (_run, calls) =>
          Effect.sync(() => {
            batches.push(calls.map(({ name }) => name))
            return calls.map((call) =>
              call.arguments["word"] === "bad" ? Ruling.refuse("gate", "not that") : undefined
            )
          })
      })
      const agent = Agent.make({ name: "a", prompt: "", tools: [echo], middleware: [CodeMode.make(), gate] })
      const { text } = yield* Effect.provide(
        Agent.run(agent, "go"),
        scripted([
          "const all = await Promise.allSettled(['x', 'bad', 'y'].map((word) => tools.echo({ word }))); await tools.echo({ word: 'z' }); return all.map((one) => one.value ?? one.reason.reason)"
        ])
      )
      assert.deepStrictEqual(JSON.parse(text), ["x", "Failed", "y"])
      assert.deepStrictEqual(batches, [["run_script"], ["echo", "echo", "echo"], ["echo"]])
    })
  )

  it.effect("brings in text of others by its calls, and not by itself", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const page = Tool.make("page", {
        description: "Reads a page",
        parameters: {},
        execute: () => Effect.succeed("text of others"),
        annotations: { readOnly: true, openWorld: true }
      })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [pay(log), page],
        middleware: [CodeMode.make(), Taint.make({ strict: true }), Middleware.suspendable]
      })
      const scripts = [
        "await tools.pay({ to: 'Ada' }); return 1",
        "await tools.page({}); await tools.pay({ to: 'Eve' }); return 2"
      ]
      const { pending, stopReason } = yield* Effect.provide(Agent.run(agent, "go"), scripted(scripts))
      // Calls that stay on this machine ask nothing before the page.
      assert.deepStrictEqual([stopReason, log], ["suspended", ["pay Ada"]])
      assert.include(pending[0]?.description ?? "", "page")
    })
  )

  it.effect("begins at most 64 calls in one go, and runs at most 16 agents at once", () =>
    Effect.gen(function* () {
      const batches: Array<number> = []
      const gate = Middleware.make({
        name: "gate",
        rulings: (_run, calls) =>
          Effect.sync(() => {
            batches.push(calls.length)
            return calls.map(() => undefined)
          })
      })
      let running = 0
      let most = 0
      const slow = Agent.program({
        name: "slow",
        run: () =>
          Effect.gen(function* () {
            most = Math.max(most, ++running)
            yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.yieldNow, { discard: true })
            running--
            return "done"
          })
      })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        tools: [echo],
        middleware: [CodeMode.make({ agents: [slow] }), gate]
      })
      const { text } = yield* Effect.provide(
        Agent.run(agent, "go"),
        scripted([
          "const words = await Promise.all(Array.from({ length: 130 }, (_, n) => tools.echo({ word: String(n) }))); const agents = await parallel(Array.from({ length: 40 }, (_, n) => () => agent('do ' + n))); return [words.length, agents.filter((one) => one === 'done').length]"
        ])
      )
      assert.deepStrictEqual(JSON.parse(text), [130, 40])
      // The last ones are the agents, which begin together.
      assert.deepStrictEqual(batches, [1, 64, 64, 2, 40])
      assert.strictEqual(most, 16)
    })
  )

  it.effect("counts each agent of a script as one, and an agent that waits for a person keeps no permit", () =>
    Effect.gen(function* () {
      const began: Array<string> = []
      const asking = Tool.make("look", {
        description: "Looks",
        parameters: {},
        needsApproval: true,
        execute: () => Effect.succeed("seen")
      })
      const worker = Agent.make({
        name: "worker",
        prompt: "",
        tools: [asking],
        middleware: [Middleware.suspendable]
      })
      const agent = (above: number) =>
        Agent.make({
          name: "a",
          prompt: "",
          middleware: [CodeMode.make({ agents: [worker] }), FanOut.make({ above }), Middleware.suspendable]
        })
      const script =
        "return await parallel(Array.from({ length: 20 }, (_, n) => () => agent((n < 16 ? 'wait ' : 'go ') + n)))"
      const model = TestChatModel.reactive(({ messages, tools }) => {
        const asked = messages[0] === undefined ? "" : Message.text(messages[0])
        if (tools.some(({ name }) => name === "run_script")) {
          assert.isFalse(tools.some(({ hidden, name }) => name === "script_agent" && hidden !== true))
          return TestChatModel.calls([{ name: "run_script", arguments: { script } }])
        }
        began.push(asked)
        return asked.startsWith("wait") ? TestChatModel.calls([{ name: "look" }]) : "gone"
      })
      const few = yield* Effect.provide(Agent.run(agent(18), "go"), model)
      assert.deepStrictEqual(
        few.pending.flatMap(({ rule, toolName }) => (rule === "FanOut" ? [toolName] : [])),
        ["script_agent", "script_agent"]
      )
      assert.include(few.pending.find(({ rule }) => rule === "FanOut")?.description ?? "", "20 sub-agents")
      began.length = 0
      const all = yield* Effect.provide(Agent.run(agent(20), "go"), model)
      assert.strictEqual(all.pending.length, 16)
      assert.strictEqual(began.filter((one) => one.startsWith("go")).length, 4)
    })
  )

  it.effect("is suspended with all that waits once the rest of the script is done, and repeats nothing", () =>
    Effect.gen(function* () {
      const log: Array<string> = []
      const count = Tool.make("count", {
        description: "Counts",
        parameters: { n: Schema.Finite },
        execute: ({ n }) =>
          Effect.sync(() => {
            log.push(`count ${n}`)
            return String(n)
          })
      })
      const agent = Agent.make({
        name: "a",
        prompt: "",
        middleware: [CodeMode.make({ tools: [pay(log), count] }), asking(["pay"])]
      })
      const script =
        "const chain = async () => { const all = []; for (let n = 0; n < 20; n++) all.push(await tools.count({ n })); return all.length }; const [a, b, c] = await Promise.all([tools.pay({ to: 'Ada' }), chain(), tools.pay({ to: 'Bob' })]); return [a, b, c, Math.random()]"
      const model = scripted([script])
      const sessions = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
      const services = yield* Layer.build(Layer.merge(model, sessions))
      const first = yield* Effect.provide(Agent.run(agent, "go", { threadId: "t" }), services)
      assert.strictEqual(first.stopReason, "suspended")
      assert.strictEqual(first.pending.length, 2)
      assert.strictEqual(log.length, 20)
      const [ada, bob] = first.pending
      const second = yield* Effect.provide(
        Agent.resume(agent, { threadId: "t", decisions: ada === undefined ? [] : [Approval.approve(ada)] }),
        services
      )
      assert.strictEqual(second.stopReason, "suspended")
      const third = yield* Effect.provide(
        Agent.resume(agent, { threadId: "t", decisions: bob === undefined ? [] : [Approval.reject(bob, "too much")] }),
        services
      )
      assert.strictEqual(third.stopReason, "completed")
      assert.include(third.text, "too much")
      assert.deepStrictEqual(log.toSorted().slice(-1), ["pay Ada"])
      assert.strictEqual(log.length, 21)
    })
  )

  it.effect("refuses limits that limit nothing", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(runOnce([], CodeMode.make({ limits: { calls: Number.NaN } })))
      assert.match(error.message, /`calls` must be a number of at least 1/)
    })
  )

  describe("a hostile script", () => {
    it.effect("can't raise its limits, and its calls pass the gates of its agent", () =>
      Effect.gen(function* () {
        const log: Array<string> = []
        const agent = Agent.make({
          name: "a",
          prompt: "",
          middleware: [
            CodeMode.make({ tools: [pay(log)], limits: { calls: 5 } }),
            Middleware.make({
              name: "gate",
              rulings: (_run, calls) =>
                Effect.succeed(calls.map(({ name }) => (name === "pay" ? Ruling.refuse("gate", "no") : undefined)))
            })
          ]
        })
        const { text } = yield* Effect.provide(
          Agent.run(agent, "go"),
          scripted([
            "let n = 0; const why = []; for (let i = 0; i < 100; i++) { try { await tools.pay({ to: 'me' }); n++ } catch (e) { why.push(e.reason ?? e.name) } } return [n, why.slice(0, 7)]"
          ])
        )
        assert.deepStrictEqual(JSON.parse(text), [0, [...Array(5).fill("Failed"), "LimitError", "LimitError"]])
        assert.isEmpty(log)
      })
    )
  })
})

it.effect("keeps the long results of two sub-agents of one thread apart, whose calls have one id", () =>
  Effect.gen(function* () {
    const worker = Agent.make({
      name: "worker",
      description: "Runs a script",
      prompt: "worker",
      middleware: [CodeMode.make({ limits: { output: 1_000 } })]
    })
    const lead = Agent.make({ name: "lead", prompt: "lead", middleware: [Subagents.make({ agents: [worker] })] })
    const model = TestChatModel.reactive(({ messages, systemPrompt }) => {
      const [first] = messages
      const last = messages.at(-1)
      if (first === undefined || last === undefined || messages.length > 1)
        return last === undefined ? "" : Message.text(last)
      return TestChatModel.calls(
        systemPrompt.startsWith("worker")
          ? [
              {
                id: "call_0",
                name: "run_script",
                arguments: { script: `return "${Message.text(first)}".repeat(2_000)` }
              }
            ]
          : ["x", "y"].map((description, index) => ({
              id: `call_${index}`,
              name: "task",
              arguments: { description, subagent_type: "worker" }
            }))
      )
    })
    const { messages } = yield* Effect.provide(Agent.run(lead, "go", { threadId: "t" }), model)
    const backend = yield* Backend.Backend
    const answers = messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
    const contents = yield* Effect.forEach(answers, (answer) =>
      Effect.map(backend.read(/\S+script_results\S+\.txt/.exec(answer)?.[0] ?? ""), (file) =>
        file.kind === "text" ? file.text.slice(0, 3) : ""
      )
    )
    assert.deepStrictEqual(contents, ["xxx", "yyy"])
  }).pipe(
    Effect.provide([
      NodeScripts.layer(),
      MemoryBackend.layer(),
      Layer.provide(SessionStore.journal, MemorySessions.layer)
    ])
  )
)
