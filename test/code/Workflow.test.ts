/** Workflows at their door: results, failures, and another input on the thread. */
import { assert, describe, layer } from "@effect/vitest"
import { Effect, HashMap, Layer, Schema, Stream } from "effect"
import { Agent, Approval, Message, Middleware, Question, Tool, ToolContext, ToolOutput } from "effect-deepagents"
import { Workflow } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { TestChatModel } from "effect-deepagents/testing"
import * as journal from "../core/journal.ts"
import { scaled } from "../scale.ts"
import {
  answerTask,
  asking,
  inThread,
  makeWorld,
  modelOf,
  rounds,
  runInput,
  stoppedBy,
  tasksOf,
  twice,
  workerOf,
  type World
} from "./workflows.ts"

const quota = { _tag: "QuotaExhausted" } as const

const answersOf = (tasks: ReadonlyArray<string>) => tasks.map((task) => `said ${task}`)

/** A worker that asks a person before it answers, if its task is a question. */
const asker = (world: World) => {
  const ask = Tool.make("act", {
    description: "",
    parameters: { on: Schema.String },
    annotations: { resumable: true },
    execute: Effect.fnUntraced(function* ({ on }) {
      const { ask } = yield* ToolContext.ToolContext
      if (on.startsWith("ask")) yield* ask(Question.make(`${on}?`, { answer: Schema.String }))
      world.acts.push(on)
      return `did ${on}`
    })
  })
  return Agent.make({ name: "worker", prompt: "", tools: [ask], middleware: [Middleware.suspendable] })
}

layer(NodeScripts.layer({ warm: 2 }))("Workflow", (it) => {
  describe("a script", () => {
    it.effect("has agents, phases, arguments and a head, and its value is the output", () =>
      Effect.gen(function* () {
        const world = makeWorld()
        const workflow = Workflow.make({ agents: [workerOf(world)] })
        const script = `export const meta = { name: "two", description: 'Asks', phases: [{ title: 'Ask' }] }
          phase("Ask")
          const all: string[] = await pipeline(args, (task: string) => agent(task, { label: task }))
          return { all, budget: await budget.spent() }`
        const events = yield* Agent.stream(workflow, workflow.input({ script, args: ["a", "b"] })).pipe(
          Stream.runCollect,
          Effect.provide(modelOf(world))
        )
        assert.deepStrictEqual(events.flatMap((event) => (event._tag === "ToolProgress" ? [event.progress] : []))[0], {
          phase: "Ask"
        })
        const progress = events.reduce(Workflow.advance, Workflow.noProgress)
        assert.deepStrictEqual(progress.phases, ["Ask"])
        assert.deepStrictEqual(
          [...HashMap.values(progress.agents)].map(({ calls, label, phase, status, usage }) => [
            label,
            phase,
            status,
            calls,
            usage.cost
          ]),
          [
            ["a", "Ask", "done", rounds - 1, rounds],
            ["b", "Ask", "done", rounds - 1, rounds]
          ]
        )
        assert.strictEqual(progress.usage.cost, 2 * rounds)
        assert.strictEqual(events.filter(({ _tag }) => _tag === "SubagentCompleted").length, 2)
        const result = yield* Effect.provide(
          Agent.run(workflow, workflow.input({ script, args: ["a"] })),
          modelOf(world)
        )
        assert.deepStrictEqual(result.output, {
          value: { all: ["said a"], budget: { agents: 1, tokens: 3, cost: 3 } },
          agents: 1,
          replayed: 0
        })
      })
    )

    it.effect("is told of an agent that fails; the others go on", () =>
      Effect.gen(function* () {
        const world = makeWorld()
        const refuse = (_: number, task: string) => (task === "b" ? ({ _tag: "InvalidRequest" } as const) : undefined)
        const { output } = yield* runInput(world, journal.stored(), { script: asking(["a", "b", "c"]) }, refuse)
        assert.deepStrictEqual(output?.value, ["said a", null, "said c"])
      })
    )

    it.effect("calls the tools of the workflow, once over all inputs", () =>
      Effect.gen(function* () {
        const world = makeWorld()
        const stored = journal.stored()
        const note = Tool.make("note", {
          description: "",
          parameters: { text: Schema.String },
          execute: ({ text }) => Effect.sync(() => `noted ${world.acts.push(text)}`)
        })
        const workflow = Workflow.make({ agents: [workerOf(world)], tools: [note] })
        const run = (script: string) =>
          Effect.provide(
            Agent.run(workflow, workflow.input({ script }), inThread),
            Layer.merge(modelOf(world), journal.layer({ t: stored }))
          )
        yield* run(`return await tools.note({ text: "x" })`)
        const { output } = yield* run(
          `const y = await tools.note({ text: "y" }); return [y, await tools.note({ text: "x" })]`
        )
        assert.deepStrictEqual(output?.value, ["noted 2", "noted 1"])
      })
    )
  })

  describe("an input on the thread", () => {
    it.effect("raises a limit, and finds the work of the input before", () =>
      Effect.gen(function* () {
        const world = makeWorld()
        const stored = journal.stored()
        const tasks = tasksOf(6)
        const script = asking(tasks)
        const error = yield* stoppedBy(runInput(world, stored, { script, limits: { agents: 4 } }))
        assert.strictEqual(error.reason, "Limit")
        assert.deepStrictEqual([error.finished, error.inFlight.length, error.notBegun], [4, 0, 2])
        assert.include(error.message, "4 finished, 0 in flight, 2 asked for and not begun")
        assert.strictEqual(world.turns.length, 4 * rounds)
        const { output } = yield* runInput(world, stored, { script, limits: { agents: 6 } })
        assert.deepStrictEqual(output, { value: answersOf(tasks), agents: 6, replayed: 4 })
        assert.deepStrictEqual(twice(world.turns), [])
      })
    )

    it.effect("corrects a script that failed in the middle", () =>
      Effect.gen(function* () {
        const world = makeWorld()
        const stored = journal.stored()
        const first = `const found = await parallel(args.map((task) => () => agent(task)))\n`
        const args = tasksOf(3)
        const error = yield* stoppedBy(
          runInput(world, stored, { script: `${first}return found.lenght.toFixed()`, args })
        )
        assert.strictEqual(error.reason, "Script")
        assert.include(error.message, "TypeError")
        assert.deepStrictEqual([error.finished, error.inFlight, error.notBegun], [3, [], 0])
        const { output } = yield* runInput(world, stored, { script: `${first}return found.length`, args })
        assert.deepStrictEqual(output, { value: 3, agents: 3, replayed: 3 })
        assert.deepStrictEqual(twice(world.turns), [])
      })
    )

    it.effect("leaves storage as it was, however often the script is edited", () =>
      Effect.gen(function* () {
        const stored = journal.stored()
        const world = makeWorld()
        const sizeOf = () => JSON.stringify(journal.checkpointOf(stored.entries)?.state).length
        const tasks = tasksOf(8)
        yield* runInput(world, stored, { script: asking(tasks) })
        const before = sizeOf()
        for (let edit = 1; edit <= scaled(20); edit++) {
          const order = edit % 2 === 0 ? tasks : tasks.toReversed()
          yield* runInput(world, stored, { script: `// ${edit}\n${asking([`edit ${edit}`, ...order])}` })
        }
        assert.isBelow(sizeOf(), 1.25 * before)
        assert.deepStrictEqual(twice(world.turns), [])
      })
    )
  })

  describe("a terminal failure", () => {
    it.effect("stops a workflow in which a worker waits for a person, and asks again", () =>
      Effect.gen(function* () {
        const world = makeWorld()
        const stored = journal.stored()
        const workflow = Workflow.make({ agents: [asker(world)] })
        const script = asking(["ask", "a", "b"])
        const run = (refuse?: Parameters<typeof modelOf>[1]) =>
          Effect.provide(
            Agent.run(workflow, workflow.input({ script }), inThread),
            Layer.merge(modelOf(world, refuse), journal.layer({ t: stored }))
          )
        const error = yield* stoppedBy(run((_, task) => (task === "b" ? quota : undefined)))
        assert.strictEqual(error.reason, "Terminal")
        assert.includeMembers([...error.inFlight], ["ask", "b"])
        const second = yield* run()
        assert.strictEqual(second.stopReason, "suspended")
        assert.strictEqual(second.pending.length, 1)
        assert.strictEqual(world.refused.length, 1)
      })
    )

    it.effect("reports the provider's words, and the unfinished work", () =>
      Effect.gen(function* () {
        const world = makeWorld()
        const limits = { concurrency: 2 }
        const run = runInput(world, journal.stored(), { script: asking(tasksOf(5)), limits }, (turn) =>
          turn >= 4 ? quota : undefined
        )
        const error = yield* stoppedBy(run)
        assert.match(error.message, /not finished: .*quota or credit is used up/)
        assert.strictEqual(error.finished + error.inFlight.length + error.notBegun, 5)
        assert.isAbove(error.inFlight.length, 0)
      })
    )
  })

  describe("a question of a worker", () => {
    it.effect("waits without stopping the others, and keeps no turn", () =>
      Effect.gen(function* () {
        const world = makeWorld()
        const stored = journal.stored()
        const workflow = Workflow.make({ agents: [asker(world)], limits: { concurrency: 1 } })
        const tasks = ["ask me", ...tasksOf(4), "ask you"]
        const layers = Layer.merge(modelOf(world), journal.layer({ t: stored }))
        let progress = Workflow.noProgress
        const first = yield* Effect.scoped(
          Effect.gen(function* () {
            const handle = yield* Agent.start(workflow, workflow.input({ script: asking(tasks) }), inThread)
            yield* Stream.runForEach(handle.events, (event) =>
              Effect.sync(() => {
                progress = Workflow.advance(progress, event)
              })
            )
            return yield* handle.await
          })
        ).pipe(Effect.provide(layers))
        assert.strictEqual(first.stopReason, "suspended")
        assert.strictEqual(first.pending.length, 2)
        const waiting = [...HashMap.values(progress.agents)].filter(({ status }) => status === "waiting")
        assert.deepStrictEqual(
          waiting.map(({ label, waits }) => [label, [...HashMap.values(waits)].length]),
          [
            ["ask me", 1],
            ["ask you", 1]
          ]
        )
        assert.strictEqual(world.acts.length, 4 * (rounds - 1))
        let result = first
        while (result.stopReason === "suspended") {
          const decisions = result.pending.map((one) => Approval.respond(one, "yes"))
          result = yield* Effect.provide(Agent.resume(workflow, { ...inThread, decisions }), layers)
        }
        assert.deepStrictEqual(result.output?.value, answersOf(tasks))
        assert.deepStrictEqual(twice(world.turns), [])
      })
    )
  })

  it.effect("is a tool of another agent, and its workers ask through that agent", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const workflow = Workflow.make({ agents: [asker(world)] })
      const lead = Agent.make({
        name: "lead",
        prompt: "You lead.",
        tools: [Agent.asTool(workflow)],
        middleware: [Middleware.suspendable]
      })
      let shown = ""
      const model = TestChatModel.reactive((request) => {
        const tool = request.tools.find(({ name }) => name === "workflow")
        if (tool === undefined) return answerTask(world, request)
        shown = tool.description
        const last = request.messages.at(-1)
        return last?.role === "tool"
          ? `it said ${Message.text(last)}`
          : TestChatModel.calls([{ name: "workflow", arguments: { script: asking(["ask", "a"]) } }])
      })
      const first = yield* Effect.provide(Agent.run(lead, "go"), model)
      assert.include(shown, "declare function agent(prompt: string")
      assert.strictEqual(first.stopReason, "suspended")
      let result = first
      while (result.stopReason === "suspended") {
        const decisions = result.pending.map((one) => Approval.respond(one, "yes"))
        result = yield* Effect.provide(Agent.resume(lead, { checkpoint: result, decisions }), model)
      }
      assert.strictEqual(result.text, 'it said {"value":["said ask","said a"],"agents":2,"replayed":1}')
      assert.deepStrictEqual(twice(world.turns), [])
    })
  )

  describe("a tool of another agent", () => {
    const lines = [["a"], ["b", "c"], ["d", "d"]].map(
      (tasks) =>
        `all.push(...(await Promise.all(${JSON.stringify(tasks)}.map((task) => agent(task, { label: "at " + Date.now() })))))`
    )
    const scriptOf = (failsAt: number) =>
      ["const all = [Math.random(), await tools.note({ text: 'x' })]", ...lines, "return all.slice(1)"]
        .toSpliced(failsAt + 1, 0, "null.x")
        .join("\n")
    const whole = scriptOf(lines.length + 1)
    const done = ["noted 1", ...answersOf(["a", "b", "c", "d", "d"])]

    /** An agent that calls the workflow with these inputs, one a turn, each going on with the one before. */
    const lead = (world: World, inputs: ReadonlyArray<object>, review = false) => {
      const note = Tool.make("note", {
        description: "",
        parameters: { text: Schema.String },
        execute: ({ text }) => Effect.sync(() => `noted ${world.acts.push(text)}`)
      })
      const workflow = Workflow.make({ agents: [workerOf(world)], tools: [note], review })
      const agent = Agent.make({
        name: "lead",
        prompt: "You lead.",
        tools: [Agent.asTool(workflow)],
        middleware: [Middleware.suspendable]
      })
      const results: Array<string> = []
      const model = TestChatModel.reactive((request) => {
        if (request.tools.every(({ name }) => name !== "workflow")) return answerTask(world, request)
        const said = request.messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
        results.splice(0, results.length, ...said)
        const id = /"continues": "(\w+)"/.exec(said.at(-1) ?? "")?.[1]
        const input = inputs[said.length]
        return input === undefined
          ? "over"
          : TestChatModel.calls([
              { name: "workflow", arguments: { ...input, ...(id === undefined ? {} : { continues: id }) } }
            ])
      })
      return Effect.gen(function* () {
        let result = yield* Agent.run(agent, "go", inThread)
        while (result.stopReason === "suspended") {
          const decisions = result.pending.map((one) => Approval.approve(one))
          result = yield* Agent.resume(agent, { ...inThread, decisions })
        }
        return results
      }).pipe(Effect.provide(Layer.merge(model, journal.layer({ t: journal.stored() }))))
    }

    for (const review of [false, true]) {
      it.effect(`goes on with a corrected script, wherever it failed${review ? ", under review" : ""}`, () =>
        Effect.gen(function* () {
          for (const [at, second] of [
            [0, 1],
            [1, 2],
            [2, 2],
            [3, 3],
            [3, 1]
          ] as const) {
            const world = makeWorld()
            const failing = [at, second].map((failsAt) => ({ script: `// ${failsAt}\n${scriptOf(failsAt)}` }))
            const results = yield* lead(world, [...failing, { script: whole }], review)
            assert.deepInclude(JSON.parse(results.at(-1) ?? ""), { value: done }, results.join("\n\n"))
            assert.strictEqual(world.turns.length, 5 * rounds, `${at}, ${second}`)
            assert.strictEqual(world.acts.length, 1 + 5 * (rounds - 1), `${at}, ${second}`)
          }
        })
      )
    }

    it.effect("goes on over a limit, and a finished or unknown workflow continues nothing", () =>
      Effect.gen(function* () {
        const world = makeWorld()
        const [first = "", second = "", third = "", fourth = ""] = yield* lead(world, [
          { script: whole, limits: { agents: 3 } },
          { script: whole },
          { script: "return 1", continues: "00000000" },
          // Another workflow begins with nothing.
          { script: `return await agent("a")` }
        ])
        assert.match(first, /more than 3 agents[^]*Call it again with the whole script/)
        assert.notInclude(first, "Give its thread")
        assert.deepStrictEqual(JSON.parse(second), { value: done, agents: 5, replayed: 3 })
        assert.include(third, 'no failed script "00000000"')
        assert.notInclude(third, "Give its thread")
        assert.deepStrictEqual(JSON.parse(fourth), { value: "said a", agents: 1, replayed: 0 })
        assert.strictEqual(world.turns.length, 6 * rounds)
        const onThread = yield* stoppedBy(
          runInput(makeWorld(), journal.stored(), { script: "return 1", continues: "00000000" })
        )
        assert.include(onThread.message, "leave it out on a thread")
      })
    )
  })

  it.effect("wrong options keep it from running", () =>
    Effect.gen(function* () {
      const wrong: Workflow.Options<[], []> = { agents: [], limits: { agents: 1 } }
      const workflow = Workflow.make({ ...wrong, agnets: 1 } as typeof wrong)
      const error = yield* Effect.flip(Agent.run(workflow, workflow.input({ script: "return 1" })))
      assert.include(error.message, "agnets")
      const empty = Workflow.make({ agents: [] })
      const none = yield* Effect.flip(Agent.run(empty, empty.input({ script: `return await agent("x")` })))
      assert.include(none.message, "This script has no agents")
      const limit = yield* Effect.flip(Agent.run(empty, empty.input({ script: "return 1", limits: { agents: 0 } })))
      assert.include(limit.message, "does not fit")
    }).pipe(Effect.provide(TestChatModel.script([])))
  )

  it.effect("a text that a tool returns is a value of the script", () =>
    Effect.gen(function* () {
      const look = Tool.make("look", {
        description: "",
        parameters: {},
        execute: () => Effect.succeed(ToolOutput.make("seen"))
      })
      const workflow = Workflow.make({ agents: [], tools: [look] })
      const { output } = yield* Agent.run(workflow, workflow.input({ script: "return await tools.look()" }))
      assert.strictEqual(output?.value, "seen")
    }).pipe(Effect.provide(TestChatModel.script([])))
  )
})
