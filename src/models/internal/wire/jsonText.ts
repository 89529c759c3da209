/**
 * Writes the JSON of requests. The text of a list's beginning, which is most of a long conversation, is kept: a round
 * writes the new items, and copies the rest once.
 */

/** Some items of a list, from one place to another. The texts of the last chunk are still apart. */
interface Chunk {
  readonly from: number
  to: number
  length: number
  texts: Array<string>
  /** The joined texts, once the chunk is whole: a text that grew in pieces is slow to copy. */
  whole?: string | undefined
}

/** Characters of a chunk. A change writes one chunk anew at most. */
const chunkLength = 32_768

/** Characters of a list from which its text is worth the memory. */
const worthwhile = 16_384

/** Makes the writer of one list. It returns the texts between its brackets, with a comma between two of them. */
const makeList = (): ((items: ReadonlyArray<unknown>) => ReadonlyArray<string>) => {
  let previousItems: ReadonlyArray<unknown> = []
  let chunks: Array<Chunk> = []

  /** Drops the texts from an item on. The chunk of the item is written anew. */
  const dropFrom = (to: number): number => {
    for (let last = chunks.at(-1); last !== undefined; last = chunks.at(-1)) {
      if (last.to <= to) return last.to
      if (last.whole === undefined && last.from < to) {
        for (const text of last.texts.splice(to - last.from)) last.length -= text.length
        last.to = to
        return to
      }
      chunks.pop()
    }
    return 0
  }

  return (items) => {
    let same = 0
    while (same < previousItems.length && same < items.length && previousItems[same] === items[same]) same++
    const from = dropFrom(same)
    let last = chunks.at(-1)
    for (let at = from; at < items.length; at++) {
      const text = JSON.stringify(items[at]) ?? "null"
      if (last === undefined || last.whole !== undefined) {
        last = { from: at, to: at, length: 0, texts: [] }
        chunks.push(last)
      }
      last.texts.push(text)
      last.length += text.length
      last.to = at + 1
      if (last.length < chunkLength) continue
      last.whole = last.texts.join()
      last.texts = []
    }
    const texts = chunks.map((chunk) => chunk.whole ?? chunk.texts.join())
    const isKept = chunks.length > 1 || (last?.length ?? 0) >= worthwhile
    previousItems = isKept ? items : []
    if (!isKept) chunks = []
    return texts
  }
}

/**
 * Makes the writer of one session. Lists are compared by the identity of their items: an item is written again if it is
 * another object than at its place in the request before.
 */
export const makeJsonWriter = (): ((body: object) => string) => {
  const lists = new Map<string, ReturnType<typeof makeList>>()
  return (body) => {
    const texts: Array<string> = []
    const add = (key: string, text: string): void => {
      texts.push(`${texts.length === 0 ? "{" : ","}${JSON.stringify(key)}:${text}`)
    }
    for (const [key, value] of Object.entries(body)) {
      if (!Array.isArray(value)) {
        const text = JSON.stringify(value)
        if (text !== undefined) add(key, text)
        continue
      }
      const write = lists.get(key) ?? makeList()
      lists.set(key, write)
      add(key, "[")
      write(value).forEach((text, at) => {
        if (at > 0) texts.push(",")
        texts.push(text)
      })
      texts.push("]")
    }
    texts.push(texts.length === 0 ? "{}" : "}")
    // Concatenated, not joined: the sender copies the text once.
    return texts.reduce((whole, text) => whole + text, "")
  }
}
