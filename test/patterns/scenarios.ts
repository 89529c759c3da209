/** All patterns with agents of their own, and the model of these agents. Each worker may have a tool to pay with. */
import { Effect, Result, Schema } from "effect"
import { Agent, type AgentError, type ChatModel, Message, type ModelError, Tool } from "effect-deepagents"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { Autopilot, Goal, MapReduce, Pipeline, Plan, Reflect, Supervisor, Team } from "effect-deepagents/patterns"
import { TestChatModel } from "effect-deepagents/testing"

type Worker = Agent.Agent<string | undefined>

/** A pattern and its input. */
export interface Scenario {
  readonly agent: Agent.Agent<object | undefined, ModelError.ModelError | AgentError.AgentError, ChatModel.ChatModel>
  readonly input: Message.HumanMessage
  readonly output: Schema.Codec<object, unknown>
}

const coordinator = Agent.make({ name: "coordinator", prompt: "COORDINATE", output: Team.Turn })

const scenario = <In, O extends object | undefined>(
  agent: Agent.Program<In, O, ModelError.ModelError | AgentError.AgentError, ChatModel.ChatModel>,
  input: In,
  output: Schema.Codec<object, unknown>
): Scenario => ({ agent, input: agent.input(input), output })

// Outputs of patterns are objects.
const codec = (schema: Schema.Top) => schema as unknown as Schema.Codec<object, unknown>

const Joined = Schema.Struct({ all: Schema.Array(Schema.String) })

/** The patterns by their names, with these two workers. */
export const scenariosOf = (worker: Worker, other: Worker, concurrency = 1): Readonly<Record<string, Scenario>> => ({
  Autopilot: scenario(Autopilot.make({ worker }), "work", codec(Autopilot.Result)),
  Goal: scenario(Goal.make({ worker }), { objective: "write", criteria: ["a draft", "a link"] }, codec(Goal.Result)),
  Reflect: scenario(Reflect.make({ worker }), "write", codec(Reflect.Result)),
  MapReduce: scenario(
    MapReduce.make({
      name: "map",
      output: Joined,
      split: (text) => Effect.succeed(text.split(",")),
      map: worker,
      reduce: (found) =>
        Effect.succeed({ all: found.map(({ answer }) => Result.getOrElse(answer, (problem) => `! ${problem}`)) }),
      concurrency
    }),
    "p,q,r,s",
    codec(Joined)
  ),
  Pipeline: scenario(
    Pipeline.make({
      name: "pipeline",
      steps: {
        a: { agent: worker, ask: (_, input) => input },
        b: { agent: other, after: ["a"], ask: ({ a }) => `b of ${a}` },
        c: { agent: worker, after: ["a"], ask: ({ a }) => `c of ${a}` },
        d: { agent: other, after: ["b", "c"], ask: ({ b, c }) => `${b} and ${c}` }
      },
      concurrency
    }),
    "go",
    codec(Pipeline.Result)
  ),
  Plan: scenario(
    Plan.make({ worker, check: (step) => Effect.succeed(step === "bad" ? "it is bad" : undefined) }),
    "build a house",
    codec(Plan.Result)
  ),
  Supervisor: scenario(Supervisor.make({ workers: [worker, other], concurrency }), "do", codec(Supervisor.Result)),
  Team: scenario(Team.make({ members: [worker, other], coordinator }), "talk", codec(Team.Result))
})

export const worker = Agent.make({ name: "worker", description: "works", prompt: "WORK" })
export const other = Agent.make({ name: "other", description: "helps", prompt: "HELP" })

export const scenarios = scenariosOf(worker, other)

/** A worker that pays before its first answer, if a person approves. */
export const payingWorker = (paid: Array<string>) =>
  Agent.make({
    name: "worker",
    description: "works",
    prompt: "WORK",
    tools: [
      Tool.make("pay", {
        description: "Pays",
        parameters: { what: Schema.String },
        execute: ({ what }) => Effect.sync(() => `paid ${paid.push(what)}`)
      })
    ],
    middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
  })

const order = (tasks: ReadonlyArray<readonly [worker: string, revises: number]>, answer = ""): string =>
  JSON.stringify({
    tasks: tasks.map(([one, revises], index) => ({ worker: one, task: `task ${index}`, revises })),
    answer
  })

/** The answer of each agent, by its prompt and by how often it was asked. */
export const reply = ({ messages, systemPrompt, tools }: ChatModel.ModelRequest): TestChatModel.Turn | string => {
  const humans = messages.filter(({ role }) => role === "human").map((message) => Message.text(message))
  const asked = humans.length
  const last = humans.at(-1) ?? ""
  switch (systemPrompt.slice(0, 16)) {
    case "WORK":
      if (tools.length > 0 && asked === 1 && messages.at(-1)?.role === "human") {
        return TestChatModel.calls([{ name: "pay", arguments: { what: last.slice(0, 20) } }])
      }
      return asked === 1 ? `a draft of ${last.slice(0, 12)}` : `a draft with a link ${asked}`
    case "HELP":
      return `helped ${last.slice(0, 12)}`
    case "You judge work b": {
      const quote = last.includes("with a link") ? "with a link" : "an invented link"
      return JSON.stringify({
        verdicts: [
          { criterion: 1, met: true, quote: "a  draft" },
          { criterion: 2, met: true, quote }
        ],
        feedback: "the link"
      })
    }
    case "You judge how we":
      return JSON.stringify({ quality: last.includes("with a link") ? 0.9 : 0.4, feedback: "add a link" })
    case "You report how f":
      return JSON.stringify({ isDone: last.includes("with a link"), isStuck: false, progress: "half" })
    case "You lead workers":
      if (asked === 1)
        return order([
          ["worker", 0],
          ["other", 0]
        ])
      return asked === 2 ? order([["worker", 1]]) : order([], "all done")
    case "You divide a tas":
      return JSON.stringify({ steps: asked === 1 ? ["dig", "bad", "never"] : ["good"] })
    case "COORDINATE":
      return JSON.stringify(
        asked <= 3
          ? { next: asked === 2 ? "other" : "worker", prompt: "say something", isDone: false, answer: "" }
          : { next: "", prompt: "", isDone: true, answer: "agreed" }
      )
    case "LEAD":
      return messages.at(-1)?.role === "tool"
        ? `lead: ${Message.text(messages[messages.length - 1] ?? Message.human(""))}`
        : "?"
    default:
      return "?"
  }
}

/** The model, and how many turns it was asked for. */
export const makeModel = (onTurn: (turn: number) => TestChatModel.Turn | undefined = () => undefined) => {
  const count = { turns: 0 }
  const layer = TestChatModel.reactive((request) => onTurn(++count.turns) ?? reply(request))
  return { count, layer }
}
