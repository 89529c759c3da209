/** Agents for promises: results of tools, early ends of calls, and thrown errors. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { Agent, Content, AgentError, AgentPromise, Approval, Message, Tool, ToolOutput } from "effect-deepagents"
import { HumanInTheLoop, ToolTimeout } from "effect-deepagents/middleware"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"

const call = (name: string) => TestChatModel.calls([{ name, arguments: { x: 2 } }])
const script = (...turns: ReadonlyArray<TestChatModel.Turn>) => TestChatModel.script(turns, { exhaustive: false })

type Execute = (args: { readonly x: number }, context: { readonly signal: AbortSignal }) => Tool.Work<unknown, never>

const look = (execute: Execute) => Tool.make("look", { description: "", parameters: { x: Schema.Finite }, execute })

/** The result of the tool that the model reads. */
const runTool = async (execute: Execute) => {
  const agent = Agent.make({ name: "a", prompt: "", tools: [look(execute)] })
  await using door = AgentPromise.make(agent, script(call("look"), "done"))
  const { messages } = await door.run("go")
  const result = messages.find((message) => message.role === "tool")
  return [result?.isError, result === undefined ? "" : Message.text(result)]
}

const rejection = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => assert.fail("the promise was kept"),
    (error: unknown) => error
  )

const drain = async (events: AsyncIterable<unknown>) => {
  for await (const event of events) assert.isDefined(event)
}

/** A tool that works until its signal is aborted. */
const endless = () => {
  const seen: Array<string> = []
  const execute: Execute = (_args, { signal }) =>
    new Promise((_resolve, reject) => {
      seen.push("began")
      signal.addEventListener("abort", () => {
        seen.push("aborted")
        reject(new Error("late"))
      })
    })
  return { seen, agent: Agent.make({ name: "a", prompt: "", tools: [look(execute)] }) }
}

describe("the work of a tool", () => {
  it("is an effect, a promise or a value; data is JSON to the model", async () => {
    assert.deepEqual(await runTool(async ({ x }) => `${x}`), [false, "2"])
    assert.deepEqual(await runTool(async ({ x }) => ({ x, at: new Date(0), big: 1n })), [
      false,
      '{"x":2,"at":"1970-01-01T00:00:00.000Z","big":"1"}'
    ])
    assert.deepEqual(await runTool(({ x }) => [x, null]), [false, "[2,null]"])
    assert.deepEqual(await runTool(() => Effect.succeed({ content: "a file" })), [false, '{"content":"a file"}'])
    assert.deepEqual(await runTool(() => false), [false, "false"])
    assert.deepEqual(await runTool(() => null), [false, "null"])
  })

  it("is content if it is a list of blocks, and data if its items have more", () => {
    const image = Content.image({ base64: "AA==", mimeType: "image/png" })
    const blocks = [Content.text("the screen"), image]
    assert.deepEqual(ToolOutput.fromResult(blocks)?.content, blocks)
    for (const rows of [[{ type: "text", text: "Name", id: 7 }], [image, { ...image, width: 3 }], [{ type: "text" }]]) {
      assert.deepEqual(ToolOutput.fromResult(rows)?.content, [Content.text(JSON.stringify(rows))])
    }
  })

  it("is no effect in a promise, which nobody would run", async () => {
    assert.isUndefined(ToolOutput.fromResult(Effect.succeed("x")))
    assert.isUndefined(ToolOutput.fromResult(Promise.resolve("x")))
    const [isError, text] = await runTool((async () => Effect.succeed("x")) as never)
    assert.isTrue(isError)
    assert.include(text, 'The tool "look" broke down.')
  })

  it("has a signal, also behind a function that passes its arguments on", async () => {
    const wrap =
      (execute: Execute): Execute =>
      (...all) =>
        execute(...all)
    assert.deepEqual(await runTool(wrap(async ({ x }, { signal }) => [x, signal.aborted])), [false, "[2,false]"])
  })

  it("has a signal that is aborted for an Effect too, and for who looks at it only later", async () => {
    const seen: Array<boolean> = []
    const aborted = (execute: Execute) => {
      const tools = [look(execute)]
      const agent = Agent.make({ name: "a", prompt: "", tools, middleware: [ToolTimeout.make({ default: 5 })] })
      const door = AgentPromise.make(agent, script(call("look"), "done"))
      return door.run("go").then(() => door.dispose())
    }
    let late: { readonly signal: AbortSignal } | undefined
    await aborted((_args, context) => {
      late = context
      return Effect.never
    })
    seen.push(late?.signal.aborted === true)
    await aborted(async (_args, context) => {
      late = context
      return new Promise<string>(() => undefined)
    })
    seen.push(late?.signal.aborted === true)
    assert.deepEqual(seen, [true, true])
  })

  it("fails with the message of a rejection, which the model reads", async () => {
    assert.deepEqual(await runTool(() => Promise.reject(new Error("no stock for 2"))), [true, "no stock for 2"])
  })
})

const until = async (isSo: () => boolean) => {
  while (!isSo()) await new Promise((go) => setTimeout(go, 2))
}

describe("AgentPromise", () => {
  it("throws the agent's tagged errors", async () => {
    const door = AgentPromise.make(Agent.make({ name: "a", prompt: "", maxRounds: 0 }), script())
    const error = await rejection(door.run("go"))
    assert.instanceOf(error, AgentError.AgentError)
    assert.equal(error.reason._tag, "InvalidAgent")
    await door.dispose()
  })

  it("rejects with the signal's reason, and aborts the tool", async () => {
    const { agent, seen } = endless()
    await using door = AgentPromise.make(agent, script(call("look"), call("look")))
    const leaving = new AbortController()
    const reason = new Error("the user left")
    const running = door.run("go", { signal: leaving.signal })
    await until(() => seen.length === 1)
    leaving.abort(reason)
    assert.strictEqual(await rejection(running), reason)
    assert.deepEqual(seen, ["began", "aborted"])
    assert.strictEqual(await rejection(door.run("go", { signal: AbortSignal.abort(reason) })), reason)
  })

  it("streams events; leaving the loop, and the signal, interrupt the run", async () => {
    const { agent, seen } = endless()
    await using door = AgentPromise.make(agent, script(call("look"), call("look")))
    for await (const event of door.stream("go")) if (event._tag === "ToolCalled") break
    assert.deepEqual(seen, ["began", "aborted"])
    const reason = new Error("the user left")
    const leaving = new AbortController()
    const reading = async () => {
      for await (const event of door.stream("go", { signal: leaving.signal })) {
        if (event._tag === "ToolCalled") void until(() => seen.length === 3).then(() => leaving.abort(reason))
      }
    }
    assert.strictEqual(await rejection(reading()), reason)
    assert.deepEqual(seen, ["began", "aborted", "began", "aborted"])
  })

  it("interrupts runs and streams when it is disposed of, and releases the layer once", async () => {
    class Place extends Context.Service<Place, string>()("test/Place") {}
    const log: Array<string> = []
    const place = Layer.effect(
      Place,
      Effect.acquireRelease(
        Effect.sync(() => {
          log.push("opened")
          return "here"
        }),
        () => Effect.sync(() => log.push("closed"))
      )
    )
    const { agent, seen } = endless()
    const door = AgentPromise.make(agent, Layer.merge(script(call("look"), call("look")), place))
    const ends = [rejection(door.run("go")), rejection(drain(door.stream("go")))]
    await until(() => seen.length === 2)
    await door.dispose()
    await door.dispose()
    assert.equal((await Promise.all(ends)).length, 2)
    assert.deepEqual(seen, ["began", "began", "aborted", "aborted"])
    assert.deepEqual(log, ["opened", "closed"])
    assert.match(String(await rejection(door.run("go"))), /was disposed of/)
    assert.match(String(await rejection(drain(door.stream("go")))), /was disposed of/)
  })

  it("begins no work with an aborted signal, and leaves a layer that is not built in time", async () => {
    let begun = 0
    const prompt = Effect.sync(() => `${begun++}`)
    const reason = new Error("the user left")
    await using door = AgentPromise.make(Agent.make({ name: "a", prompt }), script("done"))
    assert.strictEqual(await rejection(door.run("go", { signal: AbortSignal.abort(reason) })), reason)
    assert.equal(begun, 0)
    await using stuck = AgentPromise.make(Agent.make({ name: "a", prompt }), Layer.unwrap(Effect.never))
    const error = await rejection(stuck.run("go", { signal: AbortSignal.timeout(10) }))
    assert.equal(error instanceof Error ? error.name : "", "TimeoutError")
  })

  it("ends a run while nobody reads its stream, before the layer is released", async () => {
    const log: Array<string> = []
    const place = Layer.effectDiscard(Effect.addFinalizer(() => Effect.sync(() => log.push("closed"))))
    let begun = 0
    const tool = look(() =>
      Effect.onInterrupt(
        Effect.andThen(
          Effect.sync(() => begun++),
          Effect.never
        ),
        () => Effect.sync(() => log.push("interrupted"))
      )
    )
    const agent = Agent.make({ name: "a", prompt: "", tools: [tool] })
    for (const way of ["signal", "dispose"]) {
      const leaving = new AbortController()
      const door = AgentPromise.make(agent, Layer.merge(script(call("look")), place))
      for await (const event of door.stream("go", { signal: leaving.signal })) {
        if (event._tag !== "ToolCalled") continue
        await until(() => begun === 1)
        if (way === "signal") leaving.abort()
        else await door.dispose()
        await until(() => log.length > 0)
        assert.deepEqual(log, way === "signal" ? ["interrupted"] : ["interrupted", "closed"])
        break
      }
      await door.dispose()
      log.length = 0
      begun = 0
    }
  })

  it("keeps threads, suspends a run and resumes it by the thread or the result", async () => {
    const agent = Agent.make({
      name: "clerk",
      prompt: "",
      tools: [look(() => "looked")],
      middleware: [HumanInTheLoop.make({ tools: { look: true } })]
    })
    const journal = Layer.provide(SessionStore.journal, MemorySessions.layer)
    await using door = AgentPromise.make(
      agent,
      Layer.merge(journal, script(call("look"), "first", call("look"), "second"))
    )
    const asked = await door.run("go", { threadId: "t" })
    assert.equal(asked.stopReason, "suspended")
    const decisions = asked.pending.map(({ id }) => ({ _tag: "Approve" as const, id }))
    assert.equal((await door.resume({ threadId: "t", decisions })).text, "first")
    const again = await door.run("again")
    const later = again.pending.map(({ id }) => ({ _tag: "Approve" as const, id }))
    assert.equal((await door.resume({ checkpoint: again, decisions: later })).text, "second")
  })

  it("tells whether a thread is empty, done, waits for a person, or was cut off, and changes nothing", async () => {
    const stored = SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
    const pay = Tool.make("look", { description: "", parameters: {}, needsApproval: true, execute: () => "paid" })
    const asking = Agent.make({ name: "a", prompt: "", tools: [pay], middleware: [HumanInTheLoop.make({})] })
    const { agent } = endless()
    const model = script(call("look"), "done", call("look"))
    const both = Layer.mergeAll(model, stored)
    const memo = await Effect.runPromise(Effect.scoped(Effect.map(Layer.build(both), Layer.succeedContext)))
    await using door = AgentPromise.make(asking, memo)
    assert.deepEqual(await door.status("t"), { state: "empty", pending: [] })
    assert.deepEqual(await door.status("t"), { state: "empty", pending: [] })
    await door.run("go", { threadId: "t" })
    const { pending, state } = await door.status("t")
    assert.deepEqual([state, pending.map(({ toolName }) => toolName)], ["waiting", ["look"]])
    const [request] = pending
    if (request === undefined) return assert.fail("nothing waits")
    await door.resume({ threadId: "t", decisions: [Approval.approve(request)] })
    assert.deepEqual(await door.status("t"), { state: "done", pending: [] })
    await using cut = AgentPromise.make(agent, memo)
    const leaving = new AbortController()
    for await (const event of cut.stream("go", { threadId: "u", signal: leaving.signal })) {
      if (event._tag === "ToolCalled") break
    }
    assert.deepEqual(await cut.status("u"), { state: "unfinished", pending: [] })
  })
})
