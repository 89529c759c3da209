/**
 * The desktop of a person: opens files, notifies, speaks, reads and writes the clipboard, looks at windows, types into
 * them, keeps notes, finds files.
 *
 * ```ts
 * import { NodeServices } from "@effect/platform-node"
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { HumanInTheLoop } from "effect-deepagents/middleware"
 * import { Desktop } from "effect-deepagents/workspace"
 *
 * const helper = Agent.make({
 *   name: "helper",
 *   prompt: "You help at the desk.",
 *   tools: Desktop.tools(),
 *   middleware: [HumanInTheLoop.make({})]
 * })
 *
 * const desk = Desktop.layerLinux({ home: "/home/ada", notes: "/home/ada/notes" }).pipe(Layer.provide(NodeServices.layer))
 * const program = Agent.run(helper, "What is in my clipboard?").pipe(Effect.provide(desk))
 * ```
 *
 * Programs of the system do the work. They get arguments, never a command line of the model.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Schema from "effect/Schema"
import * as Content from "../core/Content.ts"
import * as Tool from "../core/Tool.ts"
import * as ToolError from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import { makeLayerCheck } from "../support/options/check.ts"
import { oneLine, quote } from "../support/text/untrusted.ts"
import { makeLinux } from "./internal/desktop/linux.ts"
import { makeMac } from "./internal/desktop/mac.ts"
import { DesktopError, type Service, type Window } from "./internal/desktop/service.ts"
import * as shapes from "./internal/shapes.ts"

export { DesktopError, type Window }

/** The desktop. */
export class Desktop extends Context.Service<Desktop, Service>()("effect-deepagents/workspace/Desktop") {}

const refuseLinux = makeLayerCheck("Desktop.layerLinux", shapes.desktopLayerLinux)

/**
 * The desktop of X11 on Linux, by `xdg-open`, `notify-send`, `spd-say`, `xclip`, `xdotool` and ImageMagick's `import`. A
 * missing program fails its operation alone, and says what to install. Notes are Markdown files of a folder.
 */
export const layerLinux = (options: {
  /** The folder of the notes. It is made with the first note. */
  readonly notes: string
  /** The folder that `find` looks in, such as the home of the person. */
  readonly home: string
  /** The X display, such as `:1`. Default: `DISPLAY`. */
  readonly display?: string | undefined
}): Layer.Layer<Desktop, never, ChildProcessSpawner | FileSystem.FileSystem | Path.Path> =>
  refuseLinux(options) ?? Layer.effect(Desktop, makeLinux(options))

/**
 * The desktop of macOS, by `open`, `osascript`, `say`, `pbpaste`, `pbcopy`, `screencapture`, `mdfind`, and the program
 * Notes. Written from their documents, and not tested on a Mac.
 */
export const layerMac: Layer.Layer<Desktop, never, ChildProcessSpawner | FileSystem.FileSystem | Path.Path> =
  Layer.effect(Desktop, makeMac)

/** A desktop in memory, for tests. Its deeds, in order, are the titles of its windows. */
export const layerFake = Layer.effect(
  Desktop,
  Effect.sync(() => {
    let clipboard = ""
    const notes = new Map<string, string>()
    const did: Array<string> = []
    const note = (what: string) => Effect.sync(() => void did.push(what))
    const service: Service = {
      open: (target) => note(`open ${target}`),
      notify: ({ text, title }) => note(`notify ${title}: ${text}`),
      say: (text) => note(`say ${text}`),
      readClipboard: Effect.sync(() => clipboard),
      writeClipboard: (text) => Effect.sync(() => void (clipboard = text)),
      windows: Effect.sync(() => did.map((title, index) => ({ id: `${index + 1}`, title }))),
      screenshot: () => Effect.succeed(new Uint8Array([0x89, 0x50, 0x4e, 0x47])),
      type: (window, text) => note(`type ${window} ${text}`),
      press: (window, keys) => note(`press ${window} ${keys}`),
      notes: Effect.sync(() => [...notes.keys()]),
      readNote: (name) => {
        const text = notes.get(name)
        return text === undefined ? Effect.fail(new DesktopError({ problem: `no note ${name}` })) : Effect.succeed(text)
      },
      writeNote: (name, text) => Effect.sync(() => void notes.set(name, text)),
      find: (words) => Effect.sync(() => did.filter((one) => one.includes(words)))
    }
    return service
  })
)

const mostText = 20_000

const failed = ({ message }: DesktopError) => ToolError.make(message)

const use = <A>(work: (desktop: Service) => Effect.Effect<A, DesktopError>) =>
  Effect.mapError(Desktop.use(work), failed)

const lines = (list: ReadonlyArray<string>, none: string): string =>
  list.length === 0 ? none : list.map(oneLine).join("\n")

const text = (description: string) => Schema.String.annotate({ description })

/** Reads: no approval, and untrusted, since others may have written the text. */
const reads = { readOnly: true, untrusted: true, openWorld: false } as const
/** Deeds that a person sees or hears, or that last: they ask. */
const acts = { readOnly: false, destructive: true, openWorld: false } as const
/** Deeds that leave this machine, or run other programs. */
const sends = { ...acts, openWorld: true } as const

const reading = [
  Tool.make("read_clipboard", {
    description: "Reads the text of the clipboard.",
    parameters: {},
    annotations: reads,
    execute: () => use((desktop) => Effect.map(desktop.readClipboard, (found) => quote(found.slice(0, mostText))))
  }),
  Tool.make("take_screenshot", {
    description: "Takes a picture of the screen, or of a window by its id from list_windows.",
    parameters: { window: Schema.optionalKey(text("The id of a window; the whole screen if left out")) },
    annotations: reads,
    execute: ({ window }) =>
      use((desktop) =>
        Effect.map(desktop.screenshot(window), (png) =>
          ToolOutput.make([Content.image({ base64: Base64.encode(png), mimeType: "image/png" })])
        )
      )
  }),
  Tool.make("list_windows", {
    description: "Lists the windows on the screen: the id and the title of each.",
    parameters: {},
    annotations: reads,
    execute: () =>
      use((desktop) =>
        Effect.map(desktop.windows, (all) =>
          lines(
            all.map(({ id, title }) => `${id} ${title}`),
            "There is no window."
          )
        )
      )
  }),
  Tool.make("list_notes", {
    description: "Lists the names of the notes.",
    parameters: {},
    annotations: reads,
    execute: () => use((desktop) => Effect.map(desktop.notes, (all) => lines(all, "There is no note.")))
  }),
  Tool.make("read_note", {
    description: "Reads a note.",
    parameters: { name: text("The name of the note") },
    annotations: reads,
    execute: ({ name }) =>
      use((desktop) => Effect.map(desktop.readNote(name), (found) => quote(found.slice(0, mostText))))
  }),
  Tool.make("find_files", {
    description: "Finds files of the person by words of their names, at most 100.",
    parameters: { words: text("A part of the name") },
    annotations: reads,
    execute: ({ words }) => use((desktop) => Effect.map(desktop.find(words), (all) => lines(all, "Nothing was found.")))
  })
]

const acting = [
  Tool.make("write_clipboard", {
    description: "Puts a text into the clipboard.",
    parameters: { text: text("The text") },
    annotations: { readOnly: false, destructive: false, openWorld: false },
    execute: ({ text: given }) => use((desktop) => Effect.as(desktop.writeClipboard(given), "It is in the clipboard."))
  }),
  Tool.make("open_on_desktop", {
    description: "Opens a file by its whole path, or a web address, with the program of the person for it.",
    parameters: { target: text("An absolute path, or an address with http or https") },
    annotations: sends,
    needsApproval: true,
    execute: ({ target }) => use((desktop) => Effect.as(desktop.open(target), `Opened ${oneLine(target)}.`))
  }),
  Tool.make("notify", {
    description: "Shows a notification on the screen.",
    parameters: { title: text("A few words"), text: text("One or two sentences") },
    annotations: acts,
    needsApproval: true,
    execute: (message) => use((desktop) => Effect.as(desktop.notify(message), "It was shown."))
  }),
  Tool.make("say", {
    description: "Says a text aloud, at most 1,000 characters.",
    parameters: { text: text("The text") },
    annotations: acts,
    needsApproval: true,
    execute: ({ text: given }) => use((desktop) => Effect.as(desktop.say(given), "It was said."))
  }),
  Tool.make("type_text", {
    description: "Types a text into a window by its id from list_windows.",
    parameters: { window: text("The id of the window"), text: text("The text") },
    annotations: sends,
    needsApproval: true,
    execute: ({ text: given, window }) => use((desktop) => Effect.as(desktop.type(window, given), "It was typed."))
  }),
  Tool.make("press_keys", {
    description: "Presses a key, or keys together, in a window: Return, Tab, ctrl+s.",
    parameters: { window: text("The id of the window"), keys: text("The key, or keys joined by +") },
    annotations: sends,
    needsApproval: true,
    execute: ({ keys, window }) => use((desktop) => Effect.as(desktop.press(window, keys), "Pressed."))
  }),
  Tool.make("write_note", {
    description: "Writes the whole text of a note: a new one, or one that is there.",
    parameters: { name: text("The name of the note"), text: text("The whole text") },
    annotations: acts,
    needsApproval: true,
    execute: ({ name, text: given }) =>
      use((desktop) => Effect.as(desktop.writeNote(name, given), `The note ${oneLine(name)} is written.`))
  })
]

/**
 * The tools. Screenshots, lists, reads and the clipboard need no approval, everything else asks. A `HumanInTheLoop`, or a
 * policy, changes that. Text from the desktop is untrusted: it marks a conversation for `Taint`.
 */
export const tools = (): ReadonlyArray<Tool.Tool<Desktop> | Tool.NeedingApproval<Desktop>> => [...reading, ...acting]
