/** Runs commands in a container, writes its files by an archive, and reads them by a command. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { BackendError } from "../../../core/BackendError.ts"
import { joinBytes } from "../../../support/store/joinBytes.ts"
import { quote } from "../posix/shell.ts"
import * as Api from "./api.ts"
import * as Frames from "./frames.ts"
import { archiveOf } from "./tar.ts"

type Failing<A> = Effect.Effect<A, BackendError>

const Made = Schema.Struct({ Id: Schema.String })
const Ended = Schema.Struct({ ExitCode: Schema.NullOr(Schema.Finite) })

/** The user and the further variables of a command. */
interface Settings {
  readonly user?: string | undefined
  readonly env?: { readonly [name: string]: string } | undefined
}

/** Starts a command, and gives the frames of its output. */
const start = (api: Api.Api, container: string, command: string, { env = {}, user }: Settings) =>
  Effect.gen(function* () {
    const { Id: id } = yield* Effect.flatMap(
      Api.call(api, "POST", `/containers/${container}/exec`, {
        AttachStdout: true,
        AttachStderr: true,
        Cmd: ["/bin/sh", "-c", command],
        Env: Object.entries(env).map(([name, value]) => `${name}=${value}`),
        ...(user === undefined ? {} : { User: user })
      }),
      Api.readJson(Made)
    )
    const response = yield* Api.call(api, "POST", `/exec/${id}/start`, { Detach: false, Tty: false })
    const splitter = Frames.makeSplitter()
    const frames = response.stream.pipe(
      Stream.mapError((cause) => Api.fail("the output of a command broke off", cause)),
      Stream.flatMap((chunk) => Stream.fromIterable(splitter.push(chunk))),
      Stream.concat(
        Stream.suspend(() =>
          splitter.isWhole() ? Stream.empty : Stream.fail(Api.fail("the output of a command broke off"))
        )
      )
    )
    return { id, frames }
  })

/** Runs a command, and gives the bytes of its stdout. */
const runBytes = Effect.fnUntraced(function* (
  api: Api.Api,
  container: string,
  command: string,
  settings: Settings = {}
): Effect.fn.Return<{ readonly bytes: Uint8Array; readonly exitCode: number }, BackendError> {
  const { frames, id } = yield* start(api, container, command, settings)
  const pieces: Array<Uint8Array> = []
  yield* Stream.runForEach(frames, ({ bytes, channel }) =>
    Effect.sync(() => {
      if (channel === "stdout") pieces.push(bytes)
    })
  )
  const { ExitCode } = yield* Effect.flatMap(Api.call(api, "GET", `/exec/${id}/json`), Api.readJson(Ended))
  return { bytes: joinBytes(pieces), exitCode: ExitCode ?? -1 }
})

/** Runs a command, and gives its stdout as text. */
export const run = (
  api: Api.Api,
  container: string,
  command: string,
  settings?: Settings
): Failing<{ readonly output: string; readonly exitCode: number }> =>
  Effect.map(runBytes(api, container, command, settings), ({ bytes, exitCode }) => ({
    output: new TextDecoder().decode(bytes),
    exitCode
  }))

/** Runs a command, and gives the pieces of its output as they come. */
export const stream = (api: Api.Api, container: string, command: string, settings: Settings = {}) =>
  Stream.unwrap(
    Effect.map(start(api, container, command, settings), ({ frames }) => Stream.map(frames, Frames.makeDecoder()))
  )

/** The user that commands run as. */
export interface Owner {
  readonly uid: number
  readonly gid: number
}

/** Writes a file into a folder that exists. */
export const writeFile = (api: Api.Api, container: string, owner: Owner) => (path: string, content: Uint8Array) => {
  const at = path.lastIndexOf("/")
  const query = Api.queryOf({ path: path.slice(0, at) || "/" })
  return Effect.asVoid(
    Api.call(api, "PUT", `/containers/${container}/archive?${query}`, archiveOf(path.slice(at + 1), content, owner))
  )
}

/** Reads a file. By a command and not by an archive, which would show a link in its place, and no file of a mount. */
export const readFile = (api: Api.Api, container: string) => (path: string) =>
  Effect.flatMap(runBytes(api, container, `exec cat <${quote(path)}`), ({ bytes, exitCode }) =>
    exitCode === 0 ? Effect.succeed(bytes) : Effect.fail(Api.fail("the file could not be read"))
  )
