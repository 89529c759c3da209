/** Numbers the form of what is stored, and says which of it can be read. */
import { brief } from "../text/issues.ts"

/**
 * The version of everything that is stored or sent as JSON: messages, events, checkpoints, entries of threads, and the
 * lines of their files and exports. Each record says it. What an earlier version wrote is read by the schema of its
 * record, which knows all forms that the record ever had (a default for a key that it did not have, a union with a
 * transformation of what was otherwise), so that it is read wherever it is kept, in a slot of the state too.
 *
 * It counts up with the first release that writes what the release before it can't read whole, be it one more key: that
 * one refuses such a record, and does not lose what it does not know. `npm run corpus` keeps what each release writes.
 */
export const version: number = 1

/** The reason why a record of this version can't be read. A record that is never without its version needs one. */
export const versionProblem = (found: unknown): string | undefined => {
  if (typeof found !== "number" || !Number.isInteger(found) || found < 1) {
    return `its version is ${brief(found)}, and effect-deepagents writes numbers from 1; it is damaged, or of another program`
  }
  return found <= version
    ? undefined
    : `it is of version ${found}, and this effect-deepagents reads up to version ${version}: a later one wrote it, so update effect-deepagents`
}
