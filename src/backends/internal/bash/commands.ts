/** Built-in commands of just-bash that need help. */
import type { CustomCommand } from "just-bash"
import type * as JustBash from "just-bash"
import type { Links } from "./remoteFiles.ts"

const isAscii = (text: string): boolean => !/[^\0-\x7F]/.test(text)

/** Tells whether the arguments contain only single-byte characters. */
const hasBytesOnly = (args: ReadonlyArray<string>): boolean => args.every((arg) => isAscii(arg) && !/\\[uU]/.test(arg))

const notFound = { stdout: "", stderr: "", exitCode: 127 }

/** `printf` and `echo -e`, of which an escape such as `\xff` is a byte and not the character of that number. */
export const writingBytes = ({ defineCommand }: typeof JustBash): Array<CustomCommand> =>
  ["printf", "echo"].map((name) =>
    defineCommand(name, async (args, context) => {
      const result = (await context.origCommand?.(args)) ?? notFound
      return hasBytesOnly(args) && !isAscii(result.stdout) ? { ...result, stdoutKind: "bytes" } : result
    })
  )

/** Commands that treat links otherwise than just-bash, which follows them: `rm` removes one, a search goes around. */
const treatments: { readonly [name: string]: Links } = {
  rm: "themselves",
  grep: "hidden",
  egrep: "hidden",
  fgrep: "hidden",
  rg: "hidden",
  chmod: "hidden",
  tar: "themselves"
}

/** Commands with their own treatment of links. `treat` runs one of them; commands run in sequence. */
export const meetingLinks = (
  { defineCommand }: typeof JustBash,
  treat: <A>(links: Links, run: () => Promise<A>) => Promise<A>
): Array<CustomCommand> =>
  Object.entries(treatments).map(([name, links]) =>
    defineCommand(name, (args, context) => treat(links, async () => (await context.origCommand?.(args)) ?? notFound))
  )
