/** A look at a server from the terminal: the chat of a thread whose agent, files and runs are the server's. */
import * as Clock from "effect/Clock"
import type * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Decision, Request } from "../../../core/Approval.ts"
import { makeId } from "../../../core/Message.ts"
import type { Link, ServerClient, ServerClientError } from "../../../server/ServerClient.ts"
import { cleanLine } from "../../../support/text/clean.ts"
import type { ScreenDesk } from "../approvals/desk.ts"
import type { Item } from "../chat/completion/menu.ts"
import type { Intent } from "../chat/state.ts"
import { makeUi, type Ui } from "../chat/ui.ts"
import { makeWorks, type Works } from "../chat/works.ts"
import type { Bindings } from "../input/bindings.ts"
import { styleOf } from "../render/style.ts"
import type { Theme } from "../render/themes.ts"
import { lendTerminal, openScreen } from "../screen/opening.ts"
import type { Terminal } from "../screen/terminal.ts"
import { followThread } from "./follow.ts"
import { makePreviews, type Previews } from "./previews.ts"

/** The server of a look, and the wishes of the command line. */
export interface LookOptions {
  readonly terminal: Terminal
  readonly client: ServerClient
  readonly host: string
  readonly offers: Effect.Success<ServerClient["offers"]>
  readonly thread: string | undefined
  readonly agent: string
  readonly model: string | undefined
  readonly mode: string | undefined
  readonly colours: boolean
  readonly theme: Theme
  readonly bindings: Bindings
  readonly isVim: boolean
  readonly commands: ReadonlyArray<Item>
  /** The command that opens the thread again. */
  readonly command: (thread: string) => string
}

/** A look at work. */
export interface Look {
  readonly options: LookOptions
  readonly ui: Ui
  readonly works: Works
  readonly lend: <A>(other: Effect.Effect<A>) => Effect.Effect<A>
  readonly scope: Scope.Scope
  readonly at: {
    thread: string | undefined
    agent: string
    /** The choices of the next input; `undefined`: the thread keeps its own. */
    model: string | undefined
    mode: string | undefined
    /** The mode that the last input chose. */
    shownMode: string
    picking: Deferred.Deferred<string | undefined> | undefined
    following: Fiber.Fiber<unknown, unknown> | undefined
    /** True while a command of this terminal rewinds the thread. Other changes of its beginning are noted. */
    isGoingBack: boolean
    isLeaving: boolean
    /** The person was told that files of this machine are not sent. */
    hasWarned: boolean
  }
  readonly setRequests: (requests: ReadonlyMap<string, Request>) => void
  /** Asks again about a request whose decision was not taken. */
  readonly askAgain: (id: string) => void
}

/** A wish of the person, a decision of theirs, or the end of work that they began. */
export type Wish = Intent | { readonly _tag: "Decide"; readonly decision: Decision } | { readonly _tag: "Over" }

/** Sends again, for a moment, a request that counts once. */
const patiently = <A>(request: Effect.Effect<A, ServerClientError>): Effect.Effect<A, ServerClientError> =>
  Effect.retry(request, {
    schedule: Schedule.spaced("1 second"),
    times: 5,
    while: ({ reason, status = 0 }) => reason === "Unreachable" || status >= 500
  })

/** Shows who talks: the agent, the model that the next input chooses, the server. */
export const showFacts = ({ at, options: { host }, ui }: Look): void =>
  ui.setFacts([at.agent, ...(at.model === undefined ? [] : [at.model]), host].map(cleanLine))

/** Shows the state of the connection. A brief interruption is not shown. */
const makeShowLink = (ui: Ui) => {
  let losses = 0
  return (link: Link): Effect.Effect<void> =>
    Effect.sync(() => {
      if (link._tag === "Live") {
        if (losses > 1) ui.note("info", "── connected again")
        losses = 0
        return ui.setStatusLine(undefined)
      }
      losses++
      if (losses === 2) ui.note("warning", `${link.error?.message ?? "The connection is lost."} It is tried again.`)
      if (losses > 1) ui.setStatusLine("not connected: trying again · the run goes on at the server · Ctrl+D leaves")
    })
}

/** Goes over to a thread; `undefined` is a new one. */
export const openThread = Effect.fnUntraced(function* (look: Look, thread: string | undefined, isNew = false) {
  const { at, options, ui } = look
  if (at.following !== undefined) yield* Fiber.interrupt(at.following)
  look.setRequests(new Map())
  ui.forget()
  ui.setStatusLine(undefined)
  at.thread = thread
  at.following = undefined
  if (thread === undefined) return
  at.following = yield* followThread({
    client: options.client,
    thread,
    isNew,
    ui,
    isOwnChange: () => at.isGoingBack,
    onLink: makeShowLink(ui),
    onRequests: look.setRequests
  }).pipe(
    Effect.catch(({ message }) => Effect.sync(() => ui.note("error", `${message} /threads lists the threads.`))),
    Effect.forkIn(look.scope)
  )
})

/** Sends a message: into the run at work, or as the next input. */
export const send = Effect.fnUntraced(function* (look: Look, text: string, kind: "send" | "steer" | "followUp") {
  const { at, options, ui } = look
  const { client } = options
  const restore = Effect.sync(() => {
    if (ui.input.text() === "") ui.input.set(text)
  })
  if (kind === "steer" && at.thread !== undefined) {
    const steered = yield* Effect.result(client.steer(at.thread, text))
    if (Result.isSuccess(steered)) return ui.note("info", "── told the run at work")
    // The run ended in the meantime.
    if (steered.failure.status !== 409) return yield* Effect.andThen(restore, steered.failure)
  }
  const thread = at.thread ?? makeId()
  const { agent, mode, model } = at
  const input = { agent, input: text, id: makeId(), mode, model: model === "" ? null : model }
  yield* Effect.tapError(patiently(client.start(thread, input)), () => restore)
  if (kind === "followUp") ui.note("info", "── sent: it comes behind the run at work")
  at.shownMode = mode ?? at.shownMode
  at.model = undefined
  at.mode = undefined
  showFacts(look)
  if (at.thread === undefined) yield* openThread(look, thread, true)
})

/** Sends a decision on a request of the thread. */
export const decide = Effect.fnUntraced(function* ({ askAgain, at, options: { client } }: Look, decision: Decision) {
  if (at.thread === undefined) return
  yield* Effect.tapError(patiently(client.decide(at.thread, [decision])), () =>
    Effect.sync(() => askAgain(decision.id))
  )
})

/** Makes the desk of requests that wait at the server. */
const makeDesk = (
  requests: () => ReadonlyMap<string, Request>,
  previews: Previews,
  at: Look["at"],
  { offers: { modes = [] } }: LookOptions,
  onAnswer: (decision: Decision) => void,
  onChange: () => void
): ScreenDesk & { readonly answered: Set<string> } => {
  const answered = new Set<string>()
  const modeNow = (): string => at.mode ?? at.shownMode
  return {
    answered,
    waiting: () => [...requests().values()].filter(({ id }) => !answered.has(id) && previews.isReady(id)),
    preview: ({ id }) => previews.of(id),
    permits: undefined,
    add: () => {},
    answer: (decision) => {
      answered.add(decision.id)
      onAnswer(decision)
      onChange()
    },
    mode: () => cleanLine(modeNow()),
    nextMode: () => {
      at.mode = modes[(modes.indexOf(modeNow()) + 1) % modes.length]
      onChange()
    }
  }
}

/** Opens the screen of a look, and gives the queue of the person's wishes. */
export const openLook = Effect.fnUntraced(function* (options: LookOptions) {
  const { terminal } = options
  const clock = yield* Clock.Clock
  const wishes = yield* Queue.unbounded<Wish>()
  const scope = yield* Effect.scope
  const at: Look["at"] = {
    thread: undefined,
    agent: options.agent,
    model: options.model,
    mode: options.mode,
    shownMode: options.offers.modes?.[0] ?? "",
    picking: undefined,
    following: undefined,
    isGoingBack: false,
    isLeaving: false,
    hasWarned: false
  }
  let requests: ReadonlyMap<string, Request> = new Map()
  const previews = yield* makePreviews(options.client, options.offers.files === true, () => ui.refresh())
  const desk = makeDesk(
    () => requests,
    previews,
    at,
    options,
    (decision) => void Queue.offerUnsafe(wishes, { _tag: "Decide", decision }),
    () => ui.refresh()
  )
  const ui = makeUi({
    terminal,
    style: styleOf(options.colours, () => options.theme),
    prices: () => undefined,
    desk: () => desk,
    commands: () => options.commands,
    bindings: options.bindings,
    hints: {
      idle: "/ commands · the agent and its files are the server's",
      working: "Enter tells it now · Tab queues · /cancel ends the run"
    },
    now: () => clock.currentTimeMillisUnsafe(),
    intend: (intent) => void Queue.offerUnsafe(wishes, intent)
  })
  yield* openScreen(terminal, ui, {
    isVim: options.isVim,
    lastLine: () => (at.thread === undefined ? undefined : options.command(at.thread))
  })
  const look: Look = {
    options,
    ui,
    works: makeWorks({ ui, onOver: () => Queue.offerUnsafe(wishes, { _tag: "Over" }) }),
    lend: lendTerminal(terminal, ui),
    scope,
    at,
    askAgain: (id) => {
      desk.answered.delete(id)
      ui.refresh()
    },
    setRequests: (next) => {
      if (next === requests) return
      requests = next
      previews.follow(at.thread, next)
      ui.refresh()
    }
  }
  return { look, wishes }
})
