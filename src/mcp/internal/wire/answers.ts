/**
 * Answers that the client of the protocol would not take for any, and so would wait on: their requests fail at once.
 */
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client"
import * as Predicate from "effect/Predicate"
import { isObject } from "../../../core/Json.ts"

/** The error code of a request that got an invalid answer. */
export const badAnswerCode = -32098

/** The code of the error that a request is answered with whose stream ended before its answer came. */
export const noAnswerCode = -32097

type Id = string | number

const failed = (id: Id, code: number, message: string): JSONRPCMessage => ({
  jsonrpc: "2.0",
  id,
  error: { code, message }
})

/** The id of the request that a message is an answer to, of whatever form. */
const answeredId = (message: JSONRPCMessage): Id | undefined => {
  if ("method" in message) return undefined
  const { id } = message
  return typeof id === "string" || typeof id === "number" ? id : undefined
}

const isFailure = (error: unknown): boolean =>
  Predicate.hasProperty(error, "code") &&
  Number.isSafeInteger(error.code) &&
  Predicate.hasProperty(error, "message") &&
  typeof error.message === "string"

/** Puts a failure in the place of an answer that has neither a result nor an error as the protocol has them, or both. */
export const understood = (message: JSONRPCMessage): JSONRPCMessage => {
  if ("method" in message) return message
  const isAnswer =
    "error" in message
      ? !("result" in message) && isFailure(message.error)
      : "result" in message && isObject(message.result)
  const id = isAnswer ? undefined : answeredId(message)
  return id === undefined ? message : failed(id, badAnswerCode, "what it answered is no answer of the protocol")
}

/** Reads a message before the client does. */
export type ReadMessage = (message: JSONRPCMessage) => JSONRPCMessage

/**
 * Reads messages over HTTP before the client does. A stream that ends without the answer fails its request, since the
 * client's transport reports nothing. A resumable stream is resumed first.
 */
export const answering = (transport: Transport, read: ReadMessage): Transport => {
  const open = new Set<Id>()
  const send = transport.send.bind(transport)
  let handler: Transport["onmessage"]
  const listen = (): void => {
    const { onmessage } = transport
    if (onmessage === handler) return
    handler = (message, extra) => {
      const id = answeredId(message)
      if (id !== undefined) open.delete(id)
      onmessage?.(read(message), extra)
    }
    transport.onmessage = handler
  }
  return Object.assign(transport, {
    send: (message: JSONRPCMessage, options?: Parameters<Transport["send"]>[1]): Promise<void> => {
      const isRequest = "method" in message && "id" in message
      listen()
      if (!isRequest || options?.onRequestStreamEnd !== undefined) return send(message, options)
      const { id } = message
      open.add(id)
      options?.requestSignal?.addEventListener("abort", () => open.delete(id), { once: true })
      const onRequestStreamEnd = (): void => {
        if (open.delete(id)) transport.onmessage?.(failed(id, noAnswerCode, "its answer was cut off"))
      }
      return send(message, { ...options, onRequestStreamEnd }).catch((error: unknown) => {
        open.delete(id)
        return Promise.reject(error)
      })
    }
  })
}
