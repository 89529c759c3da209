/** An agent whose script acts ten times: at once, in a sub-agent, after an approval, and one after the other. */
import { Effect, Schema } from "effect"
import { Agent, Message, Middleware, Ruling, Tool } from "effect-deepagents"
import { CodeMode } from "effect-deepagents/code"
import { TestChatModel } from "effect-deepagents/testing"

/** What the script does, in the order of a run that nothing cuts off. */
export const effects = [
  "act 1",
  "act 2",
  "act 3",
  "act 4",
  "act 100",
  "pay Ada",
  "act 10",
  "act 11",
  "act 12",
  "act 13"
]

const script = `
const reasonOf = (work) => work.catch((error) => error.reason)
const first = await Promise.all([1, 2, 3, 4].map((n) => reasonOf(tools.act({ n }))))
const helped = await reasonOf(agent("sub"))
const paid = await reasonOf(tools.pay({ to: "Ada" }))
const last = []
for (let n = 10; n < 14; n++) last.push(await reasonOf(tools.act({ n })))
return { first, helped, paid, last, chance: Math.random() }`

/** The result of the script. */
export const Result = Schema.fromJsonString(
  Schema.Struct({
    first: Schema.Array(Schema.String),
    helped: Schema.String,
    paid: Schema.String,
    last: Schema.Array(Schema.String),
    chance: Schema.Finite
  })
)

const asking = Middleware.make({
  name: "asking",
  asks: true,
  rulings: (_run, calls) =>
    Effect.succeed(calls.map(({ name }) => (name === "pay" ? Ruling.ask("asking", { description: "pay" }) : undefined)))
})

/** Makes the agent. `onEffect` runs as each effect begins. */
export const agentOf = (onEffect: (what: string) => Effect.Effect<void>) => {
  const act = Tool.make("act", {
    description: "Acts",
    parameters: { n: Schema.Finite },
    execute: ({ n }) => Effect.as(onEffect(`act ${n}`), `acted ${n}`)
  })
  const pay = Tool.make("pay", {
    description: "Pays",
    parameters: { to: Schema.String },
    execute: ({ to }) => Effect.as(onEffect(`pay ${to}`), `paid ${to}`)
  })
  const helper = Agent.make({ name: "helper", prompt: "sub", tools: [act] })
  return Agent.make({
    name: "a",
    prompt: "main",
    middleware: [CodeMode.make({ tools: [act, pay], agents: [helper] }), asking]
  })
}

export const model = TestChatModel.reactive(({ messages, systemPrompt }) => {
  const answered = messages.findLast((message) => message.role === "tool")
  if (systemPrompt === "sub") {
    return answered === undefined ? TestChatModel.calls([{ name: "act", arguments: { n: 100 } }]) : "helped"
  }
  return answered === undefined
    ? TestChatModel.calls([{ name: "run_script", arguments: { script } }])
    : Message.text(answered)
})
