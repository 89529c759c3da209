/**
 * Cuts streamed Markdown into finished blocks, which later text can't change. It reads line by line, so the cuts of the
 * stream make no difference.
 */

/** A finished block: Markdown, or lines of a fenced listing. A long listing comes in pieces; `more` follow. */
export type Block =
  | { readonly kind: "text"; readonly text: string }
  | {
      readonly kind: "code"
      readonly language: string
      readonly text: string
      readonly isFirst: boolean
      readonly more: boolean
    }

interface Fence {
  readonly mark: string
  readonly language: string
  readonly isFirst: boolean
}

/** The state of an unfinished text: the whole `lines` of the open block, and the unfinished line (`tail`). */
export interface Splitter {
  readonly lines: ReadonlyArray<string>
  readonly tail: string
  readonly fence: Fence | undefined
  /** Set in a list, with the mark of an open fence inside of it. */
  readonly list: { readonly fence: string | undefined } | undefined
  /** Definitions of links so far, by their labels: a later block may refer to them. */
  readonly links: ReadonlyMap<string, string>
}

export const empty: Splitter = { lines: [], tail: "", fence: undefined, list: undefined, links: new Map() }

/** The most lines of a block that can be split: the live part of the screen is small. */
const most = 24

/** The most lines of a list or a table. A list is read again with each new line. */
const mostOfOne = 500

const opening = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/
const marker = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)/
const topMarker = /^(?:[-*+]|\d{1,9}[.)])\s/
const heading = /^ {0,3}#{1,6}(?:\s|$)/
const row = /^\s*\|/

const closes = (line: string, mark: string): boolean => {
  const fence = /^\s*(`{3,}|~{3,})\s*$/.exec(line)?.[1]
  return fence !== undefined && fence[0] === mark[0] && fence.length >= mark.length
}

interface BlockState {
  lines: Array<string>
  fence: Fence | undefined
  list: { readonly fence: string | undefined } | undefined
  links: ReadonlyMap<string, string>
}

/** The most definitions that are kept, and the longest one in characters. */
const mostLinks = 200
const longestLink = 500
const definition = /^ {0,3}\[([^[\]]{1,200})\]:[ \t]*\S/
const reference = /\[([^[\]]{1,200})\]/g

/** Joins the lines of a block, with the earlier definitions that it refers to. */
const joinLines = (state: BlockState): string => {
  const text = state.lines.join("\n").trimEnd()
  const labelled = state.lines.flatMap((line): ReadonlyArray<readonly [string, string]> => {
    const label = line.length > longestLink ? undefined : definition.exec(line)?.[1]
    return label === undefined ? [] : [[label.toLowerCase(), line]]
  })
  const own = new Map(labelled)
  const used = new Set([...text.matchAll(reference)].map(([, label = ""]) => label.toLowerCase()))
  const before = [...state.links].flatMap(([label, line]) => (used.has(label) && !own.has(label) ? [line] : []))
  if (own.size > 0) state.links = new Map([...state.links, ...own].slice(-mostLinks))
  return before.length === 0 ? text : `${text}\n\n${before.join("\n")}`
}

const finish = (state: BlockState, out: Array<Block>): void => {
  const { fence, lines } = state
  if (fence !== undefined) {
    out.push({
      kind: "code",
      language: fence.language,
      text: lines.join("\n"),
      isFirst: fence.isFirst,
      more: false
    })
  } else if (lines.some((line) => line.trim() !== "")) {
    out.push({ kind: "text", text: joinLines(state) })
  }
  state.lines = []
  state.fence = undefined
  state.list = undefined
}

const inFence = (state: BlockState, fence: Fence, line: string, out: Array<Block>): void => {
  if (closes(line, fence.mark)) return finish(state, out)
  state.lines.push(line)
  if (state.lines.length < most) return
  out.push({
    kind: "code",
    language: fence.language,
    text: state.lines.join("\n"),
    isFirst: fence.isFirst,
    more: true
  })
  state.lines = []
  state.fence = { ...fence, isFirst: false }
}

const inList = (
  state: BlockState,
  list: { readonly fence: string | undefined },
  line: string,
  out: Array<Block>
): void => {
  const mark = /^\s*(?:(?:[-*+]|\d{1,9}[.)])\s+)?(`{3,}|~{3,})/.exec(line)?.[1]
  const fence = list.fence === undefined ? mark : closes(line, list.fence) ? undefined : list.fence
  state.list = { fence }
  state.lines.push(line)
  if (state.lines.length < mostOfOne) return
  finish(state, out)
  if (fence !== undefined) state.fence = { mark: fence, language: "", isFirst: true }
}

/** Reports whether a line ends the open list: the next item of a long list, or a line outside of it. */
const endsList = (lines: ReadonlyArray<string>, line: string): boolean => {
  if (topMarker.test(line)) return lines.length >= most
  if (line.trim() === "" || marker.test(line) || /^(?: {2,}|\t)/.test(line)) return false
  return lines.at(-1)?.trim() === "" || opening.test(line) || heading.test(line)
}

const take = (state: BlockState, raw: string, out: Array<Block>): void => {
  const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw
  const { fence, list } = state
  if (fence !== undefined) return inFence(state, fence, line, out)
  if (list !== undefined && (list.fence !== undefined || !endsList(state.lines, line))) {
    return inList(state, list, line, out)
  }
  if (list !== undefined || line.trim() === "" || heading.test(line)) finish(state, out)
  if (line.trim() === "") return
  const opened = opening.exec(line)
  if (opened !== null) {
    finish(state, out)
    state.fence = { mark: opened[1] ?? "", language: opened[2] ?? "", isFirst: true }
    return
  }
  if (marker.test(line)) {
    finish(state, out)
    return inList(state, { fence: undefined }, line, out)
  }
  state.lines.push(line)
  const { length } = state.lines
  if (heading.test(line) || length >= mostOfOne || (length >= most && !row.test(line))) finish(state, out)
}

/** Adds a piece of text, and gives the blocks that it finishes. */
export const feed = (splitter: Splitter, text: string): readonly [Splitter, ReadonlyArray<Block>] => {
  const pieces = text.split("\n")
  if (pieces.length === 1) return [{ ...splitter, tail: splitter.tail + text }, []]
  const out: Array<Block> = []
  const { fence, lines, links, list } = splitter
  const state: BlockState = { lines: [...lines], fence, list, links }
  const tail = pieces.pop() ?? ""
  for (const [index, piece] of pieces.entries()) take(state, index === 0 ? splitter.tail + piece : piece, out)
  return [{ ...state, tail }, out]
}

/** Ends the text. The rest is a block. */
export const end = (splitter: Splitter): ReadonlyArray<Block> => {
  const out: Array<Block> = []
  const { fence, lines, links, list } = splitter
  const state: BlockState = { lines: [...lines], fence, list, links }
  if (splitter.tail !== "") take(state, splitter.tail, out)
  finish(state, out)
  return out
}

/** The longest open text that is shown, in characters. */
const shownLength = 6_000

/** Gives the open block as Markdown, or the end of a long one. */
export const openText = ({ fence, lines, tail }: Splitter): string => {
  let text = tail.slice(-shownLength)
  for (let index = lines.length - 1; index >= 0 && text.length < shownLength; index--) {
    text = `${lines[index]}\n${text}`.slice(-shownLength)
  }
  return fence === undefined ? text : `${fence.mark}${fence.language}\n${text}`
}
