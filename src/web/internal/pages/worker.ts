/** The program that reads pages, in a thread of its own: what reads them can't be interrupted otherwise. */
import { parentPort } from "node:worker_threads"
import { articleOf } from "./article.ts"
import type { Answer, Ask } from "./messages.ts"

const port = parentPort

port?.on("message", ({ html, id, url }: Ask) => {
  const article = articleOf(html, url)
  const answer: Answer = article === undefined ? { id, problem: "the page is nested too deep" } : { id, article }
  port.postMessage(answer)
})
