/** Folders with a canary beside them, and commands in bubblewrap over them. */
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { describe } from "@effect/vitest"
import { Effect } from "effect"
import * as OsSandbox from "effect-deepagents/backends/OsSandbox"

const probed = await Effect.runPromise(OsSandbox.probe)

/** Whether bubblewrap isolates on this machine. */
export const works = probed.works

if (!probed.works) console.warn(`without isolation, its tests are skipped: ${probed.why}`)

export const describeIsolated = describe.skipIf(!works)

/** A text that may never be seen in a sandbox. */
export const canary = "CANARY-58b1c0"

/** A folder of an agent, and one beside it with the canary. */
export const folders = Effect.acquireRelease(
  Effect.sync(() => {
    const parent = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), "isolate-")))
    const [root, outside] = [path.join(parent, "root"), path.join(parent, "outside")]
    fs.chmodSync(parent, 0o755)
    fs.mkdirSync(root)
    fs.mkdirSync(outside)
    fs.writeFileSync(path.join(outside, "secret.txt"), canary)
    return { root, outside }
  }),
  ({ root }) => Effect.sync(() => fs.rmSync(path.dirname(root), { recursive: true, force: true }))
)

/** The command lines of all processes of this machine with a given word, without those of this process. */
export const processesWith = (word: string): ReadonlyArray<string> =>
  fs.readdirSync("/proc").flatMap((id) => {
    if (!/^\d+$/.test(id) || Number(id) === process.pid) return []
    try {
      const line = fs.readFileSync(`/proc/${id}/cmdline`, "utf8").replaceAll("\0", " ")
      const state = fs.readFileSync(`/proc/${id}/stat`, "utf8").replace(/^.*\) /s, "")[0]
      return line.includes(word) && state !== "Z" ? [`${id} ${line}`] : []
    } catch {
      return []
    }
  })

/** Waits for a condition. The test's own limit ends it. */
export const until = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.sleep("20 millis"), until(holds))))
