/**
 * Reads the pages of a PDF with unpdf, and releases each page before the next. This module doesn't import Effect, so that
 * its thread starts fast.
 */
import type { getDocumentProxy } from "unpdf"

/** An open document. Callers read one page at a time. */
export interface Pages {
  readonly count: number
  readonly text: (page: number) => Promise<string>
  readonly close: () => Promise<void>
}

/** Maximum characters of a page. */
const pageLength = 1_000_000

/** Pages after which the document is reopened, since its parser leaks memory for each page. */
const blockLength = 100

/** Reads the text of a page up to the maximum. It does not parse the rest. */
const readText = async (chunks: ReadableStream<{ readonly items: ReadonlyArray<object> }>): Promise<string> => {
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

/** Opens a document. */
export const openPages = async (
  open: typeof getDocumentProxy,
  bytes: Uint8Array,
  password: string | undefined
): Promise<Pages> => {
  // The parser detaches the buffer of its bytes.
  const openDocument = () =>
    open(Uint8Array.from(bytes), {
      stopAtErrors: false,
      verbosity: 0,
      ...(password === undefined ? {} : { password })
    })
  let document = await openDocument()
  let pages = 0
  return {
    count: document.numPages,
    text: async (number) => {
      if (pages >= blockLength) {
        await document.loadingTask.destroy()
        document = await openDocument()
        pages = 0
      }
      pages++
      const page = await document.getPage(number)
      const text = await readText(page.streamTextContent())
      page.cleanup()
      return text
    },
    close: () => document.loadingTask.destroy()
  }
}
