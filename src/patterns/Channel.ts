/**
 * Mailboxes between agents, over any `Storage`: messages wait until their recipient acknowledges them, also in another
 * process.
 *
 * ```ts
 * import { Effect, Layer } from "effect"
 * import { Agent } from "effect-deepagents"
 * import { Channel } from "effect-deepagents/patterns"
 * import { Storage } from "effect-deepagents/stores"
 *
 * const scout = Agent.make({ name: "scout", prompt: "You report to base.", tools: Channel.tools({ as: "scout" }) })
 *
 * const program = Effect.gen(function* () {
 *   yield* Agent.run(scout, "Look around", { threadId: "scout" })
 *   const channel = yield* Channel.Channel
 *   const messages = yield* channel.receive("base")
 *   yield* channel.acknowledge("base", messages.map(({ id }) => id))
 *   return messages.map(({ body }) => body)
 * }).pipe(Effect.provide(Layer.provide(Channel.layer(), Storage.layerMemory)))
 * ```
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Stream from "effect/Stream"
import * as Agent from "../core/Agent.ts"
import { type Json, stringify } from "../core/Json.ts"
import { makeId } from "../core/Message.ts"
import { refuseTools } from "../core/schema/invalid.ts"
import * as Tool from "../core/Tool.ts"
import type { ToolContext } from "../core/ToolContext.ts"
import { Storage } from "../stores/Storage.ts"
import { check, makeLayerCheck } from "../support/options/check.ts"
import { nameProblem } from "../support/text/names.ts"
import { oneLine, quote } from "../support/text/untrusted.ts"
import { ChannelError, Envelope, Wake } from "./internal/envelope.ts"
import { makeMailbox } from "./internal/mailbox.ts"
import * as shapes from "./internal/shapes.ts"

export { ChannelError, Envelope, Wake }

/** A message to send. */
export interface Message {
  /** The name of the sender. */
  readonly from: string
  /** The name of the recipient. */
  readonly to: string
  readonly body: Json
  /** Names the message for its sender: sent again, it is the same message. Default: a new message. */
  readonly key?: string | undefined
  /** The effect on a thread that an `Attendant` attends. Default: `quiet`. */
  readonly wake?: Wake | undefined
}

interface Service {
  /**
   * Sends a message, and returns it with its id. With a `key`, a message that was sent before is returned instead, also
   * after a crash in the middle.
   */
  readonly send: (message: Message) => Effect.Effect<Envelope, ChannelError>
  /** The oldest messages that their recipient has not acknowledged, in the order in which they were sent: 100 at most. */
  readonly receive: (
    to: string,
    options?: {
      /** The most messages. Default: 100. */
      readonly most?: number | undefined
    }
  ) => Effect.Effect<ReadonlyArray<Envelope>, ChannelError>
  /** Acknowledges messages: they are not received again. Unknown and acknowledged ids are ignored. */
  readonly acknowledge: (to: string, ids: ReadonlyArray<string>) => Effect.Effect<void, ChannelError>
  /** The number of messages that are not acknowledged. */
  readonly pending: (to: string) => Effect.Effect<number, ChannelError>
  /** All messages to a recipient, acknowledged ones too, in the order in which they were sent. */
  readonly history: (to: string) => Stream.Stream<Envelope, ChannelError>
  /**
   * Takes or keeps the right to attend a mailbox, for ten seconds. `false`: another attendant has it. It is for an
   * `Attendant`: reading needs no right.
   */
  readonly hold: (to: string, by: string) => Effect.Effect<boolean, ChannelError>
  /** Gives the right back, if this attendant has it. */
  readonly release: (to: string, by: string) => Effect.Effect<void, ChannelError>
}

/** The mailboxes. A name is any text of 1 to 128 characters without control characters. */
export class Channel extends Context.Service<Channel, Service>()("effect-deepagents/patterns/Channel") {}

const refuseLayer = makeLayerCheck("Channel.layer", shapes.channelLayer)

/** The mailboxes, over a storage. */
export const layer = (options?: {
  /** The most characters of a message, as JSON. Default: 65,536. */
  readonly maxSize?: number | undefined
  /** The most messages that wait for one recipient. More are refused as `Full`. Default: 1,000. */
  readonly maxPending?: number | undefined
  /** Says if a recipient takes messages of a sender. Others are refused as `Refused`. Default: it takes all. */
  readonly accepts?: ((from: string, to: string) => boolean) | undefined
  /** Says if a sender may interrupt a recipient. Other `interrupting` messages are refused as `NoAuthority`. Default: nobody may. */
  readonly mayInterrupt?: ((from: string, to: string) => boolean) | undefined
}): Layer.Layer<Channel, never, Storage> =>
  refuseLayer(options) ??
  Layer.effect(
    Channel,
    Effect.map(Storage, (storage) => {
      const { accepts, maxPending = 1_000, maxSize = 65_536, mayInterrupt = () => false } = options ?? {}
      const mailbox = makeMailbox(storage)
      const refuse = (operation: string, to: string, reason: ChannelError["reason"]) =>
        Effect.fail(new ChannelError({ operation, to, reason }))
      const checkNames = <A>(
        operation: string,
        to: string,
        names: ReadonlyArray<string>,
        work: Effect.Effect<A, ChannelError>
      ) => {
        const problem = names.map((name) => nameProblem(name, 128)).find((one) => one !== undefined)
        return problem === undefined ? work : refuse(operation, to, { _tag: "InvalidName", problem })
      }
      return {
        send: ({ body, from, key, to, wake }) =>
          checkNames(
            "send",
            to,
            key === undefined ? [from, to] : [from, to, key],
            Effect.gen(function* () {
              if (accepts?.(from, to) === false) return yield* refuse("send", to, { _tag: "Refused", from })
              if (wake === "interrupting" && !mayInterrupt(from, to))
                return yield* refuse("send", to, { _tag: "NoAuthority", from })
              if (stringify(body).length > maxSize)
                return yield* refuse("send", to, { _tag: "TooLarge", limit: maxSize })
              const envelope = key === undefined ? undefined : yield* mailbox.findSent(to, from, key)
              if (envelope !== undefined) return envelope
              if ((yield* mailbox.pending(to)) >= maxPending)
                return yield* refuse("send", to, { _tag: "Full", limit: maxPending })
              const at = yield* Clock.currentTimeMillis
              return yield* mailbox.send(to, { from, body, at, key, wake })
            })
          ),
        receive: (to, { most = 100 } = {}) =>
          checkNames("receive", to, [to], mailbox.receive(to, most >= 1 ? Math.min(Math.floor(most), 100) : 1)),
        acknowledge: (to, ids) => checkNames("acknowledge", to, [to], mailbox.acknowledge(to, ids)),
        pending: (to) => checkNames("pending", to, [to], mailbox.pending(to)),
        history: mailbox.history,
        hold: (to, by) => checkNames("hold", to, [to, by], mailbox.hold(to, by)),
        release: (to, by) => checkNames("release", to, [to, by], mailbox.release(to, by))
      }
    })
  )

const checkTools = check(shapes.channelTools)

/** The names of the tools. */
export const toolNames = { send: "send_message", read: "read_messages" } as const

const Received = Schema.Array(Envelope)

/**
 * Two tools for an agent that has a mailbox: `send_message` and `read_messages`. After a crash no message is sent twice,
 * and none that was read is lost: a run with a thread keeps the messages before it acknowledges them.
 */
export const tools = (options: {
  /** The name of the agent's mailbox, and the sender of its messages. */
  readonly as: string
  /** The effect of its messages on threads that an `Attendant` attends. Default: `quiet`. */
  readonly wake?: Wake | undefined
}): ReadonlyArray<Tool.Tool<Channel | ToolContext>> => {
  const { as, wake } = options
  const sendTool = Tool.make(toolNames.send, {
    description: "Sends a message to another agent. It waits there until the agent reads it.",
    parameters: {
      to: Schema.String.annotate({ description: "The name of the agent" }),
      text: Schema.String
    },
    annotations: { idempotent: true },
    execute: Effect.fnUntraced(function* ({ text, to }) {
      const channel = yield* Channel
      // Sub-agents and branches of one thread may have calls of one id, and a resumed run has another id.
      const key = yield* Agent.step("key", Effect.sync(makeId), Schema.String)
      yield* channel.send({ from: as, to, body: text, key, wake })
      return `Sent to ${oneLine(to)}.`
    })
  })
  const readTool = Tool.make(toolNames.read, {
    description: "Reads the messages that other agents have sent to you since you read the last time.",
    parameters: {},
    annotations: { resumable: true, openWorld: true },
    execute: Effect.fnUntraced(function* () {
      const channel = yield* Channel
      const received = yield* Agent.step("messages", channel.receive(as), Received)
      yield* channel.acknowledge(
        as,
        received.map(({ id }) => id)
      )
      return received.length === 0
        ? "There are no new messages."
        : received
            .map(
              ({ body, from }) => `${oneLine(from)} says:\n${quote(typeof body === "string" ? body : stringify(body))}`
            )
            .join("\n\n")
    })
  })
  return refuseTools(checkTools(options), [sendTool, readTool])
}
