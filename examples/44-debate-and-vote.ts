/**
 * Lets agents vote, picks the best of several drafts, and lets two agents debate before a judge: each is a program of ten
 * lines.
 */
import assert from "node:assert/strict"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Schema } from "effect"
import { Agent, Message } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

const answerer = Agent.make({ name: "answerer", prompt: "You answer with one word." })
const judge = Agent.make({
  name: "judge",
  prompt: "You choose the best of numbered texts.",
  output: Schema.Struct({ best: Schema.Int })
})

/** The answer that most of `voters` give. Equal questions are told apart, so each has an answer of its own. */
const vote = (voters: number) =>
  Agent.program({
    name: "vote",
    run: Effect.fnUntraced(function* (question) {
      const ask = () => Agent.answer(answerer, question)
      const answers = yield* Effect.all(Array.from({ length: voters }, ask), { concurrency: 5 })
      const votes = (answer: string) => answers.filter((one) => one === answer).length
      return answers.reduce((best, one) => (votes(one) > votes(best) ? one : best))
    })
  })

const choose = Effect.fnUntraced(function* (task: string, texts: ReadonlyArray<string>) {
  const list = texts.map((text, index) => `${index + 1}. ${text}`).join("\n")
  const { best } = yield* Agent.answer(judge, `${task}\n\n${list}`)
  return texts[best - 1] ?? texts[0] ?? ""
})

const bestOf = (count: number) =>
  Agent.program({
    name: "best-of",
    run: Effect.fnUntraced(function* (task) {
      const drafts = Array.from({ length: count }, (_, index) => Agent.answer(answerer, `${task} (draft ${index + 1})`))
      return yield* choose(task, yield* Effect.all(drafts, { concurrency: 5 }))
    })
  })

const debate = (rounds: number) =>
  Agent.program({
    name: "debate",
    run: Effect.fnUntraced(function* (question) {
      let [yes, no] = ["", ""]
      for (let round = 0; round < rounds; round++) {
        yes = yield* Agent.answer(answerer, `Argue for: ${question}\nThe other side: ${no}`, { session: "for" })
        no = yield* Agent.answer(answerer, `Argue against: ${question}\nThe other side: ${yes}`, { session: "against" })
      }
      return yield* choose(question, [yes, no])
    })
  })

let asked = 0
const model = TestChatModel.reactive(({ messages, systemPrompt }) => {
  if (systemPrompt.startsWith("You choose")) return JSON.stringify({ best: 2 })
  const said = Message.text(messages.at(-1) ?? Message.human(""))
  if (said.startsWith("Argue")) return `${said.startsWith("Argue for") ? "yes" : "no"} in turn ${messages.length}`
  return said.includes("draft") ? said.slice(-8, -1) : ++asked === 2 ? "Zurich" : "Bern"
})

const program = Effect.gen(function* () {
  const voted = yield* Agent.run(vote(3), "The capital of Switzerland?")
  const best = yield* Agent.run(bestOf(3), "A slogan")
  const won = yield* Agent.run(debate(2), "Tabs?")
  yield* Console.log([voted.output, best.output, won.output].join("\n"))
  assert.deepEqual([voted.output, best.output, won.output], ["Bern", "draft 2", "no in turn 3"])
})

NodeRuntime.runMain(program.pipe(Effect.provide(model)))
