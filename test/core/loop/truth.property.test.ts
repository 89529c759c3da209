import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Fiber, Layer, Logger, Schema } from "effect"
import {
  Agent,
  Approval,
  type ChatModel,
  Checkpoint,
  Journal,
  Message,
  Middleware,
  Ruling,
  SessionError,
  Tool
} from "effect-deepagents"
import { AgentTest, TestChatModel } from "effect-deepagents/testing"
import * as fc from "fast-check"
import { scaled } from "../../scale.ts"
import { checkpointOf } from "../journal.ts"

/** A thread, and the real effects: every call has an id of its own. */
interface World {
  readonly entries: Array<Journal.Entry>
  readonly begun: Map<string, number>
  readonly ended: Map<string, string>
  /** How often a person had a call run again. */
  readonly again: Map<string, number>
  readonly choose: (count: number) => number
  /** Untrue statements to the model. */
  readonly lies: Array<string>
  calls: number
  words: number
}

/** A process. At one of the moments at which something happens in it, it is killed, interrupted, or another one writes. */
interface Process {
  readonly at: number
  readonly meanwhile: Effect.Effect<void> | "killed" | "interrupted"
  readonly died: Deferred.Deferred<void>
  moments: number
  isDead: boolean
}

const moment = (process: Process): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (process.isDead) return Effect.never
    if (process.moments++ !== process.at) return Effect.void
    if (typeof process.meanwhile !== "string") return process.meanwhile
    process.isDead = process.meanwhile === "killed"
    return Effect.andThen(Deferred.succeed(process.died, undefined), Effect.never)
  })

const journal = (world: World, process: Process) =>
  Layer.succeed(Journal.Journal, {
    open: (threadId) =>
      Effect.sync(() => {
        let leaf = world.entries.length
        const fail = (reason: SessionError.Reason) => SessionError.make("append", threadId, reason)
        const passing = Effect.raceFirst(Effect.interruptible(moment(process)), Deferred.await(process.died))
        return {
          checkpoint: checkpointOf(world.entries),
          step: leaf,
          append: Effect.fnUntraced(function* (entries) {
            yield* passing
            if (process.isDead) return yield* fail({ _tag: "Unavailable", problem: "dead" })
            if (leaf !== world.entries.length) {
              return yield* fail({ _tag: "Conflict", expected: `${leaf}`, found: `${world.entries.length}` })
            }
            world.entries.push(...entries)
            leaf = world.entries.length
            yield* passing
            return process.isDead ? yield* fail({ _tag: "Unavailable", problem: "dead" }) : leaf
          })
        }
      })
  })

const gate = Middleware.make({
  asks: true,
  name: "gate",
  inherit: true,
  rulings: (_run, calls) =>
    Effect.succeed(
      calls.map((call) => (call.arguments["asks"] === true ? Ruling.ask("test", { description: "may I?" }) : undefined))
    )
})

/** An agent in a process. Every call writes down that it begins, and that it ends. */
const makeAgent = (world: World, process: Process) => {
  const begin = (id: string) =>
    Effect.andThen(
      moment(process),
      Effect.sync(() => world.begun.set(id, (world.begun.get(id) ?? 0) + 1))
    )
  const end = (id: string, text: string) =>
    moment(process).pipe(
      Effect.andThen(Effect.sync(() => world.ended.set(id, text))),
      Effect.andThen(moment(process)),
      Effect.as(text)
    )
  const parameters = { id: Schema.String, asks: Schema.Boolean }
  const act = (name: string, annotations: Tool.Annotations) =>
    Tool.make(name, {
      description: "",
      parameters,
      annotations,
      execute: ({ id }) => Effect.andThen(begin(id), end(id, `did ${id}`))
    })
  const tools = [act("act", {}), act("safe", { idempotent: true })]
  const kid = (agent: Agent.Agent<unknown, unknown, never>) =>
    Tool.make("kid", {
      description: "",
      parameters,
      execute: Effect.fnUntraced(function* ({ id }) {
        yield* begin(id)
        const text = yield* Effect.flatMap(Effect.orDie(Agent.delegate(agent, "work")), Agent.toToolResult)
        return yield* end(id, `${text} of ${id}`)
      })
    })
  const model = Layer.fresh(
    TestChatModel.reactive((request) => {
      judge(world, request.messages)
      const since = request.messages.findLastIndex(({ role }) => role === "human")
      const names = ["act", "safe", "kid", "kid"].slice(0, request.tools.length + 1)
      if (request.messages.length - since > 4 || world.choose(4) === 0) return "answer"
      return TestChatModel.calls(
        Array.from({ length: 1 + world.choose(3) }, () => {
          const id = `c${++world.calls}`
          return {
            id,
            name: names[world.choose(names.length)] ?? "act",
            arguments: { id, asks: world.choose(3) === 0 }
          }
        })
      )
    })
  )
  const base = { prompt: "", toolConcurrency: 1 + world.choose(2), middleware: [gate] }
  const innermost = Agent.provide(Agent.make({ ...base, name: "innermost", tools }), model)
  const inner = Agent.provide(Agent.make({ ...base, name: "inner", tools: [...tools, kid(innermost)] }), model)
  const agent: Agent.Agent<unknown, unknown, ChatModel.ChatModel> = Agent.make({
    ...base,
    name: "outer",
    tools: [...tools, kid(inner)]
  })
  return Agent.provide(agent, model)
}

/** Whether each word about a call is true, as of now. */
const judge = (world: World, messages: ReadonlyArray<Message.Message>): void => {
  world.lies.push(...AgentTest.pairingProblems(messages))
  const written = new Set(
    world.entries.flatMap((entry) =>
      entry._tag === "Message" && entry.message.role === "tool" ? [Message.text(entry.message)] : []
    )
  )
  for (const message of messages) {
    if (message.role !== "tool") continue
    world.words++
    const id = message.toolCallId
    const text = Message.text(message)
    const begun = world.begun.get(id) ?? 0
    const said = `${id} (begun ${begun}, ended ${world.ended.get(id)}): ${text}`
    if (text === world.ended.get(id)) continue
    if (text.includes("not known")) {
      if (text.includes("not executed")) world.lies.push(said)
      if (written.has(world.ended.get(id) ?? "")) world.lies.push(`the result was there: ${said}`)
    } else if (begun > 0 || !/not executed|There is no tool/.test(text)) world.lies.push(said)
  }
}

const turnsLeftOpen = (world: World) => {
  const answered = new Set(
    world.entries.flatMap((entry) =>
      entry._tag === "Message" && entry.message.role === "tool" && entry.message.source !== "recovery"
        ? [entry.message.toolCallId]
        : []
    )
  )
  return world.entries.flatMap((entry) =>
    entry._tag === "Message" && entry.message.role === "ai"
      ? entry.message.toolCalls.filter(({ id }) => world.ended.has(id) && !answered.has(id))
      : []
  )
}

const start = (at: number, meanwhile: Process["meanwhile"]): Effect.Effect<Process> =>
  Effect.map(Deferred.make<void>(), (died) => ({ at, meanwhile, died, moments: 0, isDead: false }))

/** Runs until it ends or dies. */
const live = Effect.fnUntraced(function* (world: World, process: Process, input: Agent.Input) {
  const run = Agent.run(makeAgent(world, process), input, { threadId: "t" }).pipe(
    Effect.provide(journal(world, process))
  )
  const fiber = yield* Effect.forkChild(Effect.exit(run))
  yield* Effect.raceFirst(Fiber.await(fiber), Deferred.await(process.died))
  yield* Fiber.interrupt(fiber)
  const exit = fiber.pollUnsafe()
  if (exit?._tag !== "Success") return
  const result = exit.value
  if (result._tag === "Success") {
    if (result.value.stopReason !== "suspended") judge(world, result.value.messages)
    return
  }
  // Only the journal may fail a run.
  if (Cause.hasDies(result.cause)) world.lies.push(Cause.pretty(result.cause))
})

const inputs = (world: World): Agent.Input => {
  const late = turnsLeftOpen(world)
  const one = late[world.choose(late.length + 1)]
  if (one === undefined) return "go on"
  const text = world.ended.get(one.id) ?? ""
  return [Message.tool(text, { toolCallId: one.id, toolName: one.name }), Message.human("see above")]
}

const resume = Effect.fnUntraced(function* (world: World) {
  const checkpoint = checkpointOf(world.entries)
  if (checkpoint === undefined) return Checkpoint.resume(undefined)
  const pending = yield* Checkpoint.pending(checkpoint)
  const decisions = pending.flatMap((request) => {
    const chosen = world.choose(5)
    if (chosen === 0) return []
    if (chosen === 1) return [Approval.reject(request, "no")]
    if (request.description.includes("again")) {
      world.again.set(request.callId, (world.again.get(request.callId) ?? 0) + 1)
    }
    return [Approval.approve(request)]
  })
  return Checkpoint.resume(undefined, { decisions, unknownOutcome: world.choose(2) === 0 ? "ask" : "tell" })
})

const scenario = Effect.fnUntraced(function* (tape: ReadonlyArray<number>) {
  let position = 0
  const world: World = {
    entries: [],
    begun: new Map(),
    ended: new Map(),
    again: new Map(),
    choose: (count) => (tape[position++ % tape.length] ?? 0) % count,
    lies: [],
    calls: 0,
    words: 0
  }
  for (let action = 0; action < 12; action++) {
    const isResumed = world.entries.length > 0 && world.choose(2) === 0
    const input = isResumed ? yield* resume(world) : inputs(world)
    const other = Effect.flatMap(start(-1, "killed"), (process) => live(world, process, "me too"))
    const process = yield* start(world.choose(40), ([other, "interrupted"] as const)[world.choose(5)] ?? "killed")
    yield* live(world, process, input)
    const [late] = turnsLeftOpen(world)
    if (late !== undefined && world.choose(3) === 0) {
      const text = world.ended.get(late.id) ?? ""
      const message = Message.tool(text, { toolCallId: late.id, toolName: late.name })
      world.entries.push({ _tag: "Message", message })
    }
  }
  // The last word: somebody asks in the end.
  yield* live(world, yield* start(-1, "killed"), "and?")
  for (const [id, times] of world.begun) {
    const isAct = world.entries.some(
      (entry) =>
        entry._tag === "Message" &&
        entry.message.role === "ai" &&
        entry.message.toolCalls.some((call) => call.id === id && call.name === "act")
    )
    if (isAct && times > 1 + (world.again.get(id) ?? 0)) world.lies.push(`${id} ran ${times} times`)
  }
  assert.deepStrictEqual(world.lies, [])
  return world.words
})

/** Failed writes are logged by Effect. */
const quiet = Logger.layer([])

describe("no untrue word about a call", () => {
  it.live(
    "over crashes at any moment, new inputs, other writers, late results, decisions and sub-agents",
    () =>
      Effect.promise(async () => {
        let words = 0
        await fc.assert(
          fc.asyncProperty(fc.array(fc.nat(9999), { minLength: 60, maxLength: 200 }), async (tape) => {
            words += await Effect.runPromise(Effect.provide(scenario(tape), quiet))
          }),
          { numRuns: scaled(600) }
        )
        assert.isAbove(words, scaled(48_000))
      }),
    120_000
  )
})
