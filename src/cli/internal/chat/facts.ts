/** Facts about the terminal of the process. */

/** Facts about the terminal that the process was started in. */
interface Facts {
  readonly isTerminal: boolean
  readonly colours: boolean
  /** The width of the output. */
  readonly columns: number
  readonly isPlain: boolean
}

export const facts = (): Facts => {
  const { env, stdin, stdout } = process
  const isTerminal = stdin.isTTY === true && stdout.isTTY === true
  const isDumb = env["TERM"] === "dumb"
  const isOff = (env["NO_COLOR"] ?? "") !== "" || env["FORCE_COLOR"] === "0" || isDumb
  return {
    isTerminal,
    columns: stdout.columns ?? 80,
    colours: stdout.isTTY === true ? !isOff : (env["FORCE_COLOR"] ?? "0") !== "0",
    isPlain: isDumb || (env["ACCESSIBLE"] ?? "") !== ""
  }
}

/** The line about keys while the chat is idle. */
export const idleHints = "/ commands · @ files · ! shell"
