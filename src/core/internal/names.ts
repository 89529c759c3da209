/** Two names that differ only in case, `-` and `_` are one name to a small model. */
export const foldName = (name: string): string => name.toLowerCase().replaceAll(/[-_]/g, "")

/**
 * The one tool that a model means: the exact name, else the only one that differs by case, `-` or `_`, else none. Done
 * once, before any gate: everything after sees the canonical name.
 */
export const resolveName = (
  names: { has(name: string): boolean },
  folded: ReadonlyMap<string, string | undefined>,
  name: string
): string | undefined => (names.has(name) ? name : folded.get(foldName(name)))
