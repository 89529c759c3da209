/** The beta feature of conversations with files that Anthropic stores. */
import type { Message } from "../../../core/Message.ts"
import { makeFold } from "../turn/fold.ts"

/** The name of the feature. */
export const filesBeta = "files-api-2025-04-14"

const isFile = (block: Message["content"][number]): boolean =>
  (block.type === "image" || block.type === "file") && block.source.kind === "fileId"

/** Makes a memory that reports whether a conversation has ids of files. It looks at new messages only. */
export const makeFilesWatch = () => {
  const find = makeFold<Message, true>((found, { content }) => {
    if (content.some(isFile)) found.push(true)
  })
  return (messages: ReadonlyArray<Message>): boolean => find(messages).output.length > 0
}
