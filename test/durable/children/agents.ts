/** The agents of the tests with processes. Their effects are lines in a file: action, place and process. */
import { appendFileSync, existsSync, readFileSync } from "node:fs"
import { Agent, Message, Tool } from "effect-deepagents"
import { AgentEntity, DurableAgent, Wait } from "effect-deepagents/durable"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const note = (folder: string, line: string) =>
  Effect.sync(() => appendFileSync(`${folder}/did.txt`, `${process.pid} ${line}\n`))

/** The recorded effects: process and words. */
export const did = (folder: string): ReadonlyArray<{ readonly pid: number; readonly what: string }> =>
  existsSync(`${folder}/did.txt`)
    ? readFileSync(`${folder}/did.txt`, "utf8")
        .split("\n")
        .slice(0, -1)
        .map((line) => ({ pid: Number(line.slice(0, line.indexOf(" "))), what: line.slice(line.indexOf(" ") + 1) }))
    : []

/** Stands still while there is a file of this name. */
const awaitRelease = (folder: string, name: string) =>
  Effect.repeat(
    Effect.delay(
      Effect.sync(() => existsSync(`${folder}/${name}`)),
      "20 millis"
    ),
    {
      while: (isThere) => isThere
    }
  )

/** Reads its instruction from the input: `pay`, `both`, `say`; the next word is the text of the line. */
const model = (folder: string) =>
  TestChatModel.reactive((request) => {
    const { messages } = request
    const asked = messages.findLastIndex((message) => message.role === "human")
    const input = messages[asked]
    const [what = "", about = ""] = (input === undefined ? "" : Message.text(input)).split(" ")
    const answers = messages.slice(asked + 1).filter((message) => message.role === "tool")
    const call = (name: string) => ({ name, id: `${name}-${about}`, arguments: { about } })
    if (what === "say" && existsSync(`${folder}/hang`)) {
      appendFileSync(`${folder}/did.txt`, `${process.pid} stream ${about}\n`)
      return TestChatModel.hangAfter("I begin to")
    }
    if (answers.length === 0 && what === "pay") return TestChatModel.calls([call("pay")])
    if (answers.length === 0 && what === "ship") return TestChatModel.calls([call("ship")])
    if (answers.length === 0 && what === "wait") {
      return TestChatModel.calls([{ name: "wait", id: `wait-${about}`, arguments: { seconds: 3 } }])
    }
    if (answers.length === 0 && what === "both") return TestChatModel.calls([call("pay"), call("look"), call("ship")])
    if (answers.length === 0 && what === "delegate") {
      return TestChatModel.calls([{ name: "helper", id: `helper-${about}`, arguments: { task: `pay ${about}` } }])
    }
    if (what === "delegate") return `it says: ${answers.map(Message.text).join()}`
    if (answers.length === 1 && what === "pay") return TestChatModel.calls([call("look")])
    return `done ${about}`
  })

const tool = (folder: string, name: string, annotations: Tool.Annotations = {}) =>
  Tool.make(name, {
    description: name,
    parameters: { about: Schema.String },
    annotations,
    execute: ({ about }) =>
      note(folder, `${name} ${about}`).pipe(
        Effect.andThen(awaitRelease(folder, `hold-${name}`)),
        Effect.andThen(note(folder, `${name}-end ${about}`)),
        Effect.as(`${name} done`)
      )
  })

const agent = (folder: string) => {
  const tools = [tool(folder, "pay"), tool(folder, "ship"), tool(folder, "look", { readOnly: true })]
  const helper = Agent.make({ name: "helper", description: "Does it", prompt: "", tools })
  return Agent.make({ name: "teller", prompt: "", tools: [...tools, Agent.asTool(helper)] }).pipe(
    Agent.provide(model(folder))
  )
}

/** Ships when a person says so, and waits. */
const guarded = (folder: string) =>
  Agent.make({
    name: "guard",
    prompt: "",
    tools: [tool(folder, "ship")],
    middleware: [HumanInTheLoop.make({ tools: { ship: true } }), Wait.make()]
  }).pipe(Agent.provide(model(folder)))

export const guard = (folder: string) => AgentEntity.make({ name: "guard", agent: guarded(folder) })
export const officer = (folder: string) => DurableAgent.make({ name: "officer", agent: guarded(folder) })
export const teller = (folder: string) => AgentEntity.make({ name: "teller", agent: agent(folder) })
export const clerk = (folder: string) => DurableAgent.make({ name: "clerk", agent: agent(folder) })
