/** Maps failures of a file system to messages of a shell. */

const messages = {
  ENOENT: "no such file or directory",
  EEXIST: "file already exists",
  EISDIR: "illegal operation on a directory",
  ENOTDIR: "not a directory",
  ENOTEMPTY: "directory not empty",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  EINVAL: "invalid argument",
  EFBIG: "file too large",
  EIO: "input/output error"
} as const

export type Code = keyof typeof messages

/** The failure of a call of a file system. */
export interface Fault {
  readonly code: Code
  readonly call: string
  readonly path: string
}

export const toError = ({ call, code, path }: Fault): Error =>
  Object.assign(new Error(`${code}: ${messages[code]}, ${call} '${path}'`), { code })

/** The words of a shell for a redirection that is refused. */
export const complaint = ({ code, path }: Fault): string =>
  `bash: ${path}: ${code === "EISDIR" ? "is a directory" : messages[code]}\n`

/**
 * The message of a shell for a failure that just-bash lets through: output that could not be written, which ends the
 * line.
 */
export const complaintOf = (cause: unknown): string | undefined => {
  if (!(cause instanceof Error)) return undefined
  const [, code = ""] = /^(E[A-Z]+): /.exec(cause.message) ?? []
  const quote = cause.message.indexOf("'")
  const isQuoted = quote !== -1 && quote < cause.message.length - 1 && cause.message.endsWith("'")
  const path = isQuoted ? cause.message.slice(quote + 1, -1) : undefined
  const message = Object.entries(messages).find(([one]) => one === code)?.[1]
  return message === undefined ? undefined : `bash: ${path === undefined ? "" : `${path}: `}${message}\n`
}
