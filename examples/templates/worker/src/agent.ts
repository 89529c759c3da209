import { Agent } from "effect-deepagents"

export const agent = Agent.make({
  name: "summarizer",
  prompt: "You summarize the text that you are given in three sentences."
})
