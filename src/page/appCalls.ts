/** Calls of apps: each is a run of the thread, whose events bring the result. */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type { Json, JsonObject } from "../core/Json.ts"
import type { Frame } from "../view/Transcript.ts"
import * as Client from "./client.ts"

/** The result of a call, as apps read it. */
export interface CallResult {
  readonly text: string
  readonly isError: boolean
  readonly details?: Json | undefined
}

const pendingCalls = new Map<string, Deferred.Deferred<CallResult, Client.Refused>>()

const ended = new Client.Refused({ status: 0, problem: "The call ended without a result." })

/** Gives results among frames to the apps that wait for them. */
export const settleCalls = (frames: ReadonlyArray<Frame>): void => {
  if (pendingCalls.size === 0) return
  for (const frame of frames) {
    if (frame._tag === "Reset") continue
    const { event } = frame
    if (event._tag === "ToolCompleted" || event._tag === "ToolFailed") {
      const { callId, details, text } = event
      const call = pendingCalls.get(callId)
      if (call !== undefined)
        Deferred.doneUnsafe(call, Effect.succeed({ text, details, isError: event._tag === "ToolFailed" }))
    }
    const isOver = event._tag === "RunFailed" || event._tag === "RunInterrupted"
    if (isOver && event.path.length === 1) dropCalls()
  }
}

/** Ends the wait of all apps. */
export const dropCalls = (): void => {
  for (const call of pendingCalls.values()) Deferred.doneUnsafe(call, Effect.fail(ended))
}

/** Calls a tool for an app. A person may have to allow it first. */
export const callTool = Effect.fnUntraced(function* (
  thread: string,
  body: { readonly call: string; readonly agent: string; readonly tool: string; readonly arguments: JsonObject },
  id: string
) {
  const result = yield* Deferred.make<CallResult, Client.Refused>()
  pendingCalls.set(`app:${id}`, result)
  return yield* Client.callApp(thread, { ...body, id }).pipe(
    Effect.andThen(Deferred.await(result)),
    Effect.ensuring(Effect.sync(() => pendingCalls.delete(`app:${id}`)))
  )
})
