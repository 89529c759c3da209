/** Folders of this machine for one test. */
import { execFileSync } from "node:child_process"
import * as NodeFs from "node:fs"
import { createRequire } from "node:module"
import * as NodeOs from "node:os"
import * as NodePath from "node:path"
import { Effect } from "effect"

/** The ripgrep that the tests use. */
export const rgPath: string = createRequire(import.meta.url)("@vscode/ripgrep").rgPath

/** Runs on this machine now. */
export const runNow = <A>(run: () => A): Effect.Effect<A> => Effect.sync(run)

/** Runs a program of this machine, and gives what it wrote. */
export const system = (program: string, ...args: ReadonlyArray<string>): Effect.Effect<string> =>
  runNow(() => execFileSync(program, args, { encoding: "utf8", cwd: "/" }))

/** A root with something beside it that must not be reached. */
export const temporary = Effect.acquireRelease(
  runNow(() => {
    const folder = NodeFs.realpathSync(NodeFs.mkdtempSync(NodePath.join(NodeOs.tmpdir(), "deepagents-")))
    const root = NodePath.join(folder, "root")
    const outside = NodePath.join(folder, "outside")
    NodeFs.mkdirSync(root)
    NodeFs.mkdirSync(outside)
    NodeFs.writeFileSync(NodePath.join(outside, "secret.txt"), "secret\n")
    return { root, outside }
  }),
  ({ root }) => runNow(() => NodeFs.rmSync(NodePath.dirname(root), { recursive: true, force: true }))
)

/** Writes files below a folder; a name that ends with `/` is a folder. */
export const plant = (folder: string, files: { readonly [path: string]: string | Uint8Array }): Effect.Effect<void> =>
  runNow(() => {
    for (const [path, content] of Object.entries(files)) {
      const real = NodePath.join(folder, path)
      NodeFs.mkdirSync(path.endsWith("/") ? real : NodePath.dirname(real), { recursive: true })
      if (!path.endsWith("/")) NodeFs.writeFileSync(real, content)
    }
  })
