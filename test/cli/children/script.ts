/** The answers of the scripted model of the tested chat: they depend on the last thing that a person said. */
import { type ChatModel, Message } from "effect-deepagents"
import { TestChatModel } from "effect-deepagents/testing"

const paragraphs = (count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, index) => `Paragraph ${index} of the *answer* has some words in it.\n\n`)

/** Pieces of a text, as a model streams them. */
const pieces = (text: string, size = 7): ReadonlyArray<string> => text.match(new RegExp(`[^]{1,${size}}`, "g")) ?? []

/** The turn that answers a request. */
export const turn = (request: ChatModel.ModelRequest): TestChatModel.Turn => {
  const { messages } = request
  const said = messages.findLast((message) => message.role === "human")
  const text = said === undefined ? "" : Message.text(said)
  const last = messages.at(-1)
  if (last?.role === "tool") return TestChatModel.text(`The tool said: ${Message.text(last).slice(0, 60)}`)
  if (text.startsWith("stream")) {
    const count = Number(/\d+/.exec(text)?.[0] ?? 20)
    return TestChatModel.text(
      paragraphs(count).flatMap((one) => pieces(one)),
      { chunkDelay: 4 }
    )
  }
  if (text.startsWith("calls")) {
    const count = Number(/\d+/.exec(text)?.[0] ?? 10)
    return TestChatModel.calls(
      Array.from({ length: count }, (_, index) => ({ name: "ls", arguments: { path: index % 2 === 0 ? "/" : "/." } }))
    )
  }
  if (text.startsWith("bulk")) {
    const kilobytes = Number(/\d+/.exec(text)?.[0] ?? 100)
    return TestChatModel.text(
      paragraphs(kilobytes * 16).flatMap((one) => pieces(one, 64)),
      { chunkDelay: 2 }
    )
  }
  if (text.startsWith("flood")) {
    return TestChatModel.calls([{ name: "write_file", arguments: { file_path: "/after.txt", content: "after" } }], {
      text: paragraphs(3_000).flatMap((one) => pieces(one, 512))
    })
  }
  if (text.startsWith("code"))
    return TestChatModel.text(pieces("Look:\n\n```ts\nconst answer: number = 42 // yes\n```\n\nDone.\n"), {
      chunkDelay: 2
    })
  if (text.startsWith("both")) {
    return TestChatModel.calls(
      ["/a.txt", "/b.txt"].map((file_path) => ({ name: "write_file", arguments: { file_path, content: "x" } }))
    )
  }
  if (text.startsWith("write")) {
    return TestChatModel.calls([{ name: "write_file", arguments: { file_path: "/made.txt", content: "one\ntwo\n" } }])
  }
  if (text.startsWith("sh ")) {
    return TestChatModel.calls([{ name: "execute", arguments: { command: text.slice(3) } }])
  }
  if (text.startsWith("run")) {
    return TestChatModel.calls([{ name: "execute", arguments: { command: "env echo from the shell" } }])
  }
  if (text.startsWith("plan")) return TestChatModel.text("I would:\n\n1. Look\n2. Write\n")
  if (text.startsWith("slow"))
    return TestChatModel.hangAfter("This part was said before it was interrupted.\n\nAnd this")
  return TestChatModel.text(`You said: ${text}`)
}
