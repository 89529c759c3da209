/** Runs command lines by a real bash, to compare its reading and their effects. */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import {
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const bash = spawnSync("/bin/sh", ["-c", "command -v bash"]).stdout.toString().trim()

const temporary = (): string => realpathSync(mkdtempSync(join(tmpdir(), "deepagents-commands-")))

/** The commands of each line, as bash runs them: a program is not found, and its arguments are written down. */
export const commandsByBash = (lines: ReadonlyArray<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const folder = temporary()
  const file = join(folder, "lines")
  writeFileSync(file, lines.map((line) => `${line}\0`).join(""))
  mkdirSync(join(folder, "void"))
  const script = `
    cd ${join(folder, "void")}
    enable -n echo cd pwd test true false : [ type
    command_not_found_handle() { printf '%s\\0' "$@" $'\\1' >&9; return $(( $# % 2 )); }
    while IFS= read -r -d '' line <&8; do
      ( eval "$line" ) >/dev/null 2>&1 </dev/null 8<&-
      wait
      printf '\\2\\0' >&9
    done 8<${file} 9>${join(folder, "out")}`
  const done = spawnSync(bash, ["--norc", "--noprofile", "-f", "-c", script], {
    env: { PATH: "/none", HOME: "/home/u" },
    timeout: 900_000
  })
  if (done.error !== undefined) throw done.error
  const out = readFileSync(join(folder, "out"), "utf8")
  rmSync(folder, { recursive: true, force: true })
  return out
    .split("\u0002\0")
    .slice(0, lines.length)
    .map((part) =>
      part
        .split("\u0001\0")
        .filter((one) => one !== "")
        .map((one) => one.slice(0, -1).replaceAll("\0", " "))
    )
}

/** A folder with files, a link that leads out, names that look like options, and a repository. */
export const makeProject = () => {
  const root = temporary()
  const folder = join(root, "project")
  mkdirSync(join(folder, "src/deep"), { recursive: true })
  mkdirSync(join(root, "outside"))
  writeFileSync(join(root, "outside/secret"), "the-secret\n")
  for (const name of ["a.txt", "b.txt", "src/a.ts", "src/b.ts", "src/deep/c.ts", "-o", "-delete", "--output=x"]) {
    writeFileSync(join(folder, name), `foo ${name}\nbar\n`)
  }
  writeFileSync(join(folder, "package.json"), '{"name":"x","version":"1.0.0"}\n')
  writeFileSync(join(folder, ".env"), "KEY=the-secret\n")
  symlinkSync("../outside/secret", join(folder, "link"))
  symlinkSync("../outside", join(folder, "linked"))
  const git = (...args: ReadonlyArray<string>) =>
    spawnSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: folder })
  git("init", "-q")
  git("add", "src", "a.txt")
  git("commit", "-qm", "one")
  return { folder, root, remove: () => rmSync(root, { recursive: true, force: true }) }
}

/** All files below a folder with their contents, but the index of git, which a reading `git status` refreshes. */
export const digestOf = (folder: string): string => {
  const hash = createHash("sha256")
  const walk = (path: string): void => {
    for (const name of readdirSync(path).toSorted()) {
      const whole = join(path, name)
      const stat = lstatSync(whole)
      if (whole.endsWith("/.git/index")) continue
      hash.update(`${whole} ${stat.mode}\0`)
      if (stat.isDirectory()) walk(whole)
      else hash.update(stat.isSymbolicLink() ? readlinkSync(whole) : readFileSync(whole))
    }
  }
  walk(folder)
  return hash.digest("hex")
}

/** Runs lines one after another, in a namespace in which only the folder can be written. Returns their output. */
export const runLines = (folder: string, lines: ReadonlyArray<string>): string => {
  const script = `mount --bind "$PWD" "$PWD" && mount -o remount,bind,ro / && cd "$PWD" || exit 99
    ${lines.map((line) => `timeout 10 bash -c ${quote(line)} </dev/null`).join("\n")}
    exit 0`
  const done = spawnSync("unshare", ["-r", "-m", "-n", "bash", "-c", script], {
    cwd: folder,
    env: { PATH: process.env["PATH"] ?? "", HOME: folder, GIT_PAGER: "cat", TERM: "dumb" },
    timeout: 600_000,
    maxBuffer: 200_000_000
  })
  if (done.status !== 0) throw new Error(`no namespace can be made: ${done.stderr.toString().slice(0, 500)}`)
  return done.stdout.toString()
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/** The real paths behind a path. */
export const look = (path: string): ReadonlyArray<string> => globSync(path).map((one) => realpathSync(one))
