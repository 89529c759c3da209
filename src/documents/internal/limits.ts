/** Limits on the size of documents, unpacked and in memory. */

/** An archive may unpack to 250 times its size: at least 16 MB, at most 128 MB. */
const ratio = 250
const minUnpacked = 16 * 1024 * 1024
const maxUnpacked = 128 * 1024 * 1024

/** Computes how many bytes an archive may unpack to, over all entries that are read. */
export const unpackLimit = (size: number): number => Math.min(maxUnpacked, Math.max(minUnpacked, ratio * size))

/** Computes how many bytes of relations, styles or shared texts a document may hold in memory. */
export const memoryLimit = (size: number): number => Math.min(64 * 1024 * 1024, Math.max(1024 * 1024, 8 * size))

/** Characters of text after which a writer emits a piece. */
export const pieceLength = 16_384

/** Maximum characters of one paragraph or cell. */
export const paragraphLength = 32_768

/** Maximum characters of one row of a table. */
export const rowLength = 131_072

/** Bytes that are processed before other fibers get a turn. */
export const sliceLength = 65_536
