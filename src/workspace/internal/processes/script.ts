/**
 * The shell script around a background process: its input is a named pipe, its output a file, its end a file with its
 * exit code. It runs in any POSIX shell, so that any sandbox can have it.
 */
import * as CommandLine from "effect/process/CommandLine"
import * as Result from "effect/Result"

/** A text as one word of a POSIX shell. What has a NUL is refused before. */
export const word = (text: string): string => Result.getOrElse(CommandLine.quote(text), () => "''")

/** The files of a process, in its folder. */
export const files = { input: "in", output: "out", exit: "exit", pid: "pid", shell: "shell" } as const

/**
 * Runs a command with its files in the current folder. The pipe is held open, so that the command sees the end of its
 * input when that is wanted (SIGUSR1), and not between two writers. Output over the limit ends it; so does the end of the
 * program that started the shell, where that is on the same machine (`endsWithParent`).
 */
export const run = (
  command: string,
  options: { readonly folder: string; readonly pty: boolean; readonly limit: number; readonly endsWithParent: boolean }
): string => {
  const { endsWithParent, folder, limit, pty } = options
  // Whoever would end it may be gone without a word: the group of this shell is ended then.
  const orphaned = `if ! kill -0 "$PPID" 2>/dev/null; then trap "" TERM; kill -s TERM -- "-$$"; sleep 2; kill -s KILL -- "-$$"; fi; `
  const inner = pty ? `script -qefc ${word(command)} /dev/null` : `exec sh -c ${word(command)}`
  return [
    `d=${word(folder)}`,
    'mkdir -p "$d" && mkfifo "$d/in" || exit 126',
    'exec 3<>"$d/in"',
    `( exec 3<&-; ${inner} ) <"$d/in" >"$d/out" 2>&1 & p=$!`,
    'echo "$p" >"$d/pid"',
    // The writers of the past may be gone before the process reads: from now on this shell is one.
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

/** Writes the size of the output, then a window of its bytes: of those that were counted, though more may come meanwhile. */
export const read = (folder: string, offset: number, length: number): string =>
  [
    `cd ${word(folder)} && s=$(($(wc -c <out))) && echo "$s" || exit 1`,
    `n=$((s - ${offset})); [ "$n" -gt ${length} ] && n=${length}`,
    `[ "$n" -le 0 ] || tail -c +${offset + 1} out | head -c "$n"`
  ].join("\n")
