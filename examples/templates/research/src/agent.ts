import { Prompts } from "effect-deepagents/agents"
import { DeepAgent } from "effect-deepagents/deep"

const researcher = DeepAgent.subagent({
  name: "researcher",
  description: "Answers one question from the documents, with its sources. Several can work at once.",
  prompt: Prompts.researcher,
  files: ["ls", "read_file", "glob", "grep"],
  todos: false
})

/** It reads what is in `documents`, and writes its report to `report.md`. */
export const agent = DeepAgent.make({
  name: "lead",
  prompt: [
    "You answer a question from the files in /documents, in a report.",
    "Plan first. Give each part of the question to a researcher, all of them in one turn.",
    "Check what they bring against each other. Write the report to /report.md: the answer first, each claim with the path of its source."
  ].join("\n"),
  files: ["ls", "read_file", "write_file", "edit_file", "glob", "grep"],
  subagents: [researcher],
  generalPurpose: false
})
