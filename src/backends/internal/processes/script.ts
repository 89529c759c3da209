/**
 * Shell scripts of background processes. The input is a named pipe; output and exit code are files. The scripts run in
 * any POSIX shell, and so in any sandbox.
 */
import * as CommandLine from "effect/process/CommandLine"
import * as Result from "effect/Result"

/** Quotes a text as one word of a POSIX shell. Callers reject NUL before. */
const quoteWord = (text: string): string => Result.getOrElse(CommandLine.quote(text), () => "''")

/** The name of the file with the output, in the folder of a process. */
export const outputFile = "out"

/** zsh reads these scripts as `sh` does. */
const asSh = '[ -z "${ZSH_VERSION-}" ] || emulate sh'

/**
 * Prints when a process began, in the clock of this boot: an id that is used again has another beginning. Systems
 * without `/proc` have `ps`.
 */
const began =
  'began() { if [ -r "/proc/$1/stat" ]; then s=$(cat "/proc/$1/stat" 2>/dev/null); s=${s##*) }; case $s in [ZX]*) return;; esac; set -- $s; [ $# -ge 20 ] && shift 19 && echo "$1-$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"; else ps -o lstart= -p "$1" 2>/dev/null; fi; }'

/** Prints the process group of a process. */
const group =
  'group() { if [ -r "/proc/$1/stat" ]; then s=$(cat "/proc/$1/stat" 2>/dev/null); set -- ${s##*) }; echo "${3-}"; else ps -o pgid= -p "$1" 2>/dev/null | tr -cd 0-9; fi; }'

/** The shell that runs this script, so that the command gets the same; `sh` if its name is not known. */
const sameShell = 'case "${0##*/}" in sh|bash|dash|zsh|ksh|ash|mksh) i=$0;; *) i=sh;; esac'

/**
 * Makes the script that runs a command. The shell holds the pipe open between writers, until SIGUSR1 closes it. Output
 * over the limit ends the process. With `endsWithParent`, the end of the program on the same machine ends it too. `row`
 * has the ids of the program, of this shell and of the process, each with its beginning.
 */
export const makeRun = (
  command: string,
  options: { readonly folder: string; readonly pty: boolean; readonly limit: number; readonly endsWithParent: boolean }
): string => {
  const { endsWithParent, folder, limit, pty } = options
  // The program may be killed: then this script ends its process group.
  const orphaned = `if ! kill -0 "$PPID" 2>/dev/null; then trap "" TERM; kill -s TERM -- "-$$"; sleep 2; kill -s KILL -- "-$$"; fi; `
  const inner = pty ? `script -qefc ${quoteWord(command)} /dev/null` : `exec "$i" -c ${quoteWord(command)}`
  return [
    asSh,
    `d=${quoteWord(folder)}`,
    'mkdir -p "$d" && mkfifo "$d/in" || exit 126',
    began,
    sameShell,
    `printf "%s" ${quoteWord(command)} >"$d/command"`,
    'exec 3<>"$d/in"',
    `( exec 3<&-; ${inner} ) <"$d/in" >"$d/out" 2>&1 & p=$!`,
    'for q in "$PPID" "$$" "$p"; do echo "$q $(began "$q")"; done >"$d/row.new"; mv "$d/row.new" "$d/row"',
    'echo "$p" >"$d/pid"',
    // Keeps the pipe open when earlier writers end before the process reads.
    "trap 'exec 3<&-' USR1",
    `( exec 3<&-; while kill -0 "$p" 2>/dev/null; do if [ "$(wc -c <"$d/out")" -gt ${limit} ]; then kill "$p"; echo "[ended: more output than is kept]" >>"$d/out"; break; fi; if [ -e "$d/close" ]; then rm -f "$d/close"; kill -s USR1 "$$"; fi; ${endsWithParent ? orphaned : ""}sleep 2; done ) </dev/null >/dev/null 2>&1 & w=$!`,
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

/**
 * Signals a process of a row, by its line: 2 is the shell, 3 the process. Another process may have its id: commands of a
 * sandbox may each have ids of their own.
 */
const signalRow = (name: string, line: 2 | 3): string =>
  `r=$(sed -n ${line}p row 2>/dev/null); [ -n "\${r#* }" ] && [ "$(began "\${r%% *}")" = "\${r#* }" ] && kill -s ${name} "\${r%% *}"`

/** Makes the script that writes its input to a process. With `close`, the shell ends the input at once, or in 2 seconds. */
export const makeSend = (folder: string, close: boolean): string =>
  close
    ? [began, `cd ${quoteWord(folder)} && cat >in && : >close || exit 1`, signalRow("USR1", 2), "exit 0"].join("\n")
    : `cd ${quoteWord(folder)} && cat >in`

/** Makes the script that ends a process. It fails if commands can't signal the process. */
export const makeKill = (folder: string): string =>
  [began, `cd ${quoteWord(folder)} || exit 1`, signalRow("TERM", 3)].join("\n")

/** Makes the script that keeps a process from being reported again. */
export const makeTold = (folder: string): string => `: >${quoteWord(folder)}/told`

/** Makes the script that gives processes to the next program, though this one goes on. */
export const makeClosed = (folders: ReadonlyArray<string>): string =>
  folders.map((folder) => `: >${quoteWord(folder)}/closed`).join("\n")

/** The most processes of an earlier program that are reported. */
const maxRows = 50

/**
 * Makes the script that settles the processes that earlier programs left in a folder, in a line each: its folder, its
 * state (`code N`, `ended` if it still ran, or `gone`), and the beginning of its command. The last line is the highest
 * number of a process. Processes of a program that still runs are left alone. The agent may have written the rows: a
 * group is signalled only if a stored process of it runs, which began when the row says.
 */
export const makeSettle = (folder: string): string =>
  [
    asSh,
    began,
    group,
    `cd ${quoteWord(folder)} 2>/dev/null || exit 0`,
    "n=0; m=0",
    "for d in p*-*; do",
    '  k=${d%%-*}; k=${k#p}; case $k in *[!0-9]*|""|??????????*) continue;; esac',
    '  [ "$k" -le "$m" ] || m=$k',
    '  [ -f "$d/row" ] && [ ! -e "$d/told" ] || continue',
    `  n=$((n + 1)); [ "$n" -le ${maxRows} ] || break`,
    '  { IFS= read -r a; IFS= read -r b; IFS= read -r c; } <"$d/row" || continue',
    '  case "${a%% *}${b%% *}${c%% *}" in *[!0-9]*|"") continue;; esac',
    '  is() { [ -n "${1#* }" ] && [ "$(began "${1%% *}")" = "${1#* }" ]; }',
    '  if [ ! -e "$d/closed" ] && is "$a"; then continue; fi',
    "  t=gone",
    "  g=${b%% *}; y=",
    '  if is "$b"; then y=$g; elif is "$c"; then y=${c%% *}; fi',
    '  if [ -n "$y" ] && [ "$g" -gt 1 ] && [ "$(group "$y")" = "$g" ]; then',
    '    t=ended; kill -s TERM -- "-$g" 2>/dev/null; sleep 1; kill -s KILL -- "-$g" 2>/dev/null',
    '  elif [ -f "$d/exit" ]; then t="code $(head -c 5 "$d/exit" | tr -cd 0-9)"; fi',
    '  printf "%s\\t%s\\t%s\\n" "$d" "$t" "$([ ! -f "$d/command" ] || head -c 500 "$d/command" | tr "\\n\\r\\t" "   ")"',
    "done",
    'echo "$m"',
    "exit 0"
  ].join("\n")

/** A process of an earlier program. */
export interface Row {
  readonly folder: string
  readonly id: string
  readonly state: string
  readonly command: string
}

/** Reads the lines of {@link makeSettle}. */
export const readRows = (output: string): { readonly rows: ReadonlyArray<Row>; readonly last: number } => ({
  rows: output.split("\n").flatMap((line) => {
    const [folder = "", state = "", command = ""] = line.split("\t")
    const id = /^(p\d{1,9})-[A-Za-z0-9-]+$/.exec(folder)?.[1]
    return id === undefined ? [] : [{ folder, id, state, command }]
  }),
  last: Number(/(\d+)\n$/.exec(output)?.[1] ?? 0)
})
