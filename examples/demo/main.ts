/**
 * The demo: an agent that plans, reads the files of this repository (or of `--root <folder>`), delegates a question to
 * a sub-agent and writes a report to a temporary folder, while everything that happens is shown.
 *
 * ```sh
 * npm run demo
 * npm run demo -- --root ../another-project
 * npm run demo -- --model ollama:qwen3:8b
 * ```
 */
import { parseArgs } from "node:util"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Cause, Config, Console, Effect, Exit, FileSystem, Option, Path, Schema, Sink, Stdio, Stream } from "effect"
import { Agent } from "effect-deepagents"
import { reporter, reportPath } from "./agents.ts"
import { choose } from "./model.ts"
import { type Open, render, style } from "./render.ts"
import { outputRoute, workspace } from "./workspace.ts"

class DemoError extends Schema.TaggedError<DemoError>()("DemoError", { message: Schema.String }) {}

/** What was asked for on the command line. */
const options = Effect.gen(function* () {
  const args = yield* (yield* Stdio.Stdio).args
  const { values } = yield* Effect.try({
    try: () => parseArgs({ args: [...args], options: { root: { type: "string" }, model: { type: "string" } } }),
    catch: (cause) => new DemoError({ message: cause instanceof Error ? cause.message : String(cause) })
  })
  return values
})

/** The folder to read: `--root`, else this repository. */
const rootFolder = Effect.fnUntraced(function* (root: string | undefined) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const folder = root ?? (yield* path.fromFileUrl(new URL("../..", import.meta.url)))
  const isFolder = yield* fs.stat(folder).pipe(
    Effect.map((info) => info.type === "Directory"),
    Effect.orElseSucceed(() => false)
  )
  return isFolder ? folder : yield* new DemoError({ message: `--root ${folder} is not a folder` })
})

/** A folder that stays if the demo ends well, and goes if it fails or is interrupted. */
const outputFolder = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  return yield* Effect.acquireRelease(fs.makeTempDirectory({ prefix: "effect-deepagents-demo-" }), (folder, exit) =>
    Exit.isSuccess(exit) ? Effect.void : Effect.ignore(fs.remove(folder, { recursive: true }))
  )
})

const variable = (name: string) => Config.String(name).pipe(Config.withDefault(""))

const demo = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const stdio = yield* Stdio.Stdio
  const { model, root } = yield* options
  const folder = yield* rootFolder(root)
  const output = yield* outputFolder
  const reportFile = path.join(output, path.relative(outputRoute, reportPath))

  const chosen = yield* choose(model)
  yield* Console.log(chosen.line)

  const colours = (yield* variable("NO_COLOR")) === "" && (yield* stdio.stdoutIsTerminal)
  yield* Agent.stream(reporter, "Write a report about the code in this folder.").pipe(
    Stream.mapAccum((): Open => undefined, render(style(colours))),
    Stream.run(Sink.mapError(stdio.stdout(), () => new DemoError({ message: "nobody reads the output any more" }))),
    Effect.provide([workspace(folder, output), chosen.layer])
  )

  if (!(yield* fs.exists(reportFile))) return yield* new DemoError({ message: "the agent wrote no report" })
  const lines = (yield* fs.readFileString(reportFile)).split("\n").length - 1
  yield* Console.log(`\nThe report (${lines} lines) is in ${reportFile}`)
}).pipe(Effect.scoped)

/** A failure is one line, a bug has its stack. */
const explain = (cause: Cause.Cause<{ readonly message: string }>) => {
  if (Cause.hasInterruptsOnly(cause)) return Console.error("\nInterrupted: nothing was left behind.")
  const failure = Cause.findErrorOption(cause)
  return Console.error(Option.isSome(failure) ? `demo: ${failure.value.message}` : Cause.pretty(cause))
}

NodeRuntime.runMain(demo.pipe(Effect.provide(NodeServices.layer), Effect.onError(explain)), {
  disableErrorReporting: true
})
