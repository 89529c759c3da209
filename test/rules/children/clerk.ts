/** A clerk who pays when a person says so. Each payment is a line in a file, with the process that made it. */
import { appendFileSync, existsSync, readFileSync } from "node:fs"
import { Agent, Message, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Inbox } from "effect-deepagents/rules"
import { TestChatModel } from "effect-deepagents/testing"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** The payments that were made. */
export const paid = (folder: string): ReadonlyArray<string> =>
  existsSync(`${folder}/paid.txt`) ? readFileSync(`${folder}/paid.txt`, "utf8").split("\n").slice(0, -1) : []

/** Pays the amount that is said. */
const model = TestChatModel.reactive(({ messages }) => {
  const last = messages.at(-1)
  return last === undefined || last.role === "tool"
    ? "done"
    : TestChatModel.calls([{ name: "pay", arguments: { amount: Number(Message.text(last)) } }])
})

export const clerk = (folder: string) => {
  const pay = Tool.make("pay", {
    description: "Pays",
    parameters: { amount: Schema.Int },
    execute: ({ amount }) =>
      Effect.as(
        Effect.sync(() => appendFileSync(`${folder}/paid.txt`, `${amount}\n`)),
        "paid"
      )
  })
  const middleware = [HumanInTheLoop.make({ tools: { pay: true } })]
  return Agent.make({ name: "clerk", prompt: "", tools: [pay], middleware }).pipe(Agent.provide(model))
}

export const inbox = (folder: string) => Inbox.layer({ deliver: Inbox.toAgents([clerk(folder)]) })
