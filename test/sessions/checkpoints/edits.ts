/** Random edits of a folder, and its shape, which a restore must bring back. */
import { execFileSync } from "node:child_process"
import * as Crypto from "node:crypto"
import * as fs from "node:fs"
import { join } from "node:path"
import * as fc from "fast-check"

const names = ["a", "b", "d/c", "d/e", "d/f/g", "h", "日本", "sp ace", "x.sh"]

/** Edits follow links: outside of the folder is only a folder of the test. */
const targets = ["a", "nowhere", "../outside", ".."]
const modes = [0o644, 0o755, 0o600, 0o444]

export type Edit =
  | { readonly _tag: "write" | "append" | "flip"; readonly path: string; readonly text: string }
  | { readonly _tag: "remove" | "folder"; readonly path: string }
  | { readonly _tag: "move"; readonly path: string; readonly to: string }
  | { readonly _tag: "link"; readonly path: string; readonly to: string }
  | { readonly _tag: "mode"; readonly path: string; readonly mode: number }
  | { readonly _tag: "commit" }

const path = fc.constantFrom(...names, "d", "d/f")

export const edit: fc.Arbitrary<Edit> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ _tag: fc.constant("write" as const), path, text: fc.string({ maxLength: 40 }) })
  },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("append" as const), path, text: fc.constant("x") }) },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("flip" as const), path, text: fc.constant("") }) },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("remove" as const), path }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("folder" as const), path }) },
  { weight: 2, arbitrary: fc.record({ _tag: fc.constant("move" as const), path, to: path }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("link" as const), path, to: fc.constantFrom(...targets) }) },
  { weight: 1, arbitrary: fc.record({ _tag: fc.constant("mode" as const), path, mode: fc.constantFrom(...modes) }) }
)

export const git = (root: string, ...args: ReadonlyArray<string>): void => {
  execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: root, stdio: "ignore" })
}

const act = (root: string, one: Edit): void => {
  if (one._tag === "commit") {
    git(root, "add", "-A")
    git(root, "commit", "-qm", "y", "--allow-empty")
    return git(root, "gc", "-q", "--prune=now")
  }
  const file = join(root, one.path)
  switch (one._tag) {
    case "write":
      fs.mkdirSync(join(file, ".."), { recursive: true })
      return fs.writeFileSync(file, one.text)
    case "append":
      return fs.appendFileSync(file, one.text)
    case "flip": {
      // The same size and times: only the change time tells.
      const { atime, mtime } = fs.statSync(file)
      const data = fs.readFileSync(file)
      data[0] = (data[0] ?? 0) ^ 1
      fs.writeFileSync(file, data)
      return fs.utimesSync(file, atime, mtime)
    }
    case "remove":
      return fs.rmSync(file, { recursive: true, force: true })
    case "folder":
      return void fs.mkdirSync(file, { recursive: true })
    case "move":
      return fs.renameSync(file, join(root, one.to))
    case "link":
      return fs.symlinkSync(one.to, file)
    case "mode":
      return fs.chmodSync(file, one.mode)
  }
}

/** Makes edits. Edits that are impossible now are left out. */
export const make = (root: string, edits: ReadonlyArray<Edit>): void => {
  for (const one of edits) {
    try {
      act(root, one)
    } catch {
      continue
    }
  }
}

/** All that is in a folder but `.git`: paths, modes, targets of links, hashes. */
export const shapeOf = (root: string): string => {
  const lines: Array<string> = []
  const walk = (folder: string, name: string): void => {
    for (const one of fs.readdirSync(folder, { withFileTypes: true })) {
      if (one.name === ".git") continue
      const at = `${folder}/${one.name}`
      const stat = fs.lstatSync(at)
      const mode = (stat.mode & 0o7777).toString(8)
      if (stat.isSymbolicLink()) lines.push(`${name}/${one.name} -> ${fs.readlinkSync(at)}`)
      else if (stat.isDirectory()) {
        lines.push(`${name}/${one.name}/ ${mode}`)
        walk(at, `${name}/${one.name}`)
      } else lines.push(`${name}/${one.name} ${mode} ${Crypto.hash("sha256", fs.readFileSync(at))}`)
    }
  }
  walk(root, "")
  return lines.toSorted().join("\n")
}
