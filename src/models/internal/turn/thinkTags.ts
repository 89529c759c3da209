/**
 * Separates reasoning in `<think>…</think>` from streamed text, across chunks.
 *
 * A tag counts only at the start of an answer or after reasoning. Later tags are text. Blanks around a tag are dropped.
 */

/** A piece of an answer. */
export interface AnswerPiece {
  readonly kind: "text" | "reasoning"
  readonly text: string
}

/**
 * `open` and `close` are the tags. With `inside` the stream begins in the middle of the reasoning: the chat template
 * wrote the opening tag.
 */
export interface ThinkTags {
  readonly open: string
  readonly close: string
  readonly inside: boolean
}

/** Qwen, DeepSeek, MiniMax, LFM2 and most others. */
export const thinkTags: ThinkTags = { open: "<think>", close: "</think>", inside: false }

/** Counts the characters at the end of a text that could be the beginning of a tag. */
const beginning = (text: string, tag: string): number => {
  for (let length = Math.min(text.length, tag.length - 1); length > 0; length--) {
    if (text.endsWith(tag.slice(0, length))) return length
  }
  return 0
}

/** Makes a splitter for one turn: give it chunks, and call `end` once. */
export const makeThinkSplitter = (tags: ThinkTags) => {
  let state: "start" | "reasoning" | "text" = tags.inside ? "reasoning" : "start"
  /** Blanks that belong to whoever speaks next, if anybody does. */
  let blanks = ""
  /** Texts that could be the beginning of a tag. */
  let pending = ""
  /** Nothing of this reasoning was said: blanks at its beginning are dropped. */
  let fresh = true
  /** The answer has not begun, and blanks before it are its own. */
  let first = true

  const reason = (text: string, pieces: Array<AnswerPiece>): void => {
    const body = text.trimEnd()
    if (body !== "") {
      const own = fresh ? body.trimStart() : blanks + body
      fresh = false
      blanks = ""
      pieces.push({ kind: "reasoning", text: own })
    }
    blanks += text.slice(body.length)
  }

  /** Decides as much as can be; says whether there is more to decide. */
  const step = (pieces: Array<AnswerPiece>): boolean => {
    if (state === "text") {
      const text = blanks + pending
      if (text !== "") pieces.push({ kind: "text", text })
      blanks = ""
      pending = ""
      return false
    }
    if (state === "start") {
      const rest = pending.trimStart()
      blanks += pending.slice(0, pending.length - rest.length)
      pending = rest
      if (!rest.startsWith(tags.open)) {
        if (tags.open.startsWith(rest)) return false
        if (!first) blanks = ""
        state = "text"
        return true
      }
      pending = rest.slice(tags.open.length)
      blanks = ""
      fresh = true
      state = "reasoning"
      return true
    }
    const at = pending.indexOf(tags.close)
    const cut = at >= 0 ? at : pending.length - beginning(pending, tags.close)
    reason(pending.slice(0, cut), pieces)
    pending = pending.slice(cut)
    if (at < 0) return false
    pending = pending.slice(tags.close.length)
    blanks = ""
    first = false
    state = "start"
    return true
  }

  return {
    push: (chunk: string): ReadonlyArray<AnswerPiece> => {
      const pieces: Array<AnswerPiece> = []
      pending += chunk
      while (step(pieces)) continue
      return pieces
    },
    /** Gives the text that was held back. Reasoning without its closing tag stays reasoning. */
    end: (): ReadonlyArray<AnswerPiece> => {
      const pieces: Array<AnswerPiece> = []
      if (state === "reasoning") reason(pending, pieces)
      const text = state === "start" ? (first ? blanks : "") + pending : ""
      if (text !== "") pieces.push({ kind: "text", text })
      pending = ""
      blanks = ""
      return pieces
    }
  }
}
