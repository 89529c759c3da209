import type * as Content from "../../core/Content.ts"
import { human, type HumanMessage, type Message } from "../../core/Message.ts"

/** What can be sent to a durable agent. */
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

/** A word for a run that goes on: no input of its own. */
export const toWord = (input: Input): HumanMessage =>
  typeof input === "string" || !("role" in input) ? human(input) : input

/** Whether a message of a thread was an input, and not a word thrown in while another was worked on. */
export const isInput = (message: Message): boolean => message.role === "human" && message.id.startsWith(prefix)
