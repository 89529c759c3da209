/**
 * What a turn inside of a pattern costs over the same agent run by itself, in memory.
 *
 * `npm run bench:patterns`
 */
import { Effect, Result } from "effect"
import * as Agent from "../../src/core/Agent.ts"
import * as Message from "../../src/core/Message.ts"
import { Goal, MapReduce, Pipeline, Plan, Reflect, Supervisor, Team } from "../../src/patterns/index.ts"
import * as TestChatModel from "../../src/testing/TestChatModel.ts"

const worker = Agent.make({ name: "worker", description: "works", prompt: "WORK" })
const other = Agent.make({ name: "other", description: "helps", prompt: "WORK" })

const patterns = {
  Goal: [Goal.make({ worker }), (agent) => agent.input({ objective: "write", criteria: ["a draft", "a link"] })],
  Reflect: [Reflect.make({ worker }), () => "go"],
  MapReduce: [
    MapReduce.make({
      name: "map",
      split: () => Effect.succeed(Array.from({ length: 16 }, (_, index) => `part ${index}`)),
      map: worker,
      reduce: (found) => Effect.succeed(String(found.filter(({ answer }) => Result.isSuccess(answer)).length))
    }),
    () => "go"
  ],
  Pipeline: [
    Pipeline.make({
      name: "pipeline",
      steps: Object.fromEntries(
        Array.from({ length: 8 }, (_, index) => [
          `s${index}`,
          { agent: worker, after: index === 0 ? [] : [`s${index - 1}`], ask: () => `step ${index}` }
        ])
      )
    }),
    () => "go"
  ],
  Plan: [Plan.make({ worker }), () => "go"],
  Supervisor: [Supervisor.make({ workers: [worker, other] }), () => "go"],
  Team: [Team.make({ members: [worker, other], rounds: 8 }), () => "go"]
}

const reply = ({ messages, systemPrompt }) => {
  const asked = messages.filter(({ role }) => role === "human").length
  const last = Message.text(messages.at(-1))
  if (systemPrompt === "WORK") return asked < 3 ? "a draft" : "a draft with a link"
  if (systemPrompt.startsWith("You judge work by")) {
    const quote = last.includes("with a link") ? "link" : "none"
    return JSON.stringify({
      verdicts: [
        { criterion: 1, met: true, quote: "draft" },
        { criterion: 2, met: true, quote }
      ],
      feedback: "the link"
    })
  }
  if (systemPrompt.startsWith("You judge how")) {
    return JSON.stringify({ quality: last.includes("with a link") ? 0.9 : 0.4, feedback: "add a link" })
  }
  if (systemPrompt.startsWith("You lead")) {
    const tasks = asked > 3 ? [] : [{ worker: "worker", task: `task ${asked}`, revises: asked - 1 }]
    return JSON.stringify({ tasks, answer: "done" })
  }
  return JSON.stringify({ steps: ["a", "b", "c", "d", "e"] })
}

const count = { turns: 0 }
const model = TestChatModel.reactive((request) => {
  count.turns++
  return reply(request)
})

/** The same turns as conversations of agents that are run by themselves. */
const requestsOf = (agent, input) =>
  Effect.provide(Effect.andThen(Agent.run(agent, input), TestChatModel.requests), model)

const time = async (rounds, work) => {
  const from = performance.now()
  await Effect.runPromise(
    Effect.provide(
      Effect.forEach(Array.from({ length: rounds }), () => work, { discard: true }),
      model
    )
  )
  return ((performance.now() - from) / rounds) * 1000
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]

console.log("pattern      turns   µs a turn   alone   over")
for (const [name, [agent, inputOf]] of Object.entries(patterns)) {
  const input = inputOf(agent)
  const requests = await Effect.runPromise(requestsOf(agent, input))
  const known = new Map()
  const alone = Effect.forEach(
    requests,
    ({ messages, outputSchema, systemPrompt }) => {
      const key = systemPrompt
      const single =
        known.get(key) ??
        Agent.make({
          name: "single",
          prompt: systemPrompt,
          output: outputSchema === undefined ? undefined : schemaOf(systemPrompt)
        })
      known.set(key, single)
      return Agent.run(single, messages)
    },
    { discard: true }
  )
  const whole = Agent.run(agent, input)
  await time(200, whole)
  await time(200, alone)
  const [inside, outside] = [[], []]
  for (let nth = 0; nth < 15; nth++) {
    inside.push((await time(60, whole)) / requests.length)
    outside.push((await time(60, alone)) / requests.length)
  }
  const [a, b] = [median(inside), median(outside)]
  const show = (value) => value.toFixed(0).padStart(8)
  console.log(`${name.padEnd(12)}${String(requests.length).padStart(6)}${show(a)}${show(b)}${show(a - b)}`)
}

function schemaOf(prompt) {
  if (prompt.startsWith("You judge work by")) return Goal.Judgement
  if (prompt.startsWith("You judge how")) return Reflect.Critique
  return prompt.startsWith("You lead") ? Supervisor.Order : Plan.Steps
}
