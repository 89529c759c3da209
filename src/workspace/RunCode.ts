/**
 * Makes the tool `run_code`, which runs JavaScript, TypeScript, Python or shell in the sandbox of the agent.
 *
 * The sandbox must isolate: the tool needs `Sandbox.Isolated`, which `LocalShell` does not provide. The sandbox must have
 * the interpreters: Node (22.18 or later for TypeScript), Python 3, a shell.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { RunCode } from "effect-deepagents/workspace"
 *
 * const analyst = Agent.make({ name: "analyst", prompt: "You compute.", tools: [RunCode.make()] })
 * // On your own machine, knowingly: Layer.succeed(Sandbox.Isolated, { by: "nothing", network: "open" })
 * ```
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Isolated, Sandbox } from "../core/Sandbox.ts"
import { readOptions, refuseTool } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import { check } from "../support/options/check.ts"
import { sha256 } from "../support/store/hash.ts"
import * as shapes from "./internal/shapes.ts"

/** Options of the tool. */
export interface Options {
  /** Allowed languages. Default: all. */
  readonly languages?: ReadonlyArray<Language> | undefined
  /** Time limit of a program. Default: 1 minute. */
  readonly timeout?: Duration.Input | undefined
}

const all = ["javascript", "typescript", "python", "shell"] as const

type Language = (typeof all)[number]

const programs: { readonly [Key in Language]: { readonly run: string; readonly extension: string } } = {
  javascript: { run: "node", extension: "mjs" },
  typescript: { run: "node --disable-warning=ExperimentalWarning", extension: "mts" },
  python: { run: "python3", extension: "py" },
  shell: { run: "sh", extension: "sh" }
}

const maxLength = 30_000

const folder = ".code"

const checkMake = check(shapes.runCodeMake)

/** Makes the tool. */
export const make = (options: Options = {}): Tool.Tool<Sandbox | Isolated | ToolContext> => {
  const [{ languages = all, timeout: limit = "1 minute" }, problem] = readOptions(checkMake, options)
  const timeout = Duration.fromInputUnsafe(limit)
  return refuseTool(
    problem,
    Tool.make("run_code", {
      description: `Runs a program in the sandbox, in the folder of your files, and gives what it prints. It begins anew each time, and ends after ${Duration.toSeconds(timeout)} seconds.`,
      parameters: {
        language: Schema.Literals(languages),
        code: Schema.NonEmptyString.annotate({ description: "The whole program: print what you want to know" }),
        input: Schema.optionalKey(Schema.String.annotate({ description: "What it reads from its standard input" }))
      },
      annotations: { destructive: true, openWorld: true, volatile: true, runsCommands: true },
      execute: Effect.fnUntraced(function* ({ code, input, language }) {
        const sandbox = yield* Sandbox
        // The two may come from different layers.
        if (sandbox.onHost === true && (yield* Isolated).by !== "nothing") {
          return yield* ToolError.make(
            "run_code is refused here: the sandbox does not isolate, though another layer provides Sandbox.Isolated. Whoever set this up must provide both by one layer, such as OsSandbox.layer"
          )
        }
        const { callId, runId } = yield* ToolContext
        const { extension, run } = programs[language]
        // Models choose call ids, so two runs in one sandbox may repeat one.
        const name = `${(yield* sha256(`${runId}\n${callId}`)).slice(0, 40)}.${extension}`
        const answer = yield* Effect.acquireUseRelease(
          sandbox.write(`${folder}/${name}`, code),
          () => sandbox.execute(`${run} ${folder}/${name}`, { timeout, stdin: input }),
          () => Effect.ignore(sandbox.delete(`${folder}/${name}`))
        )
        const output = ToolOutput.truncateText(answer.output.trimEnd(), maxLength)
        const end = answer.exitCode === 0 ? [] : [`[the program failed with exit code ${answer.exitCode}]`]
        return ToolOutput.make([output === "" ? "[it printed nothing]" : output, ...end].join("\n"), {
          isError: answer.exitCode !== 0,
          details: { kind: "code", language, exitCode: answer.exitCode }
        })
      })
    })
  )
}
