/** Works on the folder that it is started in: npm start -- "A test fails. Mend it." */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Console, Effect, Layer, Semaphore, Stdio, Terminal } from "effect"
import { Approval } from "effect-deepagents"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import { Printer } from "effect-deepagents/view"
import { agent } from "./agent.ts"
import { model } from "./model.ts"

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
  const [task = "Say what this folder is about."] = yield* (yield* Stdio.Stdio).args
  yield* Printer.run(agent, task)
}).pipe(
  Effect.provide([model, LocalShell.layer({ root: "." }), approvals]),
  Effect.provide(NodeServices.layer),
  Printer.orExit
)

NodeRuntime.runMain(program)
