/**
 * Adds kinds of messages of your own to a conversation: values with a schema, which the thread keeps. The model reads
 * what a kind shows of them, or nothing.
 *
 * ```ts
 * import { Schema } from "effect"
 * import { Agent, Message } from "effect-deepagents"
 * import { MessageKinds } from "effect-deepagents/middleware"
 *
 * const Deploy = Schema.Struct({ version: Schema.String, isLive: Schema.Boolean })
 * const deploy = MessageKinds.define("deploy", Deploy, ({ version }) => `Version ${version} was deployed.`)
 * const agent = Agent.make({ name: "a", prompt: "", middleware: [MessageKinds.make({ kinds: [deploy] })] })
 *
 * const program = Agent.run(agent, [
 *   deploy.make({ version: "2.1", isLive: true }),
 *   Message.human("What is live?")
 * ])
 * ```
 */
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { ModelRequest } from "../core/ChatModel.ts"
import * as Content from "../core/Content.ts"
import { human, type HumanMessage, type Message, text } from "../core/Message.ts"
import * as Middleware from "../core/Middleware.ts"
import { makeMiddlewareCheck } from "../core/schema/invalid.ts"
import * as shapes from "./internal/shapes.ts"

const name = "MessageKinds"

/** The beginning of the `source` of messages of a kind. */
const prefix = "kind:"

/** A kind of messages with values of type `A`. */
export interface Kind<in out A> {
  readonly name: string
  /** Makes a message: a human message with the value as JSON, and the `source` `kind:` and the name. */
  readonly make: (
    value: A,
    options?: {
      /** The id of the message. Default: a new one. */
      readonly id?: string | undefined
    }
  ) => HumanMessage
  /** Reads the value of a message. None for messages of other kinds, and for values that no longer fit the schema. */
  readonly read: (message: Message) => Option.Option<A>
  /** The content that the model reads. None for a message that it does not see. */
  readonly shown: (message: Message) => Option.Option<ReadonlyArray<Content.Block>>
}

/**
 * Defines a kind. Its values are stored as JSON, by the schema. `show` writes the content for the model; without it the
 * model does not see the messages.
 */
export const define = <A, I>(
  kind: string,
  schema: Schema.Codec<A, I>,
  show?: (value: NoInfer<A>) => Content.Input
): Kind<A> => {
  const codec = Schema.fromJsonString(Schema.toCodecJson(schema))
  const encode = Schema.encodeSync(codec)
  const decode = Schema.decodeUnknownOption(codec)
  const source = `${prefix}${kind}`
  const readValue = (message: Message) => (message.source === source ? decode(text(message)) : Option.none())
  return {
    name: kind,
    make: (value, { id } = {}) => human(encode(value), { source, id }),
    read: readValue,
    shown: (message) =>
      show === undefined ? Option.none() : Option.map(readValue(message), (value) => Content.fromInput(show(value)))
  }
}

/** The options of {@link make}. */
export interface Options {
  /** The kinds that the model may see. Messages of other kinds are kept from it. */
  readonly kinds: ReadonlyArray<Pick<Kind<never>, "name" | "shown">>
}

/** A request with its messages as the model sees them. A hint on a message that is left out moves to the one before. */
const viewOf = (request: ModelRequest, kinds: Options["kinds"]): ModelRequest => {
  if (!request.messages.some(({ source }) => source?.startsWith(prefix) === true)) return request
  const views = request.messages.flatMap((message, place) => {
    if (message.role !== "human" || message.source?.startsWith(prefix) !== true) return [{ message, place }]
    const kind = kinds.find((one) => message.source === `${prefix}${one.name}`)
    const content = kind === undefined ? undefined : Option.getOrUndefined(kind.shown(message))
    return content === undefined || content.length === 0 ? [] : [{ message: { ...message, content }, place }]
  })
  const hints = request.cacheHints.map((hint) => views.findLastIndex(({ place }) => place <= hint))
  return {
    ...request,
    messages: views.map(({ message }) => message),
    cacheHints: [...new Set(hints)].filter((place) => place >= 0)
  }
}

const refuseMake = makeMiddlewareCheck(name, shapes.messageKindsMake)

/**
 * Shows the model messages of these kinds as the kinds say, in turns and in side calls. Messages of a kind that is not in
 * the list, or without `show`, are left out of requests. All stay in the thread and in results. Put it last: middleware
 * outside of it sees the stored messages.
 */
export const make = (options: Options): Middleware.Middleware => {
  const refused = refuseMake(options)
  if (refused !== undefined) return refused
  const { kinds } = options
  const names = kinds.map((kind) => kind.name)
  const twice = names.find((kind, place) => names.indexOf(kind) !== place)
  return Middleware.make({
    name,
    check: () => (twice === undefined ? undefined : `${name}: two kinds have the name ${JSON.stringify(twice)}`),
    wrapModelCall: (request, next) => next(viewOf(request, kinds))
  })
}
