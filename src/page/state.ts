/** The state of the page, and its parts that ask the server. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type { Decision } from "../core/Approval.ts"
import type { JsonObject } from "../core/Json.ts"
import { type Item, makeReader, type Moment, type Reader } from "../view/Transcript.ts"
import { callTool, dropCalls, settleCalls } from "./appCalls.ts"
import * as Client from "./client.ts"
import type { Files } from "./files.ts"
import * as Tree from "./tree.ts"

/** The connection to the thread's events. `lost` waits until `until` (ms), unless somebody asks for it earlier. */
export type Link =
  | { readonly _tag: "Closed" }
  | { readonly _tag: "Connecting" }
  | { readonly _tag: "Live" }
  | { readonly _tag: "Lost"; readonly until: number }

export type Place = "files" | "inbox" | "thread"

/** The transcript of a thread with the tree of its runs, at one moment. */
export type Shown = Moment<Tree.Tree>

export interface State {
  /** Reports whether the server knows this browser. */
  readonly access: "asking" | "closed" | "open"
  readonly agents: Client.Agents
  /** The agent that new inputs go to. */
  readonly agent: string
  /** The models to choose from. */
  readonly models: ReadonlyArray<string>
  /** The model that the next input chooses for the thread; empty for the server's own. `undefined`: it stays. */
  readonly model: string | undefined
  /** The modes to choose from. The first is the server's own. */
  readonly modes: ReadonlyArray<string>
  /** The mode that the next input chooses for the thread. `undefined`: it stays. */
  readonly mode: string | undefined
  /** The levels of thinking to choose from. */
  readonly levels: ReadonlyArray<string>
  /** The level that the next input chooses for the thread; empty for the model's own. `undefined`: it stays. */
  readonly thinking: string | undefined
  /** Reports whether the server shows the files of threads. */
  readonly hasFiles: boolean
  readonly hasApps: boolean
  /** The tools whose results have an app, by name. */
  readonly appTools: ReadonlyArray<string>
  /** The call whose app is open. */
  readonly app: string | undefined
  readonly files: Files | undefined
  readonly threads: ReadonlyArray<Client.Thread>
  readonly next: string | undefined
  readonly search: string
  readonly place: Place
  readonly thread: string | undefined
  readonly moment: Shown | undefined
  readonly link: Link
  /** A sentence about the last thing that failed. */
  readonly problem: string | undefined
  /** The text that goes into the input field: of a message that was rewound, for example. */
  readonly draft: { readonly text: string; readonly serial: number }
  /** The message of a person that is to be rewound or forked, while the preview is shown. */
  readonly turningBack: { readonly item: Item; readonly how: "fork" | "rewind" } | undefined
  /** The thread that stands beside the shown one. */
  readonly compared: string | undefined
  readonly inbox: ReadonlyArray<Client.InboxItem>
  readonly isMenuOpen: boolean
  readonly isPanelOpen: boolean
  readonly theme: "auto" | "dark" | "light"
}

const themes = ["auto", "dark", "light"] as const

const readTheme = (): State["theme"] => {
  const storedTheme = localStorage.getItem("theme")
  return themes.find((one) => one === storedTheme) ?? "auto"
}

let now: State = {
  access: "asking",
  agents: [],
  agent: "",
  models: [],
  model: undefined,
  modes: [],
  mode: undefined,
  levels: [],
  thinking: undefined,
  hasFiles: false,
  hasApps: false,
  appTools: [],
  app: undefined,
  files: undefined,
  threads: [],
  next: undefined,
  search: "",
  place: "thread",
  thread: undefined,
  moment: undefined,
  link: { _tag: "Closed" },
  problem: undefined,
  draft: { text: "", serial: 0 },
  turningBack: undefined,
  compared: undefined,
  inbox: [],
  isMenuOpen: false,
  isPanelOpen: matchMedia("(min-width: 1200px)").matches,
  theme: readTheme()
}

let draw: (state: State) => void = () => undefined
let isDue = false

/** Sets who draws the state, and draws it. */
export const drawBy = (drawer: (state: State) => void): void => {
  draw = drawer
  draw(now)
}

export const get = (): State => now

/** Changes the state. It is drawn once a frame. */
export const update = (changes: Partial<State>): void => {
  now = { ...now, ...changes }
  if (isDue) return
  isDue = true
  requestAnimationFrame(() => {
    isDue = false
    draw(now)
  })
}

/** Runs an action of a person. Its failure is a sentence on the page. */
export const act = (effect: Effect.Effect<unknown, Client.Refused>): void => {
  Effect.runFork(
    Effect.catch(effect, (refused) =>
      Effect.sync(() =>
        update(refused.status === 401 ? { access: "closed", problem: undefined } : { problem: refused.problem })
      )
    )
  )
}

const makeId = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("")

/** Loads the first page of the list of threads, and what waits for a person. */
export const loadThreads = Effect.gen(function* () {
  const { search } = now
  update({ inbox: yield* Client.inbox })
  const { next, threads } = yield* Client.threads(search)
  if (now.search === search) update({ threads, next: next ?? undefined })
})

export const loadMore = Effect.gen(function* () {
  const { next: cursor, search } = now
  if (cursor === undefined) return
  const { next, threads } = yield* Client.threads(search, cursor)
  if (now.search === search) update({ threads: [...now.threads, ...threads], next: next ?? undefined })
})

/** The other tabs of this browser, which learn at once of threads that this one changed. */
const tabs = new BroadcastChannel("threads")

const tellChange = Effect.andThen(
  loadThreads,
  Effect.sync(() => tabs.postMessage("changed"))
)

/** Wakes the connection up that waits for its next try. */
let wake: Deferred.Deferred<void> | undefined

export const retryNow = (): void => {
  if (wake !== undefined) Deferred.doneUnsafe(wake, Exit.void)
}

const delays = [250, 1_000, 2_000, 4_000, 8_000]

/** Silence after which the server is asked whether a run is at work at all. */
const quiet = 700

/** Compares the state on the page with the server's, while nothing comes. */
const checkState = Effect.fnUntraced(function* (thread: string, reader: Reader<Tree.Tree>) {
  const position = reader.position()
  yield* Effect.sleep(quiet)
  const isQuiet = () => now.thread === thread && reader.position() === position
  if (!isQuiet() || reader.now().view.status !== "working") return
  const state = yield* Client.state(thread)
  if (isQuiet() && state !== "working") update({ moment: reader.rest() })
})

/** Follows a thread as long as it is shown: a lost connection goes on behind the last frame. */
const follow = Effect.fnUntraced(function* (thread: string) {
  const reader = makeReader(Tree)
  let tries = 0
  for (;;) {
    update({ link: tries > 1 ? now.link : { _tag: "Connecting" } })
    const result = yield* Effect.result(
      Client.readFrames(thread, reader.position(), {
        open: () => {
          tries = 0
          update({ link: { _tag: "Live" } })
        },
        take: (frames) => {
          const before = reader.now().view.status
          for (const frame of frames) reader.read(frame)
          settleCalls(frames)
          const moment = reader.now()
          update({ moment })
          if (moment.view.status === "working") Effect.runFork(Effect.ignore(checkState(thread, reader)))
          // The server is at work on a run a moment longer than its last event says.
          if (moment.view.status !== before) act(Effect.delay(loadThreads, moment.view.status === "working" ? 0 : 500))
        }
      })
    )
    const refused = Result.isFailure(result) ? result.failure : undefined
    if (refused?.status === 401) return update({ access: "closed" })
    if (refused !== undefined && refused.status >= 400 && refused.status < 500 && refused.status !== 429) {
      return update({ link: { _tag: "Closed" }, problem: refused.problem })
    }
    const delay = delays[Math.min(tries, delays.length - 1)] ?? 250
    tries++
    if (tries > 1 || !navigator.onLine) update({ link: { _tag: "Lost", until: Date.now() + delay } })
    wake = yield* Deferred.make<void>()
    yield* Effect.raceFirst(Effect.sleep(delay), Deferred.await(wake))
    wake = undefined
  }
})

let following: Fiber.Fiber<unknown, unknown> | undefined

const stopFollowing = (): void => {
  if (following !== undefined) Effect.runFork(Fiber.interrupt(following))
  following = undefined
}

/** Shows a thread, or an empty page for a new one. */
export const openThread = (thread: string | undefined): void => {
  stopFollowing()
  dropCalls()
  update({
    place: "thread",
    thread,
    moment: undefined,
    model: undefined,
    mode: undefined,
    thinking: undefined,
    app: undefined,
    compared: undefined,
    files: undefined,
    link: { _tag: thread === undefined ? "Closed" : "Connecting" },
    problem: undefined,
    isMenuOpen: false
  })
  const hash = thread === undefined ? "#/" : `#/${encodeURIComponent(thread)}`
  if (location.hash !== hash) history.pushState(null, "", hash)
  if (thread === undefined) return
  following = Effect.runFork(follow(thread))
  if (now.hasApps) act(Effect.map(Client.appTools(thread), (appTools) => update({ appTools })))
}

/** Shows the files of the thread, from its working folder on. */
export const openFiles = Effect.fnUntraced(function* (thread: string) {
  update({ place: "files", files: undefined, isMenuOpen: false })
  const root = yield* Client.folder(thread)
  if (now.thread === thread)
    update({ files: { root: root.path, folders: new Map([[root.path, root]]), file: undefined } })
})

const setFiles = (change: (files: Files) => Files): void => {
  if (now.files !== undefined) update({ files: change(now.files) })
}

/** Opens a folder, whose entries are read anew, or closes it. */
export const toggleFolder = Effect.fnUntraced(function* (thread: string, path: string) {
  const isOpen = now.files?.folders.has(path) === true
  setFiles((files) => {
    const folders = new Map(files.folders)
    if (isOpen) folders.delete(path)
    else folders.set(path, undefined)
    return { ...files, folders }
  })
  if (isOpen) return
  const close = () =>
    setFiles((files) => ({ ...files, folders: new Map([...files.folders].filter(([one]) => one !== path)) }))
  const folder = yield* Effect.tapError(Client.folder(thread, path), () => Effect.sync(close))
  setFiles((files) =>
    now.thread === thread && files.folders.has(path)
      ? { ...files, folders: new Map(files.folders).set(path, folder) }
      : files
  )
})

/** Shows the beginning of a file; without a path none. */
export const showFile = Effect.fnUntraced(function* (thread: string, path: string | undefined) {
  setFiles((files) => ({ ...files, file: path === undefined ? undefined : { path, text: undefined } }))
  if (path === undefined) return
  const isShown = () => now.thread === thread && now.files?.file?.path === path
  const leave = () => setFiles((files) => (isShown() ? { ...files, file: undefined } : files))
  const text = yield* Effect.tapError(Client.fileText(thread, path), () => Effect.sync(leave))
  setFiles((files) => (isShown() ? { ...files, file: { path, text } } : files))
})

/** Adds the next lines to the file that is shown. */
export const showMore = Effect.fnUntraced(function* (thread: string) {
  const file = now.files?.file
  if (file?.text?.kind !== "text") return
  const { endLine, nextColumn, text } = file.text
  const next = yield* Client.fileText(thread, file.path, nextColumn === undefined ? endLine + 1 : endLine, nextColumn)
  if (next.kind !== "text" || now.files?.file?.text !== file.text) return
  const whole = `${text}${nextColumn === undefined ? "\n" : ""}${next.text}`
  setFiles((files) => ({ ...files, file: { path: file.path, text: { ...next, text: whole } } }))
})

export const isWorking = ({ moment }: State): boolean => moment?.view.status === "working"

/** Sends a message: into the run at work, or as the next input. Gives whether it was taken. */
export const send = Effect.fnUntraced(function* (input: Client.Words, how: "input" | "steer") {
  const { agent, mode, model, thinking, thread } = now
  if (how === "steer" && thread !== undefined) {
    const steered = yield* Effect.result(Client.steer(thread, input))
    if (Result.isSuccess(steered)) return
    // The run ended in the meantime.
    if (steered.failure.status !== 409) return yield* steered.failure
  }
  const id = thread ?? makeId()
  const choices = {
    ...(model === undefined ? {} : { model: model === "" ? null : model }),
    ...(mode === undefined ? {} : { mode }),
    ...(thinking === undefined ? {} : { thinking: thinking === "" ? null : thinking })
  }
  yield* Client.start(id, { agent, input, id: makeId(), ...choices })
  if (thread === undefined || now.link._tag === "Closed") openThread(id)
  yield* tellChange
})

/** Calls a tool of its own server for the app that is open. */
export const callForApp = (thread: string, call: string) => (tool: string, args: JsonObject) =>
  callTool(thread, { call, agent: now.agent, tool, arguments: args }, makeId())

export const decide = Effect.fnUntraced(function* (thread: string, decision: Decision) {
  yield* Client.decide(thread, [decision])
  yield* tellChange
})

const setDraft = (text: string): void => update({ draft: { text, serial: now.draft.serial + 1 } })

/** Goes back to before a message, in this thread or in a new one, and gives its words to the input field. */
export const turnBack = Effect.gen(function* () {
  const { thread, turningBack } = now
  if (thread === undefined || turningBack === undefined) return
  const { how, item } = turningBack
  const entry = yield* Client.entryBefore(thread, item.messageId ?? "")
  if (entry === undefined) {
    return yield* new Client.Refused({ status: 0, problem: "This message is not stored yet. Try again later." })
  }
  if (how === "rewind") yield* Client.rewind(thread, entry)
  const next = how === "rewind" ? thread : entry === null ? undefined : yield* Client.fork(thread, entry)
  update({ turningBack: undefined })
  openThread(next)
  if (item.part.kind === "user") setDraft(item.part.text)
  yield* tellChange
})

/** Copies the whole thread into a new one. */
export const forkThread = Effect.fnUntraced(function* (thread: string) {
  openThread(yield* Client.fork(thread, undefined))
  yield* tellChange
})

export const cancel = Effect.gen(function* () {
  const { thread } = now
  if (thread !== undefined) yield* Client.cancel(thread)
})

export const removeThread = Effect.fnUntraced(function* (thread: string) {
  yield* Client.remove(thread)
  if (now.thread === thread) openThread(undefined)
  yield* tellChange
})

export const archiveThread = Effect.fnUntraced(function* (thread: string) {
  yield* Client.archive(thread)
  if (now.thread === thread) openThread(undefined)
  yield* tellChange
})

export const setTheme = (theme: State["theme"]): void => {
  localStorage.setItem("theme", theme)
  document.documentElement.dataset["theme"] = theme
  update({ theme })
}

/** The thread in the address of the page. */
const threadInAddress = (): string | undefined => {
  const [, id] = /^#\/(.+)$/.exec(location.hash) ?? []
  if (id === undefined) return undefined
  const decoded = Exit.getSuccess(Effect.runSyncExit(Effect.try(() => decodeURIComponent(id))))
  return decoded._tag === "Some" ? decoded.value : undefined
}

/** Enters with the session that the browser has. */
const enter = Effect.gen(function* () {
  const { agents, models = [], modes = [], thinking: levels = [], ...more } = yield* Client.offers
  const { apps: hasApps = false, files: hasFiles = false } = more
  const storedName = localStorage.getItem("agent")
  const agent = agents.find(({ name }) => name === storedName)?.name ?? agents[0]?.name ?? ""
  update({ access: "open", agents, agent, hasApps, hasFiles, levels, models, modes })
  yield* loadThreads
  openThread(threadInAddress())
})

export const enterBy = (token: string) => Effect.andThen(Client.openSession(token), enter)

export const chooseAgent = (agent: string): void => {
  localStorage.setItem("agent", agent)
  update({ agent })
}

/** Chooses for the thread, from its next input on. */
export const choose = (choices: Partial<Pick<State, "mode" | "model" | "thinking">>): void => update(choices)

/** Begins: with the token in the address, which is used once and then gone from it, or with the session. */
export const begin = (): void => {
  document.documentElement.dataset["theme"] = now.theme
  const token = /^#t=(.+)$/.exec(location.hash)?.[1]
  if (token !== undefined) history.replaceState(null, "", location.pathname)
  act(token === undefined ? enter : enterBy(token))
  addEventListener("popstate", () => {
    const thread = threadInAddress()
    if (now.access === "open" && thread !== now.thread) openThread(thread)
  })
  tabs.addEventListener("message", () => {
    if (now.access === "open") act(loadThreads)
  })
  addEventListener("online", retryNow)
  addEventListener("offline", () => update({}))
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState !== "visible" || now.access !== "open") return
    retryNow()
    act(loadThreads)
  })
}
