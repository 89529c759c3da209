/** A workflow that is a task in the background: a corrected script goes on with it. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Agent, Message } from "effect-deepagents"
import { Workflow } from "effect-deepagents/code"
import * as NodeScripts from "effect-deepagents/code/NodeScripts"
import { BackgroundSubagents, BackgroundTasks } from "effect-deepagents/middleware"
import { TestChatModel } from "effect-deepagents/testing"
import { answerTask, makeWorld, rounds, twice, workerOf } from "./workflows.ts"

it.live(
  "a corrected script asks no finished agent again, and resumes those in flight",
  () =>
    Effect.gen(function* () {
      const world = makeWorld()
      const workflow = Workflow.make({ agents: [workerOf(world)] })
      const lead = Agent.make({
        name: "lead",
        prompt: "You lead.",
        middleware: [BackgroundSubagents.make({ agents: [workflow] })]
      })
      const ask = (task: string) => `await agent(${JSON.stringify(task)})`
      const inputs = [
        { script: `const all = [${ask("a")}, ${ask("b")}]; null.x` },
        { script: `const all = [${ask("a")}, ${ask("b")}, ${ask("c")}]; return all` },
        { script: `return [${ask("c")}, ${ask("b")}, ${ask("a")}]` }
      ].map((input) => JSON.stringify(input))
      const [first = "", second = "", third = ""] = inputs
      const calls = [
        { name: "start_task", arguments: { subagent_type: "workflow", description: first } },
        { name: "check_task", arguments: { task_id: "task-1", wait_seconds: 20 } },
        { name: "update_task", arguments: { task_id: "task-1", message: second } },
        { name: "check_task", arguments: { task_id: "task-1", wait_seconds: 20 } },
        { name: "update_task", arguments: { task_id: "task-1", message: third } },
        { name: "check_task", arguments: { task_id: "task-1", wait_seconds: 20 } }
      ]
      const said: Array<string> = []
      let hasRefused = false
      const model = TestChatModel.reactive((request) => {
        if (request.tools.every(({ name }) => name !== "start_task")) {
          const isInFlight =
            request.messages.length > 1 && Message.text(request.messages[0] ?? Message.human("")) === "c"
          if (!isInFlight || hasRefused) return answerTask(world, request)
          hasRefused = true
          return TestChatModel.fail({ _tag: "QuotaExhausted" })
        }
        said.splice(0, said.length)
        for (const message of request.messages) if (message.role === "tool") said.push(Message.text(message))
        const id = /Started (\S+)/.exec(said[0] ?? "")?.[1] ?? ""
        const next = calls[said.length]
        if (next === undefined) return "over"
        return TestChatModel.calls([
          { ...next, arguments: "task_id" in next.arguments ? { ...next.arguments, task_id: id } : next.arguments }
        ])
      })
      yield* Effect.provide(Agent.run(lead, "go"), model)
      assert.match(said[1] ?? "", /script failed[^]*2 finished/, said.join("\n"))
      assert.match(said[3] ?? "", /2 finished, 1 in flight \("c"\)/, said.join("\n"))
      assert.include(said[5] ?? "", '{"value":["said c","said b","said a"],"agents":3,"replayed":2}')
      assert.strictEqual(world.turns.length, 3 * rounds)
      assert.deepStrictEqual(twice(world.turns), [])
      assert.deepStrictEqual(twice(world.acts), [])
    }).pipe(Effect.provide([BackgroundTasks.layer(), NodeScripts.layer()])),
  60_000
)
