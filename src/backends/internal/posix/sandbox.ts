/** A sandbox over a remote shell: its files, its searches and its commands. */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { BackendError } from "../../../core/BackendError.ts"
import type * as Sandbox from "../../../core/Sandbox.ts"
import * as Locks from "../files/locks.ts"
import { asking } from "../git/asking.ts"
import * as Command from "./command.ts"
import * as Files from "./files.ts"
import * as Protected from "./protected.ts"
import * as Remote from "./remote.ts"
import * as Scripts from "./scripts.ts"
import * as Search from "./search.ts"
import { checkAnswer } from "./shell.ts"

interface Options {
  readonly root?: string | undefined
  readonly maxFileSize?: number | undefined
  readonly outputLimit?: number | undefined
}

const defaultFileSize = 10 * 1024 * 1024
const defaultOutput = 100_000

const locks = Locks.make()

/** The locks of a place, shared by all layers over it. */
const locksOf = (place: string): Locks.Locks => ({
  ...locks,
  hold: (paths) => locks.hold(paths.map((path) => `${place}${path}`))
})

/** Makes a sandbox. Edits of one file by two layers of the same place wait for each other. */
export const makeSandbox = Effect.fnUntraced(function* (
  machine: Command.Shell["channel"] & { readonly id: string },
  options: Options,
  place: string
): Effect.fn.Return<Sandbox.Service, BackendError> {
  const { id } = machine
  const { maxFileSize = defaultFileSize, outputLimit = defaultOutput } = options
  const answer = yield* Remote.make(machine, "").run({ operation: "open", path: "/" }, Scripts.open, [
    options.root ?? ""
  ])
  const output = (yield* checkAnswer("open", "/", answer)).text()
  // A trailing mark protects a newline at the end of the name.
  const folder = output.slice(0, -2)
  const root = folder === "/" ? "" : folder
  const source: Files.Source = {
    remote: Remote.make(machine, root),
    locks: locksOf(`/${encodeURIComponent(place.toWellFormed())}${root}`),
    commits: yield* Semaphore.make(1),
    maxFileSize
  }
  return asking(Protected.findIn(source.remote), {
    id,
    ...Files.make(source),
    grep: Search.grep(source),
    glob: Search.glob(source),
    ...Command.make({ channel: machine, remote: source.remote, root, outputLimit }),
    reaches: () => true
  })
})
