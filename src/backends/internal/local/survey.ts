/**
 * Surveys many folders in parallel: names and kinds only.
 *
 * A search walks folder by folder, in order. A survey reads ahead; the search reads any other folder itself.
 */
import * as Effect from "effect/Effect"
import type { Child } from "../derive/primitives.ts"
import * as Path from "../files/path.ts"
import * as Turns from "../files/turns.ts"
import * as Ignore from "../glob/ignore.ts"
import type { Fault } from "./failure.ts"
import * as Folder from "./folder.ts"
import * as Jail from "./jail.ts"
import * as Many from "./many.ts"
import * as System from "./system.ts"

const timeLimit = "2 seconds"
const foldersAtOnce = 64
// The usual number of a folder's entries: it is not known before it is read.
const entriesOfFolder = 32

/** The entries that were seen: the children of folders by their paths, and the folders that ignore files leave out. */
export interface Survey {
  readonly folders: ReadonlyMap<string, ReadonlyArray<Child>>
  readonly leftOut: ReadonlyArray<string>
}

interface OpenFolder {
  readonly names: ReadonlyArray<string>
  readonly rules: Ignore.Ignore
}

const decoder = new TextDecoder()

/** Adds the rules of a folder's ignore file to the rules above it. */
const extend = (held: Jail.OpenFolder, folder: string, rules: Ignore.Ignore): Effect.Effect<Ignore.Ignore> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { fd } = yield* Jail.reading(held, Ignore.ignoreFile)
      const bytes = yield* Folder.fill(fd, new Uint8Array(Ignore.maxIgnoreBytes), 0)
      return Ignore.extend(rules, folder, decoder.decode(bytes))
    })
  ).pipe(Effect.orElseSucceed(() => rules))

const hasRepository = (held: Jail.OpenFolder): Effect.Effect<boolean> =>
  Effect.match(System.lstat(held.at(Ignore.repository)), { onFailure: () => false, onSuccess: () => true })

/** The rules of the folders that a folder is in. A repository in a repository has rules of its own only. */
const rulesAbove = Effect.fnUntraced(function* (jail: Jail.Jail, names: ReadonlyArray<string>) {
  let rules = Ignore.none
  for (let depth = 0; depth <= names.length; depth++) {
    const above = names.slice(0, depth)
    if (!Jail.isInside(jail, Jail.realPath(jail, above))) continue
    const path = `/${above.join("/")}`
    rules = yield* Jail.holding(
      jail,
      above,
      Effect.fnUntraced(function* (held) {
        const before = depth > 0 && (yield* hasRepository(held)) ? Ignore.none : rules
        return depth === names.length ? before : yield* extend(held, path, before)
      })
    )
  }
  return rules
})

/**
 * Surveys a folder breadth-first, up to `maxEntries` entries and 2 seconds. `names` are names of real folders.
 * Without `ignored`, it skips ignored paths.
 */
export const survey = (
  jail: Jail.Jail,
  names: ReadonlyArray<string>,
  options: { readonly ignored: boolean; readonly maxEntries: number }
): Effect.Effect<Survey, Fault> =>
  Effect.gen(function* () {
    const folders = new Map<string, ReadonlyArray<Child>>()
    const leftOut: Array<string> = []
    const isOver = Turns.make()
    let entryCount = 0

    const extended = (names: ReadonlyArray<string>, above: Ignore.Ignore) =>
      Jail.holding(jail, names, (held) => extend(held, `/${names.join("/")}`, above)).pipe(
        Effect.orElseSucceed(() => above)
      )

    const look = Effect.fnUntraced(function* (
      { names: folder, rules: above }: OpenFolder,
      entries: ReadonlyArray<System.Entry>
    ) {
      const path = `/${folder.join("/")}`
      const children = Folder.filterEntries(entries, path === "/")
      const hasRules =
        !options.ignored && children.some(({ kind, name }) => kind === "file" && name === Ignore.ignoreFile)
      const rules = hasRules ? yield* extended(folder, above) : above
      const inner: Array<OpenFolder> = []
      for (const { kind, name } of children) {
        if (kind !== "directory") continue
        // An ignore file can make each name take milliseconds.
        if (isOver()) yield* Effect.yieldNow
        const at = Path.join(path, name)
        if (!options.ignored && Ignore.isIgnored(rules, at, true)) leftOut.push(at)
        else inner.push({ names: [...folder, name], rules })
      }
      folders.set(path, children)
      entryCount += children.length
      return inner
    })

    const rules = options.ignored ? Ignore.none : yield* rulesAbove(jail, names)
    const lookOn = Effect.gen(function* () {
      let level: ReadonlyArray<OpenFolder> = [{ names, rules }]
      while (level.length > 0 && entryCount < options.maxEntries) {
        const next: Array<OpenFolder> = []
        for (let at = 0; at < level.length && entryCount < options.maxEntries;) {
          const enough = Math.ceil((options.maxEntries - entryCount) / entriesOfFolder)
          const some = level.slice(at, at + Math.min(foldersAtOnce, enough))
          at += some.length
          const all = yield* Many.readdirs(
            jail,
            some.map((folder) => folder.names)
          )
          for (const [index, folder] of some.entries()) {
            const entries = all[index]
            if (entries !== undefined) next.push(...(yield* look(folder, entries)))
          }
        }
        level = next
      }
    })
    yield* Effect.timeoutOption(lookOn, timeLimit)
    return { folders, leftOut }
  })
