/**
 * Preselects files for a search by ripgrep.
 *
 * ripgrep only gives names. Our own search then reads those files within the root and by its rules, so results don't
 * depend on ripgrep and hostile files can't abuse it. It reads no configuration and no ignore files (which could be
 * pipes or links), and gets little memory.
 */
import { isAbsolute, join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { GrepQuery } from "../../../core/Backend.ts"
import * as Command from "./command.ts"
import { type Fault, fault } from "./failure.ts"
import * as Jail from "./jail.ts"
import * as Regex from "./regex.ts"
import * as System from "./system.ts"

/** A ripgrep that can be run. */
export interface Ripgrep {
  readonly path: string
}

const usable = Effect.fnUntraced(function* (path: string) {
  yield* System.accessTo("run", path)
  const stats = yield* System.stat(path)
  if (!stats.isFile()) return yield* Effect.fail(fault({ _tag: "NotFound" }))
})

/** Finds the configured `rg`, or `rg` on `PATH`. A program in the root is not trusted, and never runs. */
export const find = (jail: Jail.Jail, named: string | false | undefined): Effect.Effect<Ripgrep | undefined, Fault> => {
  if (named === false) return Effect.undefined
  if (named !== undefined) {
    const path = resolve(named)
    return Effect.as(usable(path), { path })
  }
  return Effect.gen(function* () {
    for (const folder of (process.env["PATH"] ?? "").split(":")) {
      const path = join(folder, "rg")
      if (!isAbsolute(folder) || !(yield* Effect.isSuccess(usable(path)))) continue
      if (!Jail.isInside(jail, yield* System.realpath(path))) return { path }
    }
    return undefined
  })
}

/** Writes the pattern for ripgrep, if it has an equivalent. */
export const argumentsFor = (query: GrepQuery): ReadonlyArray<string> | undefined => {
  const { ignoreCase = false, pattern, regex = false } = query
  const cased = ignoreCase ? ["--ignore-case"] : ["--case-sensitive"]
  if (regex) {
    const translated = Regex.translate(pattern, ignoreCase)
    // With --binary a NUL ends a line, which keeps lines short. What can match it needs the lines as they are.
    return translated && [...cased, translated.nul ? "--text" : "--binary", "--crlf", `--regexp=${translated.pattern}`]
  }
  const isPlain = Array.from(pattern, (char) => char.codePointAt(0) ?? 0).every(
    (char) => char !== 0 && char !== 0xfffd && (!ignoreCase || Regex.foldsAlike(char))
  )
  return isPlain ? [...cased, "--binary", "--fixed-strings", `--regexp=${pattern}`] : undefined
}

/** The end of a search. `isPartial`: the time was up. */
export interface SearchEnd {
  readonly isPartial: boolean
}

const timeLimit = 10_000
const memoryKiB = 1024 * 1024
// With more than these, most files match: then looking into them in order is over soon.
const maxCandidates = 100_000
const limited = `ulimit -v ${memoryKiB} 2>/dev/null; exec "$0" "$@"`

const fixed = [
  "--no-config",
  "--no-ignore",
  "--hidden",
  "--no-follow",
  "--no-messages",
  "--color=never",
  "--files-with-matches",
  "--null"
]

const plainName = /^[A-Za-z0-9 _.,@+=-]+(?:\/[A-Za-z0-9 _.,@+=-]+)*$/

/** Folders that need not be looked into, as far as they can be said without doubt. */
const excludeFolders = (folders: ReadonlyArray<string>): ReadonlyArray<string> =>
  folders
    .filter((folder) => plainName.test(folder))
    .slice(0, 500)
    .map((folder) => `--glob=!/${folder}/`)

/**
 * Tells the paths, relative to a folder, of files that may have the pattern in them: of all that have, but for those in
 * `except`. Gives nothing, if ripgrep can't say.
 */
export const candidates = (
  ripgrep: Ripgrep,
  held: Jail.OpenFolder,
  args: ReadonlyArray<string>,
  except: ReadonlyArray<string>,
  tell: (paths: ReadonlyArray<string>) => Effect.Effect<void>
): Effect.Effect<SearchEnd | undefined, Fault> => {
  const spec: Command.Spec = {
    file: "/bin/sh",
    args: ["-c", limited, ripgrep.path, ...fixed, ...args, ...excludeFolders(except), "--", "./"],
    cwd: held.self.toString(),
    env: {},
    stdin: undefined
  }
  const search = (leftovers: Scope.Scope) =>
    Effect.gen(function* () {
      const running = yield* Command.start(spec, leftovers)
      // Files whose names are not UTF-8 can't be searched.
      const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
      let rest = ""
      let count = 0
      let complains = false
      for (let chunks = yield* running.take; chunks !== undefined; chunks = yield* running.take) {
        const paths: Array<string> = []
        for (const { bytes, channel } of chunks) {
          if (channel === "stderr") {
            complains = true
            continue
          }
          const parts = `${rest}${decoder.decode(bytes, { stream: true })}`.split("\0")
          rest = parts.pop() ?? ""
          for (const path of parts) paths.push(path.startsWith("./") ? path.slice(2) : path)
        }
        count += paths.length
        if (count > maxCandidates) return undefined
        yield* tell(paths)
      }
      const exitCode = running.exitCode()
      // Without a word, 2 says that some files could not be read: they are passed over, as by our own search.
      const hasSearched = exitCode === 0 || exitCode === 1 || (exitCode === 2 && !complains)
      return hasSearched ? { isPartial: false } : undefined
    })
  return Effect.scopedWith((leftovers) => Effect.scoped(search(leftovers))).pipe(
    Effect.timeoutOrElse({ duration: timeLimit, orElse: () => Effect.succeed({ isPartial: true }) })
  )
}
