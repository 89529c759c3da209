/** The lines of a thread in a terminal, which takes none of them back. */
import { assert, describe, it } from "@effect/vitest"
import { Message } from "effect-deepagents"
import { Transcript } from "effect-deepagents/view"
import { makeScrollback } from "../../src/cli/internal/attach/scrollback.ts"
import { framesOf } from "../page/site.ts"

/** Writes frames, and gives the lines that were written. */
const writeAll = (frames: ReadonlyArray<Transcript.Frame>): ReadonlyArray<string> => {
  const reader = Transcript.makeReader()
  const scrollback = makeScrollback()
  return frames.flatMap((frame) => {
    const moment = reader.read(frame)
    if (frame._tag === "Reset") {
      scrollback.reset(moment.count)
      return []
    }
    return scrollback.take(moment, frame.event).flatMap((part) => {
      if (part.kind === "text") return [part.markdown]
      if (part.kind === "tool") return [part.name]
      return part.kind === "user" || part.kind === "note" ? [part.text] : []
    })
  })
}

const begin = framesOf([
  { _tag: "RunStarted", agent: "helper" },
  { _tag: "MessageAppended", message: Message.human("Hello", { id: "h1" }) },
  { _tag: "CheckpointSaved", threadId: "t", step: 2 }
])

/** A turn with a call, as the model says it. */
const turn = (id: string, text: string) =>
  framesOf([
    { _tag: "RoundStarted", round: 1, messageId: id },
    { _tag: "TextDelta", text },
    { _tag: "MessageAppended", message: Message.ai(text, { id }) },
    { _tag: "ToolCalled", callId: "c", toolName: "add", arguments: {} },
    { _tag: "ToolCompleted", callId: "c", toolName: "add", text: "1", durationMillis: 1 }
  ])

const back: Transcript.Frame = { _tag: "Reset", position: "x", to: "checkpoint" }
const restarted = "↻ the answer starts again from the last save"

describe("the lines of a thread", () => {
  it("are written once when the same comes again, also in the middle of the words", () => {
    const told = turn("a1", "One.\n\nTwo.")
    for (let cut = 0; cut <= told.length; cut++) {
      const lines = writeAll([...begin, ...told.slice(0, cut), back, ...told])
      assert.deepStrictEqual(lines, ["Hello", "One.", "Two.", "add"], `cut behind ${cut}`)
    }
  })

  it("are written again behind a line that tells so, when the words are others", () => {
    const cases = [
      { again: "One.\n\nThree.", lines: [restarted, "One.", "Three."] },
      { again: "Other.", lines: [restarted, "Other."] },
      { again: "One.", lines: [restarted, "One."] }
    ]
    for (const { again, lines } of cases) {
      const frames = [...begin, ...turn("a1", "One.\n\nTwo.").slice(0, 3), back, ...turn("a2", again)]
      assert.deepStrictEqual(writeAll(frames), ["Hello", "One.", "Two.", ...lines, "add"], again)
    }
  })

  it("are written again when a later turn says the same", () => {
    const saved = framesOf([{ _tag: "CheckpointSaved", threadId: "t", step: 4 }])
    const frames = [
      ...begin,
      ...turn("a1", "One."),
      back,
      ...turn("a1", "One."),
      ...saved,
      ...turn("a2", "One.").slice(0, 3)
    ]
    assert.deepStrictEqual(writeAll(frames), ["Hello", "One.", "add", "One."])
  })
})
