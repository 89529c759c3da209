/** Real repositories for tests: a folder of this machine, with git in a local shell. */
import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Sandbox } from "effect-deepagents"
import type { Backend } from "effect-deepagents"
import * as LocalShell from "effect-deepagents/backends/LocalShell"
import * as Effect from "effect/Effect"

const identity = ["-c", "user.name=Ada", "-c", "user.email=ada@a.b"]

/** Git as the test itself calls it. */
export const git = (root: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", [...identity, ...args], { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] })

/** Runs a test on a new repository with one commit of these files. */
export const inRepository = <A, E>(
  files: Readonly<Record<string, string>>,
  test: (root: string) => Effect.Effect<A, E, Sandbox.Sandbox | Backend.Backend>
) =>
  Effect.acquireUseRelease(
    Effect.sync(() => {
      const root = mkdtempSync(join(tmpdir(), "repository-"))
      git(root, "init", "--quiet", "--initial-branch=main")
      for (const [name, content] of Object.entries(files)) writeFileSync(join(root, name), content)
      git(root, "add", "--all")
      git(root, "commit", "--quiet", "-m", "first")
      return root
    }),
    (root) =>
      Effect.suspend(() => test(root)).pipe(
        Effect.provide(
          LocalShell.layer({
            root,
            env: {
              set: {
                GIT_CONFIG_GLOBAL: "/dev/null",
                GIT_AUTHOR_NAME: "Ada",
                GIT_AUTHOR_EMAIL: "ada@a.b",
                GIT_COMMITTER_NAME: "Ada",
                GIT_COMMITTER_EMAIL: "ada@a.b"
              }
            }
          })
        )
      ),
    (root) => Effect.sync(() => rmSync(root, { recursive: true, force: true }))
  )
