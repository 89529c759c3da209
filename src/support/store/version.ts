/** The version of stored records. */
import { brief } from "../text/issues.ts"

/**
 * The version of all stored or sent JSON: messages, events, checkpoints, entries of threads, lines of files and exports.
 * Each record contains it. The schema of a record reads all its earlier forms, by defaults for new keys and unions with
 * transformations.
 *
 * Increase it with the first release that writes a record which the release before can't read completely, also for one
 * new key: that release then refuses the record and loses nothing. `npm run corpus` keeps the records of each release.
 */
export const version: number = 1

/** Says why a record of this version can't be read; `undefined` if it can. */
export const versionProblem = (other: unknown): string | undefined => {
  if (typeof other !== "number" || !Number.isInteger(other) || other < 1) {
    return `its version is ${brief(other)}, and effect-deepagents writes numbers from 1; it is damaged, or of another program`
  }
  return other <= version
    ? undefined
    : `it is of version ${other}, and this effect-deepagents reads up to version ${version}: a later one wrote it, so update effect-deepagents`
}
