/** Copies the folder of a sandbox, by a command in a sandbox of its own: a link that is put in its way leads nowhere. */
import { mkdtemp, realpath, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { type BackendError, make as makeError } from "../../../core/BackendError.ts"
import * as Execute from "../local/execute.ts"
import type * as Jail from "../local/jail.ts"
import { openShell } from "../local/shell.ts"
import { quote } from "../posix/shell.ts"
import * as Enclosure from "./enclosure.ts"

const copyTime = "1 hour"

const unavailable = (detail: string, cause?: unknown): BackendError =>
  makeError("open", "/", { _tag: "Unavailable" }, { detail, ...(cause === undefined ? {} : { cause }) })

const makeFolder = (parent: string): Effect.Effect<string, BackendError> =>
  Effect.tryPromise({
    try: async () => realpath(await mkdtemp(join(parent, "deepagents-snapshot-"))),
    catch: (cause) => unavailable(`no snapshot can be made in ${parent}: name another folder in \`snapshots\``, cause)
  })

/** All of the folder, with links as links. Owners are left to the user of the copy. */
const copy = (to: string): string =>
  process.platform === "darwin"
    ? `cp -Rpc . ${quote(to)}`
    : `cp -a --no-preserve=ownership --reflink=auto . ${quote(to)}`

/** Makes a copy of the root of a jail in a new folder, and gives its path. */
export const make = (jail: Jail.Jail, parent: string = tmpdir()): Effect.Effect<string, BackendError> =>
  Effect.scoped(
    Effect.gen(function* () {
      const folder = yield* makeFolder(parent)
      const limits = { fileBytes: Number.MAX_SAFE_INTEGER }
      const copying = Effect.gen(function* () {
        const { enclose } = yield* Enclosure.make<never>({ writable: [folder], limits }, () => [
          { path: jail.root, access: "read" }
        ])
        const shell = { ...(yield* openShell(jail, {})), enclose }
        const { exitCode, output } = yield* Execute.execute(shell, copy(folder), { timeout: copyTime })
        if (exitCode !== 0) return yield* Effect.fail(unavailable(`the folder can't be copied: ${output.trim()}`))
      })
      yield* Effect.onError(copying, () =>
        Effect.ignore(Effect.tryPromise(() => rm(folder, { recursive: true, force: true })))
      )
      return folder
    })
  )
