/**
 * Reads a document in a process of its own, and says how much memory that took, in bytes beyond what was there before:
 * `node memory.child.mjs FORMAT SMALL LARGE`.
 */
import { readFileSync } from "node:fs"
import { Document } from "effect-deepagents"
import { Documents } from "effect-deepagents/documents"
import * as NodeDocuments from "effect-deepagents/documents/NodeDocuments"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"

const [format, small, large] = process.argv.slice(2)

const drain = (bytes) =>
  Document.readPieces(
    Documents.formats.find(({ extensions }) => extensions.includes(format)),
    { bytes }
  ).pipe(
    Stream.runFold(
      () => 0,
      (total, { text }) => total + text.length
    ),
    Effect.match({ onSuccess: (total) => ({ total }), onFailure: ({ reason }) => ({ reason }) }),
    Effect.provide(NodeDocuments.layer()),
    Effect.runPromise
  )

// What reads the format is loaded, and warm.
for (let times = 0; times < 3; times++) await drain(new Uint8Array(readFileSync(small)))
globalThis.gc()
const before = process.memoryUsage.rss()
const bytes = new Uint8Array(readFileSync(large))
const outcome = await drain(bytes)
// The `maxRSS` of a process counts what its parent held when it was made.
const [, most] = /^VmHWM:\s*(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))
console.log(JSON.stringify({ peak: Number(most) * 1024 - before, ...outcome }))
