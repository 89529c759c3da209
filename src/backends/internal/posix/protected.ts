/**
 * Protects the files of git repositories in a remote shell, as `local/protected.ts` does on this machine. The scripts
 * that change files check the real place themselves, so that a usual change stays one round trip.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { ignoredByHfs } from "../../../support/text/gitNames.ts"
import * as Path from "../files/path.ts"
import type { Find } from "../git/asking.ts"
import { portionsOf, type Remote } from "./remote.ts"
import { checkAnswer, type Script } from "./shell.ts"

/**
 * `own` tells whether a path below the root belongs to a repository. `repos` lists the repositories in a folder.
 * `guard` refuses a real place that does, and `guardAll` a folder with one in it, unless `$g` has its path.
 */
export const guarding = `
own() {
  q=$1
  case $q in *[!\\ -~]*) q=$(printf %sx "$q" | sed "${ignoredByHfs.map((char) => `s/${char}//g`).join(";")}"); q=\${q%x};; esac
  case $q in *[gG][iI][tT]*) printf %s "$q" | grep -Eiq "/((\\.git|git~[0-9]+)[. ]*(:[^/]*)?|\\.gitconfig|\\.config/git)(/|\\$)" && return 0;; esac
  w=$r; c=\${1#/}
  while [ -n "$c" ]; do
    x=\${c%%/*}; case $c in */*) c=\${c#*/};; *) c=;; esac
    h=; o=; e=; m=
    case $x in
      [hH][eE][aA][dD]) h=1;; [oO][bB][jJ][eE][cC][tT][sS]) o=1;; [rR][eE][fF][sS]) e=1;;
      [cC][oO][mM][mM][oO][nN][dD][iI][rR]) m=1;;
    esac
    if [ -n "$h" ] || there "$w/HEAD"; then
      { [ -n "$m" ] || there "$w/commondir"; } && return 0
      { [ -n "$o" ] || there "$w/objects"; } && { [ -n "$e" ] || there "$w/refs"; } && return 0
    fi
    w=$w/$x
  done
  return 1
}
allowed() { case $g in *"//\${1#/}//"*) return 0;; esac; return 1; }
guard() { k=\${1#"$r"}; allowed "$k" || ! own "$k" || die Git; }
repos() {
  find "$1" -name ".[gG][iI][tT]" -prune -print -o \\( -name ".[gG][iI][tT][. :]*" -o -name "[gG][iI][tT]~*" -o -name HEAD \\) -print |
  while IFS= read -r f; do
    own "\${f#"$r"}" || continue
    case $f in */HEAD) f=\${f%/HEAD};; esac
    printf "%s\\n" "$f"
  done
}
guardAll() {
  guard "$1"
  allowed "\${1#"$r"}" && return
  f=$(repos "$1" | while IFS= read -r f; do allowed "\${f#"$r"}" || { echo x; break; }; done)
  [ -z "$f" ] || die Git
}
`

/** `path link tree`, for each of several changes: gives the protected places that they lead to, below the root. */
const find: Script = {
  large: true,
  body: `${guarding}
  put ok
  die() { exit 0; }
  one() {
    if [ "$2" = 1 ]; then place "$1"; else locate "$1"; fi
    k=\${real#"$r"}
    if own "$k"; then put "$k"
    elif [ "$3" = 1 ] && [ -d "$real" ] && [ ! -L "$real" ]; then
      repos "$real" | while IFS= read -r f; do put "\${f#"$r"}"; done
    fi
  }
  while [ $# -gt 0 ]; do (one "$@"); shift 3; done`
}

/** Finds the protected places that changes lead to. */
export const findIn =
  (remote: Remote): Find =>
  (changes) =>
    Effect.gen(function* () {
      const changeArgs = changes.flatMap(({ link = false, path, tree = false }) => {
        const normal = Path.normalize("write", path)
        return Result.isSuccess(normal) ? [[normal.success, link ? "1" : "", tree ? "1" : ""]] : []
      })
      const places = new Set<string>()
      for (const portion of portionsOf(changeArgs, ([path = ""]) => 4 * path.length + 16)) {
        const path = portion[0]?.[0] ?? "/"
        const answer = yield* remote.run({ operation: "write", path }, find, portion.flat())
        const records = yield* checkAnswer("write", path, answer)
        while (!records.isEmpty()) places.add(records.text())
      }
      return [...places].map((path) => ({ path, kind: "git" as const }))
    }).pipe(Effect.orElseSucceed(() => []))
