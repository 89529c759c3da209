/** Tells whether words of a command stay in the folders, and away from secrets. */
import { isGitName } from "../../../support/text/gitNames.ts"
import type { Word } from "./strict.ts"

/**
 * The place of commands.
 *
 * - `cwd`: the folder that they begin in
 * - `folders`: the folders that may be read without a question
 * - `look`: gives the real paths that a path leads to, in which `*`, `?` and `[…]` are wildcards; `[]` for no file,
 *   `undefined` if it can't tell. It follows links, which the text of a path does not show
 * - `namesPrograms`: tells whether the git repository of `cwd` has settings or hooks by which `git status` and the like
 *   run programs. Then git does not only read
 */
export interface Where {
  readonly cwd: string
  readonly folders: ReadonlyArray<string>
  readonly look?: ((path: string) => ReadonlyArray<string> | undefined) | undefined
  readonly namesPrograms?: (() => boolean) | undefined
}

/** Names of files and folders that hold keys or passwords. */
const secretNames = [
  String.raw`\.env(?:rc)?(?:[._~-](?!(?:example|sample|template|dist)(?:\/|$))[^/]*)?`,
  // Variables of programs are often searched for.
  String.raw`(?!(?:process|deno|bun)\.)[\w-]+\.env`,
  String.raw`\.(?:ssh|aws|gnupg|azure|netrc|npmrc|yarnrc\.yml|pypirc|pgpass|my\.cnf|kube|docker|dockercfg|git-credentials|htpasswd|secrets?|dev\.vars|vault-token|s3cfg|boto)`,
  "_netrc",
  "id_(?:rsa|ed25519|ecdsa|dsa)[^/]*",
  String.raw`[^/]*\.(?:pem|key|p8|p12|pfx|ppk|jks|keystore|kdbx|tfvars|tfstate)`,
  String.raw`(?:[\w.-]*[._-])?credentials(?:\.(?:json|ya?ml|toml|ini|csv|xml|db))?`,
  String.raw`(?:[\w.-]*[._-])?secrets?\.(?:json|ya?ml|toml)`,
  String.raw`[\w.-]*service[._-]?account[\w.-]*\.json`,
  "shadow"
]

const secret = new RegExp(`(?:^|[/:])(?:${secretNames.join("|")})(?:/|$)`, "i")

/** Tells whether a path names a file that holds keys or passwords, also the settings of a git repository. */
const isSecret = (path: string): boolean => {
  if (secret.test(path)) return true
  const names = path.split("/")
  const git = names.findIndex(isGitName)
  return git !== -1 && names.slice(git + 1).some((name) => /^(?:config|FETCH_HEAD$)/i.test(name))
}

const devices = /^\/dev\/(?:null|stdin|stdout|stderr)$/

/** A path as a whole one, without `.` and `..`. */
export const wholePath = (path: string, cwd: string): string => {
  const names: Array<string> = []
  for (const name of (path.startsWith("/") ? path : `${cwd}/${path}`).split("/")) {
    if (name === "..") names.pop()
    else if (name !== "" && name !== ".") names.push(name)
  }
  return `/${names.join("/")}`
}

const isBelow = (path: string, folder: string): boolean =>
  folder === "/" || path === folder || path.startsWith(`${folder}/`)

const isAllowed = (path: string, { folders }: Where): boolean =>
  !isSecret(path) && folders.some((folder) => isBelow(path, folder))

/** Tells whether a path stays in the folders, by its text, and by its links if they are readable. */
export const isInside = (path: string, isPlain: boolean, where: Where, cwd: string): boolean => {
  if (path.startsWith("~") || isSecret(path)) return false
  const whole = wholePath(path, cwd)
  if (devices.test(whole)) return true
  if (!isAllowed(whole, where)) return false
  // A name that begins with a dot is seldom meant by wildcards, and often a secret.
  if (!isPlain && /(?:^|\/)\.[^/]*[*?[]/.test(path)) return false
  if (where.look === undefined) return true
  const literal = path.startsWith("/") ? path : `${cwd}/${path}`
  const realPaths = where.look(literal.replaceAll(isPlain ? /[\\*?[]/g : /\\/g, "\\$&"))
  return realPaths?.every((real) => devices.test(real) || isAllowed(real, where)) === true
}

/** The paths that may be in a word: itself, and the value of an option. */
const pathsIn = (text: string): ReadonlyArray<string> => {
  const at = text.indexOf("=")
  const value = at === -1 ? [] : [text.slice(at + 1)]
  if (!text.startsWith("-") || text === "-") return [text, ...value]
  return /^-[^-].*[/~.]/.test(text) ? [text.slice(2), ...value] : value
}

/** Tells whether all paths in a word stay in the folders, for a command in any of these folders. */
export const staysInside = ({ isPlain, text }: Word, where: Where, cwds: ReadonlyArray<string>): boolean =>
  pathsIn(text).every((path) => path === "" || cwds.every((cwd) => isInside(path, isPlain, where, cwd)))
