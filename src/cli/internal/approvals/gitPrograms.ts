/** Finds out whether a git repository makes commands, which otherwise only read, run its own programs. */
import { spawnSync } from "node:child_process"
import { accessSync, constants, existsSync, realpathSync } from "node:fs"
import { join, resolve } from "node:path"
import * as Result from "effect/Result"

/** Settings by which `git status`, `diff`, `log` and the like run programs, or read another folder. */
const settings = [
  "core\\.(fsmonitor|worktree|alternaterefscommand)",
  "diff\\.(external|.*\\.(command|textconv))",
  "filter\\..*\\.(clean|smudge|process)",
  "merge\\..*\\.driver",
  "hook\\..*\\.command",
  "gpg\\.(.*\\.)?program",
  // Missing objects are fetched by a program that the repository chooses.
  "remote\\..*\\.promisor",
  "extensions\\.partialclone"
].join("|")

/** Values of `core.fsmonitor` that name no program. */
const isSwitch = (value: string): boolean => /^(?:true|false|yes|no|on|off|1|0|)$/i.test(value)

/** The most submodules, and levels of them, that are looked at. */
const most = 50
const maxDepth = 3

/** Runs git, with no program of the repository. */
const runGit = (cwd: string, ...args: ReadonlyArray<string>) => {
  const { status, stdout } = spawnSync("git", ["-c", "core.fsmonitor=false", ...args], {
    cwd,
    encoding: "utf8",
    env: { ...process.env, GIT_OPTIONAL_LOCKS: "0" },
    maxBuffer: 128 * 1024 * 1024,
    stdio: ["ignore", "pipe", "ignore"],
    timeout: 5_000
  })
  return { code: status, text: (stdout ?? "").replace(/\n$/, "") }
}

/** Tells whether the repository has such a setting. Settings of the user name programs of the user. */
const hasSetting = (folder: string, depth: number): boolean => {
  const { code, text } = runGit(folder, "config", "-z", "--show-scope", "--get-regexp", `^(${settings})$`)
  // 1: there is no such setting.
  if (code !== 0) return code !== 1
  const fields = text.split("\0")
  return fields.some((field, at) => {
    const scope = at % 2 === 1 ? fields[at - 1] : undefined
    if (scope !== "local" && scope !== "worktree") return false
    const [key, ...value] = field.split("\n")
    if (key === "core.fsmonitor") return !isSwitch(value.join("\n"))
    // Each submodule has this one.
    return key !== "core.worktree" || depth === 0
  })
}

/** Tells whether there is the hook that git runs when `git status` refreshes the index. */
const hasHook = (folder: string): boolean => {
  const { code, text } = runGit(folder, "rev-parse", "--git-path", "hooks/post-index-change")
  return code !== 0 || Result.isSuccess(Result.try(() => accessSync(resolve(folder, text), constants.X_OK)))
}

/** Tells whether the repository of a folder, or a submodule of it, names programs. What can't be told counts as yes. */
export const namesPrograms = (folder: string, depth = 0): boolean => {
  if (!existsSync(folder) || runGit(folder, "rev-parse", "--git-dir").code === 128) return false
  const { code, text: top } = runGit(folder, "rev-parse", "--show-toplevel")
  if (code !== 0) return true
  if (depth > 0 && top !== Result.getOrUndefined(Result.try(() => realpathSync(folder)))) return false
  if (depth > maxDepth || hasSetting(folder, depth) || hasHook(folder)) return true
  const index = runGit(folder, "ls-files", "-z", "--stage", "--full-name", ":/")
  if (index.code !== 0) return true
  const inner = index.text.split("\0").flatMap((line) => {
    const name = /^160000 [^\t]*\t([^]+)$/.exec(line)?.[1]
    return name === undefined || !existsSync(join(top, name, ".git")) ? [] : [join(top, name)]
  })
  return inner.length > most || inner.some((one) => namesPrograms(one, depth + 1))
}
