/** Names that git, or a file system that git works on, takes for `.git`. */

/** Characters that HFS+ ignores in a name. */
const ignoredByHfs = /[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/gu

/** Characters that NTFS drops from the end of a name. */
const droppedByNtfs = /[. ]+$/u

/** The short name that NTFS gives to `.git`. */
const shortName = /^git~\d+$/u

/** Tells whether a name stands for `.git`, on any file system. */
export const isGitName = (name: string): boolean => {
  const [main = ""] = name.replaceAll(ignoredByHfs, "").split(":")
  const plain = main.replace(droppedByNtfs, "").toLowerCase()
  return plain === ".git" || shortName.test(plain)
}
