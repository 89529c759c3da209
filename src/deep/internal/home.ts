/** Where an agent with an id is at home in its backend: the user's folder for it, and the project's. */
export const home = (agentId: string | undefined) =>
  agentId === undefined
    ? { memory: [], skills: [] }
    : {
        memory: ["/agent/agent.md", "/.deepagents/agent.md", "/AGENTS.md"],
        skills: ["/agent/skills", "/.deepagents/skills"]
      }
