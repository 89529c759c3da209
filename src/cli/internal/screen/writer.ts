/**
 * Writes to a terminal that may stop reading: a slow line, Ctrl-S. Node's own stream of a terminal would hold up the whole
 * process then, and with it the agent; here one write is on its way at a time, and nobody waits for it.
 */
import { write as writeFile } from "node:fs"

export interface Writer {
  readonly write: (text: string) => void
  /** Tells whether something that was written is not taken yet. */
  readonly isBusy: () => boolean
  /** Is called, with the time that it took in milliseconds, whenever everything was taken. */
  readonly onTaken: (listener: (millis: number) => void) => () => void
  /** Gives what is left, for the end of the process; nothing where the terminal takes nothing. */
  readonly rest: () => string | undefined
}

/** Writes some of the bytes, and says how many. */
export type Put = (
  bytes: Buffer,
  done: (error: NodeJS.ErrnoException | null | undefined, written: number) => void
) => void

/** Writes to a file in a thread of its own. */
export const putTo =
  (fd: number): Put =>
  (bytes, done) =>
    writeFile(fd, bytes, 0, bytes.length, null, done)

/** A file that can't be written to at the moment says so. */
const retryAfter = 5

/** A terminal that takes nothing for so long, in milliseconds, is not waited for at the end. */
export const stuckAfter = 1_000

export const makeWriter = (put: Put, onError: (error: Error) => void): Writer => {
  const listeners = new Set<(millis: number) => void>()
  let queue: Array<string> = []
  let sending: Buffer | undefined
  let began = 0
  let isBroken = false

  const next = (): void => {
    if (queue.length === 0) {
      sending = undefined
      const took = performance.now() - began
      for (const listener of listeners) listener(took)
      return
    }
    sending = Buffer.from(queue.join(""))
    queue = []
    send(sending)
  }
  const send = (bytes: Buffer): void => {
    put(bytes, (error, written) => {
      if (error?.code === "EAGAIN") return void setTimeout(send, retryAfter, bytes)
      if (error !== null && error !== undefined) {
        isBroken = true
        queue = []
        sending = undefined
        return onError(error)
      }
      if (written < bytes.length) return send(bytes.subarray(written))
      next()
    })
  }
  return {
    write: (text) => {
      if (isBroken) return
      queue.push(text)
      if (sending !== undefined) return
      began = performance.now()
      next()
    },
    isBusy: () => sending !== undefined,
    onTaken: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    rest: () => {
      if (isBroken || (sending !== undefined && performance.now() - began > stuckAfter)) return undefined
      isBroken = true
      return queue.join("")
    }
  }
}
