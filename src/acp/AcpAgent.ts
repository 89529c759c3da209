/**
 * Makes an agent of any program that speaks the Agent Client Protocol: a coding agent of others as a sub-agent, a
 * background task, or a step of a program.
 *
 * ```ts
 * import { Agent } from "effect-deepagents"
 * import { AcpAgent } from "effect-deepagents/acp"
 * import { Budget, Subagents } from "effect-deepagents/middleware"
 * import * as NodeEgress from "effect-deepagents/net/NodeEgress"
 *
 * const coder = AcpAgent.make({
 *   name: "coder",
 *   description: "Mends code",
 *   command: ["npx", "-y", "@zed-industries/claude-code-acp"],
 *   isolation: {
 *     egress: (listener) =>
 *       NodeEgress.start({ rules: { allow: ["registry.npmjs.org", "api.anthropic.com"] }, listener })
 *   }
 * })
 *
 * const lead = Agent.make({
 *   name: "lead",
 *   prompt: "You plan, and the coder codes.",
 *   middleware: [Subagents.make({ agents: [coder] }), Budget.make({ cost: 0.5, onExhausted: "finalAnswer" })]
 * })
 * ```
 *
 * Its permission requests go to our approvals, and its file and terminal requests to our `Backend` and `Sandbox`. Its
 * process runs in a sandbox (`isolation`): by itself, it reaches the working folder, and no network.
 */
import * as Effect from "effect/Effect"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type { Scope } from "effect/Scope"
import * as Agent from "../core/Agent.ts"
import type { Backend } from "../core/Backend.ts"
import * as Middleware from "../core/Middleware.ts"
import { check } from "../support/options/check.ts"
import { AcpError } from "./AcpError.ts"
import type { Options } from "./internal/agent/options.ts"
import { runTask } from "./internal/agent/task.ts"
import * as shapes from "./internal/shapes.ts"

export type { Options } from "./internal/agent/options.ts"

/** Its permission requests may suspend a run. */
const permissions = Middleware.make({ name: "AcpPermissions", asks: true })

const checkMake = check(shapes.acpAgentMake)

/**
 * Makes the agent. Its input is a task, its output the text that it answers. A run that resumes loads its session again,
 * and tells it to go on. Its plan, text and calls are events of the run. The output is missing if the run waits for a
 * decision; `Agent.attended` makes it wait.
 */
export const make = <R = never>(
  options: Options<R>
): Agent.Agent<string | undefined, AcpError, Backend | ChildProcessSpawner | Exclude<R, Scope>> => {
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
