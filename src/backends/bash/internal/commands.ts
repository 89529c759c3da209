/**
 * Built-in commands of just-bash that write bytes, and say that it is text.
 */
import type { CustomCommand } from "just-bash"
import type * as JustBash from "just-bash"

const isAscii = (text: string): boolean => !/[^\0-\x7F]/.test(text)

/** Whether what the arguments stand for has no character that is more than a byte. */
const hasBytesOnly = (args: ReadonlyArray<string>): boolean => args.every((arg) => isAscii(arg) && !/\\[uU]/.test(arg))

/** `printf` and `echo -e`, of which an escape such as `\xff` is a byte and not the character of that number. */
export const writingBytes = ({ defineCommand }: typeof JustBash): Array<CustomCommand> =>
  ["printf", "echo"].map((name) =>
    defineCommand(name, async (args, context) => {
      const result = (await context.origCommand?.(args)) ?? { stdout: "", stderr: "", exitCode: 127 }
      return hasBytesOnly(args) && !isAscii(result.stdout) ? { ...result, stdoutKind: "bytes" } : result
    })
  )
