/** Finds two agents of one name, of which one could not be chosen: an agent that offers both can't run. */
export const twoOfOneName = (what: string, named: ReadonlyArray<{ readonly name: string }>): string | undefined => {
  const seen = new Set<string>()
  for (const { name } of named) {
    if (seen.has(name)) return `two ${what} are named "${name}"; rename one of them`
    seen.add(name)
  }
  return undefined
}
