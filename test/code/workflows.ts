/** A workflow over workers that act in each of their turns, and notes of their effects. */
import { assert } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, type ChatModel, Message, type ModelError, Tool } from "effect-deepagents"
import { Workflow } from "effect-deepagents/code"
import { TestChatModel } from "effect-deepagents/testing"
import * as journal from "../core/journal.ts"

/** The effects: requested turns, refused turns and effects of tools. */
export interface World {
  readonly turns: Array<string>
  readonly refused: Array<string>
  readonly acts: Array<string>
}

export const makeWorld = (from?: World): World => ({
  turns: [...(from?.turns ?? [])],
  refused: [...(from?.refused ?? [])],
  acts: [...(from?.acts ?? [])]
})

export const rounds = 3

/** A tool of which it is known whether it took effect. */
const act = ({ acts }: World) =>
  Tool.make("act", {
    description: "",
    parameters: { on: Schema.String },
    reconcile: ({ on }) => Effect.sync(() => (acts.includes(on) ? Tool.completed(`did ${on}`) : Tool.neverBegan)),
    // It yields, so that workers are in flight beside each other.
    execute: ({ on }) =>
      Effect.as(Effect.repeat(Effect.yieldNow, { times: 5 }), `did ${on}`).pipe(
        Effect.tap(() => Effect.sync(() => acts.push(on)))
      )
  })

export const workerOf = (world: World) => Agent.make({ name: "worker", prompt: "", tools: [act(world)] })

const taskOf = ({ messages: [asked] }: ChatModel.ModelRequest): string =>
  asked === undefined ? "" : Message.text(asked)

const turnOf = ({ messages }: ChatModel.ModelRequest): number => messages.filter(({ role }) => role === "ai").length

/** The turn of a worker. Each costs one. */
export const answerTask = (world: World, request: ChatModel.ModelRequest): TestChatModel.Turn => {
  const [task, turn] = [taskOf(request), turnOf(request)]
  world.turns.push(`${task}#${turn}`)
  const usage = { inputTokens: 1, cost: 1 }
  return turn < rounds - 1
    ? TestChatModel.calls([{ name: "act", arguments: { on: `${task}-${turn}` } }], { usage })
    : TestChatModel.text(`said ${task}`, { usage })
}

/** The model of the workers. */
export const modelOf = (
  world: World,
  refuse: (turn: number, task: string) => ModelError.Reason | undefined = () => undefined
) =>
  TestChatModel.reactive((request) => {
    const reason = refuse(world.turns.length, taskOf(request))
    if (reason === undefined) return answerTask(world, request)
    world.refused.push(`${taskOf(request)}#${turnOf(request)}`)
    return TestChatModel.fail(reason)
  })

export const inThread = { threadId: "t" }

/** Runs one input on a thread. */
export const runInput = (
  world: World,
  stored: journal.Stored,
  input: Workflow.Input,
  refuse?: (turn: number, task: string) => ModelError.Reason | undefined
) => {
  const workflow = Workflow.make({ agents: [workerOf(world)] })
  return Effect.provide(
    Agent.run(workflow, workflow.input(input), inThread),
    Layer.merge(modelOf(world, refuse), journal.layer({ t: stored }))
  )
}

export const stoppedBy = <A, E, R>(run: Effect.Effect<A, E, R>) =>
  Effect.map(Effect.flip(run), (error) => {
    assert(error instanceof Workflow.WorkflowStopped, String(error))
    return error
  })

export const twice = (all: ReadonlyArray<string>): ReadonlyArray<string> =>
  all.filter((one, index) => all.indexOf(one) !== index)

/** A script that asks a worker each task at once. */
export const asking = (tasks: ReadonlyArray<string>): string =>
  `return await parallel(${JSON.stringify(tasks)}.map((task) => () => agent(task)))`

export const tasksOf = (count: number): ReadonlyArray<string> => Array.from({ length: count }, (_, at) => `task ${at}`)
