/**
 * Runs scripts in a remote shell and returns bytes, over a channel for text.
 *
 * Arguments are passed as arguments, never as text of the script. The result is a list of records that end in NUL,
 * sent as base64 (or as hexadecimal digits without `base64`) between two marks. Names with newlines, banners of the
 * shell and channels that decode UTF-8 therefore can't corrupt it.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as BackendError from "../../../core/BackendError.ts"
import { refusalDetails } from "../git/allowed.ts"

/** Quotes any text as one word of a shell. */
export const quote = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

const begin = "<ed:"
const end = ":ed>"

/**
 * `$r` is the real path of the root, empty if that is `/`; `$g` has the approved places of repositories, each between
 * `//`. `die` ends a script with a reason. `locate` finds the real place (`$real`) of a path: `$at` is the deepest
 * directory there is, `$rest` the directories that are missing. `final` follows the links of the last name. Both end
 * with `OutsideRoot` for what leaves the root.
 */
export const prelude = `
export LC_ALL=C; unset CDPATH; r=$1; n=$2; g=$3; shift 3
put() { printf "%s\\0" "$@"; }
die() { put "$1"; exit 0; }
inside() { case $1 in "$r"|"$r"/*) ;; *) die OutsideRoot;; esac; }
ver() { set -- $({ cksum <"$1" || sha256sum <"$1" || md5sum <"$1"; } 2>/dev/null); printf %s-%s "$1" "$2"; }
there() { [ -e "$1" ] || [ -L "$1" ]; }
final() {
  q=$1; hops=0
  while [ -L "$q" ]; do
    hops=$((hops+1)); [ $hops -gt 40 ] && die OutsideRoot
    t=$(readlink "$q"; echo x); t=\${t%?x}
    case $t in /*) ;; *) t=\${q%/*}/$t;; esac
    while case $t in ?*/) ;; *) false;; esac; do t=\${t%/}; done
    if [ -d "$t" ]; then cd -P "$t" || die PermissionDenied; q=$PWD; break; fi
    cd -P "\${t%/*}/" || { inside "$t"; die NotFound; }
    q=\${PWD%/}/\${t##*/}
  done
  inside "$q"; real=$q
}
folder() {
  p=$1; rest=
  while [ ! -d "$p" ]; do
    if there "$p"; then
      final "$p"; [ -e "$real" ] && die NotDirectory; die NotFound
    fi
    rest=/\${p##*/}$rest; p=\${p%/*}; p=\${p:-/}
  done
  cd -P "$p" || die PermissionDenied
  at=\${PWD%/}; inside "$at"
}
place() {
  if [ "$1" = / ]; then cd -P "$r/" || die NotFound; at=; rest=; real=\${r:-/}; return; fi
  p=$r\${1%/*}; folder "\${p:-/}"
  real=$at$rest/\${1##*/}
}
locate() { place "$1"; if [ -z "$rest" ] && [ "$1" != / ]; then final "$real"; fi; }
plain() {
  [ -f "$real" ] && { [ -r "$real" ] || die PermissionDenied; return; }
  [ -d "$real" ] && die IsDirectory
  [ -e "$real" ] && die Unsupported
  die NotFound
}
`

const encode = `
enc() { if command -v base64 >/dev/null 2>&1; then printf b; base64; else printf x; od -An -v -tx1; fi | tr -d " \\n"; }
`

/** Results of this many bytes and more are left in a file, and fetched from there. */
const inlineSize = 512 * 1024

/** The largest result in bytes. Longer results are cut, which readers detect. */
const largestResult = 16 * 1024 * 1024

const direct = `printf %s "${begin}"; main "$@" 2>/dev/null | enc; echo "${end}"`

const spooled = `
f=/tmp/.ed-$n.out
printf %s "${begin}"
if (umask 077; : >"$f") 2>/dev/null; then
  (main "$@") 2>/dev/null | head -c ${largestResult} >"$f"
  if [ $(wc -c <"$f") -lt ${inlineSize} ]; then enc <"$f"; rm -f "$f"; else printf f; fi
else main "$@" 2>/dev/null | head -c ${largestResult} | enc; fi
echo "${end}"`

/** A script: the body of a shell function. `large` is for results that may be. */
export interface Script {
  readonly body: string
  readonly large?: boolean | undefined
}

/** Values of a script beside its arguments: the root, a name for temporary files, and the approved places. */
export interface Setup {
  readonly root: string
  readonly nonce: string
  readonly allowed: ReadonlySet<string>
}

/** The script as a command line, with its setup and its arguments. */
export const commandLine = (script: Script, { allowed, nonce, root }: Setup, args: ReadonlyArray<string>): string => {
  const places = allowed.size === 0 ? "" : `/${[...allowed].join("/")}//`
  const text = `${prelude}main() {\n${script.body}\n}\n${encode}${script.large === true ? spooled : direct}`
  return ["sh -c", quote(text), "sh", ...[root, nonce, places, ...args].map(quote)].join(" ")
}

/** The file in which a script leaves a large result. */
export const spoolPath = (nonce: string): string => `/tmp/.ed-${nonce}.out`

/** The file into which contents are put before they are moved to their place. */
export const stagePath = (nonce: string, index: number): string => `/tmp/.ed-${nonce}.${index}`

const fromBase64 = (text: string): Result.Result<Uint8Array, unknown> =>
  Result.try(() => Uint8Array.from(atob(text), (char) => char.charCodeAt(0)))

const fromHex = (text: string): Result.Result<Uint8Array, unknown> => {
  if (!/^(?:[0-9a-f]{2})*$/.test(text)) return Result.fail(undefined)
  const bytes = new Uint8Array(text.length / 2)
  for (let index = 0; index < bytes.length; index++) {
    bytes[index] = Number.parseInt(text.slice(index * 2, index * 2 + 2), 16)
  }
  return Result.succeed(bytes)
}

/** The bytes of a result, or `spooled` for a result in a file; `undefined` for an invalid answer. */
export const decodeFrame = (output: string): Uint8Array | "spooled" | undefined => {
  const start = output.indexOf(begin)
  const stop = output.indexOf(end, start + begin.length)
  if (start < 0 || stop < 0) return undefined
  const payload = output.slice(start + begin.length, stop).replaceAll(/\s/g, "")
  if (payload === "f") return "spooled"
  const decoded = payload.startsWith("b")
    ? fromBase64(payload.slice(1))
    : payload.startsWith("x")
      ? fromHex(payload.slice(1))
      : Result.fail(undefined)
  return Result.isSuccess(decoded) ? decoded.success : undefined
}

/** Takes records off the front of bytes. */
export interface Reader {
  readonly text: () => string
  readonly number: () => number
  /** All that is left. */
  readonly rest: () => Uint8Array
  readonly take: (size: number) => Uint8Array
  readonly isEmpty: () => boolean
}

const decoder = new TextDecoder("utf-8", { ignoreBOM: true })

export const reader = (bytes: Uint8Array): Reader => {
  let at = 0
  const text = (): string => {
    const index = bytes.indexOf(0, at)
    const stop = index < 0 ? bytes.length : index
    const record = decoder.decode(bytes.subarray(at, stop))
    at = stop + 1
    return record
  }
  const take = (size: number): Uint8Array => {
    const part = bytes.subarray(at, at + size)
    at += size
    return part
  }
  return {
    text,
    number: () => Number(text()),
    rest: () => bytes.subarray(at),
    take,
    isEmpty: () => at >= bytes.length
  }
}

const reasons = {
  NotFound: { _tag: "NotFound" },
  AlreadyExists: { _tag: "AlreadyExists" },
  IsDirectory: { _tag: "IsDirectory" },
  NotDirectory: { _tag: "NotDirectory" },
  OutsideRoot: { _tag: "OutsideRoot" },
  PermissionDenied: { _tag: "PermissionDenied" },
  Conflict: { _tag: "Conflict" },
  Unsupported: { _tag: "Unsupported" }
} as const satisfies { readonly [name: string]: BackendError.Reason }

const isReason = (status: string): status is keyof typeof reasons => Object.hasOwn(reasons, status)

/** The failure that a script's first record stands for. */
export const failureOf = (operation: string, path: string, status: string): BackendError.BackendError => {
  if (isReason(status)) return BackendError.make(operation, path, reasons[status])
  if (status === "Git") {
    return BackendError.make(operation, path, { _tag: "PermissionDenied" }, { detail: refusalDetails.git })
  }
  if (status === "Into") {
    return BackendError.make(operation, path, {
      _tag: "InvalidPath",
      problem: "a directory can't be moved into itself"
    })
  }
  if (status === "Tools") {
    const detail = "the sandbox has neither cksum nor sha256sum nor md5sum"
    return BackendError.make(operation, path, { _tag: "Unavailable" }, { detail })
  }
  if (status === "Full") {
    return BackendError.make(
      operation,
      path,
      { _tag: "Unavailable" },
      { detail: "it could not be written; is the disk full?" }
    )
  }
  return BackendError.make(operation, path, { _tag: "Unavailable" }, { detail: "the sandbox gave no valid answer" })
}

/** Fails unless the first record says that all is well. */
export const checkAnswer = (
  operation: string,
  path: string,
  bytes: Uint8Array
): Effect.Effect<Reader, BackendError.BackendError> => {
  const records = reader(bytes)
  const status = records.text()
  return status === "ok" ? Effect.succeed(records) : Effect.fail(failureOf(operation, path, status))
}
