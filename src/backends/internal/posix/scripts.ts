/**
 * The scripts by which a backend works in a remote shell: POSIX `sh`, and the tools that GNU, BSD and busybox share.
 */
import { guarding } from "./protected.ts"
import type { Script } from "./shell.ts"

/** `root`: makes the folder if it is missing, and gives its real path. */
export const open: Script = {
  body: `case $1 in "") ;; *) [ -d "$1" ] || mkdir -p "$1" || die PermissionDenied; cd -P "$1" || die PermissionDenied;; esac
  [ "$(ver /dev/null)" = - ] && die Tools
  put ok "$(pwd -P; echo x)"`
}

/**
 * `path`: for each entry `f`, `d` or `l` and a name, then an empty record, then what `ls -l` says, a line each in the
 * order of the bytes of the names. A link has its size behind its kind.
 */
export const list: Script = {
  large: true,
  body: `locate "$1"
  [ -d "$real" ] || { [ -e "$real" ] && die NotDirectory; die NotFound; }
  cd -P "$real" && [ -r . ] || die PermissionDenied
  put ok
  here=$PWD
  follow() {
    q=\${here%/}/$1; final "$q" 2>/dev/null
    if [ -d "$real" ]; then printf d
    elif [ -f "$real" ]; then set -f; set -- $(ls -ldn "$real"); printf "f%s" "$5"
    else printf l; fi
  }
  for name in * .[!.]* ..?*; do
    if [ -L "./$name" ]; then
      k=$(follow "$name" | tr -d "\\000")
      case $k in f*|d|l) ;; *) k=l;; esac
      put "@$k" "$name"
    elif [ -d "./$name" ]; then put d "$name"
    elif [ -e "./$name" ]; then put f "$name"
    fi
  done
  put ""
  ls -Anq 2>/dev/null || ls -An`
}

/** `path …`: gives `=` and the resolved path below the root, or the reason of a failure, for each. */
export const real: Script = {
  large: true,
  body: `put ok
  for path do ( locate "$path"; put "=\${real#"$r"}" ); done`
}

/**
 * `path line lines column whole cap`: size and version; a file of at most `whole` bytes as it is, otherwise its first
 * 8,192 bytes, how many lines it has, how many characters of `column` the line does not have, and at most `cap` bytes
 * from there, with line endings made one.
 */
export const read: Script = {
  body: `locate "$1"; plain
  s=$(wc -c <"$real"); s=$((s)); put ok $s "$(ver "$real")"
  if [ $s -le $5 ]; then cat "$real"; exit 0; fi
  head -c 8192 "$real"
  e=$(tail -c 1 "$real" | od -An -tx1 | tr -d " ")
  if [ $(tr -dc "\\015" <"$real" | wc -c) -eq 0 ]; then
    norm() { cat "$real"; }
    total=$(wc -l <"$real"); [ "$e" = 0a ] || total=$((total+1))
  else
    cr=$(printf "\\015")
    norm() { { cat "$real"; printf "x\\n"; } | sed "s/$cr\\$//" | tr "\\015" "\\n" | sed "\\$s/x\\$//"; }
    total=$(norm | wc -l); case $e in 0a|0d) total=$((total-1));; esac
  fi
  skip=0; want=$4
  if [ $2 -eq 1 ] && [ "$(head -c 3 "$real" | od -An -tx1 | tr -d " ")" = efbbbf ]; then skip=3; fi
  part() { norm | tail -n +$2 | head -n 1 | tr -d "\\n" | tail -c +$((skip+1)) | head -c $want; }
  while [ $want -gt 0 ]; do
    got=$(part "$@" | wc -c); [ $got -gt 0 ] || break
    units=$(part "$@" | tr -d "\\200-\\277" | wc -c); pairs=$(part "$@" | tr -dc "\\360-\\367" | wc -c)
    skip=$((skip+got)); want=$((want-units-pairs))
  done
  put $((total)) $want
  k=$((total-$2+1)); [ $k -gt $3 ] && k=$3
  [ $k -gt 0 ] && norm | tail -n +$2 | head -n $k | tail -c +$((skip+1)) | head -c $6`
}

/**
 * `limit budget path…`: gives `ok`, the version, the size and the way for each file: `here` with its bytes, up to
 * the budget, else `at` with its real path. `TooLarge` has a size too.
 */
export const fetch: Script = {
  body: `limit=$1; left=$2; shift 2; c=/tmp/.ed-$n.copy
  one() {
    locate "$1"; plain
    s=$(wc -c <"$real"); s=$((s))
    [ $s -gt $limit ] && { put TooLarge $s; exit 0; }
    if [ $s -le $left ] && (umask 077; cat "$real" >"$c"); then
      s=$(wc -c <"$c"); put ok "$(ver "$c")" $((s)) here; cat "$c"; exit $((s <= left ? 0 : 1))
    fi
    put ok "$(ver "$real")" $s at "$real"
  }
  for path; do
    rm -f "$c"
    (one "$path")
    if [ -f "$c" ]; then s=$(wc -c <"$c"); left=$((left-s)); fi
  done
  rm -f "$c"`
}

/**
 * `path mode version source content`, for each of several files: puts the content in its place. `mode` is `create`,
 * `edit` (there must be a file) or `write`; `version` may be empty; `source` is `text` or `file`. Gives a status,
 * whether the file is new, and its version.
 */
export const commit: Script = {
  body: `${guarding}
  die() { put "$1" "" ""; exit 0; }
  one() {
    locate "$1"; guard "$real"; new=1
    if [ -e "$real" ]; then
      [ -d "$real" ] && die IsDirectory
      [ -f "$real" ] || die Unsupported
      [ "$2" = create ] && die AlreadyExists
      [ -w "$real" ] || die PermissionDenied
      if [ -n "$3" ]; then [ "$(ver "$real")" = "$3" ] || die Conflict; fi
      new=0
    elif [ "$2" = edit ]; then die NotFound
    elif [ -n "$3" ]; then die Conflict
    fi
    dir=\${real%/*}
    [ -d "$dir/" ] || mkdir -p "$dir" || { [ -w "$at/" ] && die Full; die PermissionDenied; }
    [ -w "$dir/" ] && [ -x "$dir/" ] || die PermissionDenied
    tmp=$dir/.ed-$n.new
    { [ $new = 1 ] || cp -p "$real" "$tmp"; } &&
      if [ "$4" = text ]; then printf %s "$5" >"$tmp"; else cat "$5" >"$tmp"; fi &&
      v=$(ver "$tmp") && mv -f "$tmp" "$real" || { rm -f "$tmp"; die Full; }
    put ok $new "$v"
  }
  while [ $# -gt 0 ]; do
    (one "$@")
    [ "$4" = file ] && rm -f "$5"
    shift 5
  done`
}

/** `path recursive`: deletes a file, a link (never its target) or a directory. */
export const remove: Script = {
  body: `${guarding}
  place "$1"
  there "$real" || die NotFound
  if [ "$2" = 1 ] && [ -d "$real" ] && [ ! -L "$real" ]; then guardAll "$real"; else guard "$real"; fi
  if [ -d "$real" ] && [ ! -L "$real" ]; then
    if [ "$2" = 1 ]; then rm -rf "$real"
    elif ! rmdir "$real"; then [ -r "$real/" ] && [ -n "$(ls -A "$real" | head -n 1)" ] && die IsDirectory
    fi
  else rm -f "$real"; fi
  there "$real" && die PermissionDenied
  put ok`
}

/** `from to`: moves an entry to a free path. */
export const move: Script = {
  body: `${guarding}
  place "$1"; there "$real" || die NotFound
  guard "$real"
  from=$real
  place "$2"; there "$real" && die AlreadyExists
  guard "$real"
  case $real in "$from"/*) die Into;; esac
  if [ -n "$rest" ]; then mkdir -p "\${real%/*}" || die PermissionDenied; fi
  mv -f "$from" "$real"
  there "$from" && die PermissionDenied
  put ok`
}
