/** The three ways into the interpreter: `run`, `stream` and `start`. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { fromPull } from "../../support/effect/pulled.ts"
import { RunEnded } from "../AgentError.ts"
import type * as Content from "../Content.ts"
import { IdGenerator } from "../IdGenerator.ts"
import { human, type HumanMessage } from "../Message.ts"
import type { Handle, Input, RunOptions } from "../runOptions.ts"
import type { CompiledAgent } from "./definition.ts"
import * as Hub from "./hub.ts"
import { interpret } from "./interpret.ts"
import type { Control, Live } from "./live.ts"

export const run = (compiled: CompiledAgent, input: Input, options: RunOptions) =>
  Effect.flatMap(IdGenerator, (makeId) =>
    interpret(compiled, input, options, { runId: makeId(), hub: Hub.make(), control: undefined, parent: undefined })
  )

/** Runs as a stream: one reader, there from the start, and gone with the run. */
export const stream = (compiled: CompiledAgent, input: Input, options: RunOptions) =>
  fromPull((scope) =>
    Effect.flatMap(IdGenerator, (makeId) => {
      const hub = Hub.make()
      const { pull } = Hub.subscribe(hub)
      const place = { runId: makeId(), hub, control: undefined, parent: undefined }
      const work = Effect.onExitPrimitive(interpret(compiled, input, options, place), (exit) => {
        Hub.end(hub, exit)
        return undefined
      })
      return Effect.as(Effect.forkIn(work, scope, { startImmediately: true }), pull)
    })
  )

const readEvents = (hub: Hub.Hub) =>
  fromPull((scope) =>
    Effect.suspend(() => {
      const reader = Hub.subscribe(hub)
      return Effect.as(Scope.addFinalizer(scope, Hub.leave(hub, reader)), reader.pull)
    })
  )

const toHuman = (message: Content.Input | HumanMessage): HumanMessage =>
  typeof message === "string" || !("role" in message) ? human(message) : message

export const start = Effect.fnUntraced(function* (compiled: CompiledAgent, input: Input, options: RunOptions) {
  const makeId = yield* IdGenerator
  const runId = makeId()
  const hub = Hub.make()
  const control: Control = { open: true, steering: [], followUps: [] }
  let live: Live | undefined
  const fiber = yield* interpret(compiled, input, options, {
    runId,
    hub,
    control,
    parent: undefined,
    isFresh: true,
    onLive: (one) => {
      live = one
    }
  }).pipe(
    Effect.onExit(() =>
      Effect.sync(() => {
        control.open = false
        Hub.end(hub, Exit.void)
      })
    ),
    // A fiber that is interrupted before it began must still report how it ended.
    Effect.forkScoped({ uninterruptible: true })
  )
  const enqueue = (queue: Array<HumanMessage>) => (message: Content.Input | HumanMessage) =>
    Effect.suspend(() => {
      if (!control.open) return Effect.fail(new RunEnded({ runId }))
      queue.push(toHuman(message))
      return Effect.void
    })
  return {
    runId,
    // The last event reports the end of the run, so the stream of a handle never fails.
    events: Stream.orDie(readEvents(hub)),
    steer: enqueue(control.steering),
    followUp: enqueue(control.followUps),
    interrupt: Fiber.interrupt(fiber),
    await: Fiber.join(fiber),
    messages: Effect.sync(() => live?.run.messages.slice() ?? []),
    undelivered: Effect.sync(() => (control.open ? [] : [...control.steering, ...control.followUps]))
  } satisfies Handle<unknown, unknown>
})
