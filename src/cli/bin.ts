#!/usr/bin/env node
/**
 * Starts the program with what node compiled the last time: half of the time to the first line. Questions about the
 * program have a file of their own, with nothing in it of what commands do.
 */
import { enableCompileCache } from "node:module"
import { homedir } from "node:os"
import { isAbsolute, join } from "node:path"

const questions = new Set(["--help", "-h", "--version", "-v", "--completions"])

/** Such a flag goes before all others, wherever it is; what follows `--` is no flag. */
const isQuestion = (words: ReadonlyArray<string>): boolean => {
  const end = words.indexOf("--")
  const flags = end < 0 ? words : words.slice(0, end)
  return flags.some((flag) => questions.has(flag) || flag.startsWith("--completions="))
}

const cache = process.env["XDG_CACHE_HOME"] ?? ""
// A global installation is often not writable, so it is the user's own folder.
enableCompileCache(join(isAbsolute(cache) ? cache : join(homedir(), ".cache"), "deepagents", "node"))
const { start } = isQuestion(process.argv.slice(2)) ? await import("./internal/about.ts") : await import("./main.ts")
start()
