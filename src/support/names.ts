/**
 * Rules for ids and names that callers choose, and the comparison of names that hosts write differently.
 */

/** A name without case, `-` and `_`: in these, hosts differ and small models err. */
export const normaliseName = (name: string): string => name.toLowerCase().replaceAll(/[-_]/g, "")

// oxlint-disable-next-line no-control-regex -- they are what is looked for
const control = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/u

/** Says why a text of at most `most` characters can't be an id or a name; `undefined` if it can. */
export const nameProblem = (name: string, most: number): string | undefined => {
  if (typeof name !== "string" || name === "") return "it is empty"
  if (name.length > most) return `it is longer than ${most} characters`
  if (!name.isWellFormed()) return "it is no valid Unicode"
  return control.test(name) ? "it has control characters" : undefined
}
