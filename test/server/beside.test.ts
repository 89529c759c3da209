/** Calls beside a sub-agent, whose records are stored before the answers of the round. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Layer, Schema } from "effect"
import { Agent, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Server } from "effect-deepagents/server"
import { MemorySessions } from "effect-deepagents/sessions"
import { Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { ask, readFrames, serve } from "./door.ts"
import { foldFrames, showState } from "./reader.ts"

const parameters = { n: Schema.Finite }
/** The second note is slow: the first one is done before anything of the sub-agent is stored. */
const note = Tool.make("note", {
  description: "Notes",
  parameters,
  execute: ({ n }) => Effect.as(Effect.sleep(n === 1 ? 1 : 50), `noted ${n}`)
})
const pay = Tool.make("pay", { description: "Pays", parameters, execute: ({ n }) => Effect.succeed(`paid ${n}`) })
const kid = Agent.make({
  name: "kid",
  prompt: "You are a kid.",
  tools: [note, pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})
const delegate = Tool.make("delegate", {
  description: "Delegates",
  parameters: {},
  annotations: { resumable: true },
  execute: () => Effect.orDie(Effect.map(Agent.delegate(kid, "kid"), ({ text }) => text))
})
const helper = Agent.make({
  name: "helper",
  prompt: "You help.",
  tools: [note, delegate],
  // Its runs may wait for a person, as the kid's.
  middleware: [HumanInTheLoop.make({ tools: { note: false } })]
})

/** The kid makes a call, and then waits at the gate or for a person. */
const makeModel = (tool: "note" | "pay", gate: Latch.Latch) =>
  TestChatModel.reactive(({ messages }) => {
    const isKid = messages.some((one) => one.role === "human" && Message.text(one) === "kid")
    const round = messages.filter(({ role }) => role === "ai").length
    if (isKid && round === 0) return TestChatModel.calls([{ name: tool, arguments: { n: 2 } }])
    if (isKid) return () => Effect.as(gate.await, TestChatModel.text("The kid is done."))
    return round === 0
      ? TestChatModel.calls([
          { name: "delegate", arguments: {}, id: "kid-call" },
          { name: "note", arguments: { n: 1 }, id: "note-call" }
        ])
      : TestChatModel.text("Done.")
  })

const services = Layer.mergeAll(MemorySessions.layer, Storage.layerMemory)
const runs = (tool: "note" | "pay", gate: Latch.Latch) =>
  Server.layer({ helper }).pipe(Layer.provide(makeModel(tool, gate)))

const isDone = (frame: Server.Frame): boolean =>
  frame._tag === "Event" && frame.event._tag === "ToolCompleted" && frame.event.callId === "note-call"

/** Counts the begins or the ends of sub-agents. */
const count = (frames: ReadonlyArray<Server.Frame>, what: "started" | "completed"): number =>
  frames.filter(
    (frame) =>
      frame._tag === "Event" && frame.event._tag === (what === "started" ? "SubagentStarted" : "SubagentCompleted")
  ).length

describe("a call that is done beside a sub-agent at work", () => {
  it.live("is told to a reader that comes behind a save of the sub-agent, once", () =>
    Effect.gen(function* () {
      const gate = yield* Latch.make(false)
      const url = yield* serve(runs("note", gate))
      const at = `${url}/threads/t/events`
      yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "go" } })
      const isSaved = (frames: ReadonlyArray<Server.Frame>) => {
        const done = frames.findIndex(isDone)
        const saved = frames.findLastIndex((one) => one._tag === "Event" && one.event._tag === "CheckpointSaved")
        return done !== -1 && saved > done
      }
      const first = yield* readFrames(at, { isEnough: isSaved })
      const late = yield* Effect.timeout(readFrames(at, { isEnough: (frames) => frames.some(isDone) }), "30 seconds")
      // Cut behind the call, it comes again, and the rest of it goes on.
      const position = late.frames.at(-1)?.position
      yield* gate.open
      const rest = yield* readFrames(at, { after: position })
      const { frames } = yield* readFrames(at)
      assert.lengthOf(frames.filter(isDone), 1)
      const whole = showState(foldFrames(frames))
      assert.deepStrictEqual(whole.calls, [
        ["kid-call", "The kid is done."],
        ["note-call", "noted 1"]
      ])
      assert.deepStrictEqual(showState(foldFrames(rest.frames, foldFrames(late.frames))), whole)
      const end = yield* readFrames(at, { after: first.frames.at(-1)?.position })
      assert.deepStrictEqual(showState(foldFrames(end.frames, foldFrames(first.frames))), whole)
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.live("has its sub-agent's begin and end told once, to a reader that comes late or comes again", () =>
    Effect.gen(function* () {
      const gate = yield* Latch.make(false)
      const url = yield* serve(runs("note", gate))
      const at = `${url}/threads/t/events`
      yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "go" } })
      const isAtWork = (frames: ReadonlyArray<Server.Frame>) => frames.some(isDone) && count(frames, "started") > 0
      const live = yield* readFrames(at, { isEnough: isAtWork })
      const position = live.frames.at(-1)?.position
      // The log is late by a moment: readers that come at other moments see other parts of it.
      const lates = yield* Effect.forEach([0, 20, 100], (millis) =>
        Effect.delay(readFrames(at, { isEnough: isAtWork }), millis)
      )
      const rests = yield* Effect.forEach(lates, ({ frames }) =>
        Effect.forkChild(readFrames(at, { after: frames.at(-1)?.position }))
      )
      const whole = yield* Effect.forkChild(readFrames(at))
      yield* Effect.sleep("50 millis")
      yield* gate.open
      const parts = yield* Effect.forEach(rests, Fiber.join)
      const readers = [
        [...live.frames, ...(yield* readFrames(at, { after: position })).frames],
        (yield* Fiber.join(whole)).frames,
        ...lates.map(({ frames }, index) => [...frames, ...(parts[index]?.frames ?? [])])
      ]
      for (const [index, frames] of readers.entries()) {
        assert.deepStrictEqual([count(frames, "started"), count(frames, "completed")], [1, 1], `reader ${index}`)
      }
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )

  it.live("is told by another process while the sub-agent waits for a person, and not again behind the decision", () =>
    Effect.gen(function* () {
      const gate = yield* Latch.make(true)
      const early = yield* Effect.scoped(
        Effect.gen(function* () {
          const url = yield* serve(runs("pay", gate))
          yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "go" } })
          const { frames } = yield* readFrames(`${url}/threads/t/events`)
          return frames
        })
      )
      const url = yield* serve(runs("pay", gate))
      const at = `${url}/threads/t/events`
      while ((yield* ask(`${url}/threads/t/state`)).status !== 200) yield* Effect.sleep("20 millis")
      const waiting = yield* readFrames(at)
      assert.lengthOf(waiting.frames.filter(isDone), 1)
      const id = (yield* ask(`${url}/threads/t/state`)).at("pending", 0, "id")
      const body = { decisions: [{ _tag: "Approve", id }] }
      while ((yield* ask(`${url}/threads/t/decisions`, { body })).status === 503) yield* Effect.sleep("20 millis")
      const cut = early.slice(0, early.findIndex(isDone))
      const states = [waiting.frames, early, cut]
      const rests = yield* Effect.forEach(states, (frames) => readFrames(at, { after: frames.at(-1)?.position }))
      const { frames } = yield* readFrames(at)
      assert.lengthOf(frames.filter(isDone), 1)
      const whole = showState(foldFrames(frames))
      assert.deepStrictEqual(whole.calls, [
        ["kid-call", "The kid is done."],
        ["note-call", "noted 1"]
      ])
      for (const [index, rest] of rests.entries()) {
        assert.deepStrictEqual(
          showState(foldFrames(rest.frames, foldFrames(states[index] ?? []))),
          whole,
          `reader ${index}`
        )
      }
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})

describe("a reader that comes after the end", () => {
  it.live("gets the end of the run last, and nothing behind its position", () =>
    Effect.gen(function* () {
      const url = yield* serve(Server.layer({ helper }).pipe(Layer.provide(TestChatModel.script(["Hello."]))))
      const at = `${url}/threads/t/events`
      yield* ask(`${url}/threads/t/runs`, { body: { agent: "helper", input: "go" } })
      yield* readFrames(at)
      for (let look = 0; look < 3; look++) {
        const { frames } = yield* readFrames(at)
        const last = frames.at(-1)
        assert.strictEqual(last?._tag === "Event" ? last.event._tag : undefined, "RunCompleted")
        assert.isEmpty((yield* readFrames(at, { after: last?.position })).frames)
      }
    }).pipe(Effect.scoped, Effect.provide(Layer.fresh(services)))
  )
})
