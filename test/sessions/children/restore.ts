/** Restores a turn slowly, so that it can be killed in the middle: `restore.ts <folder> <file> <before|after>`. */
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"

const [folder = "", file = "", to = "before"] = process.argv.slice(2)

const wait = new Int32Array(new SharedArrayBuffer(4))
const slow = ["renameSync", "unlinkSync", "mkdirSync", "rmdirSync", "symlinkSync", "chmodSync"] as const
for (const name of slow) {
  const call = Reflect.get(fs, name)
  Reflect.set(fs, name, (...args: ReadonlyArray<unknown>) => {
    Atomics.wait(wait, 0, 0, 8)
    return Reflect.apply(call, fs, args)
  })
}
syncBuiltinESMExports()

const { Effect, Layer } = await import("effect")
const { MemorySessions, SessionStore } = await import("effect-deepagents/sessions")
const FileCheckpoints = await import("effect-deepagents/sessions/FileCheckpoints")

const program = Effect.gen(function* () {
  const checkpoints = yield* FileCheckpoints.FileCheckpoints
  const store = yield* SessionStore.SessionStore
  yield* store.create({ threadId: "t" })
  const turns = yield* checkpoints.turns("t")
  fs.writeSync(1, "go\n")
  yield* checkpoints.restore({ threadId: "t", turns, to: to === "before" ? "before" : "after", leaf: null })
}).pipe(Effect.provide(Layer.merge(MemorySessions.layer, FileCheckpoints.layer({ folders: [folder], file }))))

await Effect.runPromise(program)
