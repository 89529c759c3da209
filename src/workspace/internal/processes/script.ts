/**
 * Shell scripts of background processes. The input is a named pipe; output and exit code are files. The scripts run in
 * any POSIX shell, and so in any sandbox.
 */
import * as CommandLine from "effect/process/CommandLine"
import * as Result from "effect/Result"

/** Quotes a text as one word of a POSIX shell. Callers reject NUL before. */
export const quoteWord = (text: string): string => Result.getOrElse(CommandLine.quote(text), () => "''")

/** File names in the folder of a process. */
export const files = { input: "in", output: "out", exit: "exit", pid: "pid", shell: "shell" } as const

/**
 * Makes the script that runs a command. The shell holds the pipe open between writers, until SIGUSR1 closes it. Output
 * over the limit ends the process. With `endsWithParent`, the end of the program on the same machine ends it too.
 */
export const makeRun = (
  command: string,
  options: { readonly folder: string; readonly pty: boolean; readonly limit: number; readonly endsWithParent: boolean }
): string => {
  const { endsWithParent, folder, limit, pty } = options
  // The program may be killed: then this script ends its process group.
  const orphaned = `if ! kill -0 "$PPID" 2>/dev/null; then trap "" TERM; kill -s TERM -- "-$$"; sleep 2; kill -s KILL -- "-$$"; fi; `
  const inner = pty ? `script -qefc ${quoteWord(command)} /dev/null` : `exec sh -c ${quoteWord(command)}`
  return [
    `d=${quoteWord(folder)}`,
    'mkdir -p "$d" && mkfifo "$d/in" || exit 126',
    'exec 3<>"$d/in"',
    `( exec 3<&-; ${inner} ) <"$d/in" >"$d/out" 2>&1 & p=$!`,
    'echo "$p" >"$d/pid"',
    // Keeps the pipe open when earlier writers end before the process reads.
    "trap 'exec 3<&-' USR1",
    'echo "$$" >"$d/shell"',
    `( exec 3<&-; while kill -0 "$p" 2>/dev/null; do if [ "$(wc -c <"$d/out")" -gt ${limit} ]; then kill "$p"; echo "[ended: more output than is kept]" >>"$d/out"; break; fi; ${endsWithParent ? orphaned : ""}sleep 2; done ) </dev/null >/dev/null 2>&1 & w=$!`,
    'c=0; wait "$p"; c=$?',
    // A signal to this shell ends the wait, not the process.
    'while kill -0 "$p" 2>/dev/null; do wait "$p"; c=$?; done',
    'kill "$w" 2>/dev/null',
    'echo "$c" >"$d/exit"',
    'exit "$c"'
  ].join("\n")
}

/** Makes the script that prints the size of the output, then a window of its bytes. It ignores later output. */
export const makeRead = (folder: string, offset: number, length: number): string =>
  [
    `cd ${quoteWord(folder)} && s=$(($(wc -c <out))) && echo "$s" || exit 1`,
    `n=$((s - ${offset})); [ "$n" -gt ${length} ] && n=${length}`,
    `[ "$n" -le 0 ] || tail -c +${offset + 1} out | head -c "$n"`
  ].join("\n")
