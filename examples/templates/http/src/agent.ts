import { Agent } from "effect-deepagents"

export const agent = Agent.make({ name: "helper", prompt: "You answer in a few sentences." })
