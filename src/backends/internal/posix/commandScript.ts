/**
 * A command in a remote shell: it runs in a session of its own, which can be ended as a whole, for a limited time, with
 * the beginning and the end of its output.
 */
import { prelude, quote } from "./shell.ts"

/**
 * Ends the session of a command: SIGTERM, and SIGKILL a second later. Without sessions, a process is stopped before
 * its children are killed, so that it does not continue after them.
 */
const finish = `
_ed_tree() {
  kill -s STOP "$1"
  for _ed_k in $(ps -A -o pid= -o ppid= | awk -v p="$1" "\\$2 == p { print \\$1 }"); do _ed_tree "$_ed_k"; done
  kill -s KILL "$1"
}
_ed_end() {
  : >"$1.dead"
  _ed_p=$(cat "$1.pid"); [ -n "$_ed_p" ] || return
  if kill -s TERM -- "-$_ed_p"; then
    for _ed_k in 1 2 3 4 5 6 7 8 9 10; do
      kill -s 0 -- "-$_ed_p" || return; sleep 0.1 || { sleep 1; break; }
    done
    kill -s KILL -- "-$_ed_p"
  else _ed_tree "$_ed_p"; fi
}`

/** The most bytes of an output's file. */
export const spoolSize = 8 * 1024 * 1024

/** The most bytes of an output that comes with the answer. */
const inlineSize = 64 * 1024

/** The marks around the output of a script. A command can't know them, so it can't forge its own end. */
export const beginOf = (nonce: string): string => `<ed:${nonce}:`
export const endOf = (nonce: string): string => `:${nonce}:`
export const refusalOf = (nonce: string): string => `<ed:${nonce}!`

/** The code before and after the output. Its names are unlikely to be in the environment of a command. */
const start = `
_ed_r=$1 _ed_n=$2 _ed_w=$3 _ed_t=$4 _ed_h=$5 _ed_x=$6 _ed_i=$7 _ed_c=$8; shift 8
_ed_f=/tmp/.ed-$_ed_n _ed_l=
_ed_d=$(set -- "$_ed_r" "$_ed_n" "" "$_ed_w"
${prelude}
locate "$1"; [ -d "$real" ] || { [ -e "$real" ] && die NotDirectory; die NotFound; }
[ -x "$real/" ] || die PermissionDenied
printf "ok%sx" "$real") 2>/dev/null
case $_ed_d in ok*) ;; *) printf "<ed:%s!%s>\\n" "$_ed_n" "$_ed_d"; exit 0;; esac
_ed_d=\${_ed_d#ok}; _ed_d=\${_ed_d%x}
case $_ed_i in
  "") _ed_i=/dev/null;;
  =*) (umask 077; printf %s "\${_ed_i#=}" >"$_ed_f.in"); _ed_i=$_ed_f.in;;
esac
${finish}
_ed_run() (
  cd "$_ed_d" || exit 126
  while [ $# -gt 0 ]; do export "$1=$2"; shift 2; done
  _ed_g=; command -v setsid >/dev/null 2>&1 && _ed_g=setsid
  exec $_ed_g sh -c 'echo $$ >"$1.pid"; [ -e "$1.dead" ] && exit 137
    if [ "$2" = file ]; then exec sh "$3"; else exec sh -c "$3"; fi' sh "$_ed_f" "$_ed_x" "$_ed_c"
)
(
  trap "kill \\$_ed_s; exit" TERM
  sleep $_ed_t & _ed_s=$!
  wait $_ed_s || { sleep $((\${_ed_t%.*}+1)) & _ed_s=$!; wait $_ed_s; }
  : >"$_ed_f.late"; _ed_end "$_ed_f"
) >/dev/null 2>&1 </dev/null & _ed_z=$!
echo $_ed_z >"$_ed_f.dog"
printf "<ed:%s:" "$_ed_n"`

const stop = `
kill $_ed_z 2>/dev/null; wait $_ed_z 2>/dev/null
[ -e "$_ed_f.late" ] && _ed_q=late
rm -f "$_ed_f.dog" "$_ed_f.pid" "$_ed_f.late" "$_ed_f.dead" "$_ed_f.in" "$_ed_f.cmd"
[ -n "$_ed_l" ] && _ed_q=$_ed_q+$_ed_l
printf ":%s:%s>\\n" "$_ed_n" "$_ed_q"`

/** At most `$_ed_h` bytes of the beginning, and as many of the end. */
const bounded = `${start}
exec 4>&1
_ed_q=$( { { _ed_run "$@" <"$_ed_i" 2>&1 3>&- 4>&-; echo $? >&3; } | { head -c $_ed_h; tail -c $_ed_h; } >&4 3>&-; } 3>&1 )
exec 4>&-${stop}`

/**
 * The output in a file, for machines that don't stream: its first bytes, and its last ones in another. Short output
 * comes between the marks instead. The status has the size of the file behind a \`+\`.
 */
const spooled = `${start}
(umask 077; : >"$_ed_f.all"; : >"$_ed_f.end")
exec 4>&1
_ed_q=$( { { _ed_run "$@" <"$_ed_i" 2>&1 3>&- 4>&-; echo $? >&3; } | { head -c ${spoolSize} >"$_ed_f.all"; tail -c $_ed_h >"$_ed_f.end"; } 3>&-; } 3>&1 )
exec 4>&-
_ed_l=$(($(wc -c <"$_ed_f.all")))
if [ $_ed_l -le ${inlineSize} ]; then cat "$_ed_f.all"; rm -f "$_ed_f.all" "$_ed_f.end"; _ed_l=
elif [ $_ed_l -lt ${spoolSize} ]; then rm -f "$_ed_f.end"; fi${stop}`

const streamed = `${start}
_ed_run "$@" <"$_ed_i"; _ed_q=$?${stop}`

/**
 * A command and its settings. `seconds` is its timeout (with fractions if the machine supports them), `bytes` the
 * size of its output that is kept at each end.
 */
export interface Run {
  readonly root: string
  readonly nonce: string
  readonly cwd: string
  readonly seconds: number
  readonly bytes: number
  /** The command, or the path of a file with it. */
  readonly command: { readonly text: string } | { readonly file: string }
  /** The input, or the path of a file with it. */
  readonly stdin: { readonly text: string } | { readonly file: string } | undefined
  readonly env: ReadonlyArray<readonly [name: string, value: string]>
}

const lineOf = (script: string, run: Run): string => {
  const { command, stdin } = run
  const words = [
    run.root,
    run.nonce,
    run.cwd,
    run.seconds.toFixed(3),
    String(run.bytes),
    "file" in command ? "file" : "text",
    stdin === undefined ? "" : "file" in stdin ? stdin.file : `=${stdin.text}`,
    "file" in command ? command.file : command.text,
    ...run.env.flat()
  ]
  return `sh -c ${quote(script)} sh ${words.map(quote).join(" ")}`
}

/** The command as one line, of which the output comes at the end. */
export const boundedLine = (run: Run): string => lineOf(bounded, run)

/** The command as one line, of which the output comes at the end, in files if it is long. */
export const spooledLine = (run: Run): string => lineOf(spooled, run)

/** The files of a long output: its beginning, and what is behind that. */
export const spoolFiles = (nonce: string) => ({ all: `/tmp/.ed-${nonce}.all`, end: `/tmp/.ed-${nonce}.end` })

/** The command as one line, of which the output comes as it is written. */
export const streamedLine = (run: Run): string => lineOf(streamed, run)

/** Ends a command and all that it started, also if it has not begun yet. */
export const endLine = (nonce: string): string =>
  `sh -c ${quote(`{ ${finish}
[ -s "$1.pid" ] && d=$1.dead || d=; kill $(cat "$1.dog"); _ed_end "$1"; rm -f "$1.dog" "$1.in" "$1.cmd" "$1.pid" "$1.late" "$1.all" "$1.end" $d; } >/dev/null 2>&1`)} sh ${quote(`/tmp/.ed-${nonce}`)}`
