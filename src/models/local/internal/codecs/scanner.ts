/**
 * Separates text, thoughts and calls in a stream.
 *
 * One scanner handles all three. A thought tag inside an argument stays in the argument. A call inside an unclosed
 * thought is a call.
 */
import { coalesce, makeCalls, type OpenCalls } from "./calls.ts"
import type { Decoder, Delta } from "./Codec.ts"
import { type Cursor, isSpace, type Parser, run, space, tag } from "./cursor.ts"

/** A family's marks of thoughts. `anywhere` if the tags are never text: control tokens of the model. */
export interface ThoughtTags {
  readonly open: string
  readonly close: string
  readonly anywhere: boolean
}

/** A family's marks of thoughts and calls. All markers begin with `<`. */
export interface Marks {
  readonly thought: ThoughtTags
  /** The tags that open calls. */
  readonly calls: ReadonlyArray<string>
  /** Closing tags that a model writes without an opening tag. They are dropped. */
  readonly strays: ReadonlyArray<string>
  /**
   * Reports whether the text after a tag may be a call. Used only inside thoughts, where a model may mention the tag.
   */
  readonly isCall: (opening: string, next: string) => boolean
  /**
   * An opening tag behind which a name stands, up to `>`. In an answer that has begun it opens a call only of a tool
   * that there is: else the model speaks about the tag.
   */
  readonly named?: { readonly opening: string; readonly isKnown: (name: string) => boolean } | undefined
  /**
   * Reads the text after an opening tag (and after the consumed part of a name), with the closing tag if present.
   * `cursor.raw` begins with the tag.
   */
  readonly read: (cursor: Cursor, opening: string, calls: OpenCalls, name: string) => Parser<void>
}

/**
 * Emits text as it arrives, without the white space next to a thought or a call. `pause` marks the start of a thought
 * or call; `paused` says that one came before.
 */
export const makeVoice = (emit: (text: string) => void, paused: boolean) => {
  let begun = false
  let resting = paused
  /** White space from before the last pause, and from behind it: said if more text comes. */
  let before = ""
  let pending = ""
  return {
    say: (text: string): void => {
      let to = text.length
      while (to > 0 && isSpace(text.charAt(to - 1))) to--
      if (to === 0) {
        pending += text
        return
      }
      const output = pending + text.slice(0, to)
      emit(begun ? before + output : resting ? output.trimStart() : output)
      begun = true
      resting = false
      before = ""
      pending = text.slice(to)
    },
    pause: (): void => {
      resting = true
      before += pending
      pending = ""
    },
    /** There is no more: white space at the end is the text's own. */
    end: (): void => {
      if (begun && !resting && pending !== "") emit(pending)
    },
    hasBegun: () => begun
  }
}

/** No name of a tool is longer. */
const longestName = 256

const nameBehind = function* (cursor: Cursor): Parser<string> {
  let name = ""
  while (cursor.char !== "" && !/[<>\n]/.test(cursor.char) && name.length < longestName) {
    name += cursor.char
    yield
  }
  return name
}

const scan = function* (
  cursor: Cursor,
  marks: Marks,
  inThought: boolean,
  emit: (delta: Delta) => void,
  calls: OpenCalls
): Parser<void> {
  const { anywhere, close, open } = marks.thought
  const text = makeVoice((delta) => emit({ _tag: "Text", text: delta }), false)
  const reasoning = makeVoice((delta) => emit({ _tag: "Reasoning", text: delta }), true)
  const tags = [...marks.calls, ...marks.strays, open, close]
  let thinking = inThought
  yield
  while (cursor.char !== "") {
    const voice = thinking ? reasoning : text
    cursor.raw = ""
    if (cursor.char !== "<") {
      voice.say(cursor.char)
      yield
      continue
    }
    const tagText = yield* tag(cursor, tags)
    // A tag inside of an answer was meant to be read.
    const turns = thinking || anywhere || !text.hasBegun()
    if ((tagText === open || tagText === close) && turns) {
      voice.pause()
      text.pause()
      thinking = tagText === open
    } else if (marks.calls.includes(tagText)) {
      const blank = thinking ? yield* space(cursor) : ""
      const isSpoken = !thinking && marks.named?.opening === tagText && text.hasBegun()
      const name = isSpoken ? yield* nameBehind(cursor) : ""
      const opens = isSpoken
        ? marks.named?.isKnown(name.trim()) === true
        : !thinking || marks.isCall(tagText, cursor.char)
      if (opens) {
        voice.pause()
        yield* marks.read(cursor, tagText, calls, name)
      } else voice.say(tagText + blank + name)
    } else if (!marks.strays.includes(tagText)) voice.say(tagText)
  }
  text.end()
}

/** Makes the decoder of a family. */
export const makeDecoder = (marks: Marks, inThought: boolean, emit: (delta: Delta) => void): Decoder => {
  const out = coalesce(emit)
  const cursor: Cursor = { char: "", raw: "" }
  return run(cursor, scan(cursor, marks, inThought, out.take, makeCalls(out.take)), out.flush)
}
