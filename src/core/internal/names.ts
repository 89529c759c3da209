/** Finds the tool that a model means. */
import { normaliseName } from "../../support/text/names.ts"

/**
 * The one tool that a model means: the exact name, else the only one that differs by case, `-` or `_`, else none. Done
 * once, before any gate: everything after sees the canonical name.
 */
export const resolveName = (
  names: { has(name: string): boolean },
  normalised: () => ReadonlyMap<string, string | undefined>,
  name: string
): string | undefined => (names.has(name) ? name : normalised().get(normaliseName(name)))
