/** The variables of commands: few of this process, or all without its secrets. */
import { hasKey } from "../../../support/text/keys.ts"

/**
 * The variables that commands get of this process. Names may have `*` in them. `hide` is stronger than `show`, and
 * `set` than both.
 */
export interface Environment {
  /**
   * `"minimal"`: `PATH`, `HOME`, `LANG` and `TMPDIR`. `"all"`: all without secrets, by their names or
   * values. Default: `"minimal"`.
   */
  readonly inherit?: "minimal" | "all" | undefined
  /** Names of variables that are not passed on. Default: none. */
  readonly hide?: ReadonlyArray<string> | undefined
  /** Names of variables that are passed on though they look like secrets. Default: none. */
  readonly show?: ReadonlyArray<string> | undefined
  /** Further variables, by name. Default: none. */
  readonly set?: { readonly [name: string]: string } | undefined
}

/** The variables of commands, and the names of hidden variables. */
export interface Variables {
  readonly env: { readonly [name: string]: string }
  readonly hidden: ReadonlyArray<string>
}

const few: ReadonlyArray<string> = ["PATH", "HOME", "LANG", "TMPDIR"]

const fallbacks = { PATH: "/usr/local/bin:/usr/bin:/bin", LANG: "C.UTF-8", TERM: "dumb" }

/** No command waits for a person: not with a pager, an editor or a question. */
const quiet = {
  TERM: "dumb",
  PAGER: "cat",
  GIT_PAGER: "cat",
  GH_PAGER: "cat",
  MANPAGER: "cat",
  SYSTEMD_PAGER: "cat",
  GIT_TERMINAL_PROMPT: "0",
  GIT_EDITOR: "true",
  // Words about a new npm would push the end of the output away.
  npm_config_update_notifier: "false"
}

/** Words of names that keep secrets: `NPM_TOKEN`, `DB_PASSWORD`, `MYSQL_PWD`, `apiKey` in upper case. */
const secretName =
  /(?:^|_)(?:(?:API|ACCESS|SECRET|PRIVATE|AUTH|MASTER|SIGNING)?KEYS?|[A-Z]*TOKENS?|[A-Z]*SECRETS?|[A-Z]*PASSWORDS?|PASSWD|PASS|PASSPHRASE|CREDENTIALS?|CREDS?|AUTH|AUTHORIZATION|BEARER|COOKIES?|PAT|DSN|WEBHOOK)(?:_|$)|_PWD$/i

/** Names that only sound like secrets: sockets, paths, ids and counts. */
const harmlessName =
  /^(?:SSH_AUTH_SOCK|XAUTHORITY|GPG_AGENT_INFO|GPG_TTY|GPG_KEY|GNUPGHOME|KEYBOARD\w*|GIT_ASKPASS|SSH_ASKPASS|\w*TOKENIZERS?_\w*)$|(?:KEY|TOKEN|SECRET|CREDENTIALS?)_(?:PATH|FILE|DIR)$|^GOOGLE_APPLICATION_CREDENTIALS$/i

/** Variables of the program's own place, which are wrong in another folder. */
const placeNames: ReadonlySet<string> = new Set(["PWD", "OLDPWD", "SHLVL", "_"])

const makeMatcher = (names: ReadonlyArray<string>): ((name: string) => boolean) => {
  const patterns = names.map(
    (name) =>
      new RegExp(
        `^${name
          .split(/\*+/)
          .map((part) => part.replaceAll(/[^\w]/g, "\\$&"))
          .join(".*")}$`,
        "i"
      )
  )
  return (name) => patterns.some((pattern) => pattern.test(name))
}

/** A value is short or ends within so many characters: more would take long to look at. */
const longestValue = 32_768

const isSecret = (name: string, value: string): boolean =>
  (secretName.test(name) && !harmlessName.test(name)) || hasKey(value.slice(0, longestValue))

/** Chooses the variables of commands from those of this process. */
export const variablesOf = (
  given: { readonly [name: string]: string | undefined },
  { hide = [], inherit = "minimal", set = {}, show = [] }: Environment
): Variables => {
  const isHiddenName = makeMatcher(hide)
  const isShownName = makeMatcher(show)
  const env: Record<string, string> = { ...fallbacks }
  const hidden: Array<string> = []
  for (const [name, value = ""] of Object.entries(given)) {
    if (value === "" && inherit === "minimal") continue
    const isWanted = inherit === "all" ? !placeNames.has(name) : few.includes(name) || isShownName(name)
    if (!isWanted) continue
    if (isHiddenName(name) || (inherit === "all" && !isShownName(name) && isSecret(name, value))) hidden.push(name)
    else env[name] = value
  }
  const own = inherit === "all" ? quiet : {}
  return {
    env: { ...env, ...own, ...set },
    hidden: hidden.filter((name) => !Object.hasOwn(set, name)).toSorted()
  }
}
