/** Commands that run at the same time: none puts a link in the place of a path that another mounts. */
import { execFileSync } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as OsSandbox from "effect-deepagents/backends/OsSandbox"
import { describeIsolated, folders, until } from "./box.ts"

describeIsolated("commands that run at the same time", { timeout: 60_000 }, () => {
  it.live("mount no path that one of them made and could swap, and make no folder in it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { root } = yield* folders
        execFileSync("git", ["init", "-q", root])
        execFileSync("git", ["init", "-q", path.join(root, "sub")])
        const box = yield* OsSandbox.make({ root, ripgrep: false })
        const made = "echo .. > .git/commondir; mkdir -p sub/.git/modules/m; touch sub/.git/modules/m/HEAD"
        const first = yield* Effect.forkChild(box.execute(`${made}; touch ready; sleep 40`))
        yield* until(() => fs.existsSync(path.join(root, "ready")))
        const mounts =
          "grep -oE '(commondir|modules/m/hooks|[a-z]+/.git/hooks) ' /proc/self/mountinfo | sort -u; ls sub/.git/modules/m"
        const beside = yield* box.execute(mounts)
        assert.strictEqual(beside.output, "root/.git/hooks \nsub/.git/hooks \nHEAD\n")
        yield* Fiber.interrupt(first)
        // With nothing at work, nobody can swap them.
        const alone = yield* box.execute(mounts)
        assert.include(alone.output, "commondir \n")
        assert.include(alone.output, "modules/m/hooks \n")
      })
    )
  )
})
