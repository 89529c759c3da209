/** The program that reads PDFs, in a thread of its own: a parser at work can't be interrupted otherwise. */
import { parentPort } from "node:worker_threads"
import type { Answer, Ask } from "./pdfMessages.ts"
import { openPages, type Pages } from "./pdfPages.ts"

const port = parentPort
let pages: Pages | undefined

const missing = { name: "", problem: "", isMissing: true }

const problemOf = (cause: unknown) =>
  cause instanceof Error
    ? { name: cause.name, problem: cause.message, isMissing: false }
    : { name: "", problem: "it can't be read", isMissing: false }

const answer = async (ask: Ask): Promise<Answer> => {
  if ("page" in ask) return { id: ask.id, text: (await pages?.text(ask.page)) ?? "" }
  const parser = await import("unpdf").catch(() => undefined)
  if (parser === undefined) return { id: ask.id, ...missing }
  pages = await openPages(parser.getDocumentProxy, ask.bytes, ask.password)
  return { id: ask.id, count: pages.count }
}

port?.on("message", (ask: Ask) => {
  void answer(ask)
    .catch((cause: unknown): Answer => ({ id: ask.id, ...problemOf(cause) }))
    .then((said) => port.postMessage(said))
})
