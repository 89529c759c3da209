/** Runs the prompt, writes the outputs of the step, and ends with the code of the run. */
import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { appendFileSync } from "node:fs"
import { createInterface } from "node:readline"

const { ALLOW = "", BUDGET = "", DENY = "", GITHUB_OUTPUT = "", MAX_TURNS = "", MODEL = "", PROMPT = "" } = process.env
const { DEEPAGENTS, VERSION = "latest" } = process.env

const rules = (flag, text) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => `--${flag}=${line}`)
const option = (flag, text) => (text === "" ? [] : [`--${flag}=${text}`])

// DEEPAGENTS is the path of an installed program.
const [command, ...first] =
  DEEPAGENTS === undefined
    ? ["npx", "--yes", `--package=effect-deepagents@${VERSION}`, "deepagents"]
    : [process.execPath, DEEPAGENTS]
// The prompt comes on the standard input: no word of it is a flag.
const args = ["run", "--json", "--trust", ...rules("allow", ALLOW), ...rules("deny", DENY)]
const limits = [...option("budget", BUDGET), ...option("max-turns", MAX_TURNS), ...option("model", MODEL)]
const running = spawn(command, [...first, ...args, ...limits], { stdio: ["pipe", "pipe", "inherit"] })
const ended = new Promise((resolve) => running.on("close", resolve))
// The program may end before it reads the prompt, for a wrong rule.
running.stdin.on("error", () => undefined)
running.stdin.end(PROMPT)

// An answer may have lines that the runner takes for commands of a workflow: it follows none until the end.
const end = randomUUID()
console.log(`::stop-commands::${end}`)

let result
for await (const line of createInterface({ input: running.stdout })) {
  const event = JSON.parse(line)
  if (event._tag === "ToolCompleted") console.log(`${event.isError ? "failed" : "done"}: ${event.toolName}`)
  if (event._tag === "Result") result = event
}
// A program that a signal ended has no code.
const code = (await ended) ?? 1

/** An answer may have any line, so none of its lines ends the output. */
const output = (name, value) => {
  const mark = randomUUID()
  if (GITHUB_OUTPUT !== "") appendFileSync(GITHUB_OUTPUT, `${name}<<${mark}\n${value}\n${mark}\n`)
}
output("answer", result?.text ?? "")
output("session", result?.threadId ?? "")
output("exit-code", String(code))
output("cost", String(result?.usage?.cost ?? ""))
console.log(result?.text ?? result?.error ?? "There is no answer.")
console.log(`::${end}::`)
process.exitCode = code
