import { expect, it } from "@effect/vitest"
import { Agent, Middleware, type Run, Tool, ToolContext } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

const shown = [
  "agent",
  "call",
  "charge",
  "compacted",
  "count",
  "custom",
  "depth",
  "messages",
  "model",
  "offered",
  "parent",
  "path",
  "relay",
  "round",
  "runId",
  "scope",
  "spent",
  "startedAt",
  "state",
  "threadId",
  "usage",
  "waited",
  "warn"
]

it.effect("middleware, tools and stop conditions see one run, and no internals of the loop", () =>
  Effect.gen(function* () {
    const seen = new Set<Run.Run>()
    const see = (run: Run.Run) => Effect.sync(() => void seen.add(run))
    const look = Tool.make("look", {
      description: "Looks",
      parameters: {},
      execute: () => Effect.flatMap(ToolContext.ToolContext, ({ run }) => Effect.as(see(run), "seen"))
    })
    const watcher = Middleware.make({
      name: "watcher",
      prompt: (run) => Effect.as(see(run), ""),
      beforeAgent: see,
      beforeModel: see,
      afterModel: see,
      afterAgent: see,
      rulings: (run, calls) =>
        Effect.as(
          see(run),
          calls.map(() => undefined)
        ),
      wrapModelCall: (request, next, run) => {
        seen.add(run)
        return next(request)
      },
      wrapToolCall: (call, next, run) => Effect.andThen(see(run), next(call))
    })
    const agent = Agent.make({
      name: "watched",
      prompt: "Look.",
      tools: [look],
      middleware: [watcher],
      stopWhen: [(run) => Effect.as(see(run), false)]
    })
    yield* Agent.run(agent, "Look")
    const [run, ...others] = seen
    expect(others).toEqual([])
    expect(Object.keys(run ?? {}).toSorted()).toEqual(shown)
  }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "look", arguments: {} }]), "done"])))
)

it.effect("a sub-agent can't begin with a foreign run", () =>
  Effect.gen(function* () {
    const child = Agent.make({ name: "child", prompt: "Help." })
    const lend = Tool.make("lend", {
      description: "Lends",
      parameters: {},
      execute: () =>
        Effect.gen(function* () {
          const context = yield* ToolContext.ToolContext
          const stranger = { ...context, run: { ...context.run } }
          const exit = yield* Effect.exit(
            Effect.provideService(Agent.delegate(child, "Help"), ToolContext.ToolContext, stranger)
          )
          return Exit.isFailure(exit) ? Cause.pretty(exit.cause) : "begun"
        })
    })
    const agent = Agent.make({ name: "parent", prompt: "Lend.", tools: [lend] })
    const { messages } = yield* Agent.run(agent, "Lend")
    const answer = messages.find(({ role }) => role === "tool")
    expect(JSON.stringify(answer)).toContain("This run was not begun by Agent")
  }).pipe(Effect.provide(TestChatModel.script([TestChatModel.calls([{ name: "lend", arguments: {} }]), "done"])))
)
