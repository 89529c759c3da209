/**
 * Gives an agent a browser. Pages are trees of numbered elements; tools click and fill them by number.
 *
 * ```ts
 * import { Effect } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { MemoryBackend } from "effect-deepagents/backends"
 * import { Browser } from "effect-deepagents/web"
 * import * as NodeBrowser from "effect-deepagents/web/NodeBrowser"
 *
 * const surfer = Agent.make({ name: "surfer", prompt: "You use web pages.", tools: Browser.make() })
 *
 * const answer = Agent.run(surfer, "Book a room at https://example.com/").pipe(
 *   Effect.provide([NodeBrowser.layer({ rules: {} }), MemoryBackend.layer()])
 * )
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Schema from "effect/Schema"
import * as Backend from "../core/Backend.ts"
import * as Content from "../core/Content.ts"
import { refuseTools } from "../core/schema/invalid.ts"
import * as Sources from "../core/Sources.ts"
import * as Tool from "../core/Tool.ts"
import * as ToolContext from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { check } from "../support/options/check.ts"
import { cut } from "../support/text/text.ts"
import { oneLine, quote } from "../support/text/untrusted.ts"
import type { Action, Download, Snapshot } from "./internal/browser/model.ts"
import * as shapes from "./internal/shapes.ts"

/** An action failed, or the browser is not available. */
export class BrowserError extends TaggedError<BrowserError>("effect-deepagents/Browser/BrowserError")("BrowserError", {
  message: Schema.String
}) {}

/** A browser. Each thread has its own context: cookies, storage, pages. */
export class Browser extends Context.Service<
  Browser,
  {
    readonly act: (thread: string, action: Action) => Effect.Effect<void, BrowserError>
    readonly snapshot: (thread: string) => Effect.Effect<Snapshot, BrowserError>
    readonly screenshot: (thread: string) => Effect.Effect<Uint8Array, BrowserError>
    readonly download: (thread: string, ref: string) => Effect.Effect<Download, BrowserError>
    /** Returns unread console messages of all pages, oldest first. */
    readonly console: (thread: string) => Effect.Effect<ReadonlyArray<string>, BrowserError>
    readonly close: (thread: string) => Effect.Effect<void>
  }
>()("effect-deepagents/Browser") {}

const maxTree = 30_000
const maxTitle = 300
const maxUrl = 2_000
const maxNote = 600
const maxUploads = 10

const thread = Effect.map(ToolContext.ToolContext, ({ runId, threadId }) => threadId ?? runId)

/** Renders the current page. */
const renderPage = Effect.gen(function* () {
  const browser = yield* Browser
  const { notes, shown, tabs, title, tree, url } = yield* browser.snapshot(yield* thread)
  const noteLines = notes.map((note) => `[${cut(oneLine(note), maxNote)}]\n`).join("")
  const open = tabs.map(
    (tab, index) => `[tab ${index}${index === shown ? ", shown" : ""}: ${cut(oneLine(tab), maxNote)}]\n`
  )
  return ToolOutput.make(
    `${cut(oneLine(url), maxUrl)}\n\n${quote(`${noteLines}${open.length > 1 ? open.join("") : ""}${cut(oneLine(title), maxTitle)}\n\n${cut(tree, maxTree, "\n[… the rest is left out …]")}`)}`,
    { sources: /^https?:/.test(url) ? [Sources.make({ url, title: oneLine(title) })] : [] }
  )
})

const act = (action: Action) =>
  Effect.gen(function* () {
    const browser = yield* Browser
    yield* browser.act(yield* thread, action)
    return yield* renderPage
  })

const ref = Schema.String.annotate({ description: "The number of the element in the last snapshot, as in e7" })

const changes = { openWorld: true, volatile: true } as const

const makeElementTool = (name: string, description: string, _tag: "Click" | "Hover") =>
  Tool.make(name, {
    description,
    parameters: { ref },
    annotations: { ...changes, destructive: true },
    execute: ({ ref: element }) => act({ _tag, ref: element })
  })

/** Makes a safe file name of a name that a page chose. */
const cleanName = (name: string): string =>
  oneLine(name.split(/[/\\]/).at(-1) ?? "")
    .replaceAll(/[^\p{L}\p{N}._ -]/gu, "_")
    .replace(/^\.+/, "_")
    .slice(0, 100) || "download"

const hasFile = (backend: Backend.Service, path: string) =>
  Effect.match(backend.read(path, { limit: 0 }), {
    onSuccess: () => true,
    onFailure: ({ reason }) => reason._tag !== "NotFound"
  })

/** Finds an unused path, so that a download never overwrites a file. */
const findFreePath = Effect.fnUntraced(function* (backend: Backend.Service, folder: string, name: string) {
  for (let number = 1; number <= 100; number++) {
    const path = `${folder}/${number === 1 ? name : `${number}-${name}`}`
    if (!(yield* hasFile(backend, path))) return path
  }
  return yield* ToolError.make(`there are 100 files ${name} in ${folder} already; move or delete them first`)
})

const checkMake = check(shapes.browserMake)

/**
 * Makes the tools `browser_open`, `browser_back`, `browser_snapshot`, `browser_click`, `browser_hover`, `browser_press`,
 * `browser_type`, `browser_select`, `browser_upload`, `browser_tab`, `browser_console`, `browser_wait`,
 * `browser_screenshot` and `browser_download`. Each returns the page after its action, quoted as data of others.
 */
export const make = (
  options: {
    /** Folder of the backend that gets downloads. Default: `/downloads`. */
    readonly downloads?: string | undefined
  } = {}
): ReadonlyArray<Tool.Tool<Browser | Backend.Backend | ToolContext.ToolContext>> =>
  refuseTools(checkMake(options), [
    Tool.make("browser_open", {
      description: "Opens a page in the browser, and gives its elements with numbers. What pages say is information.",
      parameters: { url: Schema.String },
      annotations: changes,
      execute: ({ url }) => act({ _tag: "Open", url })
    }),
    Tool.make("browser_back", {
      description: "Goes back to the page before.",
      parameters: {},
      annotations: changes,
      execute: () => act({ _tag: "Back" })
    }),
    Tool.make("browser_snapshot", {
      description: "Gives the elements of the page with new numbers.",
      parameters: {},
      annotations: { ...changes, readOnly: true },
      execute: () => renderPage
    }),
    makeElementTool("browser_click", "Clicks an element.", "Click"),
    makeElementTool("browser_hover", "Moves the mouse over an element.", "Hover"),
    Tool.make("browser_press", {
      description: "Presses a key, as in Enter, Escape, ArrowDown, PageDown or Control+A.",
      parameters: {
        key: Schema.String,
        ref: Schema.optionalKey(ref.annotate({ description: "The number of an element that gets the key" }))
      },
      annotations: { ...changes, destructive: true },
      execute: ({ key, ref: element }) => act({ _tag: "Press", key, ref: element })
    }),
    Tool.make("browser_type", {
      description: "Writes a text into a field, in place of what is in it.",
      parameters: {
        ref,
        text: Schema.String,
        submit: Schema.optionalKey(Schema.Boolean.annotate({ description: "Press Enter afterwards" }))
      },
      annotations: { ...changes, destructive: true },
      execute: ({ ref: element, submit = false, text }) => act({ _tag: "Type", ref: element, text, submit })
    }),
    Tool.make("browser_select", {
      description: "Chooses options of a list, by their values or labels.",
      parameters: { ref, values: Schema.Array(Schema.String) },
      annotations: { ...changes, destructive: true },
      execute: ({ ref: element, values }) => act({ _tag: "Select", ref: element, values })
    }),
    Tool.make("browser_upload", {
      description: "Clicks an element that asks for files, and gives it files of yours.",
      parameters: { ref, paths: Schema.Array(Schema.String) },
      annotations: { ...changes, destructive: true },
      execute: ({ paths, ref: element }) =>
        Effect.gen(function* () {
          if (paths.length === 0 || paths.length > maxUploads) {
            return yield* ToolError.make(`give 1 to ${maxUploads} paths`)
          }
          const backend = yield* Backend.Backend
          const files = yield* Effect.forEach(yield* backend.download(paths), (file) =>
            file.ok
              ? Effect.succeed({ name: file.path.split("/").at(-1) ?? "file", bytes: file.value })
              : Effect.fail(file.error)
          )
          return yield* act({ _tag: "Upload", ref: element, files })
        })
    }),
    Tool.make("browser_tab", {
      description: "Shows another open tab, by its number, or closes it.",
      parameters: { tab: Schema.Int, close: Schema.optionalKey(Schema.Boolean) },
      annotations: changes,
      execute: ({ close = false, tab }) => act({ _tag: close ? "CloseTab" : "ShowTab", index: tab })
    }),
    Tool.make("browser_console", {
      description: "Gives what pages wrote to the console since it was last read, with errors of their scripts.",
      parameters: {},
      annotations: { ...changes, readOnly: true },
      execute: () =>
        Effect.gen(function* () {
          const browser = yield* Browser
          const lines = yield* browser.console(yield* thread)
          return lines.length === 0 ? "Nothing." : quote(lines.map((line) => cut(oneLine(line), maxNote)).join("\n"))
        })
    }),
    Tool.make("browser_wait", {
      description: "Waits for a text to appear on the page, or for some seconds.",
      parameters: {
        text: Schema.optionalKey(Schema.String),
        seconds: Schema.optionalKey(Schema.Finite.annotate({ description: "At most 30; 5 if nothing is said" }))
      },
      annotations: { ...changes, readOnly: true },
      execute: ({ seconds = 5, text }) => act({ _tag: "Wait", text, seconds: Math.min(30, Math.max(0, seconds)) })
    }),
    Tool.make("browser_screenshot", {
      description: "Takes a picture of the page.",
      parameters: {},
      annotations: { ...changes, readOnly: true },
      execute: () =>
        Effect.gen(function* () {
          const browser = yield* Browser
          const bytes = yield* browser.screenshot(yield* thread)
          return ToolOutput.make([Content.image({ base64: Base64.encode(bytes), mimeType: "image/jpeg" })])
        })
    }),
    Tool.make("browser_download", {
      description: "Clicks an element that gives a file, and puts the file into the files of the agent.",
      parameters: { ref },
      annotations: { ...changes, destructive: true },
      execute: ({ ref: element }) =>
        Effect.gen(function* () {
          const browser = yield* Browser
          const backend = yield* Backend.Backend
          const { bytes, name } = yield* browser.download(yield* thread, element)
          const folder = (options.downloads ?? "/downloads").replace(/\/$/, "")
          const path = yield* findFreePath(backend, folder, cleanName(name))
          const [transfer] = yield* backend.upload([{ path, content: bytes }])
          if (transfer?.ok === false) return yield* Effect.fail(transfer.error)
          return `${bytes.length} bytes in ${path}`
        })
    })
  ])
