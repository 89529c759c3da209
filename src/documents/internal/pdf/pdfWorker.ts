/** The thread that reads PDFs. A busy parser can be interrupted only by ending its thread. */
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

const answerAsk = async (ask: Ask): Promise<Answer> => {
  if ("page" in ask) return { id: ask.id, text: (await pages?.text(ask.page)) ?? "" }
  const parser = await import("unpdf").catch(() => undefined)
  if (parser === undefined) return { id: ask.id, ...missing }
  pages = await openPages(parser.getDocumentProxy, ask.bytes, ask.password)
  return { id: ask.id, count: pages.count }
}

port?.on("message", (ask: Ask) => {
  void answerAsk(ask)
    .catch((cause: unknown): Answer => ({ id: ask.id, ...problemOf(cause) }))
    .then((answer) => port.postMessage(answer))
})
