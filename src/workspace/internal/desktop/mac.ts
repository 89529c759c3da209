/** The desktop of macOS, by its own programs. Written from their documents, and not tested on a Mac. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import {
  checkKeys,
  checkSpeech,
  checkTarget,
  checkWords,
  DesktopError,
  makeRunner,
  refuse,
  type Service
} from "./service.ts"

const most = 100

/** Scripts get their values by `argv`: no value becomes a part of a script. */
const scripts = {
  notify: `on run argv
display notification (item 2 of argv) with title (item 1 of argv)
end run`,
  windows: `on run argv
set found to ""
tell application "System Events"
repeat with one in (processes whose visible is true)
repeat with w in windows of one
set found to found & (name of one) & " " & (name of w) & linefeed
end repeat
end repeat
end tell
return found
end run`,
  focus: `on run argv
tell application (item 1 of argv) to activate
end run`,
  type: `on run argv
tell application "System Events" to keystroke (item 1 of argv)
end run`,
  notes: `on run argv
set found to ""
tell application "Notes"
repeat with one in notes
set found to found & (name of one) & linefeed
end repeat
end tell
return found
end run`,
  readNote: `on run argv
tell application "Notes" to return plaintext of (first note whose name is (item 1 of argv))
end run`,
  writeNote: `on run argv
tell application "Notes"
if exists note (item 1 of argv) then
set body of note (item 1 of argv) to (item 2 of argv)
else
make new note with properties {name:(item 1 of argv), body:(item 2 of argv)}
end if
end tell
end run`
} as const

const call = { install: "macOS" } as const

/** The code of macOS for a program that may not control another one. */
const isForbidden = (problem: string): boolean => problem.includes("-1743")

const advice =
  "allow this program to control the other one in System Settings, Privacy & Security, Automation, and try again"

const escapeMarkup = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\n", "<br>")

/** Makes the service. The id of a window is the name of its program. */
export const makeMac = Effect.gen(function* () {
  const { bytes, text } = yield* makeRunner
  const files = yield* FileSystem.FileSystem
  const failed = ({ message }: { readonly message: string }) => new DesktopError({ problem: message })
  const script = (source: string, ...args: ReadonlyArray<string>) =>
    Effect.mapError(text("/usr/bin/osascript", ["-e", source, "--", ...args], call), (error) =>
      isForbidden(error.problem) ? new DesktopError({ problem: advice }) : error
    )
  const linesOf = (out: string) => out.split("\n").filter((line) => line.trim() !== "")

  const service: Service = {
    open: (target) => Effect.flatMap(checkTarget(target), (one) => Effect.asVoid(bytes("/usr/bin/open", [one], call))),
    notify: ({ text: said, title }) => Effect.asVoid(script(scripts.notify, title, said)),
    say: (said) =>
      Effect.flatMap(checkSpeech(said), (checked) =>
        Effect.asVoid(bytes("/usr/bin/say", ["-f", "-"], { ...call, input: checked }))
      ),
    readClipboard: text("/usr/bin/pbpaste", [], call),
    writeClipboard: (given) => Effect.asVoid(bytes("/usr/bin/pbcopy", [], { ...call, input: given })),
    windows: Effect.map(script(scripts.windows), (out) =>
      linesOf(out)
        .slice(0, most)
        .map((line) => ({ id: line.slice(0, line.indexOf(" ")), title: line }))
    ),
    screenshot: (window) =>
      window === undefined
        ? Effect.scoped(
            Effect.gen(function* () {
              const file = yield* Effect.mapError(files.makeTempFileScoped({ suffix: ".png" }), failed)
              yield* bytes("/usr/sbin/screencapture", ["-x", "-t", "png", file], call)
              return yield* Effect.mapError(files.readFile(file), failed)
            })
          )
        : refuse("windows alone can't be taken on macOS; take the whole screen"),
    type: (window, given) => Effect.andThen(script(scripts.focus, window), Effect.asVoid(script(scripts.type, given))),
    press: (window, given) =>
      Effect.flatMap(checkKeys(given), (keys) =>
        keys === "Return" || keys === "Tab"
          ? Effect.andThen(
              script(scripts.focus, window),
              Effect.asVoid(script(scripts.type, keys === "Return" ? "\r" : "\t"))
            )
          : refuse("on macOS only Return and Tab can be pressed")
      ),
    notes: Effect.map(script(scripts.notes), linesOf),
    readNote: (name) => script(scripts.readNote, name),
    writeNote: (name, given) => Effect.asVoid(script(scripts.writeNote, name, escapeMarkup(given))),
    find: (words) =>
      Effect.flatMap(checkWords(words), (checked) =>
        Effect.map(text("/usr/bin/mdfind", ["-name", checked], call), (out) => linesOf(out).slice(0, most))
      )
  }
  return service
})
