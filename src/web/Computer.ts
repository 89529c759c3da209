/**
 * Lets a model work on a screen with mouse and keyboard, by its provider's own tool: OpenAI's `computer`, Claude's
 * `computer_…`. The screen is a page of the `Browser`, or any other that you provide as a `Computer`.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { HumanInTheLoop } from "effect-deepagents/middleware"
 * import { Computer } from "effect-deepagents/web"
 * import * as OpenAiChatModel from "effect-deepagents/models/OpenAiChatModel"
 * import * as NodeBrowser from "effect-deepagents/web/NodeBrowser"
 *
 * const surfer = Agent.make({
 *   name: "surfer",
 *   prompt: "You use the screen.",
 *   tools: [Computer.open, Computer.tool],
 *   middleware: [HumanInTheLoop.make({})]
 * })
 *
 * const screen = Computer.layerBrowser.pipe(Layer.provide(NodeBrowser.layer({ rules: {} })))
 *
 * const answer = Agent.run(surfer, "Book a room at https://example.com/").pipe(
 *   Effect.provide([
 *     screen,
 *     OpenAiChatModel.layerConfig({ model: "gpt-6-sol", serverTools: [{ type: "computer" }] })
 *   ])
 * )
 * ```
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Content from "../core/Content.ts"
import type { JsonObject } from "../core/Json.ts"
import * as Tool from "../core/Tool.ts"
import { ToolContext } from "../core/ToolContext.ts"
import * as ToolError from "../core/ToolError.ts"
import * as ToolOutput from "../core/ToolOutput.ts"
import { TaggedError } from "../support/effect/taggedError.ts"
import { Browser } from "./Browser.ts"
import { type Step, stepOf } from "./internal/computer/steps.ts"

/** A step failed, or there is no screen. */
export class ComputerError extends TaggedError<ComputerError>("effect-deepagents/Computer/ComputerError")(
  "ComputerError",
  { message: Schema.String }
) {}

/** A screen with a mouse and a keyboard. Each thread has its own. */
export class Computer extends Context.Service<
  Computer,
  {
    /** Performs one step. */
    readonly act: (thread: string, step: Step) => Effect.Effect<void, ComputerError>
    /** Takes a picture of the whole screen. */
    readonly screenshot: (
      thread: string
    ) => Effect.Effect<{ readonly bytes: Uint8Array; readonly mimeType: "image/png" | "image/jpeg" }, ComputerError>
    /** Opens an address, if the screen is that of a browser. */
    readonly open: (thread: string, url: string) => Effect.Effect<void, ComputerError>
  }
>()("effect-deepagents/Computer") {}

/** The page of a browser as the screen: 1,280 × 800 pixels, without the browser's own bar of addresses. */
export const layerBrowser: Layer.Layer<Computer, never, Browser> = Layer.effect(
  Computer,
  Effect.map(Browser, (browser) => {
    const failed = ({ message }: { readonly message: string }) => new ComputerError({ message })
    return Computer.of({
      act: (thread, step) =>
        step._tag === "Look" ? Effect.void : Effect.mapError(browser.act(thread, { _tag: "Screen", step }), failed),
      screenshot: (thread) =>
        Effect.map(Effect.mapError(browser.screenshot(thread), failed), (bytes) => ({
          bytes,
          mimeType: "image/jpeg" as const
        })),
      open: (thread, url) => Effect.mapError(browser.act(thread, { _tag: "Open", url }), failed)
    })
  })
)

const thread = Effect.map(ToolContext, ({ runId, threadId }) => threadId ?? runId)

const look = Effect.gen(function* () {
  const computer = yield* Computer
  const { bytes, mimeType } = yield* computer.screenshot(yield* thread)
  return ToolOutput.make([Content.image({ base64: Base64.encode(bytes), mimeType })])
})

/** Steps of one call, at most. */
const mostSteps = 50

/** The actions of a call: OpenAI's list of them, or Claude's one. */
const actionsOf = (parameters: JsonObject): ReadonlyArray<JsonObject> => {
  const { actions } = parameters
  const all: ReadonlyArray<unknown> = Array.isArray(actions) ? actions : [parameters]
  return all.filter((one): one is JsonObject => typeof one === "object" && one !== null && !Array.isArray(one))
}

const parameters = {
  type: "object",
  properties: {
    actions: { type: "array", items: { type: "object" }, description: "Actions in OpenAI's form" },
    action: { type: "string", description: "An action in Claude's form, whose fields stand beside it" }
  }
} as const satisfies JsonObject

/**
 * Performs the actions of a call, and answers with a picture of the screen. It takes the calls of OpenAI's `computer` and
 * of Claude's. A call with safety checks of OpenAI's waits for a decision.
 */
export const tool = Tool.dynamic("computer", {
  description: "Uses mouse and keyboard of a screen, and shows the screen afterwards.",
  parameters,
  annotations: { openWorld: true, volatile: true, destructive: true },
  needsApproval: ({ pending_safety_checks: checks }: JsonObject) => Array.isArray(checks) && checks.length > 0,
  execute: (call: JsonObject) =>
    Effect.gen(function* () {
      const computer = yield* Computer
      const owner = yield* thread
      const actions = actionsOf(call)
      if (actions.length > mostSteps) return yield* ToolError.make(`give at most ${mostSteps} actions`)
      for (const action of actions) {
        const step = stepOf(action)
        if (step === undefined) {
          return yield* ToolError.make(`this computer can't do ${JSON.stringify(action).slice(0, 200)}`)
        }
        yield* computer.act(owner, step)
      }
      return yield* look
    })
})

/** Opens an address on a screen that is a browser's, which shows no bar of addresses. */
export const open = Tool.make("computer_open", {
  description: "Opens a web page on the screen, and shows the screen.",
  parameters: { url: Schema.String },
  annotations: { openWorld: true, volatile: true },
  execute: ({ url }) =>
    Effect.gen(function* () {
      const computer = yield* Computer
      yield* computer.open(yield* thread, url)
      return yield* look
    })
})
