/**
 * A map-reduce that is a program: each part goes to a sub-agent of its own, all at once, and another one sums up. One of
 * them wants to pay for what it reads: the others end, the program waits, and goes on with the decision alone.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Schema } from "effect"
import { Agent, Approval, Checkpoint, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"

const bought: Array<string> = []

const buy = Tool.make("buy_article", {
  description: "Buys an article",
  parameters: { title: Schema.String },
  execute: ({ title }) =>
    Effect.sync(() => {
      bought.push(title)
      return `The text of "${title}"`
    })
})

const reader = Agent.make({ name: "reader", prompt: "You read one article.", tools: [buy] })
const editor = Agent.make({ name: "editor", prompt: "You sum up." })

const mapReduce = Agent.program({
  name: "press_review",
  description: "Reads articles and sums them up",
  input: Schema.Struct({ task: Schema.String, titles: Schema.Array(Schema.String) }),
  reaches: Agent.toolNames(reader),
  middleware: [HumanInTheLoop.make({ tools: { buy_article: true } })],
  run: Effect.fnUntraced(function* ({ task, titles }) {
    const found = yield* Effect.forEach(titles, (title) => Agent.answer(reader, `${task}\n\n${title}`), {
      concurrency: 4
    })
    return yield* Agent.answer(editor, `${task}\n\n${found.join("\n")}`)
  })
})

const model = TestChatModel.reactive((request) => {
  const last = request.messages.at(-1)
  const said = last === undefined ? "" : Message.text(last)
  if (request.systemPrompt === "You sum up.") return `In short: ${said.split("\n").slice(2).join("; ")}`
  if (last?.role === "tool") return `read ${said}`
  const title = said.split("\n").at(-1) ?? ""
  return title.startsWith("Paid")
    ? TestChatModel.calls([{ name: "buy_article", arguments: { title } }])
    : `read ${title}`
})

const program = Effect.gen(function* () {
  const input = mapReduce.input({ task: "What is new?", titles: ["Free A", "Paid B", "Free C"] })
  const first = yield* Agent.run(mapReduce, input)
  assert.equal(first.stopReason, "suspended")
  for (const { description, path } of first.pending) yield* Console.log(`${path.join(" > ")} asks: ${description}`)
  assert.deepEqual(bought, [])

  // As JSON it can wait anywhere.
  const checkpoint = yield* Checkpoint.decode(JSON.parse(JSON.stringify(Checkpoint.encode(first))))
  const decisions = first.pending.map((request) => Approval.approve(request))
  const { text } = yield* Agent.resume(mapReduce, { checkpoint, decisions })
  yield* Console.log(text)
  assert.equal(text, 'In short: read Free A; read The text of "Paid B"; read Free C')
  assert.deepEqual(bought, ["Paid B"])
  // Three turns of the readers before, one of them after, and one of the editor: none was asked for again.
  assert.equal((yield* TestChatModel.requests).length, 5)
})

NodeRuntime.runMain(program.pipe(Effect.provide(model)))
