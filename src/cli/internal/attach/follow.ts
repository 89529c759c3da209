/** Follows a thread of a server on the screen. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Request } from "../../../core/Approval.ts"
import type { Frame } from "../../../server/Server.ts"
import type { Link, ServerClient } from "../../../server/ServerClient.ts"
import * as Transcript from "../../../view/Transcript.ts"
import type { View } from "../../../view/View.ts"
import type { Ui } from "../chat/ui.ts"
import { makeScrollback } from "./scrollback.ts"

/** The most parts of an earlier conversation that are shown. */
const shownOnOpen = 30

/** An earlier conversation is there when nothing more came for a moment, or after a longer one, in milliseconds. */
const settled = { quiet: 150, longest: 1_500 } as const

/** Silence in a run after which the server is asked whether it is at work at all, in milliseconds. */
const silence = 2_000

interface FollowOptions {
  readonly client: ServerClient
  readonly thread: string
  /** True for a thread without an earlier conversation. */
  readonly isNew: boolean
  readonly ui: Ui
  /** Reports whether this terminal itself changes the thread. */
  readonly isOwnChange: () => boolean
  readonly onLink: (link: Link) => Effect.Effect<void>
  readonly onRequests: (requests: ReadonlyMap<string, Request>) => void
}

/** Follows a thread until it is interrupted, or the server refuses. */
export const followThread = Effect.fnUntraced(function* (options: FollowOptions) {
  const { client, isOwnChange, onLink, onRequests, thread, ui } = options
  const clock = yield* Clock.Clock
  const readTime = () => clock.currentTimeMillisUnsafe()
  const reader = Transcript.makeReader()
  let scrollback = makeScrollback()
  /** Since when frames of an earlier conversation come, which are not shown yet. */
  let heldSince = options.isNew ? undefined : readTime()
  let isLive = false
  let lastAt = readTime()
  const setView = (view: View): void => {
    ui.setView(view)
    ui.refresh()
  }
  const hold = (): void => {
    heldSince = readTime()
    scrollback = makeScrollback()
  }
  const showHeld = (): void => {
    heldSince = undefined
    const moment = reader.now()
    const parts = moment.items.slice(0, moment.count).map(({ part }) => part)
    const first = Math.max(0, parts.length - shownOnOpen)
    if (first > 0) ui.note("info", `… ${first} earlier`)
    ui.parts(parts.slice(first))
    scrollback.skip(moment)
    reader.release(moment.count)
    setView(moment.view)
    onRequests(moment.requests)
  }
  const take = (frame: Frame): void => {
    lastAt = readTime()
    const moment = reader.read(frame)
    if (frame._tag === "Reset" && frame.to === "beginning" && heldSince === undefined) {
      if (!isOwnChange()) ui.note("warning", "The conversation was changed elsewhere. This is how it is now:")
      hold()
    }
    if (heldSince !== undefined) return
    if (frame._tag === "Event") ui.event(frame.event, [moment.view, scrollback.take(moment, frame.event)])
    else {
      scrollback.reset(moment.count)
      setView(moment.view)
    }
    reader.release(moment.count)
    onRequests(moment.requests)
  }
  /** Ends a run on the screen that the server does not have: a thread that was rewound ends without an event. */
  const checkState = Effect.fnUntraced(function* () {
    const position = reader.position()
    const { state } = yield* client.status(thread)
    if (state !== "working" && position === reader.position()) setView(reader.rest().view)
  })
  const watch = Effect.gen(function* () {
    for (let askedAt = 0; ;) {
      yield* Effect.sleep("50 millis")
      if (!isLive) continue
      const isQuiet = readTime() - lastAt > settled.quiet
      if (heldSince !== undefined && (isQuiet || readTime() - heldSince > settled.longest)) showHeld()
      const isSilent = readTime() - Math.max(lastAt, askedAt) > silence
      if (!isSilent || heldSince !== undefined || reader.now().view.status !== "working") continue
      askedAt = readTime()
      yield* Effect.ignore(checkState())
    }
  })
  const frames = client.observe(thread, {
    follow: true,
    onLink: (link) =>
      Effect.suspend(() => {
        isLive = link._tag === "Live"
        lastAt = readTime()
        return onLink(link)
      })
  })
  const reading = Stream.runForEachArray(frames, (some) => Effect.sync(() => some.forEach(take)))
  yield* Effect.raceFirst(reading, watch)
})
