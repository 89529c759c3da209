/** What every pattern gives its program besides the work. */
import * as Agent from "../../core/Agent.ts"
import * as Middleware from "../../core/Middleware.ts"
import type { AnyAgent } from "./ask.ts"

/**
 * The tools that a pattern reaches, and its middleware. A pattern can be suspended if one of its agents can. `refused`
 * keeps a pattern with wrong options from running.
 */
export const compose = (
  refused: Middleware.Middleware | undefined,
  agents: () => ReadonlyArray<AnyAgent>
): { readonly reaches: ReadonlySet<string>; readonly middleware: ReadonlyArray<Middleware.Middleware> } => {
  if (refused !== undefined) return { reaches: new Set(), middleware: [refused] }
  const all = agents()
  return {
    reaches: new Set(all.flatMap((agent) => [...Agent.toolNames(agent)])),
    middleware: all.some((agent) => Agent.describe(agent).suspends) ? [Middleware.suspendable] : []
  }
}
