/** Dates and column letters of spreadsheets. */

const day = 86_400_000

/** Returns true for built-in formats of dates and times. */
const isBuiltIn = (id: number): boolean =>
  (id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 47) || (id >= 50 && id <= 58)

/** Literal text, and text in brackets such as a colour or a locale. */
const literal = /"[^"]*"|\\.|_.|\*.|\[(?![hms]+\])[^\]]*\]/gi

/** Returns true if a format shows dates or times. */
export const isDateFormat = (id: number, code: string | undefined): boolean =>
  code === undefined ? isBuiltIn(id) : /[dmyhs]/i.test(code.slice(0, 1_000).replaceAll(literal, ""))

/**
 * Formats a serial number as a date, a time, or both. Excel treats 1900 as a leap year, so its days before March 1900 are
 * off by one. Workbooks of old Macs count from 1904.
 */
export const formatDate = (serial: number, from1904: boolean): string | undefined => {
  if (!(serial >= 0 && serial < 2_958_466)) return undefined
  const start = from1904 ? Date.UTC(1904, 0, 1) : Date.UTC(1899, 11, serial < 60 ? 31 : 30)
  const iso = new Date(start + Math.round(serial * 86_400) * 1000).toISOString()
  const time = iso.slice(11, 19)
  if (serial < 1) return time
  return (Math.round(serial * 86_400) * 1000) % day === 0 ? iso.slice(0, 10) : `${iso.slice(0, 10)} ${time}`
}

/** Parses the letters of a cell address as a column, from 0. */
export const parseColumn = (reference: string): number | undefined => {
  let column = 0
  for (const letter of /^[A-Z]{1,3}/.exec(reference)?.[0] ?? "") column = column * 26 + letter.charCodeAt(0) - 64
  return column === 0 ? undefined : column - 1
}

/** Formats a column as letters. */
export const formatColumn = (column: number): string => {
  let letters = ""
  for (let rest = column + 1; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    letters = String.fromCharCode(65 + ((rest - 1) % 26)) + letters
  }
  return letters
}

/** Formats one or more neighbouring columns, such as `B` or `B to D`. */
export const formatRange = (first: number, last: number): string =>
  first === last ? formatColumn(first) : `${formatColumn(first)} to ${formatColumn(last)}`
