/**
 * The demo: a deep agent that plans, reads the files of this repository (or of `--root <folder>`), has researchers answer
 * questions side by side, and writes a report to a temporary folder, for which it asks you first.
 *
 * ```sh
 * npm run demo
 * npm run demo -- --root ../another-project
 * npm run demo -- --model ollama:qwen3:8b
 * ```
 */
import { parseArgs } from "node:util"
import { Console, Effect, Exit, FileSystem, Path, Schema, Stdio } from "effect"
import { Agent } from "effect-deepagents"
import { approvals } from "../shared/approvals.ts"
import { chooseModel } from "../shared/model.ts"
import { show } from "../shared/render.ts"
import { main } from "../shared/run.ts"
import { reporter, reportPath } from "./agent.ts"
import { script } from "./script.ts"
import { outputRoute, workspace } from "./workspace.ts"

class DemoError extends Schema.TaggedError<DemoError>()("DemoError", { message: Schema.String }) {}

const help = `npm run demo -- [options]

  --root <folder>           the folder to read; else this repository
  --model <provider:model>  the model, such as anthropic:claude-sonnet-5-5 or ollama:qwen3:8b; else one for the key that is
                            set (ANTHROPIC_API_KEY, OPENAI_API_KEY), else a scripted one
  --help                    this text`

const options = { root: { type: "string" }, model: { type: "string" }, help: { type: "boolean" } } as const

const readOptions = Effect.gen(function* () {
  const args = yield* (yield* Stdio.Stdio).args
  return yield* Effect.try({
    try: () => parseArgs({ args: [...args], options }).values,
    catch: (cause) =>
      new DemoError({ message: `${cause instanceof Error ? cause.message : String(cause)}; --help says what there is` })
  })
})

/** The folder to read: `--root`, else this repository. */
const rootFolder = Effect.fn(function* (root: string | undefined) {
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

const demo = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const { help: wantsHelp, root } = yield* readOptions
  if (wantsHelp === true) return yield* Console.log(help)
  const folder = yield* rootFolder(root)
  const output = yield* outputFolder
  const model = yield* chooseModel(script)

  yield* show(Agent.stream(reporter, "Write a report about the code in this folder.")).pipe(
    Effect.provide([workspace(folder, output), model.layer, approvals(model)])
  )

  const report = path.join(output, path.relative(outputRoute, reportPath))
  if (yield* fs.exists(report)) return yield* Console.log(`\nThe report is in ${report}`)
  yield* fs.remove(output, { recursive: true })
  yield* Console.log("\nNo report was written.")
})

main(demo)
