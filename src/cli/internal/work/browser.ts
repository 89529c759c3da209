/** Opens a page in the browser of the machine. */
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import { valueAt } from "../../../support/json/valueAt.ts"
import type { Places } from "../config/places.ts"
import { installedBeside } from "./machine/programs.ts"

/** The program that opens files, by platform. */
const openers: { readonly [platform: string]: string } = { darwin: "open", linux: "xdg-open", win32: "explorer" }

/** The variables that a browser needs. Keys of providers are not among them. */
const needed =
  /^(?:HOME|USER|LOGNAME|LANG|LC_\w+|TMPDIR|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|XDG_\w+|DBUS_SESSION_BUS_ADDRESS|BROWSER|SystemRoot|USERPROFILE|APPDATA|LOCALAPPDATA|TEMP)$/

/**
 * Opens an address by way of a file that only its user reads: other users of the machine see the arguments of a program,
 * and the address has a token. The file is gone after a minute, as is the token. Without a browser, nothing happens.
 */
export const openPage = Effect.fnUntraced(
  function* (places: Places, folder: string, url: string) {
    const { find, path } = yield* installedBeside([places.project])
    const opener = valueAt(openers, process.platform)
    const program = opener === undefined ? undefined : yield* find(opener)
    if (program === undefined) return
    const fs = yield* FileSystem.FileSystem
    const spawner = yield* ChildProcessSpawner
    const file = join(folder, "open.html")
    const remove = fs.remove(file, { force: true })
    yield* remove
    yield* Effect.addFinalizer(() => Effect.ignore(remove))
    const page = `<!doctype html><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=${url}">\n`
    yield* fs.writeFileString(file, page, { mode: 0o600, flag: "wx" })
    const env = { PATH: path, ...Object.fromEntries(Object.entries(process.env).filter(([name]) => needed.test(name))) }
    yield* spawner.exitCode(
      ChildProcess.make(program, [process.platform === "win32" ? file : pathToFileURL(file).href], {
        env,
        extendEnv: false,
        stdin: "ignore",
        stdout: "ignore",
        stderr: "ignore"
      })
    )
    yield* Effect.sleep("1 minute")
  },
  Effect.scoped,
  (effect) => Effect.ignore(effect)
)
