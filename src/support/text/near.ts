/** Finds the name that was meant by one that is not there. */
import { didYouMean } from "./names.ts"

/** `Did you mean "model"?`, or the names that there are. */
export const suggestion = (name: string, names: ReadonlyArray<string>): string => {
  const hint = didYouMean(name, names).trim()
  if (hint !== "") return hint
  return names.length === 0 ? "There is none." : `There is: ${names.join(", ")}.`
}
