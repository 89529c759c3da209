#!/usr/bin/env node
/** Starts the program with what node compiled the last time: half of the time to the first line. */
import { enableCompileCache } from "node:module"
import { homedir } from "node:os"
import { isAbsolute, join } from "node:path"

const cache = process.env["XDG_CACHE_HOME"] ?? ""
// A global installation is often not writable, so it is the user's own folder.
enableCompileCache(join(isAbsolute(cache) ? cache : join(homedir(), ".cache"), "deepagents", "node"))
const { main } = await import("./main.ts")
main()
