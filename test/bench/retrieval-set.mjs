// The questions about docs/, its chunks, and their recorded vectors: what retrieval is measured on.
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { Chunk, Chunker } from "../../src/rag/index.ts"
import { questions } from "./retrieval-questions.mjs"

const file = new URL("retrieval-vectors.bin", import.meta.url)
const dimensions = 384
export const model = { id: "e5", dimensions }

const keyOf = (type, text) => createHash("sha256").update(`${type}\n${text}`).digest("hex").slice(0, 32)

const recorded = new Map()
const bytes = readFileSync(file)
for (let at = 0; at < bytes.length; at += 16 + dimensions) {
  const vector = new Int8Array(bytes.subarray(at + 16, at + 16 + dimensions))
  recorded.set(bytes.toString("hex", at, at + 16), vector)
}

/** Embeds texts, those that are not recorded by the server at ADDRESS. */
export const embed = async (address, type, texts) => {
  const missing = texts.filter((text) => !recorded.has(keyOf(type, text)))
  for (let from = 0; address !== undefined && from < missing.length; from += 8) {
    const input = missing.slice(from, from + 8)
    const body = JSON.stringify({ model: "e5", input, input_type: type })
    const response = await fetch(address, { method: "POST", headers: { "content-type": "application/json" }, body })
    const { data } = await response.json()
    data.forEach(({ embedding }, index) => {
      const most = Math.max(...embedding.map(Math.abs))
      const vector = Int8Array.from(embedding, (value) => Math.round((value / most) * 127))
      recorded.set(keyOf(type, input[index]), vector)
    })
  }
  return texts.map((text) => recorded.get(keyOf(type, text)))
}

/** Reads the set. ADDRESS is a server with OpenAI's embeddings endpoint, which makes the vectors that are missing. */
export const readSet = async (address) => {
  const chunks = readdirSync("docs")
    .filter((name) => name.endsWith(".md"))
    .flatMap((name) => {
      const text = readFileSync(`docs/${name}`, "utf8")
      const document = { id: name.slice(0, -3), text, title: /^# (.+)$/m.exec(text)?.[1] ?? name }
      const all = Chunker.chunk(document, { split: Chunker.markdown, tokens: 256 })
      return all.map((chunk) => ({ chunk, page: document.id, title: document.title }))
    })
  const vectors = await embed(
    address,
    "passage",
    chunks.map(({ chunk, title }) => Chunk.inContext(title, chunk))
  )
  const asked = questions.map(([text, page, heading]) => ({
    text,
    relevant: new Set(
      chunks.flatMap((one, at) =>
        one.page === page && (one.chunk.headings.includes(heading) || one.chunk.text.includes(`# ${heading}\n`))
          ? [`d${at}`]
          : []
      )
    )
  }))
  for (const { relevant, text } of asked) if (relevant.size === 0) console.log(`no answer: ${text}`)
  const queries = await embed(
    address,
    "query",
    asked.map(({ text }) => text)
  )
  if (address !== undefined) {
    const used = new Set([
      ...chunks.map(({ chunk, title }) => keyOf("passage", Chunk.inContext(title, chunk))),
      ...asked.map(({ text }) => keyOf("query", text))
    ])
    const kept = [...recorded].filter(([key]) => used.has(key))
    writeFileSync(
      file,
      Buffer.concat(kept.flatMap(([key, vector]) => [Buffer.from(key, "hex"), Buffer.from(vector.buffer)]))
    )
  }
  console.log(
    `${asked.length} questions, ${chunks.length} chunks, ${vectors.filter((one) => one !== undefined).length} with a vector`
  )

  /** A chunk is a document here, so that a page may have chunks without a vector. */
  const entries = chunks.map(({ chunk, title }, at) => {
    const id = `d${at}`
    const vector = vectors[at]
    return {
      document: { id, text: "", title },
      hash: "1",
      chunks: [{ ...chunk, id: `${id}::0`, document: id, index: 0 }],
      ...(vector === undefined ? {} : { vectors: [[...vector]] })
    }
  })
  return { asked, chunks, entries, queries }
}
