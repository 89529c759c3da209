/** The desktop of X11, by its own programs. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
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

interface Options {
  readonly notes: string
  readonly home: string
  readonly display?: string | undefined
}

const most = 100

const checkWindow = (id: string) =>
  /^\d{1,20}$/.test(id) ? Effect.succeed(id) : refuse("the id of a window is a number from list_windows")

const checkName = (name: string) =>
  /^[^\p{C}/\\]{1,100}$/u.test(name) && !name.startsWith(".") && !name.startsWith("-")
    ? Effect.succeed(name)
    : refuse("the name of a note has 1 to 100 characters, without / and \\, and does not begin with a dot or a hyphen")

/** Makes the service. */
export const makeLinux = Effect.fnUntraced(function* ({ display, home, notes }: Options) {
  const { bytes, text } = yield* makeRunner
  const files = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const env = display === undefined ? undefined : { DISPLAY: display }
  const x = (install: string) => ({ install, env })
  const failed = ({ message }: { readonly message: string }) => new DesktopError({ problem: message })
  const fileOf = (name: string) => Effect.map(checkName(name), (one) => path.join(notes, `${one}.md`))
  const linesOf = (out: string) => out.split("\n").filter((line) => line.trim() !== "")

  const service: Service = {
    open: (target) =>
      Effect.flatMap(checkTarget(target), (checked) =>
        Effect.asVoid(bytes("xdg-open", [checked], { ...x("xdg-utils"), isQuiet: true }))
      ),
    notify: ({ text: said, title }) =>
      Effect.asVoid(bytes("notify-send", ["--app-name=effect-deepagents", "--", title, said], x("libnotify-bin"))),
    say: (said) =>
      Effect.flatMap(checkSpeech(said), (checked) =>
        Effect.asVoid(bytes("spd-say", ["--wait", "--pipe-mode"], { ...x("speech-dispatcher"), input: checked }))
      ),
    readClipboard: text("xclip", ["-selection", "clipboard", "-target", "UTF8_STRING", "-out"], x("xclip")),
    writeClipboard: (given) =>
      Effect.asVoid(
        // xclip goes on as the owner of the selection: in a session of its own, it outlives the call.
        bytes("setsid", ["--wait", "xclip", "-selection", "clipboard", "-in"], {
          ...x("xclip, util-linux"),
          input: given,
          isQuiet: true
        })
      ),
    windows: Effect.gen(function* () {
      const windows = yield* text("xdotool", ["search", "--onlyvisible", "--name", "."], x("xdotool")).pipe(
        // xdotool ends with 1 if there is no window.
        Effect.catchIf(
          ({ problem }) => /ended with 1: *$/.test(problem),
          () => Effect.succeed("")
        )
      )
      return yield* Effect.forEach(linesOf(windows).slice(0, most), (id) =>
        Effect.map(text("xdotool", ["getwindowname", id], x("xdotool")), (title) => ({ id, title: title.trim() }))
      )
    }),
    screenshot: (window) =>
      Effect.flatMap(window === undefined ? Effect.succeed("root") : checkWindow(window), (target) =>
        bytes("import", ["-silent", "-window", target, "png:-"], x("imagemagick"))
      ),
    type: (window, given) =>
      Effect.flatMap(checkWindow(window), (id) =>
        Effect.andThen(
          bytes("xdotool", ["windowfocus", "--sync", id], x("xdotool")),
          Effect.asVoid(
            bytes("xdotool", ["type", "--clearmodifiers", "--file", "-"], { ...x("xdotool"), input: given })
          )
        )
      ),
    press: (window, given) =>
      Effect.gen(function* () {
        const [id, keys] = [yield* checkWindow(window), yield* checkKeys(given)]
        yield* bytes("xdotool", ["windowfocus", "--sync", id], x("xdotool"))
        yield* bytes("xdotool", ["key", "--clearmodifiers", keys], x("xdotool"))
      }),
    notes: Effect.gen(function* () {
      if (!(yield* files.exists(notes))) return []
      const names = yield* files.readDirectory(notes)
      return names
        .filter((name) => name.endsWith(".md"))
        .map((name) => name.slice(0, -3))
        .toSorted()
    }).pipe(Effect.mapError(failed)),
    readNote: Effect.fnUntraced(function* (name) {
      const file = yield* fileOf(name)
      const isLink = yield* Effect.isSuccess(files.readLink(file))
      const { type } = yield* Effect.mapError(files.stat(file), failed)
      if (isLink || type !== "File") return yield* refuse(`the note ${name} is no regular file; delete ${file}`)
      return yield* Effect.mapError(files.readFileString(file), failed)
    }),
    // The new file replaces a link of that name, and does not write to its target.
    writeNote: (name, given) =>
      Effect.gen(function* () {
        const file = yield* fileOf(name)
        yield* files.makeDirectory(notes, { recursive: true })
        const draft = path.join(yield* files.makeTempDirectoryScoped({ directory: notes, prefix: ".note-" }), "draft")
        yield* files.writeFileString(draft, given)
        yield* files.rename(draft, file)
      }).pipe(Effect.scoped, Effect.mapError(failed)),
    find: (words) =>
      Effect.flatMap(checkWords(words), (checked) => {
        const pattern = `*${checked.replaceAll(/[*?[\]\\]/g, "\\$&")}*`
        // Hidden folders have what programs keep.
        const args = [home, "-maxdepth", "8", "-name", ".?*", "-prune", "-o", "-iname", pattern, "-print"]
        return Effect.map(text("find", args, x("findutils")), (out) => linesOf(out).slice(0, most))
      })
  }
  return service
})
