/** A coder that asks before it changes a file or runs a command. */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, Layer, Semaphore, Stream, Terminal } from "effect"
import { Agent, AgentEvent, Approval } from "effect-deepagents"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { DeepAgent } from "effect-deepagents/deep"
import { ChatModels } from "effect-deepagents/models"

const coder = DeepAgent.make({
  name: "coder",
  prompt: "You change code, and run its tests.",
  execute: true,
  approvals: { tools: { write_file: true, edit_file: true, execute: true } }
})

const atTerminal = Layer.effect(
  Approval.Approvals,
  Effect.gen(function* () {
    const terminal = yield* Terminal.Terminal
    const one = yield* Semaphore.make(1)
    return {
      decide: (request) =>
        one.withPermit(
          Effect.gen(function* () {
            yield* Effect.ignore(terminal.display(`\n? ${request.description} (y/n) `))
            const line = yield* Effect.orElseSucceed(terminal.readLine, () => "n")
            return line === "y" ? Approval.approve(request) : Approval.reject(request, "The person said no.")
          })
        )
    }
  })
)

const program = Agent.stream(coder, process.argv[2] ?? "Mend the tests.").pipe(
  AgentEvent.textDeltas,
  Stream.runForEach((text) => Console.log(text)),
  Effect.provide([atTerminal, LocalShell.layer({ root: "." }), ChatModels.resolve("anthropic:claude-sonnet-5-5")]),
  Effect.provide(NodeServices.layer)
)

NodeRuntime.runMain(program)
