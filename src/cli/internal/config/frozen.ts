/** Copies of trusted folders, named by their content, so that agents read the content that a person trusted. */
import { createHash, randomUUID } from "node:crypto"
import { dirname, join } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import { orFail } from "../failure.ts"
import type { SkillFile } from "./items.ts"
import { makeFolder, type Places } from "./places.ts"

/** A folder with its files, by their paths in it. */
export interface Tree {
  readonly path: string
  readonly files: ReadonlyMap<string, SkillFile>
}

const nameOf = (trees: ReadonlyArray<Tree>): string => {
  const hash = createHash("sha256")
  for (const { files, path } of trees) {
    for (const [file, { bytes, isProgram }] of files) {
      hash.update(JSON.stringify([path, file, isProgram, bytes.length])).update(bytes)
    }
  }
  return hash.digest("hex")
}

/** The folder of the copies of these folders. */
export const frozenAt = ({ data }: Places, trees: ReadonlyArray<Tree>): string => join(data, "frozen", nameOf(trees))

/** Copies these folders into one, unless that was done before, and gives its path. */
export const freeze = Effect.fnUntraced(function* (places: Places, trees: ReadonlyArray<Tree>) {
  const fs = yield* FileSystem.FileSystem
  yield* makeFolder(join(places.data, "frozen"))
  const folder = frozenAt(places, trees)
  if (yield* Effect.orElseSucceed(fs.exists(folder), () => false)) return folder
  const beside = `${folder}.${randomUUID()}.tmp`
  const write = Effect.gen(function* () {
    yield* fs.makeDirectory(beside, { recursive: true, mode: 0o700 })
    for (const { files, path } of trees) {
      for (const [name, { bytes, isProgram }] of files) {
        const file = join(beside, path, name)
        yield* fs.makeDirectory(dirname(file), { recursive: true, mode: 0o700 })
        yield* fs.writeFile(file, bytes, { mode: isProgram ? 0o700 : 0o600 })
      }
    }
    const isThere = Effect.orElseSucceed(fs.exists(folder), () => false)
    // Another process may have made the same folder meanwhile.
    yield* Effect.catch(fs.rename(beside, folder), (error) =>
      Effect.flatMap(isThere, (is) => (is ? Effect.void : Effect.fail(error)))
    )
  }).pipe(Effect.ensuring(Effect.ignore(fs.remove(beside, { recursive: true, force: true }))))
  yield* orFail("failed")(write)
  return folder
})
