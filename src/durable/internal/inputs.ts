/** Inputs as messages of a thread, and the ids that make them one. */
import type * as Content from "../../core/Content.ts"
import { human, type HumanMessage, type Message } from "../../core/Message.ts"

/** An input of a durable agent, as users give it. */
export type Input = Content.Input | HumanMessage

const prefix = "input:"

/** The id of the message that an input is in its thread: what makes it one however often it comes. */
const messageId = (inputId: string): string => prefix + inputId

/** The id that an input was sent with. */
export const inputIdOf = ({ id }: HumanMessage): string => id.slice(prefix.length)

/** An input as the message that goes into the thread. */
export const toMessage = (input: Input, inputId: string): HumanMessage =>
  typeof input === "string" || !("role" in input)
    ? human(input, { id: messageId(inputId) })
    : { ...input, id: messageId(inputId) }

/** A steering message: no input of its own. */
export const toSteering = (input: Input): HumanMessage =>
  typeof input === "string" || !("role" in input) ? human(input) : input

/** True for a message of a thread that was an input, and not a steering message. */
export const isInput = (message: Message): boolean => message.role === "human" && message.id.startsWith(prefix)
