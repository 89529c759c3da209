/** Variables for processes that must not see those of this one. */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

const needed = [
  "HOME",
  "LOGNAME",
  "PATH",
  "SHELL",
  "TERM",
  "USER",
  "TMPDIR",
  "LANG",
  "APPDATA",
  "HOMEDRIVE",
  "HOMEPATH",
  "LOCALAPPDATA",
  "PATHEXT",
  "PROCESSOR_ARCHITECTURE",
  "SYSTEMDRIVE",
  "SYSTEMROOT",
  "TEMP",
  "USERNAME",
  "USERPROFILE"
]

/** Reads the variables that every process needs, and these. */
export const readVariables = Effect.fnUntraced(function* (names: ReadonlyArray<string>) {
  const env: Record<string, string> = {}
  for (const name of [...needed, ...names]) {
    const value = yield* Effect.option(Config.String(name))
    if (Option.isSome(value)) env[name] = value.value
  }
  return env
})

/** Reads the variables that every process needs. */
export const neededVariables = readVariables([])
