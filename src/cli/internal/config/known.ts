/** The address and the token of a folder's server, in a file that only its user reads. */
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { fileNameOf } from "../../../support/store/hash.ts"
import { orFail } from "../failure.ts"
import { type Places, textOf } from "./places.ts"

/** The address, and the token of programs. A server with a secret of its own has an empty token here. */
interface KnownServer {
  readonly url: string
  readonly token: string
}

const Known = Schema.fromJsonString(Schema.Struct({ url: Schema.String, token: Schema.String }))

const foldersOf = ({ data }: Places): string => join(data, "serve")

/** The folder of a project's server: its address, its mail and its schedules. */
export const serveFolder = (places: Places) =>
  Effect.map(fileNameOf(places.project), (name) => ({ name, folder: join(foldersOf(places), name) }))

/** The file in such a folder. */
export const knownFile = (folder: string): string => join(folder, "server.json")

/** Reads the server of a folder; `undefined` if none was started there. */
export const readKnown = Effect.fnUntraced(function* (folder: string) {
  const text = (yield* textOf(knownFile(folder))) ?? ""
  return Result.getOrUndefined(Schema.decodeUnknownResult(Known)(text))
})

/** Finds the server of this machine that was last started at an address. */
export const findKnown = Effect.fnUntraced(function* (places: Places, origin: string) {
  const fs = yield* FileSystem.FileSystem
  const names = yield* Effect.orElseSucceed(fs.readDirectory(foldersOf(places)), () => [])
  const servers = yield* Effect.forEach(names, (name) => readKnown(join(foldersOf(places), name)))
  return servers.find((server) => server !== undefined && URL.parse(server.url)?.origin === origin)
})

/** Writes the file anew, so that it has its mode from the beginning. */
export const writeKnown = Effect.fnUntraced(function* (folder: string, known: KnownServer) {
  const fs = yield* FileSystem.FileSystem
  const file = knownFile(folder)
  yield* fs.remove(file, { force: true })
  yield* fs.writeFileString(file, `${yield* Effect.orDie(Schema.encodeEffect(Known)(known))}\n`, {
    mode: 0o600,
    flag: "wx"
  })
}, orFail("failed"))
