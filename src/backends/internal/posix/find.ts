/** The scripts that search a remote shell. They find candidates; this process matches them. */
import type { Script } from "./shell.ts"

/** The most bytes of paths or contents in an answer. */
export const searchBytes = 8 * 1024 * 1024

/**
 * `path seconds ignored name literal…`: gives the real path within the root, the ignore files in and above it (path
 * and text), an empty record, then the files. `name` is an argument of `find -name`, `literal…` are arguments of
 * `grep` that preselect files. Files are paths that begin with `./`, a line each; a path with a newline has its own
 * record. The last record is `done` or `time`. A first record `file` marks a single file.
 *
 * Skips directories that the root's ignore file names literally, unless a rule re-includes a path.
 */
export const find: Script = {
  large: true,
  body: `path=$1; limit=$2; ignored=$3; name=$4; shift 4
  locate "$path"
  there "$real" || die NotFound
  where=\${real#"$r"}; where=\${where:-/}
  show() { put "$1"; head -c 65536 "$2" | tr -d "\\000"; put ""; }
  ignores() {
    [ "$ignored" = 1 ] && return
    up=$where
    [ "$up" = / ] || [ ! -e "$r$up/.git" ] || return
    while [ "$up" != / ] && [ -n "$up" ]; do
      up=\${up%/*}; [ -f "$r$up/.gitignore" ] && [ ! -L "$r$up/.gitignore" ] && show "$up/" "$r$up/.gitignore"
    done
  }
  if [ ! -d "$real" ]; then
    [ -f "$real" ] || die Unsupported
    put file "$where"; ignores; put "" done; exit 0
  fi
  cd -P "$real" || die PermissionDenied
  [ -r . ] || die PermissionDenied
  put ok "$where"; ignores
  search() {
    if [ $# -eq 0 ]; then
      find . $skip -type f -name "$name" ! -path "*
*" -print
      find . $skip -type f -name "$name" -path "*
*" -exec printf "\\0%s\\0" {} \\;
    else
      find . $skip -type f -name "$name" ! -path "*
*" -exec grep -l "$@" {} +
      find . $skip -type f -name "$name" -path "*
*" -exec grep -q "$@" {} \\; -exec printf "\\0%s\\0" {} \\;
    fi
  }
  set -f
  skip=
  [ "$real" = / ] && skip="-path ./proc -prune -o -path ./sys -prune -o -path ./dev -prune -o"
  if [ "$ignored" != 1 ]; then
    skip="$skip -name .git -prune -o"
    plain=
    # A pipe of that name would never end.
    if [ -f "$r/.gitignore" ] && [ ! -L "$r/.gitignore" ]; then
      for rule in $(head -c 65536 "$r/.gitignore" | tr -d "\\000\\015" | sed -n "s:^\\([A-Za-z0-9_][A-Za-z0-9_.-]*\\)/*\\$:\\1:p" | head -n 200); do
        plain="$plain -type d -name $rule -prune -o"
      done
    fi
    if [ -n "$plain" ] && ! grep -q "^!" "$r/.gitignore" &&
      [ -z "$(find . $skip $plain -name .gitignore -type f -exec grep -l "^!" {} +)" ]; then skip="$skip $plain"; fi
    find . $skip -name .gitignore -type f -exec sh -c 'for f do
      printf "%s\\0" "$f"; head -c 65536 "$f" | tr -d "\\000"; printf "\\0"; done' sh {} +
  fi
  put ""
  search "$@" & job=$!
  (trap "kill \\$nap; exit" TERM; sleep $limit & nap=$!; wait $nap; kill $job) </dev/null >/dev/null 2>&1 & timer=$!
  wait $job; code=$?
  kill $timer
  [ $code -gt 128 ] && put "" time || put "" done`
}

/**
 * `budget size path…`: gives contents up to the budget. Each file has its size, then its bytes; -1 for a file larger
 * than `size`, -2 for an unreadable file. The first file always comes.
 */
export const gather: Script = {
  large: true,
  body: `left=$1; most=$2; shift 2; c=/tmp/.ed-$n.copy
  put ok
  for path; do
    rm -f "$c"
    s=$( (locate "$path"; [ -f "$real" ] && [ -r "$real" ] && wc -c <"$real") | tr -d "\\000")
    case $s in *[!0-9\\ ]*|"") put -2; continue;; esac
    if [ $((s)) -gt $most ]; then put -1; continue; fi
    [ $((s)) -gt $left ] && [ $left -ne $1 ] && break
    (locate "$path"; umask 077; head -c $most "$real" >"$c") || { put -2; continue; }
    s=$(wc -c <"$c"); put $((s)); cat "$c"; left=$((left-s))
  done
  rm -f "$c"`
}

const normal = `
  if [ $(tr -dc "\\015" <"$real" | wc -c) -eq 0 ]; then norm() { tr "\\000" "\\001" <"$real"; }
  else
    cr=$(printf "\\015")
    norm() { { cat "$real"; printf "x\\n"; } | tr "\\000" "\\001" | sed "s/$cr\\$//" | tr "\\015" "\\n" | sed "\\$s/x\\$//"; }
  fi`

/**
 * `path context most literal…`: gives the first 8,192 bytes of a large file, then its matching lines with their
 * context, each with its number.
 */
export const extract: Script = {
  large: true,
  body: `path=$1; context=$2; most=$3; shift 3
  locate "$path"; plain
  put ok; head -c 8192 "$real"${normal}
  { norm | grep -n "$@" | cut -d: -f1 | head -n $most; echo; norm; } | awk -v c=$context '
    !h { if ($0 == "") h = 1; else for (i = $0 - c; i <= $0 + c; i++) w[i] = 1; next }
    { n++; if (n in w) print n ":" $0 }' | head -c ${searchBytes}`
}

/** `path from size`: some bytes of a file, from one on that is counted from 1. */
export const chunk: Script = {
  large: true,
  body: `locate "$1"; plain; put ok; tail -c +$2 "$real" | head -c $3`
}
