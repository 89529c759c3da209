/** Processes that tests start and end. */
import { type ChildProcess, spawn } from "node:child_process"
import { Effect } from "effect"

/** Starts a file in a process of its own. Its errors are shown. */
const startChild = (file: string, args: ReadonlyArray<string>) =>
  spawn(process.execPath, [file, ...args], { stdio: ["ignore", "pipe", "inherit"] })

/** Runs a file in a process to its end. `onText` gets all that the process printed so far, and may end it. */
export const runChild = (
  file: string,
  args: ReadonlyArray<string>,
  onText?: (text: string, child: ChildProcess) => void
) =>
  Effect.callback<{ readonly text: string; readonly code: number | null }>((resume) => {
    const child = startChild(file, args)
    let text = ""
    child.stdout.on("data", (chunk) => {
      text += String(chunk)
      onText?.(text, child)
    })
    child.on("close", (code) => resume(Effect.succeed({ code, text })))
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** The whole lines of a text. */
export const linesOf = (text: string): ReadonlyArray<string> => text.split("\n").slice(0, -1)

/** Starts a server in a process, which ends with the scope, and waits until it prints its address. */
export const startServer = (file: string, args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly child: ChildProcess; readonly url: string }>((resume) => {
      const child = startChild(file, args)
      let text = ""
      child.stdout.on("data", (chunk) => {
        text += String(chunk)
        const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(text) ?? []
        if (url !== undefined) resume(Effect.succeed({ child, url }))
      })
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

/** Ends a process by a signal, and waits until it is gone. */
export const endChild = (child: ChildProcess, signal: "SIGKILL" | "SIGTERM" = "SIGKILL") =>
  Effect.callback<void>((resume) => {
    child.on("close", () => resume(Effect.void))
    child.kill(signal)
  })
