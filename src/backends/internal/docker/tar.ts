/** An archive of one file, as the container engine takes it. */

const block = 512
const encoder = new TextEncoder()

/** A number in octal digits, with a NUL behind it. */
const octal = (value: number, width: number): string => `${value.toString(8).padStart(width - 1, "0")}\0`

/** Makes a tar archive of one file. Its name has at most 100 bytes. */
export const archiveOf = (
  name: string,
  content: Uint8Array,
  owner: { readonly uid: number; readonly gid: number }
): Uint8Array => {
  const archive = new Uint8Array(block + Math.ceil(content.length / block) * block + 2 * block)
  const putText = (at: number, text: string) => archive.set(encoder.encode(text), at)
  putText(0, name)
  putText(100, octal(0o600, 8))
  putText(108, octal(owner.uid, 8))
  putText(116, octal(owner.gid, 8))
  putText(124, octal(content.length, 12))
  putText(136, octal(0, 12))
  putText(148, " ".repeat(8))
  putText(156, "0")
  putText(257, "ustar\u000000")
  const sum = archive.subarray(0, block).reduce((total, byte) => total + byte, 0)
  putText(148, `${octal(sum, 7)} `)
  archive.set(content, block)
  return archive
}
