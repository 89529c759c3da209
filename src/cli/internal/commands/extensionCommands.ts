/** `deepagents extensions`: lists them, adds one, removes one. */
import { createHash } from "node:crypto"
import { join, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { suggestion } from "../../../support/text/near.ts"
import { cut } from "../../../support/text/text.ts"
import { oneLine } from "../../../support/text/untrusted.ts"
import {
  entryOf,
  findExtensions,
  hashOf,
  packagesOf,
  readAdded,
  readCode,
  writeAdded
} from "../config/extensionFiles.ts"
import { makeFolder, type Places } from "../config/places.ts"
import { fail, orFail } from "../failure.ts"
import { print, printJson, table, tell } from "../output.ts"
import type { Context } from "../work/app.ts"
import { gistOf, loadAll, loadExtension } from "../work/extensions/extensions.ts"
import { installedBeside } from "../work/machine/programs.ts"

/** A package of npm, with a version or without. */
const packageRule = /^(?:npm:)?((?:@[\w.-]+\/)?[\w][\w.-]*(?:@[\w.^~-]+)?)$/

export const list = Effect.fnUntraced(function* ({ places, project }: Context, asJson: boolean) {
  const extensions = yield* findExtensions(places, project)
  const { loaded, problems } = yield* loadAll(extensions.entries)
  const all = [...extensions.problems, ...problems]
  if (asJson) {
    return yield* printJson({
      extensions: loaded.map((one) => ({
        name: one.extension.name,
        source: one.entry.source,
        origin: one.entry.origin,
        adds: gistOf(one)
      })),
      problems: all
    })
  }
  if (loaded.length === 0 && all.length === 0) {
    return yield* tell("There are no extensions: deepagents extensions add FILE, FOLDER or npm:PACKAGE")
  }
  yield* print(...table(loaded.map((one) => [one.extension.name, one.entry.origin, one.entry.source, gistOf(one)])))
  for (const problem of all) yield* tell(`! ${oneLine(problem)}`)
  return undefined
})

/** Installs a package into a folder of its own. None of its scripts runs, and no setting of the project counts. */
const install = Effect.fnUntraced(function* (places: Places, spec: string) {
  const fs = yield* FileSystem.FileSystem
  const { find, path } = yield* installedBeside([places.project])
  const npm = yield* find("npm")
  if (npm === undefined) return yield* fail("failed", "npm is not installed on this machine")
  const name = createHash("sha256").update(spec).digest("hex").slice(0, 16)
  const folder = join(yield* makeFolder(packagesOf(places)), name)
  yield* orFail("failed")(fs.remove(folder, { recursive: true, force: true }))
  yield* makeFolder(folder)
  yield* orFail("failed")(fs.writeFileString(join(folder, "package.json"), '{ "private": true }\n'))
  const args = ["install", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund", "--no-bin-links", spec]
  const work = Effect.scoped(
    Effect.gen(function* () {
      const spawner = yield* ChildProcessSpawner
      const env = { PATH: path }
      const process = yield* spawner.spawn(ChildProcess.make(npm, args, { cwd: folder, env, extendEnv: true }))
      const [code, said] = yield* Effect.all(
        [process.exitCode, Stream.mkString(Stream.decodeText(process.stderr)), Stream.runDrain(process.stdout)],
        { concurrency: 3 }
      )
      return { code: Number(code), said }
    })
  )
  const { code, said } = yield* orFail("failed", "npm: ")(work)
  if (code !== 0) return yield* fail("failed", `npm could not install ${spec}: ${cut(oneLine(said), 600)}`)
  return folder
})

/** Finds the place of a source: a file, a folder, or a package that is installed now. */
const placeOf = Effect.fnUntraced(function* (places: Places, given: string) {
  const fs = yield* FileSystem.FileSystem
  const path = resolve(places.project, given)
  if (!given.startsWith("npm:") && (yield* Effect.orElseSucceed(fs.exists(path), () => false))) {
    const real = yield* orFail("usage")(fs.realPath(path))
    return { source: real, place: real, isPackage: false }
  }
  const spec = packageRule.exec(given)?.[1]
  if (spec === undefined || /^[./~]/.test(given)) {
    return yield* fail("usage", `There is no file, folder or package ${JSON.stringify(given)}`)
  }
  return { source: `npm:${spec}`, place: yield* install(places, spec), isPackage: true }
})

/** Trusts an extension as it is now. */
export const add = Effect.fnUntraced(function* ({ places }: Context, given: string) {
  const { isPackage, place, source } = yield* placeOf(places, given)
  const files = yield* orFail("usage")(readCode(place, isPackage))
  const entry = yield* entryOf(places, { source, place, hash: hashOf(files) }, files)
  if (Result.isFailure(entry)) return yield* fail("usage", `${source} is no extension: ${entry.failure}`)
  const loaded = yield* Effect.result(loadExtension(entry.success))
  if (Result.isFailure(loaded)) return yield* fail("usage", `${source} is no extension: ${loaded.failure}`)
  const others = (yield* readAdded(places)).filter((one) => one.source !== source)
  yield* writeAdded(places, [...others, { source, place, hash: hashOf(files) }])
  const { extension } = loaded.success
  return yield* tell(
    `Added ${extension.name}, as it is now: ${gistOf(loaded.success)}.`,
    `Its code runs with your rights, in each chat and run. deepagents extensions remove ${extension.name} removes it.`
  )
})

/** Removes an extension by its name or its source. */
export const remove = Effect.fnUntraced(function* ({ places, project }: Context, given: string) {
  const fs = yield* FileSystem.FileSystem
  const added = yield* readAdded(places)
  const { loaded } = yield* loadAll((yield* findExtensions(places, project)).entries)
  const named = loaded.find(({ extension }) => extension.name === given)
  if (named?.entry.origin === "project") {
    return yield* fail("usage", `${given} is of the project: deepagents trust drop ${named.entry.source}`)
  }
  const wanted = named?.entry.source ?? given
  const entry = added.find(({ source }) => [wanted, `npm:${wanted}`, resolve(places.project, wanted)].includes(source))
  if (entry === undefined) {
    const names = [...loaded.map(({ extension }) => extension.name), ...added.map(({ source }) => source)]
    return yield* fail("usage", `There is no extension ${JSON.stringify(given)}. ${suggestion(given, names)}`)
  }
  yield* writeAdded(
    places,
    added.filter((one) => one !== entry)
  )
  if (entry.place.startsWith(`${packagesOf(places)}/`)) {
    yield* Effect.ignore(fs.remove(entry.place, { recursive: true, force: true }))
  }
  return yield* tell(`Removed ${entry.source}.`)
})
