/** The service of a desktop, and the programs that it runs. */
import * as Effect from "effect/Effect"
import * as ChildProcess from "effect/process/ChildProcess"
import { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { readVariables } from "../../../support/effect/environment.ts"
import { TaggedError } from "../../../support/effect/taggedError.ts"
import { joinBytes } from "../../../support/store/joinBytes.ts"

/** An operation of the desktop failed. The message says what to install, or to allow. */
export class DesktopError extends TaggedError<DesktopError>("effect-deepagents/workspace/DesktopError")(
  "DesktopError",
  {
    problem: Schema.String
  }
) {
  override get message(): string {
    return `The desktop could not do it: ${this.problem}`
  }
}

/** A window on the screen. */
export interface Window {
  readonly id: string
  readonly title: string
}

/**
 * The operations of a desktop. `say` takes 1,000 characters and a minute at most, `find` gives 100 paths at most, and
 * `screenshot` a PNG of the screen or of a window.
 */
export interface Service {
  readonly open: (target: string) => Effect.Effect<void, DesktopError>
  readonly notify: (message: { readonly title: string; readonly text: string }) => Effect.Effect<void, DesktopError>
  readonly say: (text: string) => Effect.Effect<void, DesktopError>
  readonly readClipboard: Effect.Effect<string, DesktopError>
  readonly writeClipboard: (text: string) => Effect.Effect<void, DesktopError>
  readonly windows: Effect.Effect<ReadonlyArray<Window>, DesktopError>
  readonly screenshot: (window?: string) => Effect.Effect<Uint8Array, DesktopError>
  readonly type: (window: string, text: string) => Effect.Effect<void, DesktopError>
  readonly press: (window: string, keys: string) => Effect.Effect<void, DesktopError>
  readonly notes: Effect.Effect<ReadonlyArray<string>, DesktopError>
  readonly readNote: (name: string) => Effect.Effect<string, DesktopError>
  readonly writeNote: (name: string, text: string) => Effect.Effect<void, DesktopError>
  readonly find: (words: string) => Effect.Effect<ReadonlyArray<string>, DesktopError>
}

export const refuse = (problem: string) => Effect.fail(new DesktopError({ problem }))

/** The most bytes of an answer: a picture of a large screen. */
const mostBytes = 50_000_000
const patience = "1 minute"

const collect = <E>(stream: Stream.Stream<Uint8Array, E>) => {
  let size = 0
  return Effect.map(
    Stream.runCollect(Stream.takeWhile(stream, ({ length }) => (size += length) <= mostBytes)),
    joinBytes
  )
}

/** The options of a program. `install` names its package. The outputs of a quiet program are not read. */
export interface Call {
  readonly install: string
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly input?: string | undefined
  readonly isQuiet?: boolean | undefined
}

/** The variables by which a program finds the desktop. It gets no others: among them would be keys. */
const desktopVariables = [
  "DISPLAY",
  "WAYLAND_DISPLAY",
  "XAUTHORITY",
  "DBUS_SESSION_BUS_ADDRESS",
  "XDG_RUNTIME_DIR",
  "XDG_SESSION_TYPE",
  "XDG_CURRENT_DESKTOP",
  "XDG_CONFIG_HOME",
  "XDG_CONFIG_DIRS",
  "XDG_DATA_HOME",
  "XDG_DATA_DIRS"
]

/** Makes the runner of programs: each by its name and its arguments, for a minute at most. */
export const makeRunner = Effect.map(ChildProcessSpawner, (spawner) => {
  const bytes = (program: string, args: ReadonlyArray<string>, { env, input, install, isQuiet }: Call) =>
    Effect.gen(function* () {
      const variables = yield* readVariables(desktopVariables)
      const handle = yield* spawner.spawn(
        ChildProcess.make(program, args, {
          stdin: input === undefined ? "ignore" : Stream.make(new TextEncoder().encode(input)),
          // A program that goes on in the background, such as xclip, keeps its outputs open.
          ...(isQuiet === true ? { stdout: "ignore", stderr: "ignore" } : {}),
          env: { ...variables, ...env },
          extendEnv: false
        })
      )
      const [stdout, stderr, code] = yield* Effect.all(
        [
          isQuiet === true ? Effect.succeed(new Uint8Array()) : collect(handle.stdout),
          isQuiet === true ? Effect.succeed(new Uint8Array()) : collect(handle.stderr),
          handle.exitCode
        ],
        { concurrency: "unbounded" }
      )
      if (code === 0) return stdout
      return yield* refuse(`${program} ended with ${code}: ${new TextDecoder().decode(stderr).trim().slice(0, 300)}`)
    }).pipe(
      Effect.scoped,
      Effect.catchTag("PlatformError", (error) =>
        refuse(error.reason._tag === "NotFound" ? `there is no ${program} here; install ${install}` : error.message)
      ),
      Effect.timeoutOrElse({ duration: patience, orElse: () => refuse(`${program} took longer than a minute`) })
    )
  const text = (program: string, args: ReadonlyArray<string>, call: Call) =>
    Effect.map(bytes(program, args, call), (out) => new TextDecoder().decode(out))
  return { bytes, text }
})

/** Checks a target: an absolute path or an address of the web. Anything else could be an option or another scheme. */
export const checkTarget = (target: string): Effect.Effect<string, DesktopError> =>
  /^https?:\/\/[^\s\p{C}]+$/iu.test(target) || /^\/[^\p{Cc}]*$/u.test(target)
    ? Effect.succeed(target)
    : refuse("only absolute paths, and addresses with http or https, can be opened")

/** Checks a text that is said. */
export const checkSpeech = (text: string): Effect.Effect<string, DesktopError> =>
  text.length <= 1_000 ? Effect.succeed(text) : refuse("a text that is said has at most 1,000 characters")

/** Checks the words of a search. */
export const checkWords = (words: string): Effect.Effect<string, DesktopError> =>
  /^[^\p{Cc}/]{1,200}$/u.test(words) ? Effect.succeed(words) : refuse("say a part of a name, without /")

/** Checks keys: names of keys joined by +. */
export const checkKeys = (keys: string): Effect.Effect<string, DesktopError> =>
  /^[A-Za-z0-9_]+(?:\+[A-Za-z0-9_]+)*$/.test(keys)
    ? Effect.succeed(keys)
    : refuse("keys are names joined by +, such as Return, Tab or ctrl+s")
