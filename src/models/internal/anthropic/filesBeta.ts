/** The beta feature of conversations with files that Anthropic stores. */
import type { Message } from "../../../core/Message.ts"

/** The name of the feature. */
export const filesBeta = "files-api-2025-04-14"

const isFile = (block: Message["content"][number]): boolean =>
  (block.type === "image" || block.type === "file") && block.source.kind === "fileId"

/** Makes a memory that reports whether a conversation has ids of files. It looks at new messages only. */
export const makeFilesWatch = () => {
  let count = 0
  let last: Message | undefined
  let has = false
  return (messages: ReadonlyArray<Message>): boolean => {
    const isGrown = count > 0 && messages[count - 1] === last
    const fresh = isGrown ? messages.slice(count) : messages
    has = (isGrown && has) || fresh.some(({ content }) => content.some(isFile))
    count = messages.length
    last = messages.at(-1)
    return has
  }
}
