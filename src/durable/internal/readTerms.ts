/** Reads the options of durable agents. */
import * as Agent from "../../core/Agent.ts"
import { make } from "../../core/Middleware.ts"
import { nameIn } from "../../core/schema/invalid.ts"
import type { Check } from "../../support/options/check.ts"

/** Gives the options. Wrong ones become an agent whose runs fail with the problem. */
export const readTerms = <Options extends object>(find: Check, options: Options): Options => {
  const problem = find(options)
  if (problem === undefined) return options
  const name = nameIn(options)
  const agent = Agent.make({ name, prompt: "", middleware: [make({ name: "Options", check: () => problem })] })
  // The agent fails before it needs or says anything.
  return { name, agent } as object as Options
}
