/**
 * The demo's agent: it plans, looks around, has researchers answer questions side by side, and writes a report, for
 * which it asks first.
 */
import { DeepAgent } from "effect-deepagents/deep"
import { outputRoute } from "./workspace.ts"

/** Where the report goes. */
export const reportPath = `${outputRoute}/report.md`

const researcher = DeepAgent.subagent({
  name: "researcher",
  description: "Answers one question about the code. It searches and reads by itself.",
  prompt: "You answer one question about the code in this folder. Search, read what you found, name your sources.",
  files: ["ls", "read_file", "glob", "grep"],
  todos: false,
  maxRounds: 10
})

/** Its type says all that it needs: `Agent<string, ModelError, ChatModel | Backend | Approvals>`. */
export const reporter = DeepAgent.make({
  name: "reporter",
  prompt: [
    "You write a short report about the code in this folder, with numbers that you have read or counted yourself.",
    "Say after each step what you have found. Have several researchers answer questions at once.",
    `Finish by writing the report to ${reportPath}, the one place that you can write to, then say what you found.`
  ].join("\n"),
  files: ["ls", "read_file", "write_file", "edit_file", "glob", "grep"],
  subagents: [researcher],
  generalPurpose: false,
  approvals: {
    mode: "ask",
    tools: { write_file: { describe: ({ file_path }) => `May I write ${JSON.stringify(file_path)}?` } }
  },
  // Much smaller than the defaults, so that short work shows what long work needs.
  summarization: { contextWindowTokens: 14_000 },
  largeResults: { toolResults: 4_000 },
  maxRounds: 30
})
