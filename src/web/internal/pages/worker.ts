/** The thread that reads pages. A busy parser can be interrupted only by ending its thread. */
import { parentPort } from "node:worker_threads"
import { extractArticle } from "./article.ts"
import type { Answer, Ask } from "./messages.ts"

const port = parentPort

port?.on("message", ({ html, id, url }: Ask) => {
  const article = extractArticle(html, url)
  const answer: Answer = article === undefined ? { id, problem: "the page is nested too deep" } : { id, article }
  port.postMessage(answer)
})
