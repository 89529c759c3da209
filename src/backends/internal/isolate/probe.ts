/** Tries whether commands can be isolated on this machine. */
import { spawn } from "node:child_process"
import * as Effect from "effect/Effect"
import { oneLine } from "../../../support/text/untrusted.ts"
import * as ControlGroup from "./controlGroup.ts"
import * as Holder from "./holder.ts"
import { findSystem } from "./mounts.ts"
import * as Seatbelt from "./seatbelt.ts"
import { makeFilter } from "./seccomp.ts"

/**
 * The result of a probe. `filters` reports a filter of system calls, `memory` whether `limits.memoryBytes` can be set. `mend`
 * names a remedy.
 */
export type ProbeResult =
  | { readonly works: true; readonly filters: boolean; readonly memory: boolean }
  | { readonly works: false; readonly why: string; readonly mend: string }

const needed = ["bwrap", "nsenter", "prlimit"]

const mendOf = (why: string): string =>
  /uid map|user namespace|clone|operation not permitted|permission denied/i.test(why)
    ? "let bubblewrap make user namespaces: with AppArmor (Ubuntu 24.04), a profile /etc/apparmor.d/bwrap of the lines `abi <abi/4.0>,`, `include <tunables/global>`, `profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }`, then `systemctl reload apparmor`; elsewhere the sysctl user.max_user_namespaces or kernel.unprivileged_userns_clone. In a container, run the container with them, or use DockerSandbox"
    : "run `bwrap --unshare-all --ro-bind / / true` by hand to see what is missing"

/** Runs `true` in the network of a holder. */
const runTrue = (pid: number): Effect.Effect<string | undefined> =>
  Effect.callback((resume) => {
    const child = spawn(
      "nsenter",
      ["-t", String(pid), "-U", "-n", "--preserve-credentials", "--", "bwrap"].concat(
        ["--unshare-user", "--unshare-pid", "--die-with-parent", "--cap-drop", "ALL", "--ro-bind", "/", "/"],
        ["--proc", "/proc", "--dev", "/dev", "--", "true"]
      ),
      { stdio: ["ignore", "ignore", "pipe"], env: { PATH: Holder.toolPath } }
    )
    let stderr = ""
    child.stderr.on("data", (bytes: Buffer) => {
      stderr = (stderr + bytes.toString()).slice(-500)
    })
    child.on("error", (error) => resume(Effect.succeed(error.message)))
    child.on("close", (code) => resume(Effect.succeed(code === 0 ? undefined : stderr.trim() || `exit code ${code}`)))
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

const tryHere: Effect.Effect<ProbeResult> = Effect.scoped(
  Effect.gen(function* () {
    const system = yield* findSystem
    return yield* Holder.hold(system, false).pipe(
      Effect.flatMap(({ pid }) => runTrue(pid)),
      Effect.catch((error) => Effect.succeed(error.detail ?? error.message))
    )
  })
).pipe(
  Effect.map((why) =>
    why === undefined
      ? {
          works: true,
          filters: makeFilter(process.arch) !== undefined,
          memory: ControlGroup.findPlace() !== undefined
        }
      : { works: false, why: oneLine(why), mend: mendOf(why) }
  )
)

/** Runs `true` by `sandbox-exec`. */
const trySeatbelt: Effect.Effect<ProbeResult> = Effect.callback((resume) => {
  const child = spawn(Seatbelt.program, ["-p", "(version 1)(allow default)", "/usr/bin/true"], { stdio: "ignore" })
  const fail = (why: string) =>
    resume(Effect.succeed({ works: false, why, mend: "use DockerSandbox, or a sandbox of a provider" }))
  child.on("error", (error) => fail(error.message))
  child.on("close", (code) =>
    code === 0
      ? resume(Effect.succeed({ works: true, filters: false, memory: false }))
      : fail(`sandbox-exec ended with exit code ${code}; it can't run inside of another sandbox`)
  )
  return Effect.sync(() => void child.kill("SIGKILL"))
})

/** Tries it. */
export const probe: Effect.Effect<ProbeResult> = Effect.suspend(() => {
  if (process.platform === "darwin") return trySeatbelt
  if (process.platform !== "linux") {
    return Effect.succeed({
      works: false,
      why: `bubblewrap is for Linux, and this is ${process.platform}`,
      mend: "use DockerSandbox, or a sandbox of a provider"
    } as const)
  }
  const missing = needed.filter((name) => Holder.findTool(name) === undefined)
  if (missing.length === 0) return tryHere
  const packages = missing.map((name) => (name === "bwrap" ? "bubblewrap" : "util-linux"))
  return Effect.succeed({
    works: false,
    why: `${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} not installed`,
    mend: `install it: apt-get install ${[...new Set(packages)].join(" ")}, or the like of your system`
  } as const)
})
