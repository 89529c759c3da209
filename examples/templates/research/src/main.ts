/** Answers a question from the files in `documents`: npm start -- "What changed between the two years?" */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect, Layer, Stdio } from "effect"
import { CompositeBackend, Permissions } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"
import { Printer } from "effect-deepagents/view"
import { agent } from "./agent.ts"
import { model } from "./model.ts"

/** The documents can only be read; whatever the agent writes goes to `output`. */
const files = CompositeBackend.layer({
  default: FilesystemBackend.layer({ root: "output" }),
  routes: {
    "/documents": Permissions.layer({
      rules: [{ operations: ["read"], paths: ["/**"], ruling: "allow" }],
      default: "refuse"
    }).pipe(Layer.provide(FilesystemBackend.layer({ root: "documents" })))
  }
})

const program = Effect.gen(function* () {
  const [question = "What is in the documents?"] = yield* (yield* Stdio.Stdio).args
  yield* Printer.run(agent, question)
}).pipe(Effect.provide([model, files, NodeServices.layer]), Printer.orExit)

NodeRuntime.runMain(program)
