/** Checks the numbers in options of scripts: `NaN` would limit nothing. */

/** Finds a number below `least`; `Infinity` is no limit. */
export const findLimitProblem = (
  owner: string,
  least: number,
  numbers: { readonly [name: string]: number | undefined }
): string | undefined => {
  for (const [name, value] of Object.entries(numbers)) {
    if (value !== undefined && !(value >= least)) {
      return `${owner}: \`${name}\` must be a number of at least ${least}, not ${value}`
    }
  }
  return undefined
}
