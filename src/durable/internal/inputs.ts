/** Converts inputs to messages of a thread, with ids that identify them. */
import type * as Content from "../../core/Content.ts"
import { human, type HumanMessage, type Message } from "../../core/Message.ts"

/** An input of a durable agent. */
export type Input = Content.Input | HumanMessage

const prefix = "input:"

/** Makes the id of an input's message. The same input always has the same one. */
const messageId = (inputId: string): string => prefix + inputId

/** Gives the id of an input from its message. */
export const inputIdOf = ({ id }: HumanMessage): string => id.slice(prefix.length)

/** Makes the message of an input. */
export const toMessage = (input: Input, inputId: string): HumanMessage =>
  typeof input === "string" || !("role" in input)
    ? human(input, { id: messageId(inputId) })
    : { ...input, id: messageId(inputId) }

/** Makes a steering message, which is no input. */
export const toSteering = (input: Input): HumanMessage =>
  typeof input === "string" || !("role" in input) ? human(input) : input

/** Reports whether a message is an input, and not a steering message. */
export const isInput = (message: Message): boolean => message.role === "human" && message.id.startsWith(prefix)
