/**
 * Makes an agent of any program that speaks the Agent Client Protocol: a coding agent of others as a sub-agent, a
 * background task, or a step of a program.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { AcpAgent } from "effect-deepagents/acp"
 * import { Budget, Subagents } from "effect-deepagents/middleware"
 *
 * const coder = AcpAgent.make({
 *   name: "coder",
 *   description: "Mends code",
 *   command: ["npx", "-y", "@zed-industries/claude-code-acp"]
 * })
 *
 * const lead = Agent.make({
 *   name: "lead",
 *   prompt: "You plan, and the coder codes.",
 *   middleware: [Subagents.make({ agents: [coder] }), Budget.make({ cost: 0.5, onExhausted: "finalAnswer" })]
 * })
 * ```
 *
 * **A process of others does by itself what its system lets it do.** Its permission requests go to our approvals, and its
 * file and terminal requests to our `Backend` and `Sandbox`. Its own reading, writing and network go past them: run it
 * in a container, or as another user.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type * as Redacted from "effect/Redacted"
import * as Agent from "../core/Agent.ts"
import type { Backend } from "../core/Backend.ts"
import * as Middleware from "../core/Middleware.ts"
import type { Prices } from "../core/Usage.ts"
import { check } from "../support/options/check.ts"
import { AcpError } from "./AcpError.ts"
import { runTask } from "./internal/agent/task.ts"
import * as shapes from "./internal/shapes.ts"

/** An agent of others. */
export interface Options {
  /** The name of the agent, in events, errors and for models. */
  readonly name: string
  /** Tells other agents when to choose it. Default: empty. */
  readonly description?: string | undefined
  /** The program and its arguments. */
  readonly command: readonly [program: string, ...args: ReadonlyArray<string>]
  /**
   * The folder of the machine in which the program starts, and which stands for the working folder of the `Backend`.
   * Default: the working folder of the backend, if the backend is the machine's; else a new, empty folder.
   */
  readonly cwd?: string | undefined
  /** Variables for the program, beside `PATH`, `HOME` and the like. Default: none. */
  readonly env?: { readonly [name: string]: string | Redacted.Redacted<string> } | undefined
  /** The mode in which it works, by its own names. Default: its own choice. */
  readonly mode?: string | undefined
  /** Prices for an estimate of its cost, if it reports none. Default: only reported costs are counted. */
  readonly prices?: Prices | undefined
  /** The time without a message after which it is cancelled. Waiting for a person does not count. Default: 10 minutes. */
  readonly silence?: Duration.Input | undefined
}

/** Its permission requests may suspend a run. */
const permissions = Middleware.make({ name: "AcpPermissions", asks: true })

const checkMake = check(shapes.acpAgentMake)

/**
 * Makes the agent. Its input is a task, its output the text that it answers. A run that resumes loads its session again,
 * and tells it to go on. Its plan, text and calls are events of the run. The output is missing if the run waits for a
 * decision; `Agent.attended` makes it wait.
 */
export const make = (options: Options): Agent.Agent<string | undefined, AcpError, Backend | ChildProcessSpawner> => {
  const problem = checkMake(options)
  return Agent.program({
    name: options.name,
    description: options.description,
    middleware: [permissions],
    run: (task: string) =>
      problem === undefined
        ? runTask(options, task)
        : Effect.fail(new AcpError({ reason: "Invalid", detail: `AcpAgent.make: ${problem}` }))
  })
}
