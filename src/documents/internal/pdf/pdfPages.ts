/**
 * The pages of a PDF, by unpdf: each forgotten before the next is read. Nothing of Effect is in here, so that a thread of
 * its own begins at once.
 */
import type { getDocumentProxy } from "unpdf"

/** A document that is open. One page is asked for at a time. */
export interface Pages {
  readonly count: number
  readonly text: (page: number) => Promise<string>
  readonly close: () => Promise<void>
}

/** The text that is read of a page, in characters: what has more draws the same things over and over. */
const pageLength = 1_000_000

/** The pages that are read of one opening of a document: its parser keeps something of each page until it is closed. */
const blockLength = 100

/** The text of a page, as far as it is bounded: the rest of the page is not gone through. */
const textOf = async (chunks: ReadableStream<{ readonly items: ReadonlyArray<object> }>): Promise<string> => {
  const reader = chunks.getReader()
  let text = ""
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    if (text.length >= pageLength) {
      await reader.cancel(new Error("the page is long enough"))
      break
    }
    for (const item of value.items) {
      if ("str" in item && typeof item.str === "string") text += item.str
      if ("hasEOL" in item && item.hasEOL === true) text += "\n"
      if (text.length >= pageLength) break
    }
  }
  return text
    .slice(0, pageLength)
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n")
    .trim()
}

/** Opens a document by the parser. */
export const openPages = async (
  open: typeof getDocumentProxy,
  bytes: Uint8Array,
  password: string | undefined
): Promise<Pages> => {
  // The parser takes the bytes for itself.
  const begin = () =>
    open(Uint8Array.from(bytes), {
      stopAtErrors: false,
      verbosity: 0,
      ...(password === undefined ? {} : { password })
    })
  let document = await begin()
  let read = 0
  return {
    count: document.numPages,
    text: async (number) => {
      if (read >= blockLength) {
        await document.loadingTask.destroy()
        document = await begin()
        read = 0
      }
      read++
      const page = await document.getPage(number)
      const text = await textOf(page.streamTextContent())
      page.cleanup()
      return text
    },
    close: () => document.loadingTask.destroy()
  }
}
