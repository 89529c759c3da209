/**
 * Writes to a terminal that may stop reading (a slow line, Ctrl-S). Node's own stream would block the process, and
 * with it the agent. This writer has one write in flight and never waits.
 */
import { write as writeFile } from "node:fs"

export interface Writer {
  readonly write: (text: string) => void
  /** Reports whether output is still in flight. */
  readonly isBusy: () => boolean
  /** Calls the listener when all output was taken, with the milliseconds it took. */
  readonly onTaken: (listener: (millis: number) => void) => () => void
  /** Takes the unwritten output, for the end of the process. Returns `undefined` if the terminal is stuck. */
  readonly rest: () => string | undefined
}

/** Writes a part of the bytes, and reports how many. */
export type WriteBytes = (
  bytes: Buffer,
  done: (error: NodeJS.ErrnoException | null | undefined, written: number) => void
) => void

/** Writes to a file in a thread. */
export const putTo =
  (fd: number): WriteBytes =>
  (bytes, done) =>
    writeFile(fd, bytes, 0, bytes.length, null, done)

/** Milliseconds between attempts on a file that is not writable at the moment. */
const retryAfter = 5

/** A terminal that takes nothing for so many milliseconds is stuck. */
export const stuckAfter = 1_000

export const makeWriter = (put: WriteBytes, onError: (error: Error) => void): Writer => {
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
