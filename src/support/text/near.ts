/** Finds the name that was meant by one that is not there. */
import { didYouMean } from "./names.ts"

/** `Did you mean "model"?`, or the names that there are. */
export const suggestion = (name: string, known: ReadonlyArray<string>): string => {
  const hint = didYouMean(name, known).trim()
  if (hint !== "") return hint
  return known.length === 0 ? "There is none." : `There is: ${known.join(", ")}.`
}
