/** Finds texts that look like keys, by the forms that providers give them and by the names before them. */

/** Patterns of keys, and what stays of them before the mark and after it. */
const patterns: ReadonlyArray<readonly [pattern: RegExp, before: string, after: string]> = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, "", ""],
  // OpenAI, Anthropic and compatible keys; Google; GitHub; Slack; AWS; a JSON Web Token
  [/\b[sr]k[-_][A-Za-z0-9_-]{16,}/g, "", ""],
  [/\bAIza[A-Za-z0-9_-]{30,}/g, "", ""],
  [/\b(?:gh[a-z]_|github_pat_|glpat-|hf_)[A-Za-z0-9_-]{16,}/g, "", ""],
  [/\bxox[a-z]-[A-Za-z0-9-]{10,}/g, "", ""],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g, "", ""],
  [/\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g, "", ""],
  // English has no word of twenty letters after "bearer", and none with a digit
  [/\b(Bearer\s+)(?:[A-Za-z0-9._~+/=-]{20,}|(?=[A-Za-z._~+/=-]{0,40}\d)[A-Za-z0-9._~+/=-]{8,})/gi, "$1", ""],
  [/\b(Authorization\\?["']?\s{0,4}[:=]\s{0,4}\\?["']?(?:(?:Bearer|Basic|Token)\s+)?)[^\s"'\\,;]{8,}/gi, "$1", ""],
  // The password of a URL
  [/\b([a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@]{0,200}:)[^\s/@]{1,200}@/gi, "$1", "@"],
  // name=value and "name": "value"
  [
    /\b((?:[a-z0-9]{1,40}[-_]){0,4}(?:api[-_]?key|client[-_]?secret|secret[-_]?key|access[-_]?key|private[-_]?key|access[-_]?token|refresh[-_]?token|auth[-_]?token|password|passwd)\\?["']?\s{0,4}[:=]\s{0,4}\\?["']?)[^\s"'\\,;&]{8,}/gi,
    "$1",
    ""
  ]
]

/** Puts a mark in the place of each text that looks like a key. */
export const maskKeys = (text: string, mark: string): string =>
  patterns.reduce((out, [pattern, before, after]) => out.replace(pattern, `${before}${mark}${after}`), text)

/** Tells whether something in a text looks like a key, or is the password of an address. */
export const hasKey = (text: string): boolean => patterns.some(([pattern]) => text.search(pattern) !== -1)
