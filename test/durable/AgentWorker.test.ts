/** Tasks of a thread that are threads of the cluster: they go on when the process ends that began them. */
import { rmSync, writeFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Approval, type Json, Message, Tool } from "effect-deepagents"
import { AgentEntity, AgentWorker } from "effect-deepagents/durable"
import { BackgroundSubagents, BackgroundTasks, HumanInTheLoop } from "effect-deepagents/middleware"
import { SessionStore } from "effect-deepagents/sessions"
import { TestChatModel } from "effect-deepagents/testing"
import { did } from "./children/agents.ts"
import { runner, ticking } from "./entities.ts"
import { folder } from "./places.ts"
import { runMachine } from "./single.ts"

const pay = Tool.make("pay", {
  description: "",
  parameters: { amount: Schema.Finite },
  execute: ({ amount }) => Effect.succeed(`${amount} paid`)
})

const clerk = Agent.make({
  name: "clerk",
  description: "Pays",
  prompt: "clerk",
  tools: [pay],
  middleware: [HumanInTheLoop.make({ tools: { pay: true } })]
})
const entity = AgentEntity.make({ name: "clerk", agent: clerk })

const lead = Agent.make({
  name: "lead",
  prompt: "lead",
  middleware: [BackgroundSubagents.make({ agents: [AgentWorker.make(entity)] })]
})

const call = (name: string, args: Json.JsonObject) => TestChatModel.calls([{ name, arguments: args }])

/** The lead calls a tool for each command. The clerk pays, and repeats its message. */
const model = TestChatModel.reactive(({ messages, systemPrompt }) => {
  const last = messages.at(-1) ?? Message.human("")
  const text = Message.text(last)
  if (systemPrompt.includes("clerk")) {
    return last.role === "human" && text.startsWith("pay")
      ? call("pay", { amount: 7 })
      : TestChatModel.text(`I was told: ${text}`, { usage: { outputTokens: 5 } })
  }
  if (last.role === "tool") return text
  const [what = "", ...words] = text.split(" ")
  if (what === "start") return call("start_task", { description: words.join(" "), subagent_type: "clerk" })
  if (what === "check") return call("check_task", { task_id: "task-1", wait_seconds: 30 })
  if (what === "update") return call("update_task", { task_id: "task-1", message: words.join(" ") })
  return call("cancel_task", { task_id: words[0] ?? "task-1" })
})

const place = Layer.provideMerge(runner(entity), model)

const ask = (input: string, threadId = "t") =>
  Effect.map(Effect.provide(Agent.run(lead, input, { threadId }), SessionStore.journal), ({ text }) => text)

/** Each process has a supervisor of its own; the cluster stays. */
const inProcess = <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.provide(work, BackgroundTasks.layer())

describe("AgentWorker", () => {
  it.effect("a task goes on over the ends of processes: begun, asked, decided, continued, with its usage", () =>
    ticking(
      Effect.gen(function* () {
        assert.include(yield* inProcess(ask("start pay for it")), "Started task-1")
        // The next process finds the task, and its pending requests.
        yield* inProcess(
          Effect.gen(function* () {
            assert.match(yield* ask("check"), /task-1 \(clerk\): suspended/)
            const { decide, list } = yield* BackgroundTasks.BackgroundTasks
            for (const { key, pending } of yield* list())
              yield* decide(
                key,
                pending.map((one) => Approval.approve(one))
              )
            assert.match(yield* ask("check"), /completed\n\nI was told: 7 paid/)
          })
        )
        // The third one continues it: it knows its work so far.
        yield* inProcess(
          Effect.gen(function* () {
            yield* ask("update and the tip")
            assert.match(yield* ask("check"), /completed\n\nI was told: and the tip/)
            const [task] = yield* (yield* BackgroundTasks.BackgroundTasks).list()
            assert.strictEqual(task?.usage?.outputTokens, 10)
          })
        )
      })
    ).pipe(Effect.provide(place))
  )

  it.effect("is stopped by the thread that began it, and by no other one", () =>
    ticking(
      inProcess(
        Effect.gen(function* () {
          yield* ask("start pay for it")
          yield* ask("check")
          assert.match(yield* ask("cancel task-1", "other"), /There is no task "task-1"/)
          assert.match(yield* ask("check"), /suspended/)
          assert.match(yield* ask("cancel"), /task-1 \(clerk\) is cancelled/)
        })
      )
    ).pipe(Effect.provide(place))
  )

  it.live(
    "goes on after kill -9 of its process, and pays once",
    Effect.fnUntraced(function* () {
      const path = yield* folder
      writeFileSync(`${path}/hold-pay`, "")
      yield* runMachine(path, "lead start", "pay 1")
      rmSync(`${path}/hold-pay`)
      assert.match(yield* runMachine(path, "lead check"), /task-1 \(teller\): completed\\n\\ndone 1/)
      assert.strictEqual(did(path).filter(({ what }) => what === "pay 1").length, 1)
    }, Effect.scoped),
    60_000
  )
})
