import { Prompts } from "effect-deepagents/agents"
import { DeepAgent } from "effect-deepagents/deep"

/** Reads at will; asks before it changes a file or runs a command. */
export const agent = DeepAgent.make({
  name: "coder",
  prompt: `${Prompts.deep}\n\nTests are run by: npm test`,
  execute: { timeout: "1 minute", maxTimeout: "10 minutes" },
  approvals: {
    destructive: true,
    tools: {
      write_file: true,
      edit_file: true,
      // What proves a change needs no answer; "always" is for this very command.
      execute: { when: ({ command }) => command !== "npm test", likeness: ({ command }) => JSON.stringify(command) }
    }
  }
})
