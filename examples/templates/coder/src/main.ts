/** Works on the folder that it is started in: npm start -- "A test fails. Mend it." */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Config, Console, Effect, Layer, Semaphore, Stdio, Stream, Terminal } from "effect"
import { Agent, AgentEvent, Approval } from "effect-deepagents"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { ChatModels } from "effect-deepagents/models"
import { agent } from "./agent.ts"

const model = Layer.unwrap(
  Effect.map(Config.String("MODEL").pipe(Config.withDefault("anthropic:claude-sonnet-5-5")), (spec) =>
    ChatModels.resolve(spec)
  )
)

/** Asks whoever sits at the terminal; only "y" is a yes. */
const approvals = Layer.effect(
  Approval.Approvals,
  Effect.gen(function* () {
    const terminal = yield* Terminal.Terminal
    const one = yield* Semaphore.make(1)
    return {
      decide: (request) =>
        one.withPermits(1)(
          Effect.gen(function* () {
            yield* Console.log(`\n? ${JSON.stringify(request.description)}`)
            yield* Effect.ignore(terminal.display("  y, a (always), n: "))
            const line = yield* Effect.orElseSucceed(terminal.readLine, () => "n")
            if (line.trim() === "y") return Approval.approve(request)
            return line.trim() === "a" ? Approval.approve(request, { always: true }) : Approval.reject(request)
          })
        )
    }
  })
)

const program = Effect.gen(function* () {
  const terminal = yield* Terminal.Terminal
  const [task = "Say what this folder is about."] = yield* (yield* Stdio.Stdio).args
  const words = AgentEvent.textDeltas(Agent.stream(agent, task))
  yield* Stream.runForEach(words, (text) => terminal.display(text))
}).pipe(
  Effect.provide([model, LocalShell.layer({ root: "." }), approvals]),
  Effect.provide(NodeServices.layer),
  Effect.tapError((error) => Console.error(error.message))
)

NodeRuntime.runMain(program, { disableErrorReporting: true })
