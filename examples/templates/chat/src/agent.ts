import { Effect, Schema } from "effect"
import { Agent, Tool } from "effect-deepagents"

/** Stands for what your application knows. */
const orders = new Map([
  ["41", "was delivered on Friday"],
  ["42", "was sent on Monday"]
])

export const lookupOrder = Tool.make("lookup_order", {
  description: "Finds an order by its number.",
  parameters: { number: Schema.String.annotate({ description: "The number of the order, such as 42" }) },
  annotations: { readOnly: true },
  execute: ({ number }) =>
    Effect.succeed(orders.has(number) ? `Order ${number} ${orders.get(number)}.` : `There is no order ${number}.`)
})

export const agent = Agent.make({
  name: "support",
  prompt: "You help customers with their orders. Look an order up before you say anything about it.",
  tools: [lookupOrder]
})
