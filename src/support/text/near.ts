/** Finds the name that was meant by one that is not there. */
import { didYouMean } from "./names.ts"

/** `Did you mean "model"?`, or the names that there are. */
export const suggestion = (name: string, known: ReadonlyArray<string>): string => {
  const meant = didYouMean(name, known).trim()
  if (meant !== "") return meant
  return known.length === 0 ? "There is none." : `There is: ${known.join(", ")}.`
}
