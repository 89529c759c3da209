/** Ends running commands after a `kill -9` of this process, which runs no finalizers. */
import { type ChildProcess, spawn } from "node:child_process"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** Knows the process groups of running commands. */
export interface Reaper {
  readonly watch: (group: number) => void
  /** The number of a group that has ended may be given to another one. */
  readonly forget: (group: number) => void
}

/** Reads the groups that begin and end. The end of its input is the end of this process. */
const script = `trap '' HUP INT TERM
groups=' '
while read -r change group; do
  case $change in
    begin) groups="$groups$group " ;;
    end) case $groups in *" $group "*) groups="\${groups%% $group *} \${groups#* $group }" ;; esac ;;
  esac
done
for group in $groups; do kill -s TERM -- "-$group"; done
for wait in 1 2; do
  for group in $groups; do kill -s 0 -- "-$group" && { sleep 1; break; }; done
done
for group in $groups; do kill -s KILL -- "-$group"; done`

const start = (): ChildProcess => {
  const child = spawn("/bin/sh", ["-c", script], {
    cwd: "/",
    env: { PATH: "/usr/bin:/bin" },
    // Signals to the group of this process must not reach it.
    detached: true,
    stdio: ["pipe", "ignore", "ignore"]
  })
  // Without it, commands run all the same.
  child.on("error", () => undefined)
  child.stdin?.on("error", () => undefined)
  child.unref()
  return child
}

/** Starts its process with the first command. */
export const makeReaper: Effect.Effect<Reaper, never, Scope.Scope> = Effect.map(
  Effect.acquireRelease(
    Effect.sync((): { child?: ChildProcess } => ({})),
    (state) => Effect.sync(() => state.child?.stdin?.end())
  ),
  (state) => {
    const write = (line: string): void => {
      state.child ??= start()
      state.child.stdin?.write(line)
    }
    return { watch: (group) => write(`begin ${group}\n`), forget: (group) => write(`end ${group}\n`) }
  }
)
