/**
 * The memory of agents about one project: `kept` counts, and `notes` is the copy that agents write. A person decides
 * what of the notes is kept.
 */
import { createHash, randomUUID } from "node:crypto"
import { basename, dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { fail, orFail } from "../failure.ts"
import type { Tree } from "./frozen.ts"
import { readerOf, readTree, type SkillFile } from "./items.ts"
import { makeFolder, type Places } from "./places.ts"

type Files = ReadonlyMap<string, SkillFile>

/** The memory as it was when the program began. It stays the same for a session. */
export interface SessionMemory {
  /** The folder that agents write. */
  readonly notes: string
  /** The text of `agent.md`, which is in the prompt. */
  readonly text: string
  readonly skills: ReadonlyArray<Tree>
}

/** A change of the notes that nobody decided on. A file that is new or gone has no text on one side. */
export interface Change {
  readonly path: string
  readonly before: SkillFile | undefined
  readonly after: SkillFile | undefined
}

const names = { notes: "notes", kept: "kept", text: "agent.md", skills: "skills" } as const

/** The folder of a project's memory, by its real path. */
const folderOf = Effect.fnUntraced(function* ({ data, project }: Places) {
  const fs = yield* FileSystem.FileSystem
  const real = yield* Effect.orElseSucceed(fs.realPath(project), () => project)
  const hash = createHash("sha256").update(real).digest("hex").slice(0, 16)
  const name = basename(real)
    .replaceAll(/[^\w.-]+/g, "-")
    .slice(0, 40)
  return yield* makeFolder(join(data, "memory", `${name}-${hash}`))
})

const readFiles = Effect.fnUntraced(function* (folder: string) {
  const files = yield* readTree(yield* readerOf(folder), ".")
  return files ?? (yield* fail("failed", `${folder} has too many files for a memory: delete some there`))
})

const decode = (file: SkillFile | undefined): string => (file === undefined ? "" : new TextDecoder().decode(file.bytes))

/** Groups the files of skills by their folders. */
const skillsIn = (files: Files): ReadonlyArray<Tree> => {
  const trees = new Map<string, Map<string, SkillFile>>()
  for (const [path, file] of files) {
    const [first, name = "", ...rest] = path.split("/")
    if (first !== names.skills || rest.length === 0) continue
    const tree = trees.get(name) ?? new Map<string, SkillFile>()
    trees.set(name, tree.set(rest.join("/"), file))
  }
  return [...trees].map(([name, tree]) => ({ path: name, files: tree }))
}

/** Reads the memory of a project, and makes its folders. */
export const readMemory = Effect.fnUntraced(function* (places: Places) {
  const folder = yield* folderOf(places)
  const notes = yield* makeFolder(join(folder, names.notes))
  const files = yield* readFiles(yield* makeFolder(join(folder, names.kept)))
  return { notes, text: decode(files.get(names.text)), skills: skillsIn(files) } satisfies SessionMemory
})

const isSame = (left: SkillFile | undefined, right: SkillFile | undefined): boolean =>
  left === undefined || right === undefined
    ? left === right
    : left.isProgram === right.isProgram && Buffer.compare(left.bytes, right.bytes) === 0

/** Finds the changes of the notes that nobody decided on. */
export const pendingChanges = Effect.fnUntraced(function* (places: Places) {
  const folder = yield* folderOf(places)
  const keptFiles = yield* readFiles(join(folder, names.kept))
  const notes = yield* readFiles(join(folder, names.notes))
  return [...new Set([...keptFiles.keys(), ...notes.keys()])]
    .map((path): Change => ({ path, before: keptFiles.get(path), after: notes.get(path) }))
    .filter(({ after, before }) => !isSame(before, after))
})

/** Writes a file through one in the folder of the memory, where no note is. */
const writeKept = Effect.fnUntraced(function* (folder: string, file: string, content: SkillFile | undefined) {
  const fs = yield* FileSystem.FileSystem
  if (content === undefined) return yield* fs.remove(file, { force: true })
  const beside = join(folder, `${randomUUID()}.tmp`)
  const place = fs.rename(beside, file)
  yield* fs.makeDirectory(dirname(file), { recursive: true, mode: 0o700 })
  yield* fs.writeFile(beside, content.bytes, { mode: content.isProgram ? 0o700 : 0o600 }).pipe(
    // An agent may have made a folder of that name.
    Effect.andThen(Effect.catch(place, () => Effect.andThen(fs.remove(file, { recursive: true, force: true }), place))),
    Effect.ensuring(Effect.ignore(fs.remove(beside, { force: true })))
  )
}, orFail("failed"))

/** Keeps changes as they were shown, or takes them back. Notes that are newer than that stay, and are asked about. */
export const settleChanges = Effect.fnUntraced(function* (
  places: Places,
  changes: ReadonlyArray<Change>,
  isKept: boolean
) {
  const folder = yield* folderOf(places)
  const side = isKept ? names.kept : names.notes
  const files = changes.map(({ after, before, path }) => ({ path, content: isKept ? after : before }))
  // A file that goes may be where another one needs a folder.
  for (const { content, path } of [
    ...files.filter((file) => file.content === undefined),
    ...files.filter((file) => file.content !== undefined)
  ]) {
    yield* writeKept(folder, join(folder, side, path), content)
  }
})
