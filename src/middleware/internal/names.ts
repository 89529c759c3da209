/** Finds two agents with one name, which the model could not distinguish. An agent that offers both can't run. */
export const twoOfOneName = (what: string, named: ReadonlyArray<{ readonly name: string }>): string | undefined => {
  const seen = new Set<string>()
  for (const { name } of named) {
    if (seen.has(name)) return `two ${what} are named "${name}"; rename one of them`
    seen.add(name)
  }
  return undefined
}
