/**
 * Globs of rules. They also answer whether they could match something below a directory.
 *
 * A name of a pattern is a glob of a name; `**` stands for any number of names, zero included: `/a/**` covers `/a`.
 */
import * as Result from "effect/Result"
import * as Path from "../files/path.ts"
import { compileGlob } from "../glob/glob.ts"

/** `undefined` stands for `**`. */
type Step = ((name: string) => boolean) | undefined

/** A glob of whole paths. All covered paths are at or below `base`. */
export interface PathGlob {
  readonly source: string
  readonly base: string
  readonly steps: ReadonlyArray<Step>
}

/** The coverage of a path: the path itself; the path or a possible path below it; the path and all paths below it. */
export interface Coverage {
  readonly itself: boolean
  readonly some: boolean
  readonly all: boolean
}

const isPlain = (name: string): boolean => !/[*?[\]{}\\]/.test(name)

const compileStep = (name: string): Result.Result<Step, string> => {
  if (name === "**") return Result.succeed(undefined)
  if (isPlain(name)) return Result.succeed((other) => other === name)
  if (name.includes("{") && name.includes("**")) {
    return Result.fail("braces can't hold a '**'; write each alternative as a path of its own")
  }
  return Result.mapBoth(compileGlob(name), {
    onSuccess: ({ matches }) => matches,
    onFailure: (reason) => {
      const problem = reason._tag === "InvalidPattern" ? reason.problem : reason._tag
      return name.includes("{") ? `${problem}. Braces and classes can't hold a '/'` : problem
    }
  })
}

/** Compiles a glob of whole paths. With `subtree` it also covers all paths below its matches. */
export const compile = (source: string, subtree: boolean): Result.Result<PathGlob, string> =>
  Result.gen(function* () {
    if (!source.startsWith("/")) {
      const anywhere = `/**/${source.replace(/^(\.?\/)*/, "")}`
      return yield* Result.fail(`it must begin with '/'; ${JSON.stringify(anywhere)} means one at any depth`)
    }
    const names = source.split("/").filter((name) => name !== "" && name !== ".")
    const firstWild = names.findIndex((name) => !isPlain(name))
    const plain = names.slice(0, firstWild < 0 ? undefined : firstWild)
    const base = yield* Result.mapError(Path.normalize("rule", `/${plain.join("/")}`), ({ reason }) =>
      reason._tag === "InvalidPath" ? reason.problem : "no path leads there: write it without '..' and '~'"
    )
    if (names.includes("..")) return yield* Result.fail("no path has a '..'")
    const steps: Array<Step> = []
    const isOpen = subtree || (source.endsWith("/") && names.length > 0)
    for (const name of isOpen ? [...names, "**"] : names) {
      const step = yield* compileStep(name)
      if (step !== undefined || steps.length === 0 || steps.at(-1) !== undefined) steps.push(step)
    }
    return { source, base, steps }
  })

/** Adds the next places in a pattern: a `**` may match nothing. */
const spread = (steps: ReadonlyArray<Step>, at: number, places: Set<number>): void => {
  places.add(at)
  if (at < steps.length && steps[at] === undefined) places.add(at + 1)
}

/** The coverage of a path, by its names. */
export const coverage = ({ steps }: PathGlob, names: ReadonlyArray<string>): Coverage => {
  let places = new Set<number>()
  spread(steps, 0, places)
  for (const name of names) {
    const next = new Set<number>()
    for (const at of places) {
      const step = steps[at]
      if (at === steps.length) continue
      if (step === undefined) spread(steps, at, next)
      else if (step(name)) spread(steps, at + 1, next)
    }
    if (next.size === 0) return { itself: false, some: false, all: false }
    places = next
  }
  const last = steps.length - 1
  return { itself: places.has(steps.length), some: true, all: places.has(last) && steps[last] === undefined }
}
