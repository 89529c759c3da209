/**
 * Caches evaluated prompt prefixes (system prompt and tools) on disk, so that a new process need not evaluate them.
 *
 * A file holds one prefix for one loaded model. Its name contains a digest of its content, so truncated or changed
 * files are rejected. A person who can write these files can run code in this process.
 */
import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { chmod, mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises"
import { join } from "node:path"
import type { LlamaContextSequence, Token } from "node-llama-cpp"

/** The fewest tokens that are worth a file. */
const least = 64

/** The most files per model, and the most bytes in all. The least recently used files are deleted. */
const most = { files: 6, bytes: 4 * 1024 ** 3 } as const

const ending = ".prefix"

/** Hexadecimal digits of each part of a name. */
const digits = 32

const hashOf = (parts: ReadonlyArray<string | number>): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, digits)

const digestOf = async (path: string, bytes?: number): Promise<string> => {
  const hash = createHash("sha256")
  for await (const chunk of createReadStream(path, bytes === undefined ? {} : { end: bytes - 1 })) hash.update(chunk)
  return hash.digest("hex").slice(0, digits)
}

/** Identifies a model by its file's size, time and first bytes. */
const identityOf = async (path: string): Promise<string> => {
  const { mtimeMs, size } = await stat(path)
  return hashOf([size, mtimeMs, await digestOf(path, 1024 * 1024)])
}

/** Deletes files beyond the limits, the least recently used first. */
const prune = async (directory: string, key: string): Promise<void> => {
  const names = (await readdir(directory)).filter((name) => name.endsWith(ending))
  const files = await Promise.all(
    names.map(async (name) => {
      const { mtimeMs, size } = await stat(join(directory, name))
      return { name, mtimeMs, size }
    })
  )
  let bytes = 0
  let own = 0
  for (const { name, size } of files.toSorted((left, right) => right.mtimeMs - left.mtimeMs)) {
    bytes += size
    if (name.startsWith(key)) own++
    if (bytes > most.bytes || own > most.files) await rm(join(directory, name), { force: true })
  }
}

/** Loads a prefix into a sequence. The part that is already there stays. */
export type Restore = (
  sequence: LlamaContextSequence,
  beginning: ReadonlyArray<Token>,
  signal: AbortSignal
) => Promise<void>

/** Opens the folder for a model. `terms` are the other conditions of a state: versions, sizes. */
export const make = async (
  directory: string,
  modelPath: string,
  terms: ReadonlyArray<string | number>
): Promise<Restore> => {
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const key = hashOf([await identityOf(modelPath), ...terms])

  const load = async (sequence: LlamaContextSequence, name: string, beginning: ReadonlyArray<Token>) => {
    const path = join(directory, name)
    // A file of something else could end the process: it is looked at before.
    if (name.slice(-digits - ending.length, -ending.length) !== (await digestOf(path))) {
      await rm(path, { force: true })
      return false
    }
    await sequence.loadStateFromFile(path, { acceptRisk: true })
    const isRight = sequence.contextTokens.length === beginning.length
    if (!isRight) await sequence.clearHistory()
    else await utimes(path, new Date(), new Date())
    return isRight
  }

  const save = async (sequence: LlamaContextSequence, start: string) => {
    const beside = join(directory, `${start}${process.pid}.new`)
    const problem: unknown = await sequence
      .saveStateToFile(beside)
      .then(() => chmod(beside, 0o600))
      .then(() => digestOf(beside))
      .then((digest) => rename(beside, join(directory, `${start}${digest}${ending}`)))
      .then(
        () => undefined,
        (cause: unknown) => cause
      )
    await rm(beside, { force: true })
    if (problem !== undefined) return Promise.reject(problem)
    await prune(directory, key)
  }

  return async (sequence, beginning, signal) => {
    const commonLength = sequence.compareContextTokens([...beginning]).firstDifferentIndex
    if (beginning.length < least || commonLength >= beginning.length) return
    const start = `${key}-${hashOf(beginning)}-`
    const name = (await readdir(directory)).find((one) => one.startsWith(start) && one.endsWith(ending))
    if (name !== undefined && (await load(sequence, name, beginning))) return
    await sequence.adaptStateToTokens([...beginning], false)
    const { batchSize } = sequence.context
    while (sequence.nextTokenIndex < beginning.length && !signal.aborted) {
      const from = sequence.nextTokenIndex
      await sequence.evaluateWithoutGeneratingNewTokens(beginning.slice(from, from + batchSize))
    }
    if (!signal.aborted) await save(sequence, start)
  }
}

/** The tokens with which both prompts begin. */
export const commonPrefix = (left: ReadonlyArray<Token>, right: ReadonlyArray<Token>): ReadonlyArray<Token> => {
  const end = left.findIndex((token, index) => token !== right[index])
  return end === -1 ? left : left.slice(0, end)
}
