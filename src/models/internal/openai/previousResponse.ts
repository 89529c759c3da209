/**
 * Requests that send only the messages since the last response of the session, which OpenAI has stored. The transcript
 * stays whole here. If its beginning changed, or OpenAI lost the response, all of it is sent.
 */
import type { OpenAI } from "openai"
import type { ResponseCreateParamsStreaming } from "openai/resources/responses/responses"
import type { Message } from "../../../core/Message.ts"
import { objectOf, stringOf } from "../wire/read.ts"

/** The response that a request goes on from, and the number of messages that it covers, itself included. */
export interface Previous {
  readonly id: string
  readonly count: number
}

/** Makes the memory of a session: it finds the last response whose request was the beginning of this history. */
export const makePrevious = (provider: string) => {
  let lastMessages: ReadonlyArray<Message> | undefined
  return (messages: ReadonlyArray<Message>): Previous | undefined => {
    const before = lastMessages
    lastMessages = messages.slice()
    const answer = before === undefined ? undefined : messages[before.length]
    if (before === undefined || answer?.role !== "ai" || before.some((message, at) => message !== messages[at])) {
      return undefined
    }
    const id = stringOf(objectOf(answer.providerData?.[provider])?.["id"])
    return id === undefined ? undefined : { id, count: before.length + 1 }
  }
}

const isLost = (cause: unknown): boolean =>
  typeof cause === "object" && cause !== null && "code" in cause && cause.code === "previous_response_not_found"

/** Sends the new messages, or all of them if the response before is lost. */
export async function* sendNew(
  client: OpenAI,
  body: ResponseCreateParamsStreaming,
  whole: ResponseCreateParamsStreaming | undefined,
  signal: AbortSignal
): AsyncGenerator<unknown> {
  const response = client.responses.create(body, { signal })
  yield* await (whole === undefined
    ? response
    : response.catch((cause: unknown) =>
        isLost(cause) ? client.responses.create(whole, { signal }) : Promise.reject(cause)
      ))
}
