/** Other programs of the machine: an editor, a pager, the clipboard. */
import { execFile, spawn } from "node:child_process"
import { readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"

/** Runs a program that has the terminal; gives its exit code, or `undefined` if it is not there. */
const inTerminal = (command: string, args: ReadonlyArray<string>, stdin: string | undefined) =>
  Effect.callback<number | undefined>((resume) => {
    const child = spawn(command, args, {
      stdio: [stdin === undefined ? "inherit" : "pipe", "inherit", "inherit"],
      shell: false
    })
    child.on("error", () => resume(Effect.succeed(undefined)))
    child.on("exit", (code) => resume(Effect.succeed(code ?? 1)))
    // A pager that is left before it read everything closes its end.
    child.stdin?.on("error", () => {})
    child.stdin?.end(stdin)
    return Effect.sync(() => {
      child.kill()
    })
  })

/** A command with its arguments, as `$EDITOR` has them. */
const wordsOf = (line: string): ReadonlyArray<string> => line.split(/\s+/).filter((word) => word !== "")

/** Lets a person change a text in their editor; `undefined` if it could not be opened. */
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

/** Shows a text in the pager; `false` if there is none. */
export const page = (text: string): Effect.Effect<boolean> => {
  const [command = "less", ...args] = wordsOf(process.env["PAGER"] ?? "less -R")
  return Effect.map(inTerminal(command, args, text), (code) => code !== undefined)
}

/** Programs that give the image of the clipboard, by platform. */
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

/** Writes the image that is in the clipboard to a file, and gives its path; `undefined` if there is none. */
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
