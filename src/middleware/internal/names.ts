/** What keeps an agent from running that offers several others: two of one name, of which one could not be chosen. */
export const twoOfOneName = (what: string, named: ReadonlyArray<{ readonly name: string }>): string | undefined => {
  const seen = new Set<string>()
  for (const { name } of named) {
    if (seen.has(name)) return `two ${what} are named "${name}"; rename one of them`
    seen.add(name)
  }
  return undefined
}
