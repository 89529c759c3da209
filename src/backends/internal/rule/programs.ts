/** The programs that only read, with the options and operands that keep them so. */

/**
 * A program that only reads.
 *
 * - `options`: whole options that are known, or `"any"`
 * - `not`: options that write, run or lead out: names of long ones (abbreviations count), letters of short ones
 * - `operands`: files in the folders; `pattern` is a text and then files; `texts` are never opened
 * - `most`: operands, at most
 * - `globs`: true if no name of a file can be taken for an option that matters
 * - `check`: a further condition
 */
export interface Reading {
  readonly options: RegExp | "any"
  readonly not?: { readonly long: ReadonlyArray<string>; readonly short: string }
  readonly operands: "paths" | "pattern" | "texts" | "none"
  readonly most?: number
  readonly globs?: boolean
  readonly check?: (given: {
    readonly options: ReadonlyArray<string>
    readonly operands: ReadonlyArray<string>
  }) => boolean
}

const any = (operands: Reading["operands"], more?: Partial<Reading>): Reading => ({
  options: "any",
  operands,
  globs: more?.not === undefined,
  ...more
})

const only = (options: RegExp, operands: Reading["operands"], more?: Partial<Reading>): Reading => ({
  options,
  operands,
  ...more
})

const none = /^$/

const each = (names: string, reading: Reading): ReadonlyArray<readonly [string, Reading]> =>
  names.split(" ").map((name) => [name, reading])

/** Options of git that write a file, or run a program that a file or a setting names. */
const git = {
  long: [
    "output",
    "ext-diff",
    "textconv",
    "no-index",
    "contents",
    "exec",
    "open-files-in-pager",
    "exclude-from",
    "exclude-per-directory",
    "show-signature",
    "file",
    "ext-grep",
    "alternate-refs",
    "help"
  ],
  short: "OX"
}

/** The scripts of sed that read, by their form; in scripts of other programs, the signs that do more than read. */
const sedAddress = String.raw`(?:\d+|\$|\/[\w .:"'=<>,-]*\/)`
const sedCommand = `(?:${sedAddress}(?:,(?:[+~]?\\d+|${sedAddress}))?!?)?[pdq=]`
const sedLine = new RegExp(`^${sedCommand}(?:;${sedCommand})*$`)
const sedReplace = /^s\/(?:[^/\\\n]|\\[^\n])*\/(?:[^/\\\n]|\\[^\n])*\/[gpI0-9]*$/
const awkMay =
  /[>|@]|\b(?:system|getline|close|fflush|extension|include|load|namespace|ENVIRON|ARGV|ARGC|PROCINFO|SYMTAB|FUNCTAB)\b/
const jqMay = /\b(?:import|include|env|ENV|input_filename|debug|modulemeta|get_search_list)\b/

const isOut = (words: ReadonlyArray<string>): boolean => words.some((word) => word.includes(":"))

export const readings: ReadonlyMap<string, Reading> = new Map<string, Reading>([
  ...each("cat head wc nl tac rev cut paste fold fmt comm cmp cksum md5sum sha1sum sha256sum sha512sum", any("paths")),
  ...each(
    "stat realpath readlink basename dirname od hexdump column expand unexpand join ls dir vdir du df zcat",
    any("paths")
  ),
  // `@file` has further options and names of files.
  ["strings", any("paths", { check: ({ operands }) => !operands.some((one) => one.startsWith("@")) })],
  ["diff", any("paths", { not: { long: ["paginate", "recursive"], short: "lr" } })],
  ["file", any("paths", { not: { long: ["compile", "magic-file", "uncompress", "files-from"], short: "CmzZf" } })],
  [
    "jq",
    any("paths", {
      not: { long: ["from-file"], short: "fL" },
      check: ({ operands }) => !operands.some((one) => jqMay.test(one))
    })
  ],
  ["tail", any("paths", { not: { long: ["follow", "retry", "pid"], short: "fF" }, globs: true })],
  ["tree", only(/^(?:-[adfihspDCFQ]+|-[LIP]|-L\d+|--dirsfirst|--gitignore|--noreport|--prune)$/, "paths")],
  ["pwd", only(/^-[LP]$/, "none")],
  ...each("whoami id groups tty arch nproc free uptime", only(/^-\w$/, "none")),
  ["hostname", only(/^-[sfId]$/, "none")],
  ["uname", only(/^-[asnrvmpio]+$/, "none")],
  [
    "date",
    only(/^(?:-u|--utc|-R|-I\w*|--iso-8601(?:=\w+)?)$/, "texts", {
      check: ({ operands }) => operands.every((one) => one.startsWith("+"))
    })
  ],
  ...each("true false :", only(none, "none")),
  ["echo", any("texts")],
  [
    "printf",
    any("texts", { not: { long: [], short: "v" }, check: ({ operands }) => !/[$`]/.test(operands.join(" ")) })
  ],
  ...each("which type", only(/^-\w$/, "texts")),
  ["seq", only(/^(?:-w|-s|-\d+)$/, "texts")],
  ...each(
    "test [",
    only(/^(?:-[abcdefghknprstuwxzNLSG]|-eq|-ne|-lt|-le|-gt|-ge|-nt|-ot)$/, "paths", {
      check: ({ operands }) => !/[$`]/.test(operands.join(" "))
    })
  ),
  ["tr", only(/^-[cCdst]+$/, "texts")],
  ["sleep", only(none, "texts", { check: ({ operands }) => operands.every((one) => /^\d{1,2}(?:\.\d+)?$/.test(one)) })],
  ["cd", only(none, "paths", { most: 1, check: ({ operands }) => operands.length === 1 && operands[0] !== "-" })],
  ...each(
    "grep egrep fgrep",
    any("pattern", { not: { long: ["file", "dereference-recursive", "devices"], short: "fRD" }, globs: true })
  ),
  [
    "rg",
    any("pattern", {
      not: { long: ["pre", "pre-glob", "hostname-bin", "search-zip", "file", "ignore-file", "follow"], short: "zfL" }
    })
  ],
  [
    "fd",
    any("pattern", {
      not: {
        long: ["exec", "exec-batch", "list-details", "follow", "ignore-file", "base-directory", "search-path"],
        short: "xXlLC"
      }
    })
  ],
  [
    "sort",
    only(
      /^(?:-[bdfghinrRsuVzkt0-9,.:]+|--(?:reverse|unique|numeric-sort|human-numeric-sort|version-sort|key=[\w,.]+|field-separator=.|stable|ignore-case|check|zero-terminated))$/,
      "paths"
    )
  ],
  ["uniq", only(/^-[cdDiuz0-9fsw]+$/, "paths", { most: 1 })],
  ["xxd", only(/^-[abceEilopsu0-9]+$/, "paths", { most: 1 })],
  [
    "find",
    only(
      /^-(?:name|iname|path|ipath|wholename|type|maxdepth|mindepth|size|mtime|mmin|atime|ctime|newer|not|o|a|or|and|print|print0|prune|empty|regex|iregex|perm|user|group|links|xdev|mount|H|P|printf|ls|depth|readable|writable|executable|quit|false|true|\d+)$/,
      "paths"
    )
  ],
  [
    "sed",
    only(/^(?:-[nErsuz]+|--quiet|--silent|--regexp-extended)$/, "pattern", {
      check: ({ operands: [script = ""] }) => sedLine.test(script) || sedReplace.test(script)
    })
  ],
  ["awk", only(/^-F.{1,3}$/, "pattern", { check: ({ operands: [script = ">"] }) => !awkMay.test(script) })],
  [
    "tar",
    only(/^(?:-t[vzjJf]*|-[vzjJf]+|--list|--verbose)$/, "paths", {
      check: ({ operands, options }) =>
        !isOut(operands) &&
        (options.some((word) => /^(?:-t|--list)/.test(word)) || /^t[vzjJf]*$/.test(operands[0] ?? ""))
    })
  ],
  ["unzip", only(/^(?:-l|-v|-Z1?)$/, "paths", { check: ({ options }) => options.length > 0 })],
  [
    "ps",
    only(/^-(?:[efAFlTL]+|p|o|u)$/, "texts", {
      check: ({ operands }) =>
        operands.every((one) => /^(?:aux|ax|a|x|ux|[\d,]+|(?!.*env)[a-z%]+(?:,[a-z%]+)+)$/.test(one))
    })
  ],
  ["pgrep", only(/^-[aflnox]+$/, "texts")],
  [
    "lsof",
    only(/^(?:-[nPt]+|-i|-i[\w:]+|-sTCP:LISTEN)$/, "texts", {
      check: ({ operands }) => operands.every((one) => /^:\d+$/.test(one))
    })
  ],
  ...[
    "status",
    "rev-parse",
    "ls-files",
    "describe",
    "shortlog",
    "merge-base",
    "rev-list",
    "ls-tree",
    "check-ignore",
    "count-objects",
    "show-ref",
    "for-each-ref",
    "name-rev",
    "log",
    "show",
    "diff",
    "blame",
    "stash list",
    "stash show"
  ].map((action) => [`git ${action}`, any("paths", { not: git })] as const),
  ["git reflog", any("none", { not: git })],
  ["git grep", any("pattern", { not: { ...git, short: "OXf" } })],
  ["git cat-file", only(/^-[ptse]$/, "paths")],
  [
    "git branch",
    only(
      /^(?:-a|-r|-v|-vv|--all|--remotes|--list|--show-current|--merged|--no-merged|--contains|--sort=.*|--format=.*)$/,
      "none"
    )
  ],
  [
    "git tag",
    only(/^(?:-l|--list|-n\d*|--sort=.*)$/, "texts", {
      check: ({ operands, options }) => operands.length === 0 || options.some((one) => /^(?:-l|--list)$/.test(one))
    })
  ],
  // Its addresses may have a token.
  ["git remote", only(none, "none")],
  ["git worktree list", only(/^--porcelain$/, "none")],
  [
    "git config --get",
    only(none, "texts", {
      most: 1,
      check: ({ operands: [name = ""] }) =>
        /^(?:user|core|init|branch|pull|push|merge|diff|color|alias|commit)\.[\w.-]+$/.test(name)
    })
  ],
  ["git --version", only(none, "none")],
  ...["node", "npm", "bun", "deno", "python", "python3", "ruby", "php", "perl"].map(
    (name) => [`${name} --version`, only(none, "none")] as const
  ),
  ["node -v", only(none, "none")],
  ["npm -v", only(none, "none")],
  ["npm ls", only(/^(?:--depth=\d+|--all|-a|--json|--prod)$/, "texts")],
  ["docker ps", only(/^(?:-a|-q|--all)$/, "none")],
  ["docker images", only(/^(?:-a|-q)$/, "none")]
])

/** Runners that are seen through, with the options that may stand before the command. */
export interface Runner {
  readonly options: RegExp
  /** Options that take the next word. */
  readonly valued: RegExp
  /** The form of each operand before the command. */
  readonly operands: ReadonlyArray<RegExp>
}

export const runners: ReadonlyMap<string, Runner> = new Map([
  [
    "timeout",
    {
      options: /^(?:-k|-s|--foreground|--preserve-status|-v|--kill-after=\d+[smhd]?|--signal=\w+)$/,
      valued: /^-[ks]$/,
      operands: [/^\d+(?:\.\d+)?[smhd]?$/]
    }
  ],
  ["nice", { options: /^(?:-n|-n\d+|-\d+)$/, valued: /^-n$/, operands: [] }],
  ["nohup", { options: none, valued: none, operands: [] }],
  ["stdbuf", { options: /^-[ioe][0L]$/, valued: none, operands: [] }],
  ["time", { options: /^-p$/, valued: none, operands: [] }]
])

/** Variables that change no program that is run. */
export const harmless: ReadonlySet<string> = new Set(
  "CI NODE_ENV FORCE_COLOR NO_COLOR CLICOLOR DEBUG RUST_BACKTRACE RUST_LOG LANG LC_ALL TZ COLUMNS LINES VITEST PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED".split(
    " "
  )
)

/** Finds the entry of the longest key that a command begins with: a program, or a program and its action. */
export const findBy = <A>(
  table: ReadonlyMap<string, A>,
  words: ReadonlyArray<string>
): readonly [length: number, entry: A] | undefined => {
  for (let length = Math.min(3, words.length); length > 0; length--) {
    const entry = table.get(words.slice(0, length).join(" "))
    if (entry !== undefined) return [length, entry]
  }
  return undefined
}
