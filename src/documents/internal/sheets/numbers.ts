/** Numbers of spreadsheets that stand for dates and times, by the formats of their cells. */

const day = 86_400_000

/** Formats without a code of their own that show a date or a time. */
const builtIn = (id: number): boolean =>
  (id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 47) || (id >= 50 && id <= 58)

/** Literal text of a format, and text in brackets (a colour, a locale), is no part of a date. */
const literal = /"[^"]*"|\\.|_.|\*.|\[(?![hms]+\])[^\]]*\]/gi

/** Tells whether a format shows a number as a date or a time. */
export const isDate = (id: number, code: string | undefined): boolean =>
  code === undefined ? builtIn(id) : /[dmyhs]/i.test(code.slice(0, 1_000).replaceAll(literal, ""))

/**
 * A serial number as a date, a time, or both. Excel counts 1900 as a leap year, so that its days before March of that
 * year are one off; books of old Macs count from 1904.
 */
export const dateOf = (serial: number, from1904: boolean): string | undefined => {
  if (!(serial >= 0 && serial < 2_958_466)) return undefined
  const start = from1904 ? Date.UTC(1904, 0, 1) : Date.UTC(1899, 11, serial < 60 ? 31 : 30)
  const iso = new Date(start + Math.round(serial * 86_400) * 1000).toISOString()
  const time = iso.slice(11, 19)
  if (serial < 1) return time
  return (Math.round(serial * 86_400) * 1000) % day === 0 ? iso.slice(0, 10) : `${iso.slice(0, 10)} ${time}`
}

/** The number of a column by its letters, from 0; `undefined` if these name none. */
export const columnOf = (reference: string): number | undefined => {
  let column = 0
  for (const letter of /^[A-Z]{1,3}/.exec(reference)?.[0] ?? "") column = column * 26 + letter.charCodeAt(0) - 64
  return column === 0 ? undefined : column - 1
}

/** The letters of a column. */
export const lettersOf = (column: number): string => {
  let letters = ""
  for (let left = column + 1; left > 0; left = Math.floor((left - 1) / 26)) {
    letters = String.fromCharCode(65 + ((left - 1) % 26)) + letters
  }
  return letters
}
