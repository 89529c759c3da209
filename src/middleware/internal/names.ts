/** Finds two agents with one name, which the model could not distinguish. An agent that offers both can't run. */
export const twoOfOneName = (what: string, named: ReadonlyArray<{ readonly name: string }>): string | undefined => {
  const seen = new Set<string>()
  for (const { name } of named) {
    if (seen.has(name)) return `two ${what} are named "${name}"; rename one of them`
    seen.add(name)
  }
  return undefined
}

/** The problem of sub-agents of which one has no description: the model chooses by it. */
export const withoutDescription = (
  agents: ReadonlyArray<{ readonly name: string; readonly description?: string | undefined }>
): string | undefined => {
  const nameless = agents.find(({ description }) => description === undefined || description.trim() === "")
  return nameless === undefined
    ? undefined
    : `the sub-agent "${nameless.name}" has no description, by which the model chooses it; say in a sentence what it does`
}
