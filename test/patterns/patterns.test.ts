/** Invariants of every pattern: docs/patterns.md has the table that these tests fill. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { Agent, type AgentResult, Approval, type ChatModel, Json, Message } from "effect-deepagents"
import { DurableAgent } from "effect-deepagents/durable"
import { Budget, HumanInTheLoop } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import * as SqliteSessions from "effect-deepagents/sessions/SqliteSessions"
import { TestChatModel } from "effect-deepagents/testing"
import { WorkflowEngine } from "effect/workflow"
import { isFull } from "../scale.ts"
import { makeModel, other, payingWorker, reply, type Scenario, scenarios, scenariosOf, worker } from "./scenarios.ts"

const decodeObject = Schema.decodeUnknownSync(Schema.fromJsonString(Json.JsonObject))

const inThread = { threadId: "t" }

/** Approves all requests until a run ends. */
const approveAll = Effect.fnUntraced(function* <E, R>(
  agent: Agent.Agent<unknown, E, R>,
  first: AgentResult.AgentResult<unknown>
) {
  let result = first
  let approved = 0
  while (result.stopReason === "suspended") {
    approved += result.pending.length
    const decisions = result.pending.map((request) => Approval.approve(request))
    result = yield* Agent.resume(agent, { checkpoint: result, decisions })
  }
  return { result, approved }
})

const columns: Readonly<Record<string, (name: string, scenario: Scenario) => Effect.Effect<unknown, unknown>>> = {
  nested: Effect.fnUntraced(function* (_name, { agent, input }) {
    const alone = yield* Agent.run(agent, input).pipe(Effect.provide(makeModel().layer))
    const outer = Agent.program({
      name: "outer",
      run: () => Effect.map(Agent.delegate(agent, input), ({ text }) => text)
    })
    const inner = yield* Agent.run(outer, "go").pipe(Effect.provide(makeModel().layer))
    assert.strictEqual(inner.text, alone.text)
    // As a tool it has the parameters of its input.
    const lead = Agent.make({ name: "lead", prompt: "LEAD", tools: [Agent.asTool(agent, { name: "pattern" })] })
    const json = Message.text(input)
    const args = json.startsWith("{") ? decodeObject(json) : { task: json }
    const model = TestChatModel.reactive((request) =>
      request.systemPrompt === "LEAD" && request.messages.at(-1)?.role === "human"
        ? TestChatModel.calls([{ name: "pattern", arguments: args }])
        : reply(request)
    )
    const { text } = yield* Agent.run(lead, "go").pipe(Effect.provide(model))
    assert.strictEqual(text, `lead: ${alone.text}`)
  }),

  streamed: Effect.fnUntraced(function* (_name, { agent, input }) {
    const events = yield* Stream.runCollect(Agent.stream(agent, input)).pipe(Effect.provide(makeModel().layer))
    const { count, layer } = makeModel()
    yield* Agent.run(agent, input).pipe(Effect.provide(layer))
    assert.strictEqual(events.at(-1)?._tag, "RunCompleted")
    assert.strictEqual(events.filter(({ _tag }) => _tag === "SubagentCompleted").length, count.turns)
    assert.isTrue(events.some(({ path }) => path.length === 2))
    assert.isTrue(events.some(({ _tag }) => _tag === "Custom"))
  }),

  approved: Effect.fnUntraced(function* (name) {
    const paid: Array<string> = []
    const inner = scenariosOf(payingWorker(paid), other, 8)[name]
    assert(inner !== undefined)
    // Two levels down: a program, the pattern, its worker.
    const outer = Agent.program({
      name: "outer",
      middleware: [HumanInTheLoop.make({ tools: {} })],
      run: () => Effect.map(Agent.delegate(inner.agent, inner.input), ({ text }) => text)
    })
    const plain = scenariosOf(worker, other)[name]
    assert(plain !== undefined)
    const alone = yield* Agent.run(plain.agent, plain.input).pipe(Effect.provide(makeModel().layer))
    const check = Effect.fnUntraced(function* <O, E>(
      agent: Agent.Agent<O, E, ChatModel.ChatModel>,
      input: Message.HumanMessage
    ) {
      paid.length = 0
      const whole = Effect.gen(function* () {
        const first = yield* Agent.run(agent, input)
        assert.strictEqual(first.stopReason, "suspended")
        assert.deepStrictEqual(paid, [])
        return yield* approveAll(agent, first)
      })
      const { approved, result } = yield* Effect.provide(whole, makeModel().layer)
      assert.strictEqual(result.text, alone.text)
      assert.isAbove(paid.length, 0)
      assert.strictEqual(paid.length, approved)
    })
    yield* check(inner.agent, inner.input)
    yield* check(outer, Message.human("go"))
  }),

  killed: Effect.fnUntraced(function* (name, { agent, input }) {
    const whole = makeModel()
    const undisturbed = yield* Agent.run(agent, input).pipe(Effect.provide(whole.layer))
    const all = whole.count.turns
    for (let at = 1; at <= all; at += isFull || at + 1 === all ? 1 : 2) {
      const { asked, result } = yield* killAndResume(agent, input, at)
      assert.strictEqual(result.text, undisturbed.text, `${name} killed at turn ${at}`)
      assert.isAtMost(asked, all + 1, `${name} killed at turn ${at}`)
    }
  }),

  durable: Effect.fnUntraced(function* (name, { agent, input, output }) {
    const alone = yield* Agent.run(agent, input).pipe(Effect.provide(makeModel().layer))
    const durable = DurableAgent.make({ name: `d-${name}`, agent, output })
    const { count, layer } = makeModel()
    const twice = Effect.gen(function* () {
      const sent = { threadId: "t", inputId: "1", input }
      const first = yield* DurableAgent.execute(durable, sent)
      return [first, yield* DurableAgent.execute(durable, sent)] as const
    })
    const [first, second] = yield* twice.pipe(
      Effect.provide(DurableAgent.layer(durable)),
      Effect.provide(Layer.mergeAll(WorkflowEngine.layerMemory, MemorySessions.layer, layer))
    )
    assert.strictEqual(first.text, alone.text)
    assert.deepStrictEqual(second, first)
    const again = makeModel()
    yield* Agent.run(agent, input).pipe(Effect.provide(again.layer))
    assert.strictEqual(count.turns, again.count.turns)
  }),

  budgeted: Effect.fnUntraced(function* (name, { agent, input }) {
    const { count, layer } = makeModel()
    const failed = yield* Effect.flip(
      Agent.run(Agent.around(agent, Budget.make({ rounds: 2, onExhausted: "fail" })), input).pipe(Effect.provide(layer))
    )
    assert.strictEqual(failed._tag, "BudgetExceeded", name)
    assert.strictEqual(count.turns, 2, name)
    // With a final answer it gives the best that there is.
    const gentle = makeModel()
    const { output, stopReason } = yield* Agent.run(
      Agent.around(agent, Budget.make({ rounds: 2, onExhausted: "finalAnswer" })),
      input
    ).pipe(Effect.provide(gentle.layer))
    assert.strictEqual(stopReason, "completed", name)
    assert.match(JSON.stringify(output), /2 rounds is used up/, name)
    assert.strictEqual(gentle.count.turns, 2, name)
  })
}

/** Runs until the n-th turn begins, and goes on with the files that the process had then. */
const killAndResume = (agent: Scenario["agent"], input: Message.HumanMessage, at: number) =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "patterns-"))),
    (folder) =>
      Effect.gen(function* () {
        const [before, after] = [join(folder, "before"), join(folder, "after")]
        const reached = yield* Deferred.make<void>()
        const model = makeModel((turn) => {
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
          Agent.run(agent, input, inThread).pipe(Effect.provide(Layer.merge(places(before), model.layer)))
        )
        yield* Deferred.await(reached)
        yield* Fiber.interrupt(fiber)
        const next = makeModel()
        const result = yield* Agent.resume(agent, inThread).pipe(
          // Nothing of a thread is stored before its first turn.
          Effect.catchTag("AgentError", () => Agent.run(agent, input, inThread)),
          Effect.provide(Layer.merge(places(after), next.layer))
        )
        return { result, asked: at + next.count.turns }
      }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

describe("a pattern", () => {
  for (const [name, scenario] of Object.entries(scenarios)) {
    for (const [column, check] of Object.entries(columns)) {
      it.effect(`${name} is ${column}`, () => check(name, scenario))
    }
  }

  it("has its row in the table of the page", () => {
    const page = readFileSync(new URL("../../docs/patterns.md", import.meta.url), "utf8")
    const rows = page.split("\n").filter((line) => line.startsWith("| `"))
    const head = page.split("\n").find((line) => line.includes("| nested"))
    for (const column of Object.keys(columns)) assert.include(head, column)
    for (const name of Object.keys(scenarios)) {
      const row = rows.find((line) => line.startsWith(`| \`${name}\``))
      assert.strictEqual(row?.match(/\| yes /g)?.length, Object.keys(columns).length, name)
    }
  })
})
