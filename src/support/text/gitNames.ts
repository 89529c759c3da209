/** Names that git, or a file system that git works on, takes for `.git`. */

/** Characters that HFS+ ignores in a name. */
export const ignoredByHfs: ReadonlyArray<string> = [
  ..."\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u206a\u206b\u206c\u206d\u206e\u206f\ufeff"
]

const ignored = new RegExp(`[${ignoredByHfs.join("")}]`, "gu")

/** Characters that NTFS drops from the end of a name. */
const droppedByNtfs = /[. ]+$/u

/** The short name that NTFS gives to `.git`. */
const shortName = /^git~\d+$/u

/** Tells whether a path leads to a person's own settings of git, which name programs too. */
export const isGitSettings = (names: ReadonlyArray<string>): boolean =>
  names.some((name, index) => {
    const plain = name.toLowerCase()
    return plain === ".gitconfig" || (plain === "git" && names[index - 1]?.toLowerCase() === ".config")
  })

/** Tells whether a name stands for `.git`, on any file system. */
export const isGitName = (name: string): boolean => {
  const [main = ""] = name.replaceAll(ignored, "").split(":")
  const plain = main.replace(droppedByNtfs, "").toLowerCase()
  return plain === ".git" || shortName.test(plain)
}
