/** Other programs of the machine: an editor, a pager, the clipboard. */
import { execFile, spawn } from "node:child_process"
import { readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"

/** Runs a program with the terminal. Returns its exit code, or `undefined` if the program does not exist. */
const inTerminal = (command: string, args: ReadonlyArray<string>, stdin: string | undefined) =>
  Effect.callback<number | undefined>((resume) => {
    const child = spawn(command, args, {
      stdio: [stdin === undefined ? "inherit" : "pipe", "inherit", "inherit"],
      shell: false
    })
    child.on("error", () => resume(Effect.succeed(undefined)))
    child.on("exit", (code) => resume(Effect.succeed(code ?? 1)))
    // A pager that exits early closes its end.
    child.stdin?.on("error", () => {})
    child.stdin?.end(stdin)
    return Effect.sync(() => {
      child.kill()
    })
  })

/** Splits `$EDITOR` into a command and its arguments. */
const wordsOf = (line: string): ReadonlyArray<string> => line.split(/\s+/).filter((word) => word !== "")

/** Opens a text in the person's editor. Returns `undefined` if no editor could be opened. */
export const editText = (text: string): Effect.Effect<string | undefined> => {
  const [command = "vi", ...args] = wordsOf(process.env["VISUAL"] ?? process.env["EDITOR"] ?? "vi")
  const file = join(tmpdir(), `deepagents-${globalThis.crypto.randomUUID()}.md`)
  return Effect.acquireUseRelease(
    Effect.promise(() => writeFile(file, text, { mode: 0o600 })),
    () =>
      Effect.flatMap(inTerminal(command, [...args, file], undefined), (code) =>
        code === 0 ? Effect.promise(() => readFile(file, "utf8")) : Effect.undefined
      ),
    () => Effect.promise(() => rm(file, { force: true }))
  )
}

/** Shows a text in the pager. Returns `false` without a pager. */
export const page = (text: string): Effect.Effect<boolean> => {
  const [command = "less", ...args] = wordsOf(process.env["PAGER"] ?? "less -R")
  return Effect.map(inTerminal(command, args, text), (code) => code !== undefined)
}

/** Programs that print the image of the clipboard, by platform. */
const clipboards: ReadonlyArray<readonly [command: string, args: ReadonlyArray<string>]> =
  process.platform === "darwin"
    ? [["pngpaste", ["-"]]]
    : [
        ["wl-paste", ["--type", "image/png"]],
        ["xclip", ["-selection", "clipboard", "-t", "image/png", "-o"]]
      ]

const bytesOf = (command: string, args: ReadonlyArray<string>) =>
  Effect.callback<Uint8Array | undefined>((resume) => {
    execFile(command, [...args], { encoding: "buffer", timeout: 3_000, maxBuffer: 20_000_000 }, (error, stdout) =>
      resume(Effect.succeed(error === null && stdout.length > 0 ? stdout : undefined))
    )
  })

/** Writes the image of the clipboard to a file, and returns its path. */
export const clipboardImage: Effect.Effect<string | undefined> = Effect.gen(function* () {
  for (const [command, args] of clipboards) {
    const bytes = yield* bytesOf(command, args)
    if (bytes === undefined) continue
    const file = join(tmpdir(), `deepagents-${globalThis.crypto.randomUUID()}.png`)
    yield* Effect.promise(() => writeFile(file, bytes, { mode: 0o600 }))
    return file
  }
  return undefined
})

/** Stops the process as the shell does, until it is continued. */
export const suspend: Effect.Effect<void> = Effect.callback<void>((resume) => {
  process.once("SIGCONT", () => resume(Effect.void))
  process.kill(process.pid, "SIGTSTP")
})
