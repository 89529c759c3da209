/** Failed scripts and their corrections: at any place of failure, the corrected script repeats no finished call. */
import { assert, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Approval, Message, Tool, ToolError } from "effect-deepagents"
import { CodeMode } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { MemorySessions, SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { isFull } from "../scale.ts"

/** The effects outside, and the calls that fail. */
interface World {
  readonly did: Array<string>
  readonly broken: Set<string>
}

/** The lines of a script, each with its effect. */
const lines = [
  [`said.push(await tools.act({ on: "a" }))`, ["act a"]],
  [`said.push(await tools.look({ on: "b" }))`, ["look b"]],
  [`said.push(await agent("c"))`, ["ask c"]],
  [`said.push(...(await Promise.all(["d", "e"].map((on) => tools.act({ on })))))`, ["act d", "act e"]],
  [`for (const on of ["f", "f"]) said.push(await tools.act({ on }))`, ["act f", "act f"]],
  // Its first call fails, and its second is the same.
  [`said.push(await tools.act({ on: "once" }).catch(() => tools.act({ on: "once" })))`, ["act once"]],
  [`said.push(await tools.act({ on: "g" + Math.random() }))`, ["act g"]],
  [`await store("n", (await load("n") ?? 0) + 1)`, []],
  [`said.push(await tools.act({ on: "h" + await load("n") }))`, ["act h1"]]
] as const

/** The script, which fails before a line. */
const scriptOf = (failsAt: number): string =>
  ["const said = []", ...lines.map(([line]) => line), "return said"].toSpliced(failsAt + 1, 0, "null.x").join("\n")

const whole = scriptOf(lines.length + 1)

const all = lines.flatMap(([, does]) => does).toSorted()

const expected = ["did a", "saw b", "heard c", "did d", "did e", "did f", "did f", "did once", "did g", "did h1"]

const makeAgent = ({ broken, did }: World, review: boolean) => {
  const act = Tool.make("act", {
    description: "Acts",
    parameters: { on: Schema.String },
    execute: ({ on }) => {
      const name = on.startsWith("g") ? "g" : on
      if (broken.delete(name)) return Effect.fail(ToolError.make(`${name} does not work`))
      return Effect.sync(() => `did ${(did.push(`act ${name}`), name)}`)
    }
  })
  const look = Tool.make("look", {
    description: "Looks",
    parameters: { on: Schema.String },
    annotations: { readOnly: true },
    execute: ({ on }) => Effect.sync(() => `saw ${(did.push(`look ${on}`), on)}`)
  })
  const helper = Agent.make({ name: "helper", description: "Hears", prompt: "helper" })
  return Agent.make({
    name: "coder",
    prompt: "coder",
    middleware: [
      review
        ? CodeMode.make({ tools: [act, look], agents: [helper], store: "call", review: true })
        : CodeMode.make({ tools: [act, look], agents: [helper], store: "call" })
    ]
  })
}

/** The id by which the model may continue the script that failed last. */
const idIn = (messages: ReadonlyArray<Message.Message>): string | undefined =>
  messages.flatMap((message) => [...(/"continues": "(\w+)"/g.exec(Message.text(message))?.slice(1) ?? [])]).at(-1)

/** A model that runs these scripts: all in one turn, or one a turn. */
const modelOf = ({ did }: World, scripts: ReadonlyArray<string>, isOneTurn: boolean) => {
  let next = 0
  return TestChatModel.reactive(({ messages, tools }) => {
    if (tools.every(({ name }) => name !== "run_script")) {
      const asked = Message.text(messages[0] ?? Message.human(""))
      did.push(`ask ${asked}`)
      return `heard ${asked}`
    }
    const last = messages.at(-1)
    if (last?.role === "tool" && (!isOneTurn || next === scripts.length)) return Message.text(last)
    const id = idIn(messages.filter(({ role }) => role === "tool"))
    const script = scripts[next++] ?? ""
    return TestChatModel.calls([
      { name: "run_script", arguments: id === undefined ? { script } : { script, continues: id } }
    ])
  })
}

/** Runs scripts on one thread, and approves all that is asked. Gives the last answer. */
const runScripts = (world: World, scripts: ReadonlyArray<string>, { isOneTurn = true, review = false } = {}) => {
  const agent = makeAgent(world, review)
  return Effect.gen(function* () {
    let text = ""
    for (let turn = 0; turn < (isOneTurn ? 1 : scripts.length); turn++) {
      let result = yield* Agent.run(agent, "go", { threadId: "t" })
      while (result.stopReason === "suspended") {
        const decisions = result.pending.map((one) => Approval.approve(one))
        result = yield* Agent.resume(agent, { threadId: "t", decisions })
      }
      text = result.text
    }
    return text
  }).pipe(
    Effect.provide(
      Layer.merge(
        modelOf(world, scripts, isOneTurn),
        SessionStore.journal.pipe(Layer.provideMerge(MemorySessions.layer))
      )
    )
  )
}

const makeWorld = (...broken: ReadonlyArray<string>): World => ({ did: [], broken: new Set(["once", ...broken]) })

layer(NodeScripts.layer({ warm: 2 }))("a corrected script", (it) => {
  const places = Array.from({ length: lines.length + 1 }, (_, at) => at).filter((at) => isFull || at % 4 === 0)

  for (const review of [false, true]) {
    for (const isOneTurn of [true, false]) {
      const when = `${isOneTurn ? "in the same turn" : "in the next turn"}${review ? ", under review" : ""}`
      it.effect(`repeats nothing, wherever the script failed: ${when}`, () =>
        Effect.forEach(
          places.flatMap((at) => [[at, (at * 5 + 3) % (lines.length + 1)], ...(review ? [] : [[at]])]),
          (failsAt) =>
            Effect.gen(function* () {
              const world = makeWorld()
              const scripts = [...failsAt.map(scriptOf), whole]
              const text = yield* runScripts(world, scripts, { isOneTurn, review })
              assert.deepStrictEqual(JSON.parse(text), expected, JSON.stringify(failsAt))
              assert.deepStrictEqual(world.did.toSorted(), all, JSON.stringify(failsAt))
            }),
          { discard: true }
        )
      )
    }
  }

  it.effect("makes a call again that failed, and only that", () =>
    Effect.forEach(
      isFull ? ["a", "d", "e", "f", "g", "h1"] : ["a", "e"],
      (broken) =>
        Effect.gen(function* () {
          const world = makeWorld(broken)
          const text = yield* runScripts(world, [whole, `${whole} // again`])
          assert.deepStrictEqual(JSON.parse(text), expected, broken)
          assert.deepStrictEqual(world.did.toSorted(), all, broken)
        }),
      { discard: true }
    )
  )

  it.effect("is found by its own id, and another id continues nothing", () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const agent = makeAgent(world, false)
      const scripts: ReadonlyArray<
        (ids: ReadonlyArray<string>) => { readonly script: string; readonly continues?: string }
      > = [
        () => ({ script: `await tools.act({ on: "a" }); null.x` }),
        () => ({ script: `await tools.act({ on: "a" }); await tools.act({ on: "b" }); null.x` }),
        () => ({ script: `return await tools.act({ on: "a" })`, continues: "00000000" }),
        ([first = ""]) => ({
          script: `return [await tools.act({ on: "a" }), await tools.act({ on: "b" })]`,
          continues: first
        }),
        // A script that has returned can't be continued.
        ([first = ""]) => ({ script: `return await tools.act({ on: "c" })`, continues: first })
      ]
      const model = TestChatModel.reactive(({ messages }) => {
        const results = messages.flatMap((message) => (message.role === "tool" ? [Message.text(message)] : []))
        const ids = results.flatMap((text) => /"continues": "(\w+)"/.exec(text)?.slice(1) ?? [])
        const next = scripts[results.length]
        return next === undefined
          ? JSON.stringify(results.slice(2))
          : TestChatModel.calls([{ name: "run_script", arguments: next(ids) }])
      })
      const { text } = yield* Effect.provide(Agent.run(agent, "go"), model)
      const results = yield* Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Array(Schema.String)))(text)
      assert.match(results[0] ?? "", /no failed script "00000000"/)
      assert.strictEqual(results[1], '["did a","did b"]')
      assert.match(results[2] ?? "", /no failed script/)
      assert.deepStrictEqual(world.did, ["act a", "act a", "act b", "act b"])
    })
  )
})
