#!/usr/bin/env node
/**
 * Starts the program with the compiled code of the last start: half of the time to the first line. Questions about the
 * program have a file of their own, without the code of commands.
 */
import * as Module from "node:module"
import { homedir } from "node:os"
import { isAbsolute, join } from "node:path"

const questions = new Set(["--help", "-h", "--version", "-v", "--completions"])

/** Such a flag goes before all others, wherever it is; words after `--` are no flags. */
const isQuestion = (words: ReadonlyArray<string>): boolean => {
  const end = words.indexOf("--")
  const flags = end < 0 ? words : words.slice(0, end)
  return flags.some((flag) => questions.has(flag) || flag.startsWith("--completions="))
}

const [major = 0, minor = 0] = process.version.slice(1).split(".").map(Number)
// All other files import names that an older node does not have, so it would end with its own words.
if (major < 22 || (major === 22 && minor < 19)) {
  process.stderr.write(`deepagents needs Node 22.19 or newer, and this is ${process.version}: https://nodejs.org\n`)
  process.exitCode = 1
} else {
  // Without it, the system says which folder is the user's; another one would have keys in the folder of a project.
  if (!isAbsolute(process.env["HOME"] ?? "/")) delete process.env["HOME"]
  const cache = process.env["XDG_CACHE_HOME"] ?? ""
  // A global installation is often not writable, so it is the user's own folder.
  Module.enableCompileCache(join(isAbsolute(cache) ? cache : join(homedir(), ".cache"), "deepagents", "node"))
  const { start } = isQuestion(process.argv.slice(2)) ? await import("./internal/about.ts") : await import("./main.ts")
  start()
}
