/** Facts of the last turn, for commands such as `/copy`. */
import type { Part } from "../../../view/View.ts"

export interface Memory {
  lastOutput: string
  answer: string
  listings: Array<string>
  /** True once the input is part of the conversation. */
  hasSaid: boolean
}

export const makeMemory = (): Memory => ({ lastOutput: "", answer: "", listings: [], hasSaid: false })

/** Remembers a part that was shown. */
export const note = (memory: Memory, part: Part): void => {
  if (part.kind === "tool") {
    memory.lastOutput = part.diff === undefined ? part.output : `${part.diff}\n\n${part.output}`
  }
  if (part.kind === "user") {
    memory.answer = ""
    memory.listings = []
    memory.hasSaid = true
  }
  if (part.kind === "text") memory.answer += `${part.markdown}\n\n`
  if (part.kind === "code") {
    memory.listings.push(part.isFirst ? part.text : `${memory.listings.pop() ?? ""}\n${part.text}`)
    memory.answer += `${part.isFirst ? `\`\`\`${part.language}\n` : ""}${part.text}\n${part.more ? "" : "```\n\n"}`
  }
}
