/** Limits of what is unpacked of a document, and held at once. */

/** Unpacked bytes for each byte of an archive; what is small may unpack to more. */
const ratio = 250
const always = 16 * 1024 * 1024
const never = 128 * 1024 * 1024

/** The most bytes that all that is read of an archive may unpack to. */
export const unpacked = (size: number): number => Math.min(never, Math.max(always, ratio * size))

/** The most that is held of a part that can't be streamed (relations, styles, the texts of a workbook), in bytes. */
export const held = (size: number): number => Math.min(64 * 1024 * 1024, Math.max(1024 * 1024, 8 * size))

/** The text that is gathered before it is passed on, in characters. */
export const pieceLength = 16_384

/** The most characters of one paragraph or cell that are kept together. */
export const paragraphLength = 32_768

/** The most characters of a row of a table. */
export const rowLength = 131_072

/** The bytes that are handed on at once, so that other work has its turn. */
export const sliceLength = 65_536
